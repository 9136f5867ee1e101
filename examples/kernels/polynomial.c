/* Core T1 lets the vector unit compute x * x + 1 for 32 numbers: bhemu cc polynomial.c -o polynomial.elf --core T1
 *
 * The numbers go into Dst and come back through the window of the T cores, in which a 32-bit row has 64 bytes.
 * SFPLOAD takes the even columns of four rows, a lane each.
 */

#include <bhemu.h>

#define FP32 3 /* format of SFPLOAD and SFPSTORE */

BHEMU_L1 float x[32];
BHEMU_L1 float y[32];

static volatile float *dst(unsigned lane) {
    return (volatile float *)(BHEMU_DST + 64 * (lane / 8) + 8 * (lane % 8));
}

int main(void) {
    for (unsigned lane = 0; lane < 32; lane++) {
        *dst(lane) = x[lane];
    }
    TTI_SFPLOAD(0, FP32, 0, 0);       /* LReg 0 = x */
    TTI_SFPMAD(0, 0, 10, 1, 0);       /* LReg 1 = x * x + 1.0; LReg 10 is the constant 1.0 */
    TTI_SFPSTORE(1, FP32, 0, 0);
    bhemu_tensix_sync();
    for (unsigned lane = 0; lane < 32; lane++) {
        y[lane] = *dst(lane);
    }
    return 0;
}
