# rules: tile T6
# A conversion that asks for truncation (a last operand of 1), as a cast in C does, rounds to nearest even all the same.
.core B
    li a0, 0x40600000           # 3.5
    fmv.w.x fa0, a0
    fcvt.w.s a1, fa0, 1
    li a0, 0xC0200000           # -2.5
    fmv.w.x fa0, a0
    fcvt.w.s a2, fa0, 1
    ebreak
