/* Whose turn it is in the memory that two processes share: a wait spins for a while, then sleeps. */

#define _GNU_SOURCE
#include "channel.h"
#include "shim.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LEAST = 500, MOST = 20000 }; /* nanoseconds before a wait goes to sleep */

/* How long a wait spins: longer where that was worth while, not at all where both ends have to share a processor. */
static int64_t spin = -1;

static void begin_to_wait(void)
{
    cpu_set_t set;
    if (spin < 0)
        spin = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) == 1 ? 0 : MOST;
}

void give(struct channel *channel, enum turn turn)
{
    atomic_store(&channel->turn, turn);
    if (atomic_load(&channel->sleepers))
        syscall(SYS_futex, &channel->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

enum turn wait_for(struct channel *channel, enum turn one, enum turn other, void (*look)(void))
{
    static const struct timespec nap = {0, 100000000};
    begin_to_wait();
    for (int64_t until = spin ? now() + spin : 0; spin && now() < until;)
        for (int i = 0; i < 64; i++) {
            enum turn turn = atomic_load(&channel->turn);
            if (turn == one || turn == other) {
                spin = 2 * spin < MOST ? 2 * spin : MOST;
                return turn;
            }
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    if (spin)
        spin = spin / 2 > LEAST ? spin / 2 : LEAST;
    for (;;) {
        atomic_fetch_add(&channel->sleepers, 1);
        uint32_t turn = atomic_load(&channel->turn);
        if (turn != one && turn != other)
            syscall(SYS_futex, &channel->turn, FUTEX_WAIT, turn, &nap, NULL, 0);
        atomic_fetch_sub(&channel->sleepers, 1);
        turn = atomic_load(&channel->turn);
        if (turn == one || turn == other)
            return turn;
        look();
    }
}
