/* Two cores of a tile with a circular buffer between them; NC reads pages from another tile, B adds up their numbers:
 * bhemu cc ring.c -o reader.elf --core NC && bhemu cc ring.c -o adder.elf
 *
 * docs/helpers.md runs it.
 */

#include <bhemu.h>

#define PAGES 6
#define PAGE_BYTES 1024

static bhemu_buffer ring = {.stream = 0, .base = 0x20000, .page_bytes = PAGE_BYTES, .pages = 2};

#if defined(BHEMU_CORE_NC)

int main(void) {
    for (unsigned i = 0; i < PAGES; i++) {
        bhemu_buffer_reserve(&ring, 1);
        bhemu_noc_read(0, BHEMU_PLACE(2, 2), 0x40000 + PAGE_BYTES * i, (void *)bhemu_buffer_address(&ring), PAGE_BYTES);
        bhemu_noc_barrier(0);
        bhemu_buffer_push(&ring, 1);
    }
    return 0;
}

#else

BHEMU_L1 uint32_t total;

int main(void) {
    for (unsigned i = 0; i < PAGES; i++) {
        bhemu_buffer_wait(&ring, 1);
        volatile uint32_t *page = (volatile uint32_t *)bhemu_buffer_address(&ring);
        for (unsigned j = 0; j < PAGE_BYTES / 4; j++) {
            total += page[j];
        }
        bhemu_buffer_pop(&ring, 1);
    }
    return 0;
}

#endif
