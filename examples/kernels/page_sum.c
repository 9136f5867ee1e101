/* Core B of a tile reads a page of DRAM over the NoC, and writes the sum of its numbers back:
 * bhemu cc page_sum.c -o page_sum.elf
 *
 * docs/chip.md runs it on all tiles of a chip.
 */

#include <bhemu.h>

#define NUMBERS 512

BHEMU_L1 uint32_t bank;   /* place of a DRAM bank: BHEMU_PLACE(x, y) */
BHEMU_L1 uint32_t source; /* address of the page in there */
BHEMU_L1 uint32_t result; /* address for the sum in there */
BHEMU_L1 uint32_t page[NUMBERS] __attribute__((aligned(64)));

int main(void) {
    bhemu_noc_read(0, bank, source, page, sizeof page);
    bhemu_noc_barrier(0);
    uint32_t total = 0;
    for (unsigned i = 0; i < NUMBERS; i++) {
        total += page[i];
    }
    page[0] = total;
    bhemu_noc_write(0, bank, result, page, sizeof total);
    bhemu_noc_barrier(0);
    return 0;
}
