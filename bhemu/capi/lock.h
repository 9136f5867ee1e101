/* One thread of the client in the library at a time. A callback of the client's may call again.
 *
 * A client that reads a word pays for this in each call, so it is written into the callers. Most clients call from one
 * thread, which keeps the lock: it only says that it is inside, with nothing atomic. The first call of another thread ends
 * that for good (lock.c); then each call costs two exchanges. A waiting thread sleeps. */

#ifndef BHEMU_LOCK_H
#define BHEMU_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

enum { LOCK_FREE, LOCK_TAKEN, LOCK_WAITED_FOR };
enum { LOCK_KEPT, LOCK_CHANGING, LOCK_SHARED };

struct lock {
    _Atomic uintptr_t owner;  /* the thread that is inside */
    _Atomic uintptr_t keeper; /* the thread that keeps it while it is LOCK_KEPT; 0: no thread has called */
    _Atomic uint32_t kept;    /* that thread is inside, or looks whether it may be */
    _Atomic uint32_t use;     /* LOCK_KEPT, LOCK_CHANGING or LOCK_SHARED */
    _Atomic uint32_t state;   /* while it is LOCK_SHARED */
    uint32_t depth;           /* calls of the thread that is inside */
};

extern struct lock the_lock;

/* A number of the calling thread, without a call where the compiler knows one. */
static inline uintptr_t this_thread(void)
{
#ifdef __has_builtin
#if __has_builtin(__builtin_thread_pointer) && defined __x86_64__
    return (uintptr_t)__builtin_thread_pointer();
#endif
#endif
    return (uintptr_t)pthread_self();
}

/* Where there is more to do than to change a word. */
void lock_otherwise(uintptr_t self);
void unlock_shared(void);

/* `unlock` in a child that was forked while its thread was inside. */
void unlock_in_child(void);

/* Wait until no other thread is in the library. */
static inline void lock(void)
{
    uintptr_t self = this_thread();
    if (atomic_load_explicit(&the_lock.owner, memory_order_relaxed) == self) {
        the_lock.depth++;
        return;
    }
    if (atomic_load_explicit(&the_lock.keeper, memory_order_relaxed) == self) {
        atomic_store_explicit(&the_lock.kept, 1, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst); /* the processor may exchange these two: see end_keeping of lock.c */
        if (atomic_load_explicit(&the_lock.use, memory_order_relaxed) == LOCK_KEPT) {
            atomic_store_explicit(&the_lock.owner, self, memory_order_relaxed);
            the_lock.depth = 1;
            return;
        }
        atomic_store_explicit(&the_lock.kept, 0, memory_order_release);
    }
    lock_otherwise(self);
}

/* Let others in. */
static inline void unlock(void)
{
    if (--the_lock.depth)
        return;
    atomic_store_explicit(&the_lock.owner, 0, memory_order_relaxed);
    if (atomic_load_explicit(&the_lock.use, memory_order_relaxed) == LOCK_SHARED)
        unlock_shared();
    else
        atomic_store_explicit(&the_lock.kept, 0, memory_order_release);
}

#endif
