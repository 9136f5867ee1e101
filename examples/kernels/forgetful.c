/* Reads 64 bytes of another tile and uses them without a barrier: `bhemu run forgetful.elf --check` says so.
 *
 * docs/looking.md shows it.
 */

#include <bhemu.h>

BHEMU_L1 volatile uint32_t words[16] __attribute__((aligned(64)));
BHEMU_L1 volatile uint32_t sum;

int main(void) {
    bhemu_noc_read(0, BHEMU_PLACE(1, 2), 0, words, sizeof words);
    uint32_t total = 0;
    for (unsigned i = 0; i < 16; i++) {
        total += words[i];
    }
    sum = total;
    bhemu_noc_barrier(0);
    return 0;
}
