/* B fills numbers, T1 doubles them, NC adds them up, in L1 of one tile; each waits for the one before. */

#include <bhemu.h>

#ifndef FAULT
#define FAULT 0
#endif

enum {
    NONE,
    NO_FLAG,
    FLAG_FIRST,
    WRONG_FLAG,
    NO_SEMAPHORE,
    SEMAPHORE_FIRST,
    BUFFERS_OVERLAP,
    RESULT_OVERLAPS,
    SOURCE_CHANGES,
    READ_INTO_NUMBERS,
    NO_MAILBOX,
    MAILBOX_FIRST,
};

#define GO 0x2F000
#define COUNT 32

/* Flags and buffers, apart from each other */
enum { FILLED = 0x2F100, DOUBLED = 0x2F200, OTHER = 0x2F300, NUMBERS = 0x30000, DOUBLES = 0x31000, RESULT = 0x32000 };

static volatile uint32_t *at(uint32_t address) { return (volatile uint32_t *)address; }

static inline void raise_flag(uint32_t flag) {
    bhemu_fence();
    *at(flag) = 1;
}

static inline void wait_flag(uint32_t flag) {
    while (*at(flag) != 1) {
    }
    bhemu_fence();
}

#if defined(BHEMU_CORE_B)

int main(void) {
    *at(FILLED) = *at(DOUBLED) = 0;
    *at(OTHER) = 0;
    raise_flag(GO);
    if (FAULT == FLAG_FIRST) {
        raise_flag(FILLED);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        at(NUMBERS)[i] = i;
    }
    raise_flag(FILLED);
    raise_flag(OTHER);
    if (FAULT == SOURCE_CHANGES) {
        at(NUMBERS)[3] = 5;
    }
    if (FAULT == READ_INTO_NUMBERS) {
        bhemu_noc_read(0, BHEMU_PLACE(1, 2), 0x40000, at(NUMBERS), 64);
        bhemu_noc_barrier(0);
    }
    if (FAULT == MAILBOX_FIRST) {
        bhemu_mailbox_send(BHEMU_T0, 1);
    }
    at(RESULT)[8] = 1;
    if (FAULT != MAILBOX_FIRST) {
        bhemu_mailbox_send(BHEMU_T0, 1);
    }
    return 0;
}

#elif defined(BHEMU_CORE_T0)

int main(void) {
    wait_flag(GO);
    if (FAULT != NO_MAILBOX) {
        (void)bhemu_mailbox_receive(BHEMU_B);
    }
    for (unsigned i = 0; FAULT == NO_MAILBOX && i < 400; i++) {
        __asm__ volatile("");
    }
    at(RESULT)[9] = at(RESULT)[8] + 1;
    return 0;
}

#elif defined(BHEMU_CORE_T1)

int main(void) {
    wait_flag(GO);
    if (FAULT != NO_FLAG) {
        wait_flag(FAULT == WRONG_FLAG ? GO : FILLED);
    }
    uint32_t to = FAULT == BUFFERS_OVERLAP ? RESULT : DOUBLES;
    if (FAULT == SEMAPHORE_FIRST) {
        raise_flag(DOUBLED);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        at(to)[i] = 2 * at(NUMBERS)[i];
    }
    if (FAULT != SEMAPHORE_FIRST) {
        raise_flag(DOUBLED);
    }
    return 0;
}

#else

int main(void) {
    wait_flag(GO);
    if (FAULT == NO_SEMAPHORE) {
        wait_flag(FILLED);
    } else {
        wait_flag(DOUBLED);
    }
    uint32_t sum = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        sum += at(DOUBLES)[i];
    }
    at(FAULT == RESULT_OVERLAPS ? RESULT + 32 : RESULT)[0] = sum;
    return 0;
}

#endif
