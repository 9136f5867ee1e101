/* The chip in the client's process. */

#define _GNU_SOURCE
#include "simulator.h"
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

void simulator_fill_table(int64_t table[PLACES])
{
    int64_t code = table[CODE_CACHE];
    for (int place = 0; place < PLACES; place++)
        table[place] = (int64_t)(intptr_t)machine_handlers[place];
    table[CODE_CACHE] = code ? code : (int64_t)(intptr_t)simulator_memory(CODE_BYTES);
}

/* What a chip after reset holds beside zeros (capi/image.py). */
static void put_image(void)
{
    const unsigned char *content = image_content;
    for (const struct run *run = image_runs; run->size; run++) {
        if (run->tile == IN_CHIP)
            memcpy(simulator.chip + run->at, content, run->size);
        for (int tile = 0; tile < TILES; tile++)
            if (run->tile == tile || run->tile == IN_EACH_TILE)
                memcpy(simulator.tiles + (size_t)tile * TILE_BYTES + run->at, content, run->size);
        content += run->size;
    }
}

/* Functions of the host, as compiled code calls them: 0 when they have moved the bytes. */
static int32_t read_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_read)
        return 1;
    dma_read(address, bytes, size);
    return 0;
}

static int32_t write_host(uint64_t address, void *bytes, uint32_t size)
{
    if (!dma_write)
        return 1;
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
    put_image();
    simulator_fill_table(simulator.table);
    FIELD(int64_t, chip, CHIP_ADDRESS) = (intptr_t)chip;
    FIELD(int64_t, chip, CHIP_TILES) = (intptr_t)simulator.tiles;
    FIELD(int64_t, chip, CHIP_ZEROS) = (intptr_t)zeros;
    FIELD(int64_t, chip, CHIP_HOST_READ) = (intptr_t)read_host;
    FIELD(int64_t, chip, CHIP_HOST_WRITE) = (intptr_t)write_host;
    FIELD(int64_t, chip, CHIP_QUANTUM) = setting(QUANTUM);
    FIELD(uint8_t, chip, CHIP_NAMED) = setting(ORDER) == 0;
    for (int tile = 0; tile < TILES; tile++) {
        char *record = simulator.tiles + (size_t)tile * TILE_BYTES;
        FIELD(int64_t, record, TILE_HANDLERS) = (intptr_t)simulator.table;
        FIELD(TILE_SIMULATOR_ORDER_TYPE, record, TILE_SIMULATOR_ORDER) = setting(ORDER) == 0;
        FIELD(TILE_ALLOW_OPEN_TYPE, record, TILE_ALLOW_OPEN) = setting(ALLOW_OPEN);
    }
    simulator.started = now();
    simulator.stopped = 0;
}

/* Pages of DRAM that compiled code has allocated. Parts of the table that were never written are not looked at. */
static void free_dram(void)
{
    enum { PART = 4096 };
    uintptr_t at = (uintptr_t)&FIELD(int64_t, simulator.chip, CHIP_PAGE), end = at + CHIP_PAGES * sizeof(int64_t);
    while (at < end) {
        uintptr_t next = (at & ~(uintptr_t)(PART - 1)) + PART;
        unsigned char is_there = 1;
        mincore((void *)(at & ~(uintptr_t)(PART - 1)), 1, &is_there);
        for (; at < end && at < next; at += sizeof(int64_t))
            if (is_there & 1)
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

void simulator_read(uint64_t paddr, void *p, uint32_t size)
{
    const void *at = (const void *)(intptr_t)chip_find(simulator.chip, paddr, size, 0);
    if (at && size == 4)
        memcpy(p, at, 4); /* one move, without a call */
    else if (at)
        memcpy(p, at, size);
    else if (host_read(simulator.chip, paddr, (intptr_t)p, size)) {
        refuse_recorded("libttsim_pci_mem_rd_bytes");
        memset(p, 0xFF, size);
    }
}

void simulator_write(uint64_t paddr, const void *p, uint32_t size)
{
    void *at = (void *)(intptr_t)chip_find(simulator.chip, paddr, size, 1);
    if (at && size == 4)
        memcpy(at, p, 4);
    else if (at)
        memcpy(at, p, size);
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
