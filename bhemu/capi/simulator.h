/* The chips in the client's process: their records, and the compiled functions that move them. */

#ifndef BHEMU_SIMULATOR_H
#define BHEMU_SIMULATOR_H

#include "machine.h"
#include "shim.h"
#include "windows.h"

#include <string.h>

enum { PAGE_BYTES = 4096 }; /* of memory, as the system gives it */

#define FIELD(type, record, offset) (*(type *)((char *)(record) + (offset)))

struct instance {
    char *chip;            /* NULL: there is no chip */
    char *tiles;           /* TILES records of TILE_BYTES */
    int64_t table[PLACES]; /* of handlers, for the thread that lets clocks pass */
    int64_t *chip_time;    /* timed mode: buffer of the chip (bhemu/timed/net_layout.py); NULL: clocks are rounds */
    int64_t *tile_time;    /* and those of its tiles, TILE_TIME_WORDS each (bhemu/timed/layout.py) */
    int64_t started;       /* nanoseconds */
    int stopped;           /* by a refusal (BHEMU_REFUSAL=stop): no more clocks pass */
};

/* One for each chip; functions work on the one that is selected. */
extern struct instance instances[CHIPS], *selected;
#define simulator (*selected)

static inline void select_chip(int chip)
{
    selected = instances + chip;
}

/* New chips, all cores in reset, as settings.h says. */
void simulator_start(void);

/* The chips end: their memory is given back. */
void simulator_end(void);

/* Fill in the records of all tiles, also those that nothing has accessed: something is about to look at them. */
void simulator_make_tiles(void);

/* Something has accessed a tile of a chip: its record is filled in. The other records are those of tiles in reset. */
static inline int tile_is_made(const char *chip, int64_t tile)
{
    return !(&FIELD(uint8_t, chip, CHIP_UNMADE))[tile];
}

/* Clocks that have passed on the selected chip. */
int64_t simulator_time(void);

/* Tiles of all chips that move. */
static inline int64_t simulator_active(void)
{
    int64_t active = 0;
    for (int chip = 0; chip < CHIPS; chip++)
        active += FIELD(int64_t, instances[chip].chip, CHIP_ACTIVE_COUNT);
    return active;
}

/* Clocks of all tiles together that may take so long that it is of interest how long. */
enum { LONG_MOVES = 256 };

static inline int simulator_takes_long(uint32_t clocks)
{
    return instances[0].chip_time || simulator_active() * clocks >= LONG_MOVES;
}

/* A link is down, retrains, or has lost something. */
int link_fails(const struct link *link);

/* Some link does. */
int simulator_some_link_fails(void);
static inline int simulator_links_fail(void)
{
    return machine_links->name && simulator_some_link_fails();
}

/* Say which. */
void simulator_say_links(void);

/* A refusal has stopped the chips (BHEMU_REFUSAL=stop): no more clocks pass. */
static inline int simulator_stopped(void)
{
    return instances[0].stopped;
}

/* Whether bytes are of L1, or of the register that holds cores in reset, of a tile in which nothing can proceed. */
int simulator_is_still(uint64_t paddr, uint32_t size);

/* What functions of the interface do (those of functions.c are declared there). Where something is refused, a
 * read gives all ones, if the process does not end. */
void simulator_read(uint64_t paddr, void *p, uint32_t size);
void simulator_write(uint64_t paddr, const void *p, uint32_t size);

/* A word of a window's entry (`window_aims`), as chip/pcie/direct.py writes it. */
static inline void simulator_aim(uint64_t paddr, const void *p)
{
    char *chip = instances[chip_of(&paddr)].chip;
    uint64_t at = paddr - WINDOW_CONFIG;
    char *word = chip + CHIP_WINDOW_WORDS + at;
    if (!memcmp(word, p, 4)) /* a client may aim before each access */
        return;
    (&FIELD(uint8_t, chip, CHIP_WINDOW_KIND))[at / ENTRY_BYTES] = SHOWS_UNKNOWN;
    memcpy(word, p, 4);
}

void simulator_clock(uint32_t clocks);

/* What the chip may use to reach the host's memory; NULL: nothing. */
void simulator_set_callbacks(read_callback reads, write_callback writes);

/* How fast it was, and which choices were made. */
void simulator_report(void);

/* A table of handlers with a code cache of its own, for one thread. */
void simulator_fill_table(int64_t table[PLACES]);

/* Memory that holds zeros, and takes none before it is written. */
void *simulator_memory(size_t size);

typedef int64_t (*help_function)(void *record, int64_t handlers, int64_t begun);

/* Clocks that other threads may help with (helpers.c). */
struct helped {
    char *cluster; /* its record; not used with one chip */
    help_function help_cluster, help_chip;
    const int64_t *handlers; /* table of the thread that lets clocks pass */
};

/* Clocks are about to pass: other threads help with them, if that seems to pay. Results do not depend on it. */
void help_begin(const struct helped *of, uint32_t clocks);

/* The host does something else between two of these clocks: helpers leave; and clocks go on. May be called twice. */
void help_pause(void);
void help_resume(void);

/* They have passed: what they took decides about the next ones. Helpers stay where they look for more work for a while, and
 * touch nothing else of the record. */
void help_end(void);

/* They have left. */
void help_leave(void);

/* Another thread carries out `function(record, first, second)` beside this one, if there is one. Such work has ended
 * before the next one begins. */
void help_beside(help_function function, void *record, int64_t first, int64_t second);

/* It has not returned yet. */
int help_is_beside(void);

/* Such work is to end soon: clocks pass. */
int help_beside_ends(void);

/* It has returned, or was not begun and is not wanted any more. */
void help_beside_end(void);

/* The records hold a refusal: say which, and end the process, or stop the chip (explain.c). */
void refuse_recorded(const char *function);

/* A refusal has been told: end the process, or (BHEMU_REFUSAL=stop) let no more clocks pass. */
void simulator_refused(void);

/* The row of a refusal's code; NULL: there is none. */
const struct fault *fault_of(int64_t code);

/* Clocks pass on a chip in which nothing can proceed, and the client changes nothing: say what waits for what. */
void report_stillness(void);

/* The client polls, and so do the cores as far as one can see: say which core polls what. False: some core does more. */
int report_polling(void);

#endif
