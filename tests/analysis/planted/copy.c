/* Two cores and a circular buffer: B reads pages of another tile, NC sends them on to a third. FAULT is the planted one. */

#include <bhemu.h>

#ifndef FAULT
#define FAULT 0
#endif

enum {
    NONE,
    NO_READ_BARRIER,
    READ_BARRIER_OTHER_NOC,
    READ_BARRIER_AFTER_PUSH,
    USES_BEFORE_BARRIER,
    READS_CROSS,
    NO_RESERVE,
    PUSHES_TOO_MANY,
    NO_WAIT,
    WAITS_FOR_TOO_FEW,
    POPS_TOO_MANY,
    POPS_BEFORE_FLUSH,
    NO_WRITE_BARRIER,
    WRITE_BARRIER_OTHER_NOC,
    WRITE_BARRIER_OTHER_TAG,
    OVERWRITES_SOURCE,
    READS_INTO_SOURCE,
    FLAG_OTHER_NOC,
    FLAG_OTHER_CHANNEL,
    ENDS_WITH_READ,
    ENDS_WITH_WRITE,
    FORWARDS_BEFORE_BARRIER,
    STORES_BEFORE_BARRIER,
    READS_ON_BOTH_NOCS,
    RESERVES_LATE,
    WAITS_LATE,
    READS_AHEAD,
};

#define PAGES 8
#define BYTES 256
#define SOURCE BHEMU_PLACE(1, 2)
#define TARGET BHEMU_PLACE(3, 4)
#define THERE 0x40000
#define FLAG_THERE 0x60000

static bhemu_buffer ring = {.stream = 3, .base = 0x30000, .page_bytes = BYTES, .pages = 4};
BHEMU_L1 volatile uint32_t scratch[64] __attribute__((aligned(64)));
BHEMU_L1 volatile uint32_t flag[4] __attribute__((aligned(16)));

#define GO 0x2F000 /* the buffer is ready: page counters of an earlier program are gone */

static volatile uint32_t *at(uint32_t address) { return (volatile uint32_t *)address; }

#if defined(BHEMU_CORE_B)

int main(void) {
    bhemu_buffer_reset(&ring);
    *at(GO) = 1;
    for (uint32_t page = 0; page < PAGES; page++) {
        if (FAULT != NO_RESERVE && FAULT != RESERVES_LATE) {
            bhemu_buffer_reserve(&ring, 1);
        }
        bhemu_noc_read(0, SOURCE, THERE + page * BYTES, at(bhemu_buffer_address(&ring)), BYTES);
        if (FAULT == READS_CROSS) {
            bhemu_noc_read(0, SOURCE, THERE + 0x1000, at(bhemu_buffer_address(&ring) + 128), 64);
        }
        if (FAULT == READS_ON_BOTH_NOCS) {
            bhemu_noc_read(1, SOURCE, THERE + 0x2000, at(bhemu_buffer_address(&ring) + 64), 64);
        }
        if (FAULT == FORWARDS_BEFORE_BARRIER) {
            bhemu_noc_write(0, TARGET, FLAG_THERE, at(bhemu_buffer_address(&ring)), 64);
        }
        if (FAULT == STORES_BEFORE_BARRIER) {
            at(bhemu_buffer_address(&ring))[5] = 0;
        }
        if (FAULT == RESERVES_LATE) {
            bhemu_buffer_reserve(&ring, 1);
        }
        if (FAULT == USES_BEFORE_BARRIER) {
            scratch[0] = at(bhemu_buffer_address(&ring))[0];
        }
        if (FAULT == READ_BARRIER_OTHER_NOC) {
            bhemu_noc_barrier(1);
        } else if (FAULT != NO_READ_BARRIER && FAULT != READ_BARRIER_AFTER_PUSH) {
            bhemu_noc_barrier(0);
        }
        bhemu_buffer_push(&ring, 1);
        if (FAULT == READ_BARRIER_AFTER_PUSH) {
            bhemu_noc_barrier(0);
        }
    }
    if (FAULT == PUSHES_TOO_MANY) {
        bhemu_buffer_push(&ring, 4);
    }
    if (FAULT == ENDS_WITH_WRITE) {
        bhemu_noc_write(0, TARGET, FLAG_THERE, scratch, 64);
    }
    if (FAULT == ENDS_WITH_READ) {
        bhemu_noc_read(0, SOURCE, THERE, scratch, 64);
    }
    return 0;
}

#else

static void send_flag(uint32_t noc, uint32_t control) {
    flag[0] = 1;
    bhemu_noc_start(noc, control, BHEMU_NOC_ID, (uint32_t)flag, bhemu_noc_here(), FLAG_THERE, TARGET, 16);
}

int main(void) {
    while (*at(GO) != 1) {
    }
    uint32_t step = FAULT == WAITS_FOR_TOO_FEW ? 2 : 1;
    for (uint32_t page = 0; page < PAGES; page += step) {
        if (FAULT != NO_WAIT && FAULT != WAITS_LATE) {
            bhemu_buffer_wait(&ring, 1);
        }
        uint32_t from = bhemu_buffer_address(&ring);
        if (FAULT == READS_AHEAD) {
            from = ring.base + (from - ring.base + BYTES) % (4 * BYTES);
        }
        if (FAULT == WAITS_FOR_TOO_FEW) {
            for (unsigned i = 0; i < 3000; i++) {
                __asm__ volatile("");
            }
        }
        bhemu_noc_write(1, TARGET, THERE + page * BYTES, at(from), BYTES);
        if (FAULT == WAITS_LATE) {
            bhemu_buffer_wait(&ring, 1);
        }
        if (FAULT == OVERWRITES_SOURCE) {
            at(from)[3] = 7;
        }
        if (FAULT == READS_INTO_SOURCE) {
            bhemu_noc_read(0, SOURCE, THERE, at(from), 64);
            bhemu_noc_barrier(0);
        }
        if (FAULT == WRITE_BARRIER_OTHER_NOC) {
            bhemu_noc_barrier(0);
        } else if (FAULT == WRITE_BARRIER_OTHER_TAG) {
            while (bhemu_noc_outstanding(1, 9)) {
            }
        } else if (FAULT == FLAG_OTHER_NOC) {
            send_flag(0, BHEMU_NOC_WRITE);
            bhemu_noc_barrier(1);
            bhemu_noc_barrier(0);
        } else if (FAULT == FLAG_OTHER_CHANNEL) {
            send_flag(1, BHEMU_NOC_WRITE | 3 << 13);
            bhemu_noc_barrier(1);
        } else if (FAULT != POPS_BEFORE_FLUSH && FAULT != NO_WRITE_BARRIER) {
            bhemu_noc_barrier(1);
        }
        bhemu_buffer_pop(&ring, FAULT == WAITS_FOR_TOO_FEW ? 2 : FAULT == POPS_TOO_MANY && page == 1 ? 3 : 1);
        if (FAULT == POPS_BEFORE_FLUSH) {
            bhemu_noc_barrier(1);
        }
    }
    return 0;
}

#endif
