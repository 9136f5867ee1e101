/* Threads that take part in clocks of many tiles or chips (`help_entry` of chip/clock/run.py and of cluster/clock.py), or do
 * other work beside the one that serves the client. They live as long as the process, and sleep when there has been nothing
 * to do for some microseconds: a client that polls calls them again at once, and waking a thread takes as long as many of
 * its calls.
 *
 * Other processes may want the processors, too. A thread that then yields, or waits for one that has no processor, loses
 * milliseconds. So a call does not wait for helpers, only for tiles that they are moving: between two calls helpers stay
 * where they look for work, and what a helper does not take the calling thread does itself. */

#define _GNU_SOURCE
#include "settings.h"
#include "simulator.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, ASLEEP, CALLED, HELPING };
enum {
    LEAVE_LOOKS = 150000,      /* of a helper that finds no work before it sleeps: some 60 us between calls, */
    STAY_LOOKS = 1000000,      /* some 400 us in one */
    LOOKS = 2000,              /* of a thread that waits for a helper before it sleeps */
    NAP_NANOSECONDS = 20000,   /* for so long */
    SLICE_NANOSECONDS = 200000, /* of a helper that shares a processor */
    WORTH_NANOSECONDS = 20000, /* calls that take so long without help are given it */
    LATE_NANOSECONDS = 4000000, /* for so long a helper was away that has made the others wait: what it shares a processor
                                   with has had its turn */
    LONG = 64, /* so many times the work of which sharing is worth while: longer than a thread waits for its turn */
    LOSS = 3, /* help that loses more than such a part of its time does not pay: then clocks pass alone */
    ALONE_NANOSECONDS = 256000000 /* for so long at most; a processor that others share is away now and then */
};

struct helper {
    pthread_t thread;
    _Atomic uint32_t state;
    int64_t begun; /* share_begin before the work was given out */
    int64_t table[PLACES]; /* of handlers, with a code cache of its own */
    _Atomic help_function function; /* other work than clocks, with what it is given; NULL: clocks */
    void *record;
    int64_t first, second;
};

/* The words of a record that threads share, and what helps with it. */
struct work {
    void *record;
    int64_t *threads, *stop, *alone, *leaves, *late;
    _Atomic int64_t *begin;
    help_function help;
};

static struct helper helpers[MOST_THREADS];
static struct work work;
static const int64_t *handlers; /* of the thread that is helped */
static int started;
static int processor, apart; /* the first so many leave this processor to the calling thread */
static int attached; /* helpers may look for work in `work` */
static int helping;  /* in the clocks that pass now they may find some */
static _Atomic int beside_ends; /* what the first helper does beside the calling thread is to end */
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

/* Call a helper that has nothing to do. */
static void call(struct helper *helper)
{
    if (atomic_exchange(&helper->state, CALLED) == ASLEEP)
        syscall(SYS_futex, &helper->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void help(struct helper *helper)
{
    if (helper->function) {
        helper->function(helper->record, helper->first, helper->second);
        helper->function = NULL;
    } else {
        work.help(work.record, (intptr_t)helper->table, helper->begun);
    }
}

/* A helper has the same share of a processor as ever, but in short slices: when it is called, Linux (6.12 and later) lets it
 * run before another process that is in the midst of its slice, and not milliseconds later, when the calling thread may
 * have lost its own processor. */
static void shorten_slice(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice, deadline, period;
    } attributes; /* `struct sched_attr`, which older C libraries do not know */
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) ||
        (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH))
        return;
    attributes.slice = SLICE_NANOSECONDS;
    syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static _Noreturn void *live(void *given)
{
    struct helper *helper = given;
    shorten_slice();
    for (;;) {
        uint32_t called = CALLED, idle = IDLE;
        if (atomic_compare_exchange_strong(&helper->state, &called, HELPING)) {
            help(helper); /* it has looked for more for a while */
            atomic_store(&helper->state, IDLE);
        } else if (atomic_compare_exchange_strong(&helper->state, &idle, ASLEEP) || idle == ASLEEP) {
            syscall(SYS_futex, &helper->state, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
        }
    }
}

/* A forked child has the memory of the threads, but not the threads. */
static void forget(void)
{
    started = helping = apart = 0;
    helpers[0].function = NULL;
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
        simulator_fill_table(helpers[started].table); /* that makes its code cache */
        atomic_store(&helpers[started].state, ASLEEP); /* it takes as long to begin as to wake up */
        if (pthread_create(&helpers[started].thread, &detached, live, &helpers[started]))
            break;
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started < count ? started : count;
}

/* Helpers leave this thread its processor: the system may let a thread that is woken run on the processor of the one that
 * wakes it, where each then waits for the other. */
static void keep_apart(void)
{
    cpu_set_t others;
    int here = sched_getcpu();
    if (here < 0 || (here == processor && apart == started))
        return;
    processor = here;
    apart = started;
    if (sched_getaffinity(0, sizeof others, &others))
        return;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others))
        for (int i = 0; i < started; i++)
            pthread_setaffinity_np(helpers[i].thread, sizeof others, &others);
}

/* A helper that has not begun yet need not; returns whether there was one. */
static int call_off(struct helper *helper)
{
    uint32_t called = CALLED;
    if (!atomic_compare_exchange_strong(&helper->state, &called, IDLE))
        return 0;
    helper->function = NULL;
    return 1;
}

/* Wait until a helper has left. */
static void dismiss(struct helper *helper)
{
    beside_ends = 1;
    if (call_off(helper))
        return;
    for (int looks = 0; atomic_load(&helper->state) == HELPING; looks++)
        if (looks < LOOKS)
            pause_briefly();
        else
            nanosleep(&(struct timespec){0, NAP_NANOSECONDS}, NULL); /* it may want this processor */
}

/* No helper looks at `work` any more. */
void help_leave(void)
{
    helping = 0;
    if (!attached)
        return;
    *work.stop = 1;
    *work.begin += 1;
    for (int i = 0; i < started; i++)
        dismiss(&helpers[i]);
    *work.stop = *work.alone = *work.leaves = 0;
    *work.threads = 1;
    attached = 0;
}

/* Helpers that had no processor have made the others wait. */
static void lose(int64_t times)
{
    lost += times * LATE_NANOSECONDS;
    if (lost * LOSS > helped) {
        alone_for = 2 * alone_for > times * LATE_NANOSECONDS ? 2 * alone_for : times * LATE_NANOSECONDS;
        alone_for = alone_for < ALONE_NANOSECONDS ? alone_for : ALONE_NANOSECONDS;
        alone_until = now() + alone_for;
    } else {
        alone_for = 0;
    }
    lost /= 2;
    helped /= 2;
}

/* Threads that are to share the clocks. */
static int threads_for_clocks(void)
{
    if (moves >= LONG * WORTH_THREADS)
        return (int)setting(THREADS); /* each thread has its share of the processors' time */
    if (began < alone_until || (moves < WORTH_THREADS && usual < WORTH_NANOSECONDS))
        return 1;
    return (int)setting(THREADS);
}

/* What a helped call takes is less than what it would take alone: twice as much, for the rule above. */
static void learn(void)
{
    if (moves >= WORTH_THREADS)
        return;
    usual += ((wanted > 1 ? 2 * taken : taken) - usual) / 8;
}

/* Of a chip that moves alone the tiles are shared among threads, else the chips. */
#define WORK(of, record, help)                                                                                               \
    (struct work){record,                                                                                                    \
                  &FIELD(int64_t, record, of##_THREADS),                                                                     \
                  &FIELD(int64_t, record, of##_SHARE_STOP),                                                                  \
                  &FIELD(int64_t, record, of##_SHARE_ALONE),                                                                 \
                  &FIELD(int64_t, record, of##_SHARE_LEAVES),                                                                \
                  &FIELD(int64_t, record, of##_SHARE_LATE),                                                                  \
                  &FIELD(_Atomic int64_t, record, of##_SHARE_BEGIN),                                                         \
                  help}

void help_beside(help_function function, void *record, int64_t first, int64_t second)
{
    struct helper *helper = &helpers[0];
    help_leave();
    help_beside_end();
    if (setting(THREADS) < 2 || start(1) < 1)
        return;
    beside_ends = 0;
    helper->function = function;
    helper->record = record;
    helper->first = first;
    helper->second = second;
    call(helper);
}

int help_is_beside(void)
{
    return helpers[0].function != NULL;
}

int help_beside_ends(void)
{
    return beside_ends;
}

void help_beside_end(void)
{
    dismiss(&helpers[0]);
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
    struct work next =
        busy > 1 ? WORK(CLUSTER, of->cluster, of->help_cluster) : WORK(CHIP, instances[last].chip, of->help_chip);
    if (next.record != work.record || next.help != work.help) {
        help_leave();
        work = next;
    }
    help_resume();
}

void help_resume(void)
{
    if (measured && !began)
        began = now();
    if (attached)
        *work.alone = wanted <= 1;
    if (wanted <= 1)
        return;
    beside_ends = 1;
    helping = start(wanted - 1 < MOST_THREADS ? wanted - 1 : MOST_THREADS);
    keep_apart();
    if (!attached) {
        attached = 1;
        *work.threads = helping + 1;
    }
    *work.leaves = STAY_LOOKS;
    for (int i = 0; i < helping; i++) {
        struct helper *helper = &helpers[i];
        if (helper->function)
            call_off(helper);
        uint32_t state = atomic_load(&helper->state);
        if (state == CALLED || state == HELPING)
            continue;
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
    help_leave();
}

void help_end(void)
{
    if (began)
        taken += now() - began;
    if (helping && moves < LONG * WORTH_THREADS) {
        helped += taken;
        if (*work.late)
            lose(*work.late);
    }
    if (helping)
        *work.late = 0;
    helping = 0;
    if (attached) {
        *work.alone = 1;
        *work.leaves = LEAVE_LOOKS;
    }
    if (measured)
        learn();
}
