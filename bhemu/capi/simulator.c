/* The chip in the client's process. */

#define _GNU_SOURCE
#include "simulator.h"
#include "pace.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };
_Static_assert(TILE_L1 % PAGE_BYTES == 0 && TILE_BYTES % PAGE_BYTES == 0, "tiles begin with whole pages");

struct simulator simulator;
static read_callback dma_read;
static write_callback dma_write;
static const char zeros[ZEROS_BYTES];

void *simulator_memory(size_t size)
{
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        refuse("libttsim_init", "there is no memory for a chip", "raise the limit of address space, or free some memory");
    madvise(place, size, MADV_NOHUGEPAGE); /* else every tile would have all of its L1 in memory */
    return place;
}

/* Code of the cores is translated, where it shall be and can be; as bhemu/riscv/translator.py does. */
static void attach_translator(char *code)
{
#ifdef __x86_64__
    char *memory = (char *)(intptr_t)FIELD(int64_t, code, CODE_MEMORY);
    if (!memory && setting(TRANSLATE)) {
        size_t size = CODE_FIRST + TRANSLATED_BYTES;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return;
        if (mprotect(memory + CODE_FIRST, sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC)) {
            munmap(memory, size);
            return; /* the system does not let written memory be executed */
        }
        FIELD(int64_t, code, CODE_PROTECT) = (intptr_t)mprotect;
        FIELD(int64_t, code, CODE_MEMORY) = (intptr_t)memory;
        FIELD(int64_t, code, CODE_MEMORY_BYTES) = TRANSLATED_BYTES;
        FIELD(int64_t, code, CODE_MEMORY_USED) = CODE_FIRST;
        FIELD(int64_t, code, CODE_HOT) = TRANSLATED_FROM;
        FIELD(int64_t, code, CODE_ENTRY_COUNT) = 1;
    }
    FIELD(int64_t, code, CODE_NATIVE) = memory && setting(TRANSLATE) ? (intptr_t)translate : 0;
#else
    (void)code;
#endif
}

void simulator_fill_table(int64_t table[PLACES])
{
    int64_t code = table[CODE_CACHE];
    for (int place = 0; place < PLACES; place++)
        table[place] = (int64_t)(intptr_t)machine_handlers[place];
    table[CODE_CACHE] = code ? code : (int64_t)(intptr_t)simulator_memory(CODE_BYTES);
    attach_translator((char *)(intptr_t)table[CODE_CACHE]);
}

/* Put into a record what it holds after reset beside zeros (capi/image.py): what all tiles have, one tile, or the chip. */
static void put_image(int32_t of, char *record)
{
    const unsigned char *content = image_content;
    for (const struct run *run = image_runs; run->size; content += run++->size)
        if (run->tile == of)
            memcpy(record + run->at, content, run->size);
}

/* What all tiles have before their L1. */
static void begin_tile(char *record)
{
    put_image(IN_EACH_TILE, record);
    FIELD(int64_t, record, TILE_HANDLERS) = (intptr_t)simulator.table;
    FIELD(TILE_SIMULATOR_ORDER_TYPE, record, TILE_SIMULATOR_ORDER) = setting(ORDER) == 0;
    FIELD(TILE_ALLOW_OPEN_TYPE, record, TILE_ALLOW_OPEN) = setting(ALLOW_OPEN);
}

/* Let tiles begin with the pages of one file, until they write them; returns how many do. */
static int share_beginning(void)
{
    char *beginning = simulator_memory(TILE_L1);
    int file = memfd_create("bhemu", MFD_CLOEXEC), shared = 0;
    begin_tile(beginning);
    int complete = file >= 0 && !ftruncate(file, TILE_L1);
    for (size_t at = 0; complete && at < TILE_L1; at += PAGE_BYTES)
        if (beginning[at] || memcmp(beginning + at, beginning + at + 1, PAGE_BYTES - 1))
            complete = pwrite(file, beginning + at, PAGE_BYTES, at) == PAGE_BYTES;
    while (complete && shared < TILES &&
           mmap(simulator.tiles + (size_t)shared * TILE_BYTES, TILE_L1, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, 0) != MAP_FAILED)
        shared++;
    if (file >= 0)
        close(file);
    munmap(beginning, TILE_L1);
    return shared;
}

/* All tiles after reset. What takes the time here is memory, so tiles share it until they use it. */
static void start_tiles(void)
{
    for (int tile = share_beginning(); tile < TILES; tile++)
        begin_tile(simulator.tiles + (size_t)tile * TILE_BYTES);
    const unsigned char *content = image_content;
    for (const struct run *run = image_runs; run->size; content += run++->size)
        if (run->tile >= 0)
            memcpy(simulator.tiles + (size_t)run->tile * TILE_BYTES + run->at, content, run->size);
}

/* Functions of the host, as compiled code calls them: 0 when they have moved the bytes. */
static int32_t read_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_read)
        return 1;
    pace_share();
    dma_read(address, bytes, size);
    return 0;
}

static int32_t write_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_write)
        return 1;
    pace_share();
    pace_begin(); /* the client may wait for it */
    dma_write(address, bytes, size);
    return 0;
}

void simulator_set_callbacks(read_callback reads, write_callback writes)
{
    dma_read = reads;
    dma_write = writes;
}

void simulator_start(void)
{
    char *chip = simulator_memory(CHIP_BYTES);
    simulator.tiles = simulator_memory((size_t)TILES * TILE_BYTES);
    simulator.chip = chip;
    simulator_fill_table(simulator.table);
    put_image(IN_CHIP, chip);
    start_tiles();
    FIELD(int64_t, chip, CHIP_ADDRESS) = (intptr_t)chip;
    FIELD(int64_t, chip, CHIP_TILES) = (intptr_t)simulator.tiles;
    FIELD(int64_t, chip, CHIP_ZEROS) = (intptr_t)zeros;
    FIELD(int64_t, chip, CHIP_HOST_READ) = (intptr_t)read_host;
    FIELD(int64_t, chip, CHIP_HOST_WRITE) = (intptr_t)write_host;
    FIELD(int64_t, chip, CHIP_QUANTUM) = setting(QUANTUM);
    FIELD(uint8_t, chip, CHIP_NAMED) = setting(ORDER) == 0;
    simulator.started = now();
    simulator.stopped = 0;
}

/* Pages of DRAM that compiled code has allocated. Parts of the table that were never written are not looked at. */
static void free_dram(void)
{
    static unsigned char is_there[CHIP_PAGES * sizeof(int64_t) / PAGE_BYTES + 2];
    uintptr_t at = (uintptr_t)&FIELD(int64_t, simulator.chip, CHIP_PAGE), end = at + CHIP_PAGES * sizeof(int64_t);
    uintptr_t first = at & ~(uintptr_t)(PAGE_BYTES - 1);
    memset(is_there, 1, sizeof is_there);
    mincore((void *)first, end - first, is_there);
    while (at < end) {
        uintptr_t next = (at & ~(uintptr_t)(PAGE_BYTES - 1)) + PAGE_BYTES;
        int look = is_there[(at - first) / PAGE_BYTES] & 1;
        for (; at < end && at < next; at += sizeof(int64_t))
            if (look)
                free(*(void **)at);
    }
}

void simulator_end(void)
{
    free_dram();
    munmap(simulator.chip, CHIP_BYTES);
    munmap(simulator.tiles, (size_t)TILES * TILE_BYTES);
    simulator.chip = simulator.tiles = NULL;
}

int64_t simulator_time(void)
{
    return simulator.chip ? FIELD(int64_t, simulator.chip, CHIP_TIME) : 0;
}

uint32_t simulator_config_read(uint32_t bdf, uint32_t offset)
{
    int64_t word = config_read(simulator.chip, bdf, offset);
    if (word < 0)
        refuse_recorded("libttsim_pci_config_rd32"); /* and -1 is all ones */
    return word;
}

void simulator_config_write(uint32_t bdf, uint32_t offset, uint32_t value)
{
    if (config_write(simulator.chip, (int64_t)bdf << 32 | offset, value))
        refuse_recorded("libttsim_pci_config_wr32");
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

int simulator_aims(uint64_t paddr)
{
    return paddr - WINDOW_CONFIG < WINDOW_CONFIG_END - WINDOW_CONFIG;
}

uint64_t simulator_place(uint64_t paddr)
{
    uint64_t offset;
    uint32_t number = window_of(paddr, &offset);
    if (number == NO_WINDOW)
        return paddr;
    const uint32_t *words = &FIELD(uint32_t, simulator.chip, CHIP_WINDOW_WORDS) + 3 * number;
    uint64_t low = words[0] | (uint64_t)words[1] << 32;
    return paddr + low * UINT64_C(0x9E3779B97F4A7C15) + words[2] * UINT64_C(0xC2B2AE3D27D4EB4F);
}

/* A write to a tile's L1 needs no more than the bytes: no agent of it can react, or it was touched at this time already
 * (chip/clock/tiles.py). */
static inline int needs_no_touch(int64_t index, const char *tile)
{
    const char *chip = simulator.chip;
    if ((&FIELD(uint8_t, chip, CHIP_ACTIVE))[index])
        return (&FIELD(uint8_t, chip, CHIP_TOUCHED))[index] &&
               FIELD(int64_t, chip, CHIP_LAST_MESSAGE) == FIELD(int64_t, chip, CHIP_TIME);
    for (int core = 0; core < CORES; core++) {
        TILE_CORE_STATE_TYPE state = (&FIELD(TILE_CORE_STATE_TYPE, tile, TILE_CORE_STATE))[core];
        if (state != CORE_IN_RESET && state != CORE_HALTED)
            return 0;
    }
    return FIELD(TILE_TENSIX_STATE_TYPE, tile, TILE_TENSIX_STATE) == CORE_IN_RESET;
}

/* Where bytes are in this process that a window shows which has been looked at; NULL: compiled code has to find them. */
static inline char *find_in_window(uint64_t paddr, uint32_t size, int writes)
{
    char *chip = simulator.chip;
    uint64_t offset;
    uint32_t number = window_of(paddr, &offset);
    if (number == NO_WINDOW)
        return NULL;
    int64_t index = (&FIELD(int64_t, chip, CHIP_WINDOW_INDEX))[number];
    uint64_t address = (&FIELD(int64_t, chip, CHIP_WINDOW_BASE))[number] + offset;
    switch ((&FIELD(uint8_t, chip, CHIP_WINDOW_KIND))[number]) {
    case SHOWS_TENSIX: {
        char *tile = simulator.tiles + index * TILE_BYTES;
        if (address >= L1_BYTES || size > L1_BYTES - address || (writes && !needs_no_touch(index, tile)))
            return NULL;
        return tile + TILE_L1 + address;
    }
    case SHOWS_DRAM: {
        if (address >= DRAM_BYTES || (address & (ZEROS_BYTES - 1)) + size > ZEROS_BYTES)
            return NULL;
        int64_t page = (&FIELD(int64_t, chip, CHIP_PAGE))[index * (int64_t)DRAM_PAGES + address / ZEROS_BYTES];
        return page ? (char *)(intptr_t)page + (address & (ZEROS_BYTES - 1)) : NULL;
    }
    default:
        return NULL;
    }
}

static inline void move(void *to, const void *from, uint32_t size)
{
    if (size == 4)
        memcpy(to, from, 4); /* one move, without a call */
    else
        memcpy(to, from, size);
}

void simulator_read(uint64_t paddr, void *p, uint32_t size)
{
    const void *at = size ? find_in_window(paddr, size, 0) : NULL;
    if (!at)
        at = (const void *)(intptr_t)chip_find(simulator.chip, paddr, size, 0);
    if (at)
        move(p, at, size);
    else if (host_read(simulator.chip, paddr, (intptr_t)p, size)) {
        refuse_recorded("libttsim_pci_mem_rd_bytes");
        memset(p, 0xFF, size);
    }
}

void simulator_write(uint64_t paddr, const void *p, uint32_t size)
{
    void *at = size ? find_in_window(paddr, size, 1) : NULL;
    if (!at)
        at = (void *)(intptr_t)chip_find(simulator.chip, paddr, size, 1);
    if (at)
        move(at, p, size);
    else if (host_write(simulator.chip, paddr, (intptr_t)p, size))
        refuse_recorded("libttsim_pci_mem_wr_bytes");
}

void simulator_clock(uint32_t clocks)
{
    int64_t active = FIELD(int64_t, simulator.chip, CHIP_ACTIVE_COUNT);
    int64_t status;
    if (!clocks)
        return;
    if (setting(THREADS) > 1 && active > 1 && active * clocks >= WORTH_THREADS)
        status = clock_on_threads(clocks, setting(THREADS));
    else
        status = chip_clock(simulator.chip, (intptr_t)simulator.table, clocks);
    if (status != ADVANCED)
        refuse_recorded("libttsim_clock");
}

void simulator_refused(void)
{
    if (setting(REFUSAL) == 0)
        _exit(1);
    simulator.stopped = 1;
}

static const char *name_of_fault(int64_t code)
{
    for (const struct fault *fault = machine_faults; fault->name; fault++)
        if (fault->code == code)
            return fault->name;
    return "?";
}

void simulator_report(void)
{
    int64_t said[64];
    int count = 0;
    fflush(NULL);
    for (int tile = 0; tile < TILES; tile++)
        for (int i = 0; i < TILE_OPEN_CHOICES; i++) {
            int64_t code = (&FIELD(TILE_OPEN_USED_TYPE, simulator.tiles + (size_t)tile * TILE_BYTES, TILE_OPEN_USED))[i];
            int known = !code || count == 64;
            for (int k = 0; k < count; k++)
                known |= said[k] == code;
            if (known)
                continue;
            said[count++] = code;
            dprintf(STDOUT_FILENO, "[%lld] bhemu: no source settles this, a choice was made: %s\n",
                    (long long)simulator_time(), name_of_fault(code));
        }
    double seconds = (now() - simulator.started) / 1e9;
    dprintf(STDOUT_FILENO, "[%lld] bhemu: %.2f seconds, %.1f kHz\n", (long long)simulator_time(), seconds,
            simulator_time() / (seconds > 1e-9 ? seconds : 1e-9) / 1e3);
}
