# rules: tile T3, tile T4
# Division by zero and overflow have results and no trap; Zba, Zbb and brev8 are there.
.core B
    li a0, -7
    div a1, a0, zero
    rem a2, a0, zero
    li t0, 0x80000000
    li t1, -1
    div a3, t0, t1
    li a4, 99
    rem a4, t0, t1
    li t2, 0x12345678
    sh2add a5, t2, t1
    rev8 a6, t2
    brev8 a7, t2
    clz s2, zero
    ebreak
