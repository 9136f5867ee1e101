/* B and NC each add to numbers in L1, one at a time: an atomic instruction takes the lock, a store gives it back. */

#include <bhemu.h>

#ifndef FAULT
#define FAULT 0
#endif

enum {
    NONE,
    NO_LOCK,
    TWO_LOCKS,
    UNLOCKS_EARLY,
};

#define GO 0x2F000
#define ROUNDS 8

enum { LOCK = 0x2F100, OTHER_LOCK = 0x2F200, NUMBERS = 0x30000 };

static volatile uint32_t *at(uint32_t address) { return (volatile uint32_t *)address; }

static inline uint32_t exchange(uint32_t address, uint32_t value) {
    uint32_t before;
    __asm__ volatile(".insn r 0x2F, 2, 4, %0, %1, %2" : "=r"(before) : "r"(address), "r"(value) : "memory"); /* amoswap.w */
    return before;
}

static void add(uint32_t lock) {
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (FAULT != NO_LOCK && exchange(lock, 1) != 0) {
        }
        if (FAULT == UNLOCKS_EARLY) {
            *at(lock) = 0;
        }
        at(NUMBERS)[i] = at(NUMBERS)[i] + i;
        bhemu_fence();
        if (FAULT != UNLOCKS_EARLY) {
            *at(lock) = 0;
        }
    }
}

#if defined(BHEMU_CORE_B)

int main(void) {
    *at(LOCK) = *at(OTHER_LOCK) = 0;
    bhemu_fence();
    *at(GO) = 1;
    add(LOCK);
    return 0;
}

#else

int main(void) {
    while (*at(GO) != 1) {
    }
    add(FAULT == TWO_LOCKS ? OTHER_LOCK : LOCK);
    return 0;
}

#endif
