# rules: tile N15, tile N16, tile N22
# An atomic increment adds AT_DATA to the word of a 16-byte block that its code names, and returns the old word at TARG.
.core NC
.set l1.u32[0x20000] = 100 200 300 400
    li s0, 0xFFB21800           # NoC 0, initiator 3
    li t1, 0x81                 # this tile
    li t0, 0x20008
    sw t0, 0x00(s0)             # TARG: word 2 of its block
    sw zero, 0x04(s0)
    sw t1, 0x08(s0)
    li t0, 0x30000
    sw t0, 0x0C(s0)             # RET: where the old word goes
    sw zero, 0x10(s0)
    sw t1, 0x14(s0)
    sw zero, 0x18(s0)
    li t0, 0x2091
    sw t0, 0x1C(s0)             # CTRL: atomic, response wanted
    li t0, 0x107E
    sw t0, 0x20(s0)             # increment (1), width - 1 = 31, word 2
    li t0, 5
    sw t0, 0x28(s0)             # AT_DATA
    li t0, 1
    sw t0, 0x40(s0)
    sw t0, 0x40(s0)             # again: the registers keep their values
    ebreak
