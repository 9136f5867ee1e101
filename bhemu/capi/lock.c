/* One thread of the client in the library at a time.
 *
 * A client that reads a word pays for this in each call, so a process with one thread pays for nothing atomic, and one
 * with several for two exchanges. A waiting thread sleeps. */

#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

enum { FREE, TAKEN, WAITED_FOR };

static _Atomic uint32_t state;
static _Atomic uintptr_t owner; /* thread that is inside */
static uint32_t depth;          /* its calls */

static void wait_until_free(void)
{
    while (atomic_exchange_explicit(&state, WAITED_FOR, memory_order_acquire) != FREE)
        syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL, NULL, 0);
}

void lock(void)
{
    uintptr_t self = (uintptr_t)pthread_self();
    uint32_t is_free = FREE;
    if (atomic_load_explicit(&owner, memory_order_relaxed) == self) {
        depth++;
        return;
    }
    if (__libc_single_threaded)
        atomic_store_explicit(&state, TAKEN, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong_explicit(&state, &is_free, TAKEN, memory_order_acquire, memory_order_relaxed))
        wait_until_free();
    atomic_store_explicit(&owner, self, memory_order_relaxed);
    depth = 1;
}

void unlock(void)
{
    if (--depth)
        return;
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
    if (__libc_single_threaded)
        atomic_store_explicit(&state, FREE, memory_order_relaxed);
    else if (atomic_exchange_explicit(&state, FREE, memory_order_release) == WAITED_FOR)
        syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
