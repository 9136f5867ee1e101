/* The host's windows into the NoC, as the client knows them (chip/pcie/windows.py). */

#ifndef BHEMU_WINDOWS_H
#define BHEMU_WINDOWS_H

#include "machine.h"

/* Number of the window that holds an address in BAR0 or BAR4, or NO_WINDOW; sets the offset in it. */
static inline uint32_t window_of(uint64_t paddr, uint64_t *offset)
{
    if (paddr - BAR0 < SMALL_WINDOWS_END - BAR0) {
        *offset = paddr & ((UINT64_C(1) << SMALL_BITS) - 1);
        return (paddr - BAR0) >> SMALL_BITS;
    }
    if (paddr - BAR4 < BAR4_SIZE) {
        *offset = paddr & ((UINT64_C(1) << LARGE_BITS) - 1);
        return FIRST_LARGE + ((paddr - BAR4) >> LARGE_BITS);
    }
    return NO_WINDOW;
}

static inline uint64_t mix(uint64_t hash, uint64_t bits)
{
    hash = (hash ^ bits) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 32;
}

/* A new chip: no window is aimed. */
void windows_start(void);

/* The client writes: whether that only aims a window. */
int window_aims(uint64_t paddr, const void *bytes, uint32_t size);

/* A number for the place that an address shows as windows are aimed now. */
uint64_t window_place(uint64_t paddr);

/* Whether bytes at an address are L1 of a tile, or DRAM, and nothing else. */
int window_shows_memory(uint64_t paddr, uint32_t size);

#endif
