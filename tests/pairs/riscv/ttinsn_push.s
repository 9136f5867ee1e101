# rules: tile T10, math Y2
# A word whose low bits are not 11 is a Tensix word, rotated left by two bits, for the core's own thread.
.core T1
    .ttinsn 0x45BEEF06          # SETDMAREG value=0xBEEF, RegIndex16b=6; the assembler rotates it
    .word 0x14048C1D            # 0x45012307 rotated by hand: SETDMAREG value=0x0123, RegIndex16b=7
    ebreak
