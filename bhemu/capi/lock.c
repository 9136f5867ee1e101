/* Threads that wait for each other (lock.h). */

#define _GNU_SOURCE
#include "lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock the_lock;

void lock_wait(void)
{
    while (atomic_exchange_explicit(&the_lock.state, LOCK_WAITED_FOR, memory_order_acquire) != LOCK_FREE)
        syscall(SYS_futex, &the_lock.state, FUTEX_WAIT_PRIVATE, LOCK_WAITED_FOR, NULL, NULL, 0);
}

void lock_wake(void)
{
    syscall(SYS_futex, &the_lock.state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
