/* Pages of memory, taken before they are touched.
 *
 * userfaultfd is made for programs that fill in pages which others miss. It also fills in a page that nothing has missed
 * yet, in 0.8 us, where a page fault and MADV_POPULATE_WRITE need 1.3: the system copies a page, and neither zeroes one nor
 * looks for what it would have to keep. Memory is registered for faults of write protection, of which there are none, so
 * that pages that were not taken are missed as ever. A container may forbid the call; then the other way is taken. */

#define _GNU_SOURCE
#include "fresh_pages.h"
#include "simulator.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 16 }; /* pages that are copied at once */
/* An older C library does not know it; an older kernel refuses it. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

static int filler = -1;

/* A forked child would fill in its parent's pages. */
static void forget(void)
{
    if (filler >= 0)
        close(filler);
    filler = -1;
}

void fresh_pages_start(char *memory, size_t bytes)
{
    static int watches_forks;
    struct uffdio_register registered = {{(uintptr_t)memory, bytes}, UFFDIO_REGISTER_MODE_WP, 0};
    struct uffdio_api api = {.api = UFFD_API};
    if (!watches_forks)
        watches_forks = !pthread_atfork(NULL, NULL, forget);
    if (filler < 0 && watches_forks && sysconf(_SC_PAGESIZE) == PAGE_BYTES) {
        filler = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
        if (filler >= 0 && ioctl(filler, UFFDIO_API, &api))
            forget();
    }
    if (filler >= 0 && ioctl(filler, UFFDIO_REGISTER, &registered))
        forget();
}

void fresh_pages_end(void)
{
    forget();
}

void take_fresh_pages(char *at, size_t bytes)
{
    static const char zeros[MOST * PAGE_BYTES] __attribute__((aligned(PAGE_BYTES)));
    while (bytes && filler >= 0) {
        size_t size = bytes < sizeof zeros ? bytes : sizeof zeros;
        struct uffdio_copy copy = {(uintptr_t)at, (uintptr_t)zeros, size, 0, 0};
        int failed = ioctl(filler, UFFDIO_COPY, &copy);
        if (failed && copy.copy == -EEXIST)
            copy.copy = PAGE_BYTES;
        if (copy.copy <= 0)
            break;
        at += copy.copy;
        bytes -= (size_t)copy.copy;
    }
    if (bytes)
        madvise(at, bytes, MADV_POPULATE_WRITE);
}
