# rules: tile T5
# Atomic operations on L1 return the word that was there before; minimum and maximum are signed or unsigned by name.
.core T0
.set l1.u32[0x20000] = 100 7 0xFFFFFFFE 0xFFFFFFFE
    li s0, 0x20000
    li t0, 23
    amoadd.w a0, t0, (s0)
    addi s1, s0, 4
    amoswap.w a1, t0, (s1)
    addi s1, s0, 8
    amomax.w a2, t0, (s1)
    addi s1, s0, 12
    amomaxu.w a3, t0, (s1)
    ebreak
