# rules: tile T12
# csrrs and csrrc return the old value of cfg0 and set or clear the bits that are given.
.core T2
    csrr a0, 0x7c0
    li t0, 0xA                  # DisBp and DisLowCash
    csrrs a1, 0x7c0, t0
    li t0, 2
    csrrc a2, 0x7c0, t0
    csrr a3, 0x7c0
    ebreak
