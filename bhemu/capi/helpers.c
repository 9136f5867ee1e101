/* Threads that take part in clocks of many tiles or chips (`help_entry` of chip/clock/run.py and of cluster/clock.py), or do
 * other work beside the one that serves the client. They live as long as the process, and sleep when they have not been
 * called for some microseconds: a client that polls calls them again at once, and waking a thread takes as long as many of
 * its calls. */

#define _GNU_SOURCE
#include "settings.h"
#include "simulator.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IDLE, ASLEEP, CALLED, HELPING };
enum {
    LINGER_NANOSECONDS = 60000, /* for so long a helper looks for the next call before it sleeps */
    LOOKS = 64,                /* between two looks at the time */
    WORTH_NANOSECONDS = 20000, /* calls that take so long without help are given it */
    LATE_NANOSECONDS = 400000, /* a helper that was away from the processor for so long has made the others wait */
    MISSED_NANOSECONDS = 1000000, /* as much as one that was awake and has not come */
    LOSS = 8, /* help that loses more than such a part of its time does not pay: then clocks pass alone */
    ALONE_NANOSECONDS = 256000000, /* for so long at most; a processor that others share is away now and then */
    LONG = 64, /* so many times the work of which sharing is worth while: longer than a thread waits for its turn */
    LOOK_NANOSECONDS = 2000000, /* from one look at what else runs on the machine to the next */
    SOON_NANOSECONDS = 250000, /* the same before calls that take some hundred microseconds or more, */
    SOME = 4 /* so many times the work of which sharing is worth while */
};

struct helper {
    _Atomic uint32_t state;
    int was_awake; /* when it was called */
    int64_t begun; /* share_begin before the work was given out */
    int64_t away;  /* nanoseconds in which it helped and had no processor */
    int64_t table[PLACES]; /* of handlers, with a code cache of its own */
    const struct beside *beside; /* other work than clocks; NULL: clocks */
};

struct beside {
    help_function function;
    void *record;
    int64_t first, second;
};

/* The words of a record that threads share, and what helps with it. */
struct work {
    void *record;
    int64_t *threads, *stop;
    _Atomic int64_t *begin;
    help_function help;
};

static struct helper helpers[MOST_THREADS];
static struct work work;
static const int64_t *handlers; /* of the thread that is helped */
static int started, helping;
static struct beside beside; /* what the first helper does beside the calling thread, if it does something */
static int wanted;    /* threads for the clocks that pass now: more than 1 is help */
static int measured;  /* they could be, so what they take is of interest */
static int64_t moves; /* clocks of all tiles together */
static int64_t began, taken; /* nanoseconds: when clocks have gone on; what they have taken */
static int64_t usual; /* nanoseconds of a call: a mean in which the last ones count most */
static int64_t alone_until, alone_for; /* no help for a time, which grows while help does not pay */
static int64_t helped, lost; /* nanoseconds: with help, and waiting for it; what is long ago counts less */

static inline void pause_briefly(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
}

static void call(struct helper *helper)
{
    helper->away = 0;
    helper->was_awake = atomic_exchange(&helper->state, CALLED) != ASLEEP;
    if (!helper->was_awake)
        syscall(SYS_futex, &helper->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void help(struct helper *helper)
{
    if (helper->beside) {
        helper->beside->function(helper->beside->record, helper->beside->first, helper->beside->second);
        return;
    }
    int64_t wall = now(), used = processor_time();
    work.help(work.record, (intptr_t)helper->table, helper->begun);
    helper->away = now() - wall - (processor_time() - used);
}

static _Noreturn void *live(void *given)
{
    struct helper *helper = given;
    int64_t until = now() + LINGER_NANOSECONDS;
    for (int looks = 1;; looks++) {
        uint32_t called = CALLED, idle = IDLE;
        if (atomic_load(&helper->state) == CALLED && atomic_compare_exchange_strong(&helper->state, &called, HELPING)) {
            help(helper);
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
    helpers[0].beside = NULL;
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
        simulator_fill_table(helpers[started].table); /* that makes its code cache */
        atomic_store(&helpers[started].state, ASLEEP); /* it takes as long to begin as to wake up */
        if (pthread_create(&thread, &detached, live, &helpers[started]))
            break;
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started < count ? started : count;
}

/* Wait until a helper has left. One that has not begun yet need not. Returns the time for which it had no processor. */
static int64_t dismiss(struct helper *helper, int64_t time)
{
    uint32_t called = CALLED;
    if (atomic_compare_exchange_strong(&helper->state, &called, helper->was_awake ? IDLE : ASLEEP))
        return helper->was_awake && time > WORTH_NANOSECONDS ? MISSED_NANOSECONDS : 0;
    for (int looks = 0; atomic_load(&helper->state) == HELPING; looks++)
        if (looks > LOOKS)
            sched_yield();
    return helper->away > LATE_NANOSECONDS ? helper->away : 0;
}

/* Helpers had no processor for a time. */
static void lose(int64_t time)
{
    lost += time;
    if (lost * LOSS > helped) {
        alone_for = 2 * alone_for > LOSS * time ? 2 * alone_for : LOSS * time;
        alone_for = alone_for < ALONE_NANOSECONDS ? alone_for : ALONE_NANOSECONDS;
        alone_until = now() + alone_for;
    } else {
        alone_for = 0;
    }
    lost /= 2;
    helped /= 2;
}

/* Tasks of the machine that run or wait for a processor, this process' among them; 0: the system does not say. */
static int running_tasks(void)
{
    char text[128];
    int running = 0, file = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0)
        return 0;
    text[size] = 0;
    return sscanf(text, "%*s %*s %*s %d/", &running) == 1 ? running : 0;
}

/* Processors that nothing but these threads wants: the more of the last two looks, as a task may run briefly. A short call
 * ends when its last thread does, so one that waits for a processor costs all of them its turn. */
static int free_processors(int64_t time, int64_t pause)
{
    static long online;
    static int last, before;
    static int64_t looked;
    if (!online) {
        online = sysconf(_SC_NPROCESSORS_ONLN);
        last = before = 1;
    }
    if (time - looked >= pause) {
        int own = 1;
        for (int i = 0; i < started; i++)
            own += atomic_load(&helpers[i].state) != ASLEEP;
        int others = running_tasks() - own;
        looked = time;
        before = last;
        last = (int)online - (others > 0 ? others : 0);
    }
    return last > before ? last : before;
}

/* Threads that are to share the clocks. */
static int threads_for_clocks(void)
{
    int threads = (int)setting(THREADS);
    if (moves >= LONG * WORTH_THREADS)
        return threads; /* each thread has its share of the processors' time */
    if (moves < WORTH_THREADS && (began < alone_until || usual < WORTH_NANOSECONDS))
        return 1;
    int unused = free_processors(began, moves >= SOME * WORTH_THREADS ? SOON_NANOSECONDS : LOOK_NANOSECONDS);
    return unused < threads ? unused : threads;
}

/* What a helped call takes is less than what it would take alone: twice as much, for the rule above. */
static void learn(void)
{
    if (moves >= WORTH_THREADS)
        return;
    usual += ((wanted > 1 ? 2 * taken : taken) - usual) / 8;
}

/* Of a chip that moves alone the tiles are shared among threads, else the chips. */
static struct work work_of_chip(char *chip, help_function help)
{
    return (struct work){chip, &FIELD(int64_t, chip, CHIP_THREADS), &FIELD(int64_t, chip, CHIP_SHARE_STOP),
                         &FIELD(_Atomic int64_t, chip, CHIP_SHARE_BEGIN), help};
}

static struct work work_of_cluster(char *cluster, help_function help)
{
    return (struct work){cluster, &FIELD(int64_t, cluster, CLUSTER_THREADS), &FIELD(int64_t, cluster, CLUSTER_SHARE_STOP),
                         &FIELD(_Atomic int64_t, cluster, CLUSTER_SHARE_BEGIN), help};
}

int help_is_free(void)
{
    return setting(THREADS) > 1 && free_processors(now(), LOOK_NANOSECONDS) > 1;
}

int help_beside(help_function function, void *record, int64_t first, int64_t second)
{
    help_beside_end();
    if (setting(THREADS) < 2 || start(1) < 1)
        return 0;
    beside = (struct beside){function, record, first, second};
    helpers[0].beside = &beside;
    call(&helpers[0]);
    return 1;
}

void help_beside_end(void)
{
    if (!helpers[0].beside)
        return;
    dismiss(&helpers[0], 0);
    helpers[0].beside = NULL;
}

void help_begin(const struct helped *of, uint32_t clocks)
{
    int64_t active = 0;
    int busy = 0, last = 0;
    for (int chip = 0; chip < CHIPS; chip++) {
        int64_t count = FIELD(int64_t, instances[chip].chip, CHIP_ACTIVE_COUNT);
        active += count;
        busy += count != 0;
        last = count ? chip : last;
    }
    /* Threads that move several chips wait for each other after each span. */
    int64_t span = CHIPS > 1 ? FIELD(int64_t, of->cluster, CLUSTER_SPAN) : clocks;
    measured = setting(THREADS) > 1 && active > 1 && clocks > 1 && (clocks <= span || active * span >= WORTH_SHARE);
    moves = active * clocks;
    taken = 0;
    began = measured ? now() : 0;
    wanted = measured ? threads_for_clocks() : 1;
    handlers = of->handlers;
    work = busy > 1 ? work_of_cluster(of->cluster, of->help_cluster) : work_of_chip(instances[last].chip, of->help_chip);
    help_resume();
}

void help_resume(void)
{
    if (measured && !began)
        began = now();
    if (wanted <= 1 || helping)
        return;
    help_beside_end();
    helping = start(wanted - 1 < MOST_THREADS ? wanted - 1 : MOST_THREADS);
    *work.threads = helping + 1;
    *work.stop = 0;
    for (int i = 0; i < helping; i++) {
        struct helper *helper = &helpers[i];
        int64_t code = helper->table[CODE_CACHE];
        memcpy(helper->table, handlers, sizeof helper->table);
        helper->table[CODE_CACHE] = code;
        helper->begun = *work.begin;
        call(helper);
    }
}

void help_pause(void)
{
    int64_t time = began ? now() - began : 0;
    began = 0;
    taken += time;
    if (!helping)
        return;
    *work.stop = 1;
    *work.begin += 1;
    *work.threads = 1;
    int64_t longest = 0;
    for (int i = 0; i < helping; i++) {
        int64_t away = dismiss(&helpers[i], time);
        longest = away > longest ? away : longest;
    }
    helping = 0;
    helped += time;
    if (longest)
        lose(longest);
}

void help_end(void)
{
    help_pause();
    if (measured)
        learn();
}
