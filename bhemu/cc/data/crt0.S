/* Start-up of a bare kernel: the hardware gives the core its pc and nothing else (T16, T18). */

        .section .bhemu.start, "ax", @progbits
        .globl  _start
        .type   _start, @function
_start:
        .option push
        .option norelax
        la      gp, __global_pointer$
        .option pop
        la      sp, __bhemu_stack_top

        /* .data: from its image in L1 to local RAM, word by word. */
        la      t0, __bhemu_data_load
        la      t1, __bhemu_data_start
        la      t2, __bhemu_data_end
        bgeu    t1, t2, 2f
1:      lw      t3, 0(t0)
        sw      t3, 0(t1)
        addi    t0, t0, 4
        addi    t1, t1, 4
        bltu    t1, t2, 1b

        /* .bss: local RAM may hold the last program's values (T16). */
2:      la      t1, __bhemu_bss_start
        la      t2, __bhemu_bss_end
        bgeu    t1, t2, 4f
3:      sw      zero, 0(t1)
        addi    t1, t1, 4
        bltu    t1, t2, 3b

        /* Constructors of C++ and __attribute__((constructor)). */
4:      la      s0, __bhemu_init_array_start
        la      s1, __bhemu_init_array_end
        bgeu    s0, s1, 6f
5:      lw      t0, 0(s0)
        jalr    t0
        addi    s0, s0, 4
        bltu    s0, s1, 5b

6:      li      a0, 0
        li      a1, 0
        call    main
        la      t0, __bhemu_exit_code
        sw      a0, 0(t0)
        fence

        /* The core halts here (T9): one that stands behind this ebreak has returned from main. */
        .globl  __bhemu_halt
__bhemu_halt:
        ebreak
        j       __bhemu_halt
        .size   _start, . - _start

        .section .bhemu.bss, "aw", @nobits
        .globl  __bhemu_exit_code
        .type   __bhemu_exit_code, @object
        .size   __bhemu_exit_code, 4
        .balign 4
__bhemu_exit_code:
        .space  4
