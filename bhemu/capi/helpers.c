/* Threads that take part in clocks of many tiles or chips (chip/clock/run.py and cluster/clock.py, `help_entry`). They live
 * as long as the process, and sleep when they have not been called for some microseconds: a client that polls calls them
 * again at once, and waking a thread takes as long as many of its calls. */

#define _GNU_SOURCE
#include "settings.h"
#include "simulator.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDLE, ASLEEP, CALLED, HELPING };
enum {
    LINGER_NANOSECONDS = 60000, /* for so long a helper looks for the next call before it sleeps */
    LOOKS = 64,                /* between two looks at the time */
    WORTH_NANOSECONDS = 25000, /* calls that take so long without help are given it */
    LATE_NANOSECONDS = 400000, /* a call that takes so long, and LATE_TIMES as long as others, had to wait for a helper */
    LATE_TIMES = 8,
    CALLS_ALONE = 256 /* after that, or where a helper that was awake has not come: the processors have other work */
};

struct helper {
    _Atomic uint32_t state;
    int was_awake; /* when it was called */
    int64_t begun; /* share_begin before the work was given out */
    int64_t table[PLACES];
};

static struct helper helpers[MOST_THREADS];
static struct work work;
static int started, helping;
static int64_t usual; /* nanoseconds of a call: a mean in which the last ones count most */
static int alone;     /* calls that are still to be made without help */

static inline void pause_briefly(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void call(struct helper *helper)
{
    helper->was_awake = atomic_exchange(&helper->state, CALLED) != ASLEEP;
    if (!helper->was_awake)
        syscall(SYS_futex, &helper->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static _Noreturn void *live(void *given)
{
    struct helper *helper = given;
    int64_t until = now() + LINGER_NANOSECONDS;
    for (int looks = 1;; looks++) {
        uint32_t called = CALLED, idle = IDLE;
        if (atomic_load(&helper->state) == CALLED && atomic_compare_exchange_strong(&helper->state, &called, HELPING)) {
            work.help(work.record, (intptr_t)helper->table, helper->begun);
            atomic_store(&helper->state, IDLE);
            until = now() + LINGER_NANOSECONDS;
        } else if (looks % LOOKS || now() < until)
            pause_briefly();
        else if (atomic_compare_exchange_strong(&helper->state, &idle, ASLEEP) || idle == ASLEEP) {
            syscall(SYS_futex, &helper->state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
            until = now() + LINGER_NANOSECONDS; /* the next call may come before this one has been noticed */
        }
    }
}

/* A forked child has the memory of the threads, but not the threads. */
static void forget(void)
{
    started = 0;
    for (int i = 0; i < MOST_THREADS; i++)
        atomic_store(&helpers[i].state, IDLE);
}

/* Let there be so many helpers, if the system gives them; returns how many there are. Signals are the client's. */
static int start(int count)
{
    static int watches_forks;
    sigset_t all, before;
    pthread_attr_t detached;
    if (started >= count)
        return count;
    if (!watches_forks)
        watches_forks = !pthread_atfork(NULL, NULL, forget);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (; started < count; started++) {
        pthread_t thread;
        simulator_fill_table(helpers[started].table);
        if (pthread_create(&thread, &detached, live, &helpers[started]))
            break;
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started < count ? started : count;
}

/* Wait until a helper has left. One that has not begun yet need not: returns 1 where it had time to. */
static int dismiss(struct helper *helper)
{
    uint32_t called = CALLED;
    if (atomic_compare_exchange_strong(&helper->state, &called, IDLE))
        return helper->was_awake;
    for (int looks = 0; atomic_load(&helper->state) == HELPING; looks++)
        if (looks > LOOKS)
            sched_yield();
    return 0;
}

int help_pays(int64_t moves)
{
    if (moves >= WORTH_THREADS)
        return 1;
    if (alone) {
        alone--;
        return 0;
    }
    return usual >= WORTH_NANOSECONDS;
}

/* What a helped call takes is less than what it would take alone: twice as much, for the rule above. */
void help_took(int64_t nanoseconds, int64_t moves, int helped)
{
    if (moves >= WORTH_THREADS)
        return;
    if (helped && nanoseconds > LATE_NANOSECONDS && nanoseconds > LATE_TIMES * usual) {
        alone = CALLS_ALONE;
        return;
    }
    usual += ((helped ? 2 * nanoseconds : nanoseconds) - usual) / 8;
}

void begin_help(struct work given, int64_t threads)
{
    work = given;
    helping = start(threads - 1 < MOST_THREADS ? threads - 1 : MOST_THREADS);
    *work.threads = helping + 1;
    *work.stop = 0;
    for (int i = 0; i < helping; i++) {
        helpers[i].begun = *work.begin;
        call(&helpers[i]);
    }
}

void end_help(void)
{
    *work.stop = 1;
    *work.begin += 1;
    *work.threads = 1;
    int missed = 0;
    for (int i = 0; i < helping; i++)
        missed += dismiss(&helpers[i]);
    if (missed)
        alone = CALLS_ALONE;
}
