// The environment of the public riscv-tests on a core of bhemu: no privileged code, no traps.
// A test ends at an ebreak, with 0 in a0 when it has passed and the number of the case that failed otherwise.

#ifndef BHEMU_RISCV_TEST_H
#define BHEMU_RISCV_TEST_H

#define TESTNUM gp

#define RVTEST_RV32U
#define RVTEST_RV64U

#define RVTEST_CODE_BEGIN                                                                                              \
    .section .text.start;                                                                                              \
    .globl _start;                                                                                                     \
    _start:                                                                                                            \
    li TESTNUM, 0;

#define RVTEST_CODE_END

#define RVTEST_PASS                                                                                                    \
    li a0, 0;                                                                                                          \
    ebreak;

#define RVTEST_FAIL                                                                                                    \
    mv a0, TESTNUM;                                                                                                    \
    ebreak;

#define RVTEST_DATA_BEGIN .balign 64;
#define RVTEST_DATA_END

#endif
