/* Core T1 lets the vector unit compute x / (1 + |x|) for 32 numbers, in the vector language of Tenstorrent's compiler:
 * bhemu cc softsign.cpp -o softsign.elf --core T1 --sfpi DIR
 *
 * dst_reg[0] is a vector of 32 lanes: the even columns of rows 0 to 3 of Dst.
 */

#include <bhemu.h>
#include <sfpi.h>

BHEMU_L1 float x[32];
BHEMU_L1 float y[32];

static volatile float *dst(unsigned lane) {
    return (volatile float *)(BHEMU_DST + 64 * (lane / 8) + 8 * (lane % 8));
}

/* 1 / a for a of 1 to 4, by Newton's method. */
static sfpi::vFloat reciprocal(sfpi::vFloat a) {
    sfpi::vFloat guess = sfpi::setexp(sfpi::vFloat(1.0f), 125); /* 0.25 */
    for (int step = 0; step < 7; step++) {
        guess = guess * (2.0f - a * guess);
    }
    return guess;
}

int main() {
    for (unsigned lane = 0; lane < 32; lane++) {
        *dst(lane) = x[lane];
    }
    sfpi::vFloat value = sfpi::dst_reg[0].mode<sfpi::DataLayout::F32>();
    sfpi::vFloat size = value;
    v_if (size < 0.0f) {
        size = -size;
    }
    v_endif;
    sfpi::dst_reg[0].mode<sfpi::DataLayout::F32>() = value * reciprocal(size + 1.0f);
    bhemu_tensix_sync();
    for (unsigned lane = 0; lane < 32; lane++) {
        y[lane] = *dst(lane);
    }
    return 0;
}
