/* The chips in the client's process. */

#define _GNU_SOURCE
#include "simulator.h"
#include "counters.h"
#include "fresh_pages.h"
#include "pace.h"
#include "pages.h"
#include "settings.h"
#include "windows.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TILES_AT = (CHIP_BYTES + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES };
#define MEMORY_BYTES (TILES_AT + (size_t)TILES * TILE_BYTES) /* of a chip's record and those of its tiles */

struct instance instances[CHIPS], *selected = instances;
static read_callback dma_read;
static write_callback dma_write;
static pthread_mutex_t in_callback = PTHREAD_MUTEX_INITIALIZER; /* chips move at the same time, the client has one thread */
static _Alignas(8) char cluster[CLUSTER_BYTES];
static const char zeros[ZEROS_BYTES];

void *simulator_memory(size_t size)
{
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        refuse("libttsim_init", "there is no memory for a chip", "raise the limit of address space, or free some memory");
    madvise(place, size, MADV_NOHUGEPAGE); /* else every tile would have all of its L1 in memory */
    return place;
}

#ifdef __x86_64__
/* The first code that is hot: get memory for what is translated, as bhemu/riscv/translator.py does, and translate it. */
static int64_t translate_first(char *t, int64_t cache, int64_t core_and_pc)
{
    char *code = (char *)(intptr_t)cache;
    size_t size = CODE_FIRST + TRANSLATED_BYTES;
    FIELD(int64_t, code, CODE_NATIVE) = 0;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    if (mprotect(memory + CODE_FIRST, sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC)) {
        munmap(memory, size);
        return 0; /* the system does not let written memory be executed */
    }
    FIELD(int64_t, code, CODE_PROTECT) = (intptr_t)mprotect;
    FIELD(int64_t, code, CODE_MEMORY) = (intptr_t)memory;
    FIELD(int64_t, code, CODE_MEMORY_BYTES) = TRANSLATED_BYTES;
    FIELD(int64_t, code, CODE_MEMORY_USED) = CODE_FIRST;
    FIELD(int64_t, code, CODE_ENTRY_COUNT) = 1;
    FIELD(int64_t, code, CODE_NATIVE) = (intptr_t)translate;
    return translate(t, cache, core_and_pc);
}
#endif

/* Let the cores' code be translated: when it is hot, or where BHEMU_TRANSLATE says so, sooner or never. */
static void attach_translator(char *code)
{
#ifdef __x86_64__
    int32_t when = setting(TIME) == SILICON ? NEVER : setting(TRANSLATE);
    FIELD(int64_t, code, CODE_HOT) = when == SOON ? TRANSLATED_FROM : TRANSLATED_LATE_FROM;
    FIELD(int64_t, code, CODE_LEAST_ROUNDS) = when == SOON ? COUNTED_FROM : COUNTED_LATE_FROM;
    FIELD(int64_t, code, CODE_FIRST_ROUND) = when == SOON ? 0 : FIRST_COUNTED_LATE;
    intptr_t translator = FIELD(int64_t, code, CODE_MEMORY) ? (intptr_t)translate : (intptr_t)translate_first;
    FIELD(int64_t, code, CODE_NATIVE) = when == NEVER ? 0 : translator;
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

/* Put into a record what it holds at the beginning beside zeros (capi/image.py): that of a tile also what all tiles have.
 * A system of several chips has something for all of them, and for each. */
static void put_image(int32_t of, char *record, int32_t chip)
{
    const unsigned char *content = image_content;
    int32_t also = of >= 0 ? IN_EACH_TILE : of;
    for (const struct run *run = image_runs; run->size; content += run++->size)
        if ((run->tile == of || run->tile == also) && (run->chip == IN_EACH_CHIP || run->chip == chip))
            memcpy(record + run->at, content, run->size);
}

/* A tile after reset, when something accesses it for the first time: a page of memory that most tiles of a client with a
 * small program never need. Compiled code calls it, too (chip/clock/tiles.py). */
static int32_t make_tile(uint64_t tile, void *chip, uint32_t unused)
{
    (void)unused;
    int number = 0;
    while (instances[number].chip != chip)
        number++;
    char *record = instances[number].tiles + (size_t)tile * TILE_BYTES;
    (&FIELD(uint8_t, chip, CHIP_UNMADE))[tile] = 0;
    put_image((int32_t)tile, record, number);
    FIELD(int64_t, record, TILE_HANDLERS) = (intptr_t)instances[number].table;
    FIELD(TILE_SIMULATOR_ORDER_TYPE, record, TILE_SIMULATOR_ORDER) = setting(ORDER) == 0;
    FIELD(TILE_ALLOW_OPEN_TYPE, record, TILE_ALLOW_OPEN) = setting(ALLOW_OPEN);
    FIELD(TILE_SRC_FRESH_TYPE, record, TILE_SRC_FRESH) = 1;
    return 0;
}

void simulator_make_tiles(void)
{
    for (int chip = 0; chip < CHIPS; chip++)
        for (int tile = 0; tile < TILES; tile++)
            if (!tile_is_made(instances[chip].chip, tile))
                make_tile(tile, instances[chip].chip, 0);
}

/* Functions of the host, as compiled code calls them: 0 when they have moved the bytes. */
static int32_t read_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_read)
        return 1;
    pthread_mutex_lock(&in_callback);
    pace_share();
    dma_read(address, bytes, size);
    pthread_mutex_unlock(&in_callback);
    return 0;
}

static int32_t write_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_write)
        return 1;
    pthread_mutex_lock(&in_callback);
    pace_share();
    pace_begin(); /* the client may wait for it */
    dma_write(address, bytes, size);
    pthread_mutex_unlock(&in_callback);
    return 0;
}

void simulator_set_callbacks(read_callback reads, write_callback writes)
{
    dma_read = reads;
    dma_write = writes;
}

/* Timed mode (BHEMU_TIME=silicon, bhemu/timed): a clock is an estimate of a cycle of silicon. */
static void start_time(char *chip)
{
    int64_t *time = simulator_memory(CHIP_TIME_WORDS * sizeof *time);
    put_image(IN_CHIP_TIME, (char *)time, IN_EACH_CHIP);
    time[CHIP_TIME_ADDRESS] = (intptr_t)time;
    time[CHIP_TIME_DATA] = (intptr_t)simulator_memory(CHIP_TIME_DATA_BYTES);
    simulator.chip_time = time;
    simulator.tile_time = simulator_memory(TILES * TILE_TIME_WORDS * sizeof *time);
    for (size_t tile = 0; tile < TILES; tile++) {
        int64_t *buffer = simulator.tile_time + tile * TILE_TIME_WORDS;
        put_image(IN_TILE_TIME, (char *)buffer, IN_EACH_CHIP);
        if (tile >= TENSIX_TILES)
            continue;
        buffer[OBSERVER_ENTRY] = (intptr_t)advance_timed;
        (&FIELD(int64_t, chip, CHIP_OBSERVER))[tile] = (intptr_t)buffer;
    }
}

static void end_time(void)
{
    if (!simulator.chip_time)
        return;
    munmap((void *)(intptr_t)simulator.chip_time[CHIP_TIME_DATA], CHIP_TIME_DATA_BYTES);
    munmap(simulator.chip_time, CHIP_TIME_WORDS * sizeof *simulator.chip_time);
    munmap(simulator.tile_time, (size_t)TILES * TILE_TIME_WORDS * sizeof *simulator.tile_time);
    simulator.chip_time = simulator.tile_time = NULL;
}

static void start_selected(int number)
{
    char *chip = simulator_memory(MEMORY_BYTES);
    simulator.tiles = chip + TILES_AT;
    simulator.chip = chip;
    simulator.table[CODE_CACHE] = instances[0].table[CODE_CACHE]; /* one thread moves all chips */
    simulator_fill_table(simulator.table);
    put_image(IN_CHIP, chip, number);
    memset(&FIELD(uint8_t, chip, CHIP_UNMADE), 1, TILES);
    FIELD(int64_t, chip, CHIP_MAKE_TILE) = (intptr_t)make_tile;
    FIELD(int64_t, chip, CHIP_ADDRESS) = (intptr_t)chip;
    FIELD(int64_t, chip, CHIP_TILES) = (intptr_t)simulator.tiles;
    FIELD(int64_t, chip, CHIP_ZEROS) = (intptr_t)zeros;
    FIELD(int64_t, chip, CHIP_HOST_READ) = (intptr_t)read_host;
    FIELD(int64_t, chip, CHIP_HOST_WRITE) = (intptr_t)write_host;
    FIELD(int64_t, chip, CHIP_QUANTUM) = setting(QUANTUM);
    FIELD(int64_t, chip, CHIP_RUN_AHEAD) = setting(PACE) == 0 && setting(TIME) != SILICON ? RUN_AHEAD : 0;
    FIELD(uint8_t, chip, CHIP_NAMED) = setting(ORDER) == 0;
    if (setting(TIME) == SILICON)
        start_time(chip);
    simulator.stopped = 0;
}

static void make_chips(void)
{
    pages_start();
    for (int chip = 0; chip < CHIPS; chip++) {
        select_chip(chip);
        start_selected(chip);
    }
    memset(cluster, 0, sizeof cluster);
    FIELD(int64_t, cluster, CLUSTER_ADDRESS) = (intptr_t)cluster;
    FIELD(int64_t, cluster, CLUSTER_COUNT) = CHIPS;
    FIELD(int64_t, cluster, CLUSTER_THREADS) = 1;
    FIELD(int64_t, cluster, CLUSTER_SPAN) = INT32_MAX;
    for (int chip = 0; chip < CHIPS; chip++) {
        const char *record = instances[chip].chip;
        (&FIELD(int64_t, cluster, CLUSTER_CHIP))[chip] = (intptr_t)record;
        (&FIELD(int64_t, cluster, CLUSTER_TIME))[chip] = (intptr_t)instances[chip].chip_time;
        if (FIELD(int64_t, record, CHIP_LINKS))
            FIELD(int64_t, cluster, CLUSTER_SPAN) = FIELD(int64_t, record, CHIP_LATENCY);
    }
    select_chip(0);
}

/* Frames in flight from or to a chip, from the first of a list on. */
static void free_frames(int64_t first)
{
    char *frame = (char *)(intptr_t)first;
    while (frame) {
        char *after = (char *)(intptr_t)FIELD(int64_t, frame, FRAME_AFTER);
        free(frame);
        frame = after;
    }
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
        for (; look && at < end && at < next; at += sizeof(int64_t))
            free(*(void **)at);
        at = next;
    }
}

void simulator_end(void)
{
    help_leave();
    for (int chip = 0; chip < CHIPS; chip++) {
        select_chip(chip);
        free_dram();
        for (int channel = 0; channel < CHANNELS; channel++) {
            free_frames((&FIELD(int64_t, simulator.chip, CHIP_FRAME_FIRST))[channel]);
            free_frames((&FIELD(int64_t, simulator.chip, CHIP_SENT_FIRST))[channel]);
        }
        end_time();
        pages_end();
        munmap(simulator.chip, MEMORY_BYTES);
        simulator.chip = simulator.tiles = NULL;
    }
    fresh_pages_end(); /* after munmap: the system looks at each page that is registered */
    select_chip(0);
}

void simulator_start(void)
{
    make_chips();
    if (records() || setting(TIME) == SILICON) /* what looks on looks at all tiles */
        simulator_make_tiles();
    for (int chip = 0; chip < CHIPS; chip++)
        instances[chip].started = now();
}

int64_t simulator_time(void)
{
    return simulator.chip ? FIELD(int64_t, simulator.chip, CHIP_TIME) : 0;
}

/* Select the chip that is a device of bus 0; returns what is left of `bdf`: to chip 0 other devices are not there. */
static uint32_t select_device(uint32_t bdf)
{
    uint32_t device = bdf >> 3 & 31;
    select_chip(device < CHIPS ? device : 0);
    return device < CHIPS ? bdf & ~(31u << 3) : bdf;
}

/* Select the chip that has an address in its BARs; returns the address as the first chip has it. */
static uint64_t select_address(uint64_t paddr)
{
    uint64_t device = CHIPS == 1 ? 0 : paddr / DEVICE_STRIDE;
    select_chip(device < CHIPS ? device : 0);
    return device < CHIPS ? paddr - device * DEVICE_STRIDE : paddr;
}

uint32_t simulator_config_read(uint32_t bdf, uint32_t offset)
{
    bdf = select_device(bdf);
    int64_t word = config_read(simulator.chip, bdf, offset);
    if (word < 0)
        refuse_recorded("libttsim_pci_config_rd32"); /* and -1 is all ones */
    return word;
}

void simulator_config_write(uint32_t bdf, uint32_t offset, uint32_t value)
{
    bdf = select_device(bdf);
    if (config_write(simulator.chip, (int64_t)bdf << 32 | offset, value))
        refuse_recorded("libttsim_pci_config_wr32");
}

/* No core or thread of a tile can react to anything but the end of its reset. */
static inline int is_held(const char *tile)
{
    for (int core = 0; core < CORES; core++) {
        TILE_CORE_STATE_TYPE state = (&FIELD(TILE_CORE_STATE_TYPE, tile, TILE_CORE_STATE))[core];
        if (state != CORE_IN_RESET && state != CORE_HALTED)
            return 0;
    }
    return FIELD(TILE_TENSIX_STATE_TYPE, tile, TILE_TENSIX_STATE) == CORE_IN_RESET;
}

/* A write to a tile's L1 needs no more than the bytes: no agent of it can react, or it was touched at this time already
 * (chip/clock/tiles.py). */
static inline int needs_no_touch(int64_t index, const char *tile)
{
    const char *chip = simulator.chip;
    if ((&FIELD(uint8_t, chip, CHIP_ACTIVE))[index] && (&FIELD(uint8_t, chip, CHIP_TOUCHED))[index] &&
        FIELD(int64_t, chip, CHIP_LAST_MESSAGE) == FIELD(int64_t, chip, CHIP_TIME))
        return 1;
    return is_held(tile);
}

/* What an address shows: of which tile or channel, and where there. SHOWS_UNKNOWN: it is in no window that has been looked at. */
static inline int shown(uint64_t paddr, int64_t *index, uint64_t *address)
{
    const char *chip = simulator.chip;
    uint64_t offset;
    uint32_t number = window_of(paddr, &offset);
    if (number == NO_WINDOW)
        return SHOWS_UNKNOWN;
    *index = (&FIELD(int64_t, chip, CHIP_WINDOW_INDEX))[number];
    *address = (&FIELD(int64_t, chip, CHIP_WINDOW_BASE))[number] + offset;
    return (&FIELD(uint8_t, chip, CHIP_WINDOW_KIND))[number];
}

/* Where bytes are in this process that a window shows which has been looked at; NULL: compiled code has to find them. */
static inline char *find_in_window(uint64_t paddr, uint32_t size, int writes)
{
    char *chip = simulator.chip;
    int64_t index;
    uint64_t address;
    switch (shown(paddr, &index, &address)) {
    case SHOWS_TENSIX: {
        if (!tile_is_made(chip, index))
            return NULL;
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

/* What an address shows has been looked at: a tile that the client reaches for the first time may get other memory. */
static void reach_tile(uint64_t paddr)
{
    int64_t index;
    uint64_t address;
    if (shown(paddr, &index, &address) == SHOWS_TENSIX)
        pages_reach(index);
}

static inline void move(void *to, const void *from, uint32_t size)
{
    if (size == 4)
        memcpy(to, from, 4); /* one move, without a call */
    else
        memcpy(to, from, size);
}

/* Where bytes are in this process, NULL when no plain access reaches them. */
static inline char *find(uint64_t paddr, uint32_t size, int writes)
{
    char *at = size ? find_in_window(paddr, size, writes) : NULL;
    if (at)
        return at;
    at = (char *)(intptr_t)chip_find(simulator.chip, paddr, size, writes);
    reach_tile(paddr);
    return at;
}

/* Such an access is never refused, so clocks that have not been carried out yet are never those of a stopped chip. */
int simulator_is_still(uint64_t paddr, uint32_t size)
{
    int64_t index;
    uint64_t address;
    paddr = select_address(paddr);
    if (shown(paddr, &index, &address) == SHOWS_UNKNOWN)
        chip_find(simulator.chip, paddr, size, 0); /* which looks at the window */
    if (shown(paddr, &index, &address) != SHOWS_TENSIX)
        return 0;
    int is_plain = address < L1_BYTES ? size <= L1_BYTES - address : address == SOFT_RESET && size == 4;
    return is_plain && (!tile_is_made(simulator.chip, index) || is_held(simulator.tiles + index * TILE_BYTES));
}

void simulator_read(uint64_t paddr, void *p, uint32_t size)
{
    paddr = select_address(paddr);
    const void *at = find(paddr, size, 0);
    if (at)
        move(p, at, size);
    else if (host_read(simulator.chip, paddr, (intptr_t)p, size)) {
        refuse_recorded("libttsim_pci_mem_rd_bytes");
        memset(p, 0xFF, size);
    }
}

void simulator_write(uint64_t paddr, const void *p, uint32_t size)
{
    paddr = select_address(paddr);
    void *at = find(paddr, size, 1);
    if (at)
        move(at, p, size);
    else if (host_write(simulator.chip, paddr, (intptr_t)p, size))
        refuse_recorded("libttsim_pci_mem_wr_bytes");
}

/* Returns what makes clocks stop; of several chips 1 + which one. */
static int64_t pass(uint32_t clocks)
{
    int64_t table = (intptr_t)instances[0].table;
    if (CHIPS > 1)
        return (instances[0].chip_time ? cluster_clock_timed : cluster_clock)(cluster, table, clocks);
    if (simulator.chip_time)
        return chip_clock_timed(simulator.chip, table, clocks, (intptr_t)simulator.chip_time);
    int64_t status = chip_clock(simulator.chip, table, clocks);
    while (status == OBSERVER_FULL && counters_count()) {
        counters_attend();
        status = chip_clock(simulator.chip, table, 0);
    }
    return status;
}

/* Clocks that may take long, or are counted: they may have help, and a recording looks on now and then. */
static int64_t pass_in_steps(uint32_t clocks)
{
    int64_t status;
    counters_begin();
    help_begin(&(struct helped){cluster, instances[0].chip_time ? cluster_help_timed : cluster_help, chip_help,
                                instances[0].table}, clocks);
    do {
        uint32_t step = counters_count() && clocks > RECORDED_STEP ? RECORDED_STEP : clocks;
        int moves = simulator_active() != 0;
        help_resume();
        status = pass(step);
        clocks -= step;
        if (moves && !status)
            counters_arrive();
    } while (clocks && !status);
    help_end();
    return status;
}

void simulator_clock(uint32_t clocks)
{
    int64_t status = counters_count() || simulator_takes_long(clocks) ? pass_in_steps(clocks) : pass(clocks);
    if (status) {
        if (CHIPS > 1)
            select_chip(status - 1);
        refuse_recorded("libttsim_clock");
    }
    select_chip(0);
}

void simulator_refused(void)
{
    counters_end();
    if (setting(REFUSAL) == 0)
        _exit(1);
    instances[0].stopped = 1;
}
