/* Core B of a tile reads a page of DRAM over the NoC, and writes the sum of its numbers back:
 * bhemu cc page_sum.c -o page_sum.elf
 *
 * docs/chip.md runs it on all tiles of a chip.
 */

#include <bhemu.h>

#define NUMBERS 512

/* Words of the NoC's request registers, and values of the control word */
enum { TARGET = 0, TARGET_AT = 2, RETURN = 3, RETURN_AT = 5, CONTROL = 7, BYTES = 8, START = 16 };
enum { MY_PLACE = 0x148 / 4, WRITES_DONE = 0x204 / 4, READS_DONE = 0x208 / 4 };
enum { READ = 0x2090, WRITE = 0x2092 };

BHEMU_L1 uint32_t bank;   /* y << 6 | x of a DRAM bank */
BHEMU_L1 uint32_t source; /* address of the page in there */
BHEMU_L1 uint32_t result; /* address for the sum in there */
BHEMU_L1 uint32_t page[NUMBERS] __attribute__((aligned(64)));

static volatile uint32_t *const noc = (volatile uint32_t *)BHEMU_NOC0;

static void request(uint32_t control, uint32_t target, uint32_t target_at, uint32_t back, uint32_t back_at,
                    uint32_t bytes, unsigned done) {
    uint32_t before = noc[done];
    noc[TARGET] = target;
    noc[TARGET_AT] = target_at;
    noc[RETURN] = back;
    noc[RETURN_AT] = back_at;
    noc[CONTROL] = control;
    noc[BYTES] = bytes;
    noc[START] = 1;
    while (noc[done] == before) {
    }
}

int main(void) {
    uint32_t me = noc[MY_PLACE];
    request(READ, source, bank, (uint32_t)page, me, sizeof page, READS_DONE);
    uint32_t total = 0;
    for (unsigned i = 0; i < NUMBERS; i++) {
        total += page[i];
    }
    page[0] = total;
    request(WRITE, (uint32_t)page, me, result, bank, sizeof total, WRITES_DONE);
    return 0;
}
