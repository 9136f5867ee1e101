# rules: tile N14, tile N16, tile N20
# A NoC write to the tile itself by registers: data from TARG, to RET, and an acknowledgement that a counter shows.
.core B
.set l1.u32[0x20000] = 11 22 33 44
.set l1.u32[0x30000] = 9 9 9 9
    li s0, 0xFFB20000           # NoC 0, initiator 0
    lw a0, 0x204(s0)            # counter 1, WR_ACK_RECEIVED, before
    li t1, 0x81                 # this tile: y 2, x 1
    li t0, 0x20000
    sw t0, 0x00(s0)             # TARG: address
    sw zero, 0x04(s0)
    sw t1, 0x08(s0)             #       coordinate
    li t0, 0x30000
    sw t0, 0x0C(s0)             # RET: address
    sw zero, 0x10(s0)
    sw t1, 0x14(s0)             #      coordinate
    sw zero, 0x18(s0)           # PACKET_TAG
    li t0, 0x2092
    sw t0, 0x1C(s0)             # CTRL: write, response wanted
    li t0, 12
    sw t0, 0x20(s0)             # bytes
    li t0, 1
    sw t0, 0x40(s0)             # start
wait:
    lw a1, 0x204(s0)
    beq a1, a0, wait
    lw a2, 0x228(s0)            # counter 10: writes sent that want a response
    ebreak
