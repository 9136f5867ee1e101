/* The C interface that clients of the official simulator load (tile H1). The chip is in the client's process
 * (simulator.c), or in one of its own, under Python (remote.c). */

#include "counters.h"
#include "lock.h"
#include "pace.h"
#include "processor.h"
#include "remote.h"
#include "settings.h"
#include "shim.h"
#include "simulator.h"
#include "stillness.h"
#include "windows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int running;
static int remote; /* the chip is in a process of its own */
static int quiet;

/* The client calls what it may not call now: a refusal, as any other. */
static void refuse_call(const char *function, const char *text, const char *remedy)
{
    say_refusal(function, text, remedy);
    simulator_refused();
}

/* Clocks of calls in a row are carried out many at a time, which takes less than one by one: single clocks with no other
 * call between them; and those of a client that polls, while it only accesses tiles that are held in reset, as one that
 * starts firmware on one tile after the other does. */
enum { ROW = 16 /* single clocks, from there on */, MOST_POSTED = 64, MOST_LATE = 4096 };
static uint32_t row;    /* calls so far */
static uint32_t posted; /* clocks that are still to be carried out */
static struct {
    uint64_t paddr;
    uint32_t size; /* 0: there was none */
} last_access; /* since clocks were asked for */

static void pass(uint32_t clocks)
{
    posted = 0;
    if (simulator_takes_long(clocks))
        polling_begin();
    simulator_clock(clocks);
    if (stillness_clock(simulator_links_fail() ? 0 : simulator_active()))
        report_stillness();
    else if (polling_clock(clocks))
        polling_told(report_polling());
}

/* Clocks of a call that asks for one. */
static int may_post(uint32_t clocks)
{
    if (!pace_posts() || !simulator_active() || counters_count())
        return 0;
    if (row > ROW)
        return clocks == 1 && posted + clocks < MOST_POSTED;
    return last_access.size && setting(TIME) != SILICON && posted + clocks < MOST_LATE &&
           simulator_is_still(last_access.paddr, last_access.size);
}

/* Something looks at the chip: what has been posted is carried out. */
static void arrive(void)
{
    row = 0;
    if (posted)
        pass(posted);
}

/* The client accesses memory; returns whether the simulator runs. */
static int arrive_at(const char *function, uint64_t paddr, uint32_t size)
{
    int runs = running && (!posted || simulator_is_still(paddr, size));
    row = 0;
    last_access.paddr = paddr;
    last_access.size = size;
    return runs || check_running(function);
}

/* It only aims a window. */
static int arrive_at_window(const char *function)
{
    row = 0;
    return running || check_running(function);
}

int check_running(const char *function)
{
    arrive();
    if (!running)
        refuse_call(function, "the simulator is not running: call libttsim_init first",
                    "libttsim_init, then everything else, then libttsim_exit");
    return running;
}

int chip_is_remote(void)
{
    return remote;
}

/* Semihosting and recordings of more than counters want a process under Python. */
static int wants_process(void)
{
    const char *name = counters_wanted() ? NULL : needs_python();
    if (name && setting(PROCESS) == 1) {
        char text[128];
        snprintf(text, sizeof text, "BHEMU_PROCESS is 'client', and %s needs a process under Python", name);
        refuse("libttsim_init", text, "unset one of them");
    }
    return name || setting(PROCESS) == 2;
}

/* A client that reads again and again and never lets clocks pass: it is told, once, that nothing can change. */
static uint32_t reads_without_clock;

static void say_that_time_stands(void)
{
    for (int n = 0; n < CHIPS * TILES; n++)
        for (int core = 0; core < CORES; core++) {
            const char *record = instances[n / TILES].tiles + (size_t)(n % TILES) * TILE_BYTES;
            if ((&FIELD(TILE_CORE_STATE_TYPE, record, TILE_CORE_STATE))[core] == CORE_RUNNING && !quiet) {
                fflush(NULL);
                dprintf(STDOUT_FILENO,
                        "[%lld] bhemu: a million reads since the last libttsim_clock, without which no time passes on "
                        "the chip\n",
                        (long long)simulator_time());
                return;
            }
        }
}

static void watch_time(void)
{
    enum { MANY = 1 << 20 };
    if (++reads_without_clock == MANY)
        say_that_time_stands();
}

static void end_client(void)
{
    counters_end();
    if (!quiet)
        simulator_report();
}

static void report(void)
{
    arrive();
    if (running && remote)
        remote_end();
    else if (running)
        end_client();
}

EXPORT void libttsim_set_pci_dma_mem_callbacks(read_callback reads, write_callback writes)
{
    lock();
    if (running) {
        arrive();
        refuse_call(__func__, "callbacks are set before libttsim_init", "call libttsim_exit, or set them first");
    } else {
        simulator_set_callbacks(reads, writes);
        remote_set_callbacks(reads, writes);
    }
    unlock();
}

static void start(void)
{
    static int reports, watches_forks;
    read_settings();
    if (!watches_forks) /* a child that is forked while another thread calls could not call any more */
        watches_forks = !pthread_atfork(lock, unlock, unlock_in_child);
    instances[0].stopped = 0;
    remote = remote || wants_process();
    pace_start();
    windows_start();
    if (remote) {
        remote_start();
        remote_call(INIT, 0, 0, 0, NULL, NULL, 0);
    } else {
        check_processor();
        simulator_start();
        counters_start();
        stillness_start();
        reads_without_clock = 0;
    }
    if (!reports)
        reports = !atexit(report); /* clients that never call exit */
    running = 1;
}

EXPORT void libttsim_init(void)
{
    lock();
    if (running)
        refuse_call(__func__, "the simulator is running already", "call libttsim_exit first; one process has one chip");
    else
        start();
    unlock();
}

EXPORT void libttsim_exit(void)
{
    lock();
    if (check_running(__func__)) {
        report();
        if (!remote)
            simulator_end();
        running = 0;
    }
    unlock();
}

EXPORT void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    lock();
    if (!arrive_at(__func__, paddr, size)) {
        memset(p, 0xFF, size);
    } else if (remote) {
        remote_call(MEMORY_READ, paddr, 0, 0, NULL, p, size);
    } else {
        simulator_read(paddr, p, size);
        watch_time();
    }
    if (pace_adapts)
        pace_look(paddr, p, size);
    unlock();
}

EXPORT void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    lock();
    int aims = window_aims(paddr, p, size);
    int runs = aims ? arrive_at_window(__func__) : arrive_at(__func__, paddr, size);
    if (!aims)
        pace_begin();
    if (runs && remote) {
        remote_post(MEMORY_WRITE, paddr, p, size);
    } else if (runs && aims) {
        simulator_aim(paddr, p);
    } else if (runs) {
        stillness_wrote();
        counters_wrote();
        simulator_write(paddr, p, size);
    }
    unlock();
}

EXPORT void libttsim_clock(uint32_t clocks)
{
    lock();
    uint32_t before = row;
    int runs = (posted && clocks == 1) || check_running(__func__);
    row = before + 1;
    if (runs && remote) {
        remote_post(CLOCK, simulator_stopped() ? 0 : pace_of(clocks), NULL, 0);
    } else if (runs && simulator_stopped()) {
        if (stillness_clock(0))
            report_stillness();
    } else if (runs) {
        reads_without_clock = 0;
        uint32_t passing = pace_of(clocks);
        if (clocks == 1 && may_post(passing))
            posted += passing;
        else
            pass(posted + passing);
    }
    last_access.size = 0;
    unlock();
}

static void refuse_tile_access(const char *function, uint32_t x, uint32_t y, uint64_t address, uint32_t size)
{
    if (!check_running(function))
        return;
    fflush(NULL);
    dprintf(STDOUT_FILENO,
            "[%lld] ERROR: UnsupportedFunctionality: %s: %u bytes at %#llx of tile %u-%u: this function belongs to an older "
            "interface\n  remedy: use libttsim_pci_mem_rd_bytes and libttsim_pci_mem_wr_bytes\n",
            (long long)simulator_time(), function, size, (unsigned long long)address, x, y);
    simulator_refused();
}

EXPORT void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *p, uint32_t size)
{
    refuse_tile_access(__func__, x, y, address, size);
    memset(p, 0xFF, size);
}

EXPORT void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *p, uint32_t size)
{
    (void)p;
    refuse_tile_access(__func__, x, y, address, size);
}

/* Say nothing of the speed, or of what the client does: for measurements. */
EXPORT void bhemu_keep_quiet(void)
{
    quiet = 1;
}

/* The records: `record` 0 of the chip, 1 of its first tile; NULL when it is in another process. For measurements. */
EXPORT void *bhemu_record(int record)
{
    arrive();
    if (!running || remote)
        return NULL;
    simulator_make_tiles();
    return record ? instances[0].tiles : instances[0].chip;
}
