# rules: tile K20
# A T core reads, posts and gets semaphores in its window; all three T cores and the threads see the same eight.
.core T0
.set semaphore.value[1] = 5
    li s0, 0xFFE80020
    lw a0, 4(s0)                # semaphore 1
    sw zero, 4(s0)              # bit 0 clear: post
    sw zero, 4(s0)
    li t0, 1
    sw t0, 8(s0)                # bit 0 set: get semaphore 2
    sw zero, 12(s0)             # post semaphore 3: core T2 may go on
    ebreak
.core T2
    li s0, 0xFFE80020
wait:
    lw a0, 12(s0)
    beqz a0, wait
    lw a1, 4(s0)
    ebreak
