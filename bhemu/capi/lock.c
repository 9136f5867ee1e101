/* Threads that wait for each other (lock.h). */

#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct lock the_lock;

static void wait_briefly(void)
{
    nanosleep(&(struct timespec){0, 20000}, NULL);
}

/* The system can let all threads of the process pass a barrier: then nothing atomic is needed where one thread calls. */
static int can_be_kept(void)
{
    long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED;
}

/* Another thread has come. The keeper sets `kept`, and then looks at `use`. Behind the barrier either that is seen here, or
 * the keeper sees the new `use`. */
static void end_keeping(void)
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    while (atomic_load_explicit(&the_lock.kept, memory_order_acquire))
        wait_briefly();
    atomic_store(&the_lock.use, LOCK_SHARED);
}

static void lock_shared(uintptr_t self)
{
    uint32_t is_free = LOCK_FREE;
    if (!atomic_compare_exchange_strong_explicit(&the_lock.state, &is_free, LOCK_TAKEN, memory_order_acquire,
                                                 memory_order_relaxed))
        while (atomic_exchange_explicit(&the_lock.state, LOCK_WAITED_FOR, memory_order_acquire) != LOCK_FREE)
            syscall(SYS_futex, &the_lock.state, FUTEX_WAIT_PRIVATE, LOCK_WAITED_FOR, NULL, NULL, 0);
    atomic_store_explicit(&the_lock.owner, self, memory_order_relaxed);
    the_lock.depth = 1;
}

void unlock_shared(void)
{
    if (atomic_exchange_explicit(&the_lock.state, LOCK_FREE, memory_order_release) == LOCK_WAITED_FOR)
        syscall(SYS_futex, &the_lock.state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void unlock_in_child(void)
{
    /* The thread that waited for the keeper to leave is not in the child. */
    if (atomic_load(&the_lock.use) == LOCK_CHANGING)
        atomic_store(&the_lock.use, LOCK_KEPT);
    unlock();
}

void lock_otherwise(uintptr_t self)
{
    for (uint32_t use; (use = atomic_load(&the_lock.use)) != LOCK_SHARED;) {
        uintptr_t none = 0;
        if (use == LOCK_CHANGING) {
            wait_briefly();
        } else if (!atomic_load(&the_lock.keeper) && can_be_kept()) {
            if (atomic_compare_exchange_strong(&the_lock.keeper, &none, self)) {
                lock();
                return;
            }
        } else if (atomic_compare_exchange_strong(&the_lock.use, &use, LOCK_CHANGING)) {
            end_keeping();
        }
    }
    lock_shared(self);
}
