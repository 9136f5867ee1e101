/* One thread of the client in the library at a time. A callback of the client's may call again.
 *
 * A client that reads a word pays for this in each call, so it is written into the callers; a process with one thread
 * pays for nothing atomic, and one with several for two exchanges. A waiting thread sleeps. */

#ifndef BHEMU_LOCK_H
#define BHEMU_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#else
#define __libc_single_threaded 0
#endif

enum { LOCK_FREE, LOCK_TAKEN, LOCK_WAITED_FOR };

struct lock {
    _Atomic uint32_t state;
    uint32_t depth;          /* calls of the thread that is inside */
    _Atomic uintptr_t owner; /* that thread */
};

extern struct lock the_lock;

/* Where there is more to do than to change a word. */
void lock_wait(void);
void lock_wake(void);

/* Wait until no other thread is in the library. */
static inline void lock(void)
{
    uintptr_t self = (uintptr_t)pthread_self();
    uint32_t is_free = LOCK_FREE;
    if (atomic_load_explicit(&the_lock.owner, memory_order_relaxed) == self) {
        the_lock.depth++;
        return;
    }
    if (__libc_single_threaded)
        atomic_store_explicit(&the_lock.state, LOCK_TAKEN, memory_order_relaxed);
    else if (!atomic_compare_exchange_strong_explicit(&the_lock.state, &is_free, LOCK_TAKEN, memory_order_acquire,
                                                      memory_order_relaxed))
        lock_wait();
    atomic_store_explicit(&the_lock.owner, self, memory_order_relaxed);
    the_lock.depth = 1;
}

/* Let others in. */
static inline void unlock(void)
{
    if (--the_lock.depth)
        return;
    atomic_store_explicit(&the_lock.owner, 0, memory_order_relaxed);
    if (__libc_single_threaded)
        atomic_store_explicit(&the_lock.state, LOCK_FREE, memory_order_relaxed);
    else if (atomic_exchange_explicit(&the_lock.state, LOCK_FREE, memory_order_release) == LOCK_WAITED_FOR)
        lock_wake();
}

#endif
