/* Threads that take part in clocks of many tiles or chips (chip/clock/run.py and cluster/clock.py, `help_entry`). They live as long as the process, and
 * sleep while they are not called. */

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

enum { IDLE, CALLED, HELPING };

struct helper {
    _Atomic uint32_t state;
    int64_t begun; /* share_begin before the work was given out */
    int64_t table[PLACES];
};

static struct helper helpers[MOST_THREADS];
static struct work work;
static int started, helping;

static void wake(struct helper *helper)
{
    syscall(SYS_futex, &helper->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static _Noreturn void *live(void *given)
{
    struct helper *helper = given;
    for (;;) {
        uint32_t called = CALLED;
        if (!atomic_compare_exchange_strong(&helper->state, &called, HELPING)) {
            syscall(SYS_futex, &helper->state, FUTEX_WAIT_PRIVATE, called, NULL, NULL, 0);
            continue;
        }
        work.help(work.record, (intptr_t)helper->table, helper->begun);
        atomic_store(&helper->state, IDLE);
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

/* Wait until a helper has left. One that has not begun yet need not. */
static void dismiss(struct helper *helper)
{
    uint32_t called = CALLED;
    if (atomic_compare_exchange_strong(&helper->state, &called, IDLE))
        return;
    while (atomic_load(&helper->state) != IDLE)
        sched_yield();
}

void begin_help(struct work given, int64_t threads)
{
    work = given;
    helping = start(threads - 1 < MOST_THREADS ? threads - 1 : MOST_THREADS);
    *work.threads = helping + 1;
    *work.stop = 0;
    for (int i = 0; i < helping; i++) {
        helpers[i].begun = *work.begin;
        atomic_store(&helpers[i].state, CALLED);
        wake(&helpers[i]);
    }
}

void end_help(void)
{
    *work.stop = 1;
    *work.begin += 1;
    *work.threads = 1;
    for (int i = 0; i < helping; i++)
        dismiss(&helpers[i]);
}
