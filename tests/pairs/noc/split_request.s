# rules: tile N17, tile N20
# A write of 20,000 bytes is split: one packet of 16,384 bytes and one of 3,616, which stays in the registers.
.core B
.set l1.u32[0x20000] = 11
.set l1.u32[0x24E1C] = 22
    li s0, 0xFFB20000           # NoC 0, initiator 0
    lw a0, 0x204(s0)            # counter 1, WR_ACK_RECEIVED, before
    li t1, 0x81                 # this tile: y 2, x 1
    li t0, 0x20000
    sw t0, 0x00(s0)             # TARG
    sw zero, 0x04(s0)
    sw t1, 0x08(s0)
    li t0, 0x30000
    sw t0, 0x0C(s0)             # RET
    sw zero, 0x10(s0)
    sw t1, 0x14(s0)
    sw zero, 0x18(s0)
    li t0, 0x2092
    sw t0, 0x1C(s0)             # CTRL: write, response wanted
    li t0, 20000
    sw t0, 0x20(s0)             # bytes
    li t0, 1
    sw t0, 0x40(s0)             # start
    lw a1, 0x204(s0)
    sub a1, a1, a0
    lw a2, 0x20(s0)
    lw a3, 0x00(s0)
    lw a4, 0x0C(s0)
    ebreak
