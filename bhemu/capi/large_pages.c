/* Pages of 2 MiB in place of pages of records.
 *
 * The system fills a large page in less time than the small ones of a few tiles. L1 is a part of a tile's record, so records
 * in large pages would take all of L1, which lasts longer still. But a piece of a large page can be moved to a piece of a
 * record. What firmware and its client use lies together there (machine/state.py).
 *
 * A virtual machine's host may have taken back memory that was free for seconds, large pages first, and then takes
 * milliseconds to give one again. So no more of them are begun once one has taken long. */

#define _GNU_SOURCE
#include "large_pages.h"
#include "simulator.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LARGE_BYTES = 1 << 21,
    LONG_NANOSECONDS = 1000000, /* longer than the small pages of its tiles would take; most take a tenth of that */
    PIECE_BYTES = TILE_WARM_END - TILE_WARM,
    PIECE_PAGES = PIECE_BYTES / PAGE_BYTES,
    PIECES = LARGE_BYTES / PIECE_BYTES, /* of a large page */
    LARGE_PAGES = (CHIPS * TILES + PIECES - 1) / PIECES
};
/* An older C library does not know it; an older kernel refuses it. */
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

_Static_assert(TILE_WARM % PAGE_BYTES == 0 && PIECE_BYTES % PAGE_BYTES == 0, "pieces of records are whole pages");
_Static_assert(TILE_BYTES % PAGE_BYTES == 0, "and lie at pages in each record");

static int forked; /* the process is a child's */
static int took_long; /* a large page did */
static int pagemap = -1; /* what the system tells of this process' pages */
static char *place;           /* the next piece */
static int pieces;            /* that are left in its large page */
static char *memory, *unused; /* large pages, and the first one that has not been begun */

static int large_pages_exist(void)
{
    char text[64] = "";
    int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    return size > 0 && !strstr(text, "[never]");
}

void large_pages_end(void)
{
    if (memory)
        munmap(memory, (LARGE_PAGES + 1) * (size_t)LARGE_BYTES);
    memory = NULL;
    pieces = took_long = 0;
    if (pagemap >= 0)
        close(pagemap);
    pagemap = -1;
}

/* To a forked child the file tells of its parent's pages. */
static void forget(void)
{
    forked = 1;
}

/* Begin a large page; returns whether there is one. */
static int begin_large_page(void)
{
    if (!memory) {
        if (sysconf(_SC_PAGESIZE) != PAGE_BYTES || !large_pages_exist())
            return 0;
        size_t size = (LARGE_PAGES + 1) * (size_t)LARGE_BYTES;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return memory = NULL, 0;
        unused = (char *)(((uintptr_t)memory + LARGE_BYTES - 1) & ~(uintptr_t)(LARGE_BYTES - 1));
    }
    unsigned char second = 0;
    if (took_long || madvise(unused, LARGE_BYTES, MADV_HUGEPAGE))
        return 0;
    int64_t begun = processor_time();
    *(volatile char *)unused = 0;
    took_long = processor_time() - begun > LONG_NANOSECONDS;
    if (mincore(unused + PAGE_BYTES, PAGE_BYTES, &second) || !(second & 1))
        return 0; /* it is a small one */
    place = unused;
    pieces = PIECES;
    unused += LARGE_BYTES;
    return 1;
}

/* Which pages of a piece of a record have memory, or are in swap; returns whether the system says so. */
static int find_pages(const char *piece, unsigned char has[PIECE_PAGES])
{
    enum { SWAPPED = 62 }; /* bit of an entry; the next one: in memory */
    static int watches_forks;
    uint64_t entries[PIECE_PAGES];
    if (!watches_forks)
        watches_forks = !pthread_atfork(NULL, NULL, forget);
    if (pagemap < 0)
        pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    off_t at = (uintptr_t)piece / PAGE_BYTES * sizeof *entries;
    if (!watches_forks || pread(pagemap, entries, sizeof entries, at) != sizeof entries)
        return 0;
    for (int page = 0; page < PIECE_PAGES; page++)
        has[page] = entries[page] >> SWAPPED != 0;
    return 1;
}

int large_page_put(char *record)
{
    char *piece = record + TILE_WARM;
    unsigned char has[PIECE_PAGES];
    if (forked || (!pieces && !begin_large_page()) || !find_pages(piece, has))
        return 0;
    for (size_t page = 0; page < PIECE_PAGES; page++)
        if (has[page])
            memcpy(place + page * PAGE_BYTES, piece + page * PAGE_BYTES, PAGE_BYTES);
    /* The piece's old addresses stay mapped: large_pages_end unmaps all of them, and the client may have nothing there then. */
    int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    if (mremap(place, PIECE_BYTES, PIECE_BYTES, how, piece) == MAP_FAILED) {
        /* The record may have lost its piece on the way. */
        char *again = mmap(piece, PIECE_BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (again == MAP_FAILED)
            refuse("libttsim_pci_mem_wr_bytes", "there is no memory for a tile", "free some memory");
        memcpy(piece, place, PIECE_BYTES);
        return 0;
    }
    place += PIECE_BYTES;
    pieces--;
    return 1;
}
