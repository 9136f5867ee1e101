/* Core B of a tile makes pages of numbers and sends them to another tile over the NoC:
 * bhemu cc produce.c -o produce.elf
 *
 * examples/two_tiles.py runs it, docs/looking.md looks at it.
 */

#include <bhemu.h>

#define PAGES 4
#define NUMBERS 64

/* Words of the NoC's request registers, and values of the control word */
enum { TARGET = 0, TARGET_AT = 2, RETURN = 3, RETURN_AT = 5, CONTROL = 7, BYTES = 8, START = 16 };
enum { MY_PLACE = 0x148 / 4, WRITES_DONE = 0x204 / 4 };
enum { WRITE = 0x2092, CONSUMER = 4 << 6 | 3, PAGE_THERE = 0x20000, FLAG_THERE = 0x21000 };

BHEMU_L1 volatile uint32_t page[NUMBERS] __attribute__((aligned(64)));
BHEMU_L1 volatile uint32_t sent[4] __attribute__((aligned(16)));

static volatile uint32_t *const noc = (volatile uint32_t *)BHEMU_NOC0;

static void send(const volatile void *from, uint32_t to, uint32_t bytes) {
    uint32_t before = noc[WRITES_DONE];
    noc[TARGET] = (uint32_t)from;
    noc[TARGET_AT] = noc[MY_PLACE];
    noc[RETURN] = to;
    noc[RETURN_AT] = CONSUMER;
    noc[CONTROL] = WRITE;
    noc[BYTES] = bytes;
    noc[START] = 1;
    while (noc[WRITES_DONE] == before) {
    }
}

int main(void) {
    for (unsigned number = 0; number < PAGES; number++) {
        for (unsigned i = 0; i < NUMBERS; i++) {
            page[i] = 0x3F800000 + ((number * NUMBERS + i) << 13); /* the float 1 + n / 1024 */
        }
        send(page, PAGE_THERE + number * sizeof page, sizeof page);
    }
    sent[0] = PAGES;
    send(sent, FLAG_THERE, sizeof sent);
    return 0;
}
