/* Core B adds up numbers in L1: bhemu cc sum.c -o sum.elf */

#include <bhemu.h>

BHEMU_L1 uint32_t numbers[256];
BHEMU_L1 uint32_t sum;

int main(void) {
    uint32_t total = 0;
    for (unsigned i = 0; i < 256; i++) {
        total += numbers[i];
    }
    sum = total;
    return 0;
}
