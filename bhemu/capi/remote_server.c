/* The simulator's end of `remote.c`, in a process under Python (bhemu/capi/entry.py): it carries out the client's calls
 * with the functions that Python has put into a table, and with compiled ones where nothing needs Python. */

#define _GNU_SOURCE
#include "remote.h"
#include "channel.h"
#include "settings.h"
#include "shim.h"
#include "simulator.h"
#include "slots.h"
#include "stillness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct channel *channel;
static const struct slots *calls;

static int has_chip, is_idle;
static int has_written; /* the client has changed something since clocks have passed */

/* A client that was killed has not ended its chip: what Python has to finish is finished between two calls. */
static void look_after_client(void)
{
    if (getppid() == channel->client)
        return;
    if (has_chip && is_idle)
        calls->exit();
    _exit(0);
}

/* Move bytes between the host's memory and here. */
static void ask_host(uint32_t writes, uint64_t address, unsigned char *bytes, uint32_t size)
{
    for (uint32_t done = 0; done < size; done += PIECE) {
        uint32_t piece = size - done < PIECE ? size - done : PIECE;
        channel->writes = writes;
        channel->a = address + done;
        channel->size = piece;
        if (writes)
            memcpy(channel->bytes, bytes + done, piece);
        give(channel, HOST_ASKED);
        wait_for(channel, HOST_ANSWERED, HOST_ANSWERED, look_after_client);
        if (!writes)
            memcpy(bytes + done, channel->bytes, piece);
    }
}

static void read_host(uint64_t address, void *bytes, uint32_t size)
{
    ask_host(0, address, bytes, size);
}

static void write_host(uint64_t address, const void *bytes, uint32_t size)
{
    ask_host(1, address, (unsigned char *)bytes, size);
}

/* Where compiled code finds bytes of a chip's memory; NULL: Python has to. */
static void *find(uint64_t paddr, uint32_t size, int64_t writes)
{
    uint64_t device = CHIPS == 1 ? 0 : paddr / DEVICE_STRIDE;
    if (!calls->find || device >= CHIPS)
        return NULL;
    void *chip = (void *)(intptr_t)calls->chips[device];
    return (void *)(intptr_t)calls->find(chip, paddr - device * DEVICE_STRIDE, size, writes);
}

/* A write there says what a window shows, and changes nothing. */
static int aims_window(uint64_t paddr)
{
    uint64_t at = CHIPS == 1 ? paddr : paddr % DEVICE_STRIDE;
    return at >= WINDOW_CONFIG && at < WINDOW_CONFIG_END;
}

static void read_memory(uint64_t paddr, void *p, uint32_t size)
{
    const void *at = find(paddr, size, 0);
    if (at)
        memcpy(p, at, size);
    else
        calls->memory_read(paddr, p, size);
}

static void write_memory(uint64_t paddr, const void *p, uint32_t size)
{
    void *at = find(paddr, size, 1);
    if (at)
        memcpy(at, p, size);
    else
        calls->memory_write(paddr, p, size);
}

static uint32_t watched(int64_t number)
{
    return *(const uint32_t *)(intptr_t)calls->watched[number];
}

/* A word has changed that tells a recording that programs begin or end. */
static int watched_changed(void)
{
    for (int64_t i = 0; i < calls->watched_count; i++)
        if (watched(i) != calls->seen[i])
            return 1;
    return 0;
}

static void keep_watched(void)
{
    for (int64_t i = 0; i < calls->watched_count; i++)
        calls->seen[i] = watched(i);
}

/* Python sees the chip: a recording notes what has happened. */
static void show_python(uint32_t clocks)
{
    calls->clock(clocks);
    keep_watched();
}

/* How many of `clocks` may pass in compiled code before Python, or the watched words, are looked at. */
static uint32_t next_step(uint32_t clocks)
{
    if (!calls->unseen_clocks)
        return clocks;
    int64_t most = *calls->unseen_clocks;
    if (calls->watched_count && most > RECORDED_STEP)
        most = RECORDED_STEP;
    return clocks < most ? clocks : most;
}

/* Compiled code stops where Python has to do something, and goes on with the rest of the clocks. */
static void run(uint32_t clocks)
{
    while (calls->run && calls->run(calls->clocked, calls->handlers, clocks)) {
        help_pause();
        calls->attend();
        help_resume();
        clocks = 0;
    }
}

static void pass(uint32_t clocks)
{
    help_begin(&(struct helped){calls->clocked, calls->help_cluster, calls->help_chip,
                                (const int64_t *)(intptr_t)calls->handlers}, clocks);
    while (clocks && calls->run) {
        uint32_t step = next_step(clocks);
        help_resume();
        run(step);
        clocks -= step;
        if (calls->unseen_clocks && (!(*calls->unseen_clocks -= step) || watched_changed())) {
            help_pause();
            show_python(0);
        }
    }
    help_end();
    help_leave(); /* Python reads and writes the records */
}

/* A program that the client has started begins before clocks pass: the recording sees that. */
static void show_what_was_written(void)
{
    if (has_written && only_records() && (!calls->run || watched_changed()))
        show_python(0);
    has_written = 0;
}

/* Tiles that can proceed; 0 when a link fails, too. */
static int64_t active_tiles(void)
{
    if (calls->stopped)
        return 0;
    if (!calls->chips)
        return calls->active;
    return simulator_links_fail() ? 0 : simulator_active();
}

static void let_clocks_pass(uint32_t clocks)
{
    show_what_was_written();
    polling_begin();
    if (calls->run)
        pass(clocks);
    else
        show_python(clocks);
    if (!calls->chips && !calls->happened)
        return;
    if (stillness_clock(active_tiles())) {
        fflush(NULL);
        if (calls->chips)
            simulator_say_links();
        calls->report_stillness();
    } else if (!calls->stopped && polling_clock(clocks)) {
        polling_told(calls->report_polling());
    }
}

/* A call of the interface; `bytes` are read or written. */
static uint32_t call(enum function function, uint64_t a, uint64_t b, uint64_t c, unsigned char *bytes, uint32_t size)
{
    switch (function) {
    case INIT:
        calls->init(channel->has_read ? read_host : NULL, channel->has_write ? write_host : NULL);
        for (int chip = 0; chip < CHIPS && calls->chips; chip++)
            instances[chip].chip = (char *)(intptr_t)calls->chips[chip];
        keep_watched();
        stillness_start();
        polling_ask(calls->chips ? NULL : calls->happened);
        has_chip = 1;
        break;
    case EXIT:
        calls->exit();
        has_chip = 0;
        break;
    case MEMORY_READ:
        read_memory(a, bytes, size);
        break;
    case MEMORY_WRITE:
        stillness_wrote();
        has_written |= !aims_window(a);
        write_memory(a, bytes, size);
        break;
    case CLOCK:
        let_clocks_pass(a);
        break;
    case NOTHING:
        break;
    default:
        return call_made(calls, function, a, b, c);
    }
    return 0;
}

static struct posted *posted_at(uint32_t at)
{
    return (struct posted *)(channel->posted + at);
}

static uint32_t after_posted(uint32_t at)
{
    return at + sizeof(struct posted) + ((posted_at(at)->size + 7) & ~7U);
}

/* Writes to chips that are in other processes go there together. */
static uint32_t write_all(uint32_t at)
{
    uint32_t first = at;
    while (at < channel->posted_size && posted_at(at)->function == MEMORY_WRITE)
        at = after_posted(at);
    stillness_wrote();
    calls->write_all(channel->posted + first, at - first);
    return at;
}

static void carry_out_posted(void)
{
    for (uint32_t at = 0; at < channel->posted_size;) {
        struct posted *posted = posted_at(at);
        if (calls->write_all && posted->function == MEMORY_WRITE) {
            at = write_all(at);
            continue;
        }
        call(posted->function, posted->a, 0, 0, (unsigned char *)(posted + 1), posted->size);
        at = after_posted(at);
    }
    channel->posted_size = 0;
}

/* Carry out what stands in the channel. Accesses to the host's memory use it meanwhile, so bytes are copied. */
static uint32_t carry_out(unsigned char *bytes)
{
    enum function function = channel->function;
    uint32_t size = channel->size;
    uint64_t a = channel->a, b = channel->b, c = channel->c;
    if (function == MEMORY_WRITE)
        memcpy(bytes, channel->bytes, size);
    carry_out_posted();
    uint32_t answer = call(function, a, b, c, bytes, size);
    if (function == MEMORY_READ)
        memcpy(channel->bytes, bytes, size);
    return answer;
}

/* Serve the client that has started this process, until it ends. */
EXPORT void bhemu_serve(int memory, const struct slots *table)
{
    channel = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    unsigned char *bytes = malloc(PIECE);
    if (channel == MAP_FAILED || !bytes)
        refuse("libttsim_init", "no memory can be shared with the client", "raise the limit of memory");
    calls = table;
    read_settings();
    close(memory);
    for (;;) {
        is_idle = 1;
        wait_for(channel, ASKED, ASKED, look_after_client);
        is_idle = 0;
        channel->answer = carry_out(bytes);
        give(channel, FREE);
    }
}
