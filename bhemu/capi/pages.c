/* Memory of many tiles.
 *
 * A record takes its memory from the system page by page, when it is first written. A client that starts firmware on all
 * tiles uses some 23 pages of 4 KiB in each, and a page fault takes more than a microsecond: a third of the time in which
 * a device is opened. So tiles after the first FEW take these pages together when the client reaches them, for less
 * (fresh_pages.c), and not while threads that share the tiles wait for each other: those that firmware and tt-metal touch
 * (machine/state.py), and those that the first tiles have in common by then.
 *
 * Where the client goes from tile to tile, a helper (helpers.c) takes the pages of the tiles that come next, as many ahead
 * as the client has reached in a row. At the end it gives half of the memory back.
 *
 * Pages of 2 MiB were tried. To move pieces of them into records took as long when a device was opened, and a tenth less
 * for a program that runs on all tiles. But a virtual machine's host may have taken back memory that was free for seconds,
 * large pages first, and then needs milliseconds to give one: of programs that ran in turns with others nearly each met
 * such a page, and all took longer. */

#define _GNU_SOURCE
#include "fresh_pages.h"
#include "pages.h"
#include "simulator.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FEW = 4,
    AHEAD = 3,  /* what a helper takes next lies so far ahead that the client does not reach it meanwhile */
    MANY = 32,  /* tiles with memory for which a helper is worth while at the end */
    TOGETHER = 8, /* tiles that give it back in one go */
    MOST_PAGES = 64, /* first tiles that have more in common than firmware says nothing of what the others will have */
    TILE_PAGES = TILE_BYTES / PAGE_BYTES
};

_Static_assert(TILE_BYTES % PAGE_BYTES == 0, "the same pages in each record");

struct pages {
    size_t first, count;
};

static struct pages wanted[MOST_PAGES]; /* of each tile, in a row each */
static int rows;
static char *first[FEW]; /* records of the tiles that were reached first */
static int tiles;        /* that have been reached */
static unsigned char reached[CHIPS][TILES];

/* The client goes from tile to tile. The helper reads this while the client goes on. */
static _Atomic unsigned char taken[CHIPS][TILES]; /* the pages are, or are being, taken */
static _Atomic int chip;    /* in which the last tile lies */
static _Atomic int last;    /* that has been reached */
static int in_row;          /* tiles up to there */
static _Atomic int until;   /* a helper takes the pages of tiles before this one, of that chip alone */
static _Atomic int given;   /* tiles whose memory is being given back, from the first on */

void pages_start(void)
{
    memset(reached, 0, sizeof reached);
    memset((void *)taken, 0, sizeof taken);
    tiles = in_row = 0;
}

/* Which pages each tile will have that an untouched one has not. */
static void learn(const char *untouched)
{
    static const int firmware[] = {TILE_FIRMWARE_PAGES};
    unsigned char has[TILE_PAGES], common[TILE_PAGES];
    int count = 0;
    memset(common, 1, sizeof common);
    for (int n = 0; n < FEW; n++) {
        memset(has, 0, sizeof has);
        mincore(first[n], TILE_BYTES, has);
        for (int page = 0; page < TILE_PAGES; page++) {
            common[page] &= has[page] & 1;
            count += n == FEW - 1 && common[page];
        }
    }
    if (count + sizeof firmware / sizeof *firmware > MOST_PAGES)
        memset(common, 0, sizeof common);
    for (size_t n = 0; n < sizeof firmware / sizeof *firmware; n++)
        common[firmware[n]] = 1;
    memset(has, 0, sizeof has);
    mincore((void *)untouched, TILE_BYTES, has);
    for (int page = 0; page < TILE_PAGES; page++)
        common[page] &= !(has[page] & 1);
    rows = 0;
    for (size_t page = 0; page < TILE_PAGES; page++) {
        if (!common[page])
            continue;
        if (page && common[page - 1])
            wanted[rows - 1].count++;
        else
            wanted[rows++] = (struct pages){page, 1};
    }
}

/* Take the pages of a tile, if that has not been done. */
static void take(char *records, _Atomic unsigned char *done, int64_t index)
{
    if (atomic_exchange(&done[index], 1))
        return;
    char *record = records + index * TILE_BYTES;
    for (int row = 0; row < rows; row++)
        take_fresh_pages(record + wanted[row].first * PAGE_BYTES, wanted[row].count * PAGE_BYTES);
}

/* A helper: the tiles that come next. */
static int64_t take_ahead(void *records, int64_t of, int64_t unused)
{
    (void)unused;
    for (int at = last + AHEAD; of == chip && at < until && !help_beside_ends();) {
        take(records, taken[of], at);
        int next = last + AHEAD;
        at = at + 1 > next ? at + 1 : next;
    }
    return 0;
}

/* Let a helper do that, if it is worth while. One that has no processor just now may come later. */
static void call_helper(int64_t index, int64_t of)
{
    until = (int)(index + in_row < TENSIX_TILES ? index + in_row : TENSIX_TILES);
    if (in_row >= FEW && index + AHEAD < until && !help_is_beside())
        help_beside(take_ahead, simulator.tiles, of, 0);
}

void pages_reach(int64_t index)
{
    int of = (int)(selected - instances);
    if (reached[of][index])
        return;
    reached[of][index] = 1;
    in_row = of == chip && index == last + 1 ? in_row + 1 : 1;
    chip = of;
    last = (int)index;
    if (tiles++ < FEW) {
        first[tiles - 1] = simulator.tiles + index * TILE_BYTES;
        return;
    }
    if (tiles == FEW + 1) {
        learn(simulator.tiles + index * TILE_BYTES);
        for (int n = 0; n < CHIPS; n++)
            fresh_pages_start(instances[n].tiles, (size_t)TILES * TILE_BYTES);
    }
    call_helper(index, of);
    take(simulator.tiles, taken[of], index);
}

/* Some of the memory at a time, until there is no more. */
static int64_t give_back(void *records, int64_t unused, int64_t also_unused)
{
    (void)unused, (void)also_unused;
    for (int at; (at = atomic_fetch_add(&given, TOGETHER)) < TILES;) {
        int count = TILES - at < TOGETHER ? TILES - at : TOGETHER;
        madvise((char *)records + (size_t)at * TILE_BYTES, (size_t)count * TILE_BYTES, MADV_DONTNEED);
    }
    return 0;
}

void pages_end(void)
{
    help_beside_end();
    if (tiles >= MANY) {
        given = 0;
        help_beside(give_back, simulator.tiles, 0, 0);
        give_back(simulator.tiles, 0, 0);
        help_beside_end();
    }
}
