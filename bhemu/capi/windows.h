/* The host's windows into the NoC, as the client knows them (chip/pcie/windows.py). */

#ifndef BHEMU_WINDOWS_H
#define BHEMU_WINDOWS_H

#include "machine.h"

#include <string.h>

/* The entries of the windows of each chip. */
extern uint32_t window_entries[CHIPS][WINDOWS][3];

/* The chip that has an address in its BARs; makes the address that of the first chip. */
static inline uint64_t chip_of(uint64_t *paddr)
{
    uint64_t chip = CHIPS == 1 ? 0 : *paddr / DEVICE_STRIDE;
    if (chip >= CHIPS)
        return 0;
    *paddr -= chip * DEVICE_STRIDE;
    return chip;
}

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
static inline int window_aims(uint64_t paddr, const void *bytes, uint32_t size)
{
    uint64_t chip = chip_of(&paddr), at = paddr - WINDOW_CONFIG;
    if (at >= sizeof window_entries[chip] || at % 4 || size != 4)
        return 0;
    memcpy((char *)window_entries[chip] + at, bytes, 4);
    return 1;
}

/* A number for the place that an address shows as windows are aimed now. */
uint64_t window_place(uint64_t paddr);

/* Whether bytes at an address are L1 of a tile, or DRAM, and nothing else. */
int window_shows_memory(uint64_t paddr, uint32_t size);

#endif
