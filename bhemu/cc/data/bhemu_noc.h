/*
 * bhemu_noc.h: requests to other tiles and DRAM over the NoC, and semaphores in L1. <bhemu.h> includes this.
 *
 * `noc` is 0 or 1. `place` names a tile: BHEMU_PLACE(x, y), in translated coordinates. A request is started and goes
 * on by itself; bhemu_noc_barrier waits until all requests that this core has started on a NoC are answered. Until then
 * neither source nor destination may be touched.
 *
 * Both ends of a copy are 16-byte aligned in the same way (modulo 16; from DRAM to L1 modulo 64, N19). `local` is in L1:
 * local RAM is out of the NoC's reach.
 *
 * Each core has a transaction id of its own, so cores of a tile can use one NoC side by side. Each uses a set of request
 * registers: B set 0, NC 1, T0 2, T1 and T2 3. Where T1 and T2 both send on one NoC, or firmware has other customs,
 * define BHEMU_NOC_SET.
 */

#ifndef BHEMU_NOC_H
#define BHEMU_NOC_H

#if !defined(BHEMU_NOC_SET)
#if defined(BHEMU_CORE_B)
#define BHEMU_NOC_SET 0
#elif defined(BHEMU_CORE_NC)
#define BHEMU_NOC_SET 1
#elif defined(BHEMU_CORE_T0)
#define BHEMU_NOC_SET 2
#else
#define BHEMU_NOC_SET 3
#endif
#endif

/* Registers of a NoC's interface; those of a request are there four times, 0x800 apart (N13) */

#define BHEMU_NOC_TARGET          0x000 /* address: of the other tile in reads, inline writes and atomics */
#define BHEMU_NOC_TARGET_MID      0x004
#define BHEMU_NOC_TARGET_PLACE    0x008
#define BHEMU_NOC_RETURN          0x00C /* address: where data or a result go */
#define BHEMU_NOC_RETURN_MID      0x010
#define BHEMU_NOC_RETURN_PLACE    0x014
#define BHEMU_NOC_TAG             0x018 /* transaction id in bits 10-13 */
#define BHEMU_NOC_CONTROL         0x01C
#define BHEMU_NOC_LENGTH          0x020
#define BHEMU_NOC_LENGTH_HIGH     0x024
#define BHEMU_NOC_DATA            0x028
#define BHEMU_NOC_EXCLUDE         0x02C
#define BHEMU_NOC_START           0x040
#define BHEMU_NOC_ID_LOGICAL      0x148
#define BHEMU_NOC_ATOMIC_RESPONSES 0x200
#define BHEMU_NOC_WRITE_ACKS      0x204
#define BHEMU_NOC_READ_RESPONSES  0x208
#define BHEMU_NOC_OUTSTANDING     0x240 /* + 4 * transaction id, 8 bits */

/* Control words (N14): response wanted, static virtual channel 1, and the kind */

#define BHEMU_NOC_READ      0x2090
#define BHEMU_NOC_WRITE     0x2092
#define BHEMU_NOC_INLINE    0x209A
#define BHEMU_NOC_ATOMIC    0x2091
#define BHEMU_NOC_MULTICAST 0x21B2 /* a write with a path reserved through the rectangle */
#define BHEMU_NOC_TO_SELF   0x20000 /* a multicast also writes to the own tile */

#define BHEMU_NOC_LONGEST   16384 /* bytes of a packet (N17) */

#define BHEMU_PLACE(x, y) ((uint32_t)(y) << 6 | (uint32_t)(x))

#if !defined(__ASSEMBLER__)

#define BHEMU_NOC_ID           BHEMU_CORE
#define BHEMU_NOC_MULTICAST_ID (8 + BHEMU_CORE)

BHEMU_INLINE uint32_t bhemu_noc_register(uint32_t noc, uint32_t offset) {
    return bhemu_load(BHEMU_NOC0 + 0x10000 * noc + offset);
}

/* The place of the own tile, the same on both NoCs (N11). */
BHEMU_INLINE uint32_t bhemu_noc_here(void) { return bhemu_noc_register(0, BHEMU_NOC_ID_LOGICAL); }

/* Requests with a transaction id that are not answered yet; multicasts count as 1 minus their receivers (N20). */
BHEMU_INLINE uint32_t bhemu_noc_outstanding(uint32_t noc, uint32_t id) {
    return bhemu_noc_register(noc, BHEMU_NOC_OUTSTANDING + 4 * id) & 0xFF;
}

/* Starts a request of the given kind. What it needs beyond this is in the registers already. */
BHEMU_INLINE void bhemu_noc_start(uint32_t noc, uint32_t control, uint32_t id, uint32_t target, uint32_t target_place,
                                  uint32_t back, uint32_t back_place, uint32_t length) {
    uint32_t set = BHEMU_NOC0 + 0x10000 * noc + 0x800 * BHEMU_NOC_SET;
    bhemu_fence(); /* what the request reads has been stored */
    while (bhemu_load(set + BHEMU_NOC_START)) {
    }
    bhemu_store(set + BHEMU_NOC_TARGET, target);
    bhemu_store(set + BHEMU_NOC_TARGET_MID, 0);
    bhemu_store(set + BHEMU_NOC_TARGET_PLACE, target_place);
    bhemu_store(set + BHEMU_NOC_RETURN, back);
    bhemu_store(set + BHEMU_NOC_RETURN_MID, 0);
    bhemu_store(set + BHEMU_NOC_RETURN_PLACE, back_place);
    bhemu_store(set + BHEMU_NOC_TAG, id << 10);
    bhemu_store(set + BHEMU_NOC_CONTROL, control);
    bhemu_store(set + BHEMU_NOC_LENGTH, length);
    bhemu_store(set + BHEMU_NOC_LENGTH_HIGH, 0);
    bhemu_store(set + BHEMU_NOC_START, 1);
}

/* Waits until the core's requests on this NoC are answered. */
BHEMU_INLINE void bhemu_noc_barrier(uint32_t noc) {
    while (bhemu_noc_outstanding(noc, BHEMU_NOC_ID)) {
    }
    bhemu_fence(); /* later loads see what has arrived */
}

/* Copies `bytes` from an address of another tile, or of DRAM, to L1. */
BHEMU_INLINE void bhemu_noc_read(uint32_t noc, uint32_t place, uint32_t address, volatile void *local, uint32_t bytes) {
    uint32_t to = (uint32_t)local;
    while (bytes) {
        uint32_t part = bytes < BHEMU_NOC_LONGEST ? bytes : BHEMU_NOC_LONGEST;
        bhemu_noc_start(noc, BHEMU_NOC_READ, BHEMU_NOC_ID, address, place, to, bhemu_noc_here(), part);
        address += part;
        to += part;
        bytes -= part;
    }
}

/* Copies `bytes` from L1 to an address of another tile, or of DRAM. */
BHEMU_INLINE void bhemu_noc_write(uint32_t noc, uint32_t place, uint32_t address, const volatile void *local,
                                  uint32_t bytes) {
    uint32_t from = (uint32_t)local;
    while (bytes) {
        uint32_t part = bytes < BHEMU_NOC_LONGEST ? bytes : BHEMU_NOC_LONGEST;
        bhemu_noc_start(noc, BHEMU_NOC_WRITE, BHEMU_NOC_ID, from, bhemu_noc_here(), address, place, part);
        address += part;
        from += part;
        bytes -= part;
    }
}

/* Writes a word to a register of another tile. L1 is not for this: Blackhole may lose an inline write to L1 (N19). */
BHEMU_INLINE void bhemu_noc_write_register(uint32_t noc, uint32_t place, uint32_t address, uint32_t word) {
    bhemu_store(BHEMU_NOC0 + 0x10000 * noc + 0x800 * BHEMU_NOC_SET + BHEMU_NOC_DATA, word);
    bhemu_noc_start(noc, BHEMU_NOC_INLINE, BHEMU_NOC_ID, address, place, 0, bhemu_noc_here(), 0xF << (address & 0x3C));
}

/*
 * Copies `bytes` from L1 to the same address of each tile in a rectangle, and waits until all have it.
 *
 * `first` and `last` are its upper left and lower right corner (NoC 1 takes them the other way round, N21). `receivers`
 * is the number of Tensix tiles in it that the chip has, without the own tile, which receives nothing.
 */
BHEMU_INLINE void bhemu_noc_multicast(uint32_t noc, uint32_t first, uint32_t last, uint32_t address,
                                      const volatile void *local, uint32_t bytes, uint32_t receivers) {
    uint32_t from = (uint32_t)local;
    uint32_t corners = noc ? last << 12 | first : first << 12 | last;
    bhemu_store(BHEMU_NOC0 + 0x10000 * noc + 0x800 * BHEMU_NOC_SET + BHEMU_NOC_EXCLUDE, 0);
    while (bytes) {
        uint32_t part = bytes < BHEMU_NOC_LONGEST ? bytes : BHEMU_NOC_LONGEST;
        uint32_t before = bhemu_noc_outstanding(noc, BHEMU_NOC_MULTICAST_ID);
        bhemu_noc_start(noc, BHEMU_NOC_MULTICAST, BHEMU_NOC_MULTICAST_ID, from, bhemu_noc_here(), address,
                        corners, part);
        while (bhemu_noc_outstanding(noc, BHEMU_NOC_MULTICAST_ID) != ((before + 1 - receivers) & 0xFF)) {
        }
        address += part;
        from += part;
        bytes -= part;
    }
}

/* Adds to a word in L1 of a tile, which may be the own one, and gives what it held; no other add comes between. */
BHEMU_INLINE uint32_t bhemu_noc_fetch_add(uint32_t noc, uint32_t place, uint32_t address, uint32_t increment) {
    static volatile uint32_t before __attribute__((section(".l1"), aligned(16)));
    bhemu_store(BHEMU_NOC0 + 0x10000 * noc + 0x800 * BHEMU_NOC_SET + BHEMU_NOC_DATA, increment);
    bhemu_noc_start(noc, BHEMU_NOC_ATOMIC, BHEMU_NOC_ID, address, place, (uint32_t)&before, bhemu_noc_here(),
                    0x107C | (address >> 2 & 3)); /* add, all 32 bits, of the word in its 16-byte block (N22) */
    bhemu_noc_barrier(noc);
    return before;
}

/*
 * Semaphores in L1: a word that other tiles count up and its owner waits for.
 * BHEMU_L1 bhemu_l1_semaphore ready;
 */

typedef volatile uint32_t bhemu_l1_semaphore;

/* Sets a semaphore of the own tile. */
BHEMU_INLINE void bhemu_l1_semaphore_set(bhemu_l1_semaphore *semaphore, uint32_t value) { *semaphore = value; }

/* Adds to the semaphore at `address` of a tile, once what this core has written over this NoC has arrived. */
BHEMU_INLINE void bhemu_l1_semaphore_add(uint32_t noc, uint32_t place, uint32_t address, uint32_t increment) {
    bhemu_noc_barrier(noc);
    (void)bhemu_noc_fetch_add(noc, place, address, increment);
}

/* Waits until a semaphore of the own tile has at least this value. */
BHEMU_INLINE void bhemu_l1_semaphore_wait(bhemu_l1_semaphore *semaphore, uint32_t value) {
    while (*semaphore < value) {
    }
    bhemu_fence(); /* later loads see what was written before the semaphore */
}

#endif /* __ASSEMBLER__ */
#endif /* BHEMU_NOC_H */
