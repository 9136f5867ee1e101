/* What the client has aimed the windows at. */

#include "windows.h"

#include <string.h>

uint32_t window_entries[CHIPS][WINDOWS][3];

void windows_start(void)
{
    memset(window_entries, 0, sizeof window_entries);
}

uint64_t window_place(uint64_t paddr)
{
    uint64_t offset, own = paddr, chip = chip_of(&own);
    uint32_t number = window_of(own, &offset);
    if (number == NO_WINDOW)
        return paddr;
    const uint32_t *entry = window_entries[chip][number];
    return paddr ^ mix(mix(0, entry[0] | (uint64_t)entry[1] << 32), entry[2]);
}

int window_shows_memory(uint64_t paddr, uint32_t size)
{
    uint64_t offset, base, fields, chip = chip_of(&paddr);
    uint32_t number = window_of(paddr, &offset);
    if (number == NO_WINDOW)
        return 0;
    const uint32_t *entry = window_entries[chip][number];
    uint64_t low = entry[0], middle = entry[1], high = entry[2];
    if (number < FIRST_LARGE) {
        base = (low | middle << 32) << SMALL_BITS;
        fields = middle >> (32 - SMALL_BITS) | high << SMALL_BITS;
    } else {
        base = low << LARGE_BITS;
        fields = middle | high << 32;
    }
    uint64_t x = fields & COORDINATE, y = fields >> COORDINATE_BITS & COORDINATE;
    if (fields & NOT_UNICAST || x >= MEMORY_PLACES || y >= MEMORY_PLACES || !machine_shows[x][y])
        return 0;
    static const uint64_t bytes[] = {[SHOWS_TENSIX] = L1_BYTES, [SHOWS_DRAM] = DRAM_BYTES, [SHOWS_ETHERNET] = ETHERNET_L1_BYTES};
    uint64_t end = bytes[machine_shows[x][y]];
    return base + offset < end && size <= end - base - offset;
}
