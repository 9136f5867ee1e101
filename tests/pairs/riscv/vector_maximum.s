# rules: tile T7
# Core T2 finds the largest of 16 halves of L1 and its first place with vector instructions: the loads and the maximum of
# tt-metal's argmax kernel. The test's assembler does not know the extension, so its words are spelled out.
.core T2
.set l1.u16[0x20000] = 5 9 3 0xFFF0 7 1 0xFFF0 2 4 6 8 10 12 14 16 18
    li a0, 0x20000
    .word 0xCC987057            # vsetivli zero, 16, e16, m2, ta, ma
    .word 0x02055407            # vle16.v v8, (a0)
    .word 0x42006257            # vmv.s.x v4, zero
    .word 0x1A822257            # vredmaxu.vs v4, v8, v4
    .word 0x424025D7            # vmv.x.s a1, v4
    .word 0x6285C1D7            # vmseq.vx v3, v8, a1
    .word 0x4238A657            # vfirst.m a2, v3
    .word 0x423826D7            # vcpop.m a3, v3
    ebreak
