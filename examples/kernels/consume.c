/* Core T1 of a tile waits for pages of another one, and has the vector unit compute x * x + 1 again and again:
 * bhemu cc consume.c -o consume.elf --core T1
 *
 * With -DNO_WAIT it uses a GPR before the scalar unit has certainly written it: `bhemu run-client --check` says so.
 */

#include <bhemu.h>

#define PAGES 4
#define NUMBERS 64
#define FP32 3 /* format of SFPLOAD and SFPSTORE */

static volatile float *const pages = (volatile float *)0x20000;
static volatile uint32_t *const flag = (volatile uint32_t *)0x21000;

static void wait_for_pages(void) {
    while (*flag != PAGES) {
    }
}

static void to_dst(const volatile float *page) {
    for (unsigned i = 0; i < NUMBERS; i++) {
        *(volatile float *)(BHEMU_DST + 64 * (i / 16) + 4 * (i % 16)) = page[i];
    }
}

static void compute(void) {
#pragma GCC unroll 64
    for (unsigned turn = 0; turn < 64; turn++) {
        TTI_SFPLOAD(0, FP32, 0, 0);
        TTI_SFPMAD(0, 0, 10, 1, 0); /* LReg 1 = x * x + 1.0; LReg 10 is the constant 1.0 */
        TTI_SFPSTORE(1, FP32, 0, 0);
    }
    bhemu_tensix_sync();
}

int main(void) {
    wait_for_pages();
#ifdef NO_WAIT
    TTI_SETDMAREG(0, 0x20, 0, 24);
    TTI_WRCFG(12, 0, 69);
#endif
    for (unsigned number = 0; number < PAGES; number++) {
        to_dst(pages + number * NUMBERS);
        compute();
    }
    return 0;
}
