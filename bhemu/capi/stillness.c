/* Clients that wait for chips in which nothing can proceed, or where cores only poll. */

#define _GNU_SOURCE
#include "stillness.h"
#include "settings.h"
#include "shim.h"
#include "simulator.h"

#include <time.h>

enum { LOOK_EVERY = 256 };

static uint32_t calls;
static int64_t since;
static int told;

/* --- the client polls, and so do the cores ---------------------------------------------------------------------------
 *
 * Time counts while the client lets clocks pass without a longer pause: one that sleeps, or computes, waits for nothing. It
 * counts anew when the client writes, or when something has happened on a chip that does not happen where cores poll: a NoC
 * request that writes, a word of a coprocessor, a frame on its way. To ask for the time takes as long as a short call: it is
 * asked for once in a row of these, which grows up to LONGEST_ROW calls while they follow each other briskly. */

#define SECOND INT64_C(1000000000)
enum { LOOKS = 8 /* while a client polls, at what has happened */, LEAST_CLOCKS = 1000000 /* that pass until it is told */ };
enum { LONGEST_ROW = 64, BRISK = 1000000 /* nanoseconds from call to call */ };
static const int64_t longest_pause = SECOND / 2;

static int64_t begun; /* clocks that take long; 0: others */
static int64_t ended, waited, looked, passed, happened, patience;
static int counts; /* the time since `ended` */
static int row = 1, left; /* calls of the row that come before the next look at the time */
static int64_t (*happened_elsewhere)(void);

static int64_t coarse_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec * SECOND + time.tv_nsec;
}

static void wait_anew(void)
{
    waited = passed = counts = 0;
    looked = patience / LOOKS;
}

void polling_ask(int64_t (*function)(void))
{
    happened_elsewhere = function;
}

/* A number that is another one when something has happened. */
static int64_t what_happened(void)
{
    if (happened_elsewhere)
        return happened_elsewhere();
    static const int counted[] = {NIU_WRITES, NIU_POSTED_WRITES, NIU_ATOMICS, NIU_POSTED_ATOMICS};
    int64_t sum = 0;
    for (int chip = 0; chip < CHIPS; chip++) {
        const char *record = instances[chip].chip;
        const char *tiles = (const char *)(intptr_t)FIELD(int64_t, record, CHIP_TILES);
        for (int channel = 0; channel < CHANNELS; channel++)
            if ((&FIELD(int64_t, record, CHIP_FRAME_FIRST))[channel] || (&FIELD(int64_t, record, CHIP_SENT_FIRST))[channel])
                sum += FIELD(int64_t, record, CHIP_TIME); /* a frame is on its way */
        for (int tile = 0; tile < TILES; tile++) {
            const char *one = tiles + (size_t)tile * TILE_BYTES;
            if (!(&FIELD(uint8_t, record, CHIP_ACTIVE))[tile])
                continue;
            sum += tile; /* which tiles move is part of it */
            for (int noc = 0; noc < NOCS; noc++)
                for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
                    sum += (&FIELD(uint32_t, one, TILE_NIU_COUNTER))[noc * NIU_COUNTERS + counted[i]];
            for (int i = 0; i < ISSUED; i++)
                sum += (&FIELD(int64_t, one, TILE_ISSUED))[i];
        }
    }
    return sum;
}

/* The client has come back. */
static void begin(int64_t time)
{
    int64_t away = time - ended;
    if (away > longest_pause)
        wait_anew();
    row = away > row * BRISK ? 1 : 2 * row < LONGEST_ROW ? 2 * row : LONGEST_ROW;
    left = row;
    begun = time;
}

void polling_begin(void)
{
    begin(coarse_now());
}

int polling_clock(uint32_t clocks)
{
    passed += clocks;
    if (!begun && --left > 0)
        return 0;
    int64_t time = coarse_now();
    if (!begun)
        begin(time);
    waited += time - (counts ? ended : begun);
    counts = 1;
    ended = time;
    begun = 0;
    if (told || !patience || waited < looked)
        return 0;
    int64_t before = happened;
    happened = what_happened();
    if (happened != before)
        wait_anew();
    else
        looked = waited + patience / LOOKS;
    return waited > patience && passed > LEAST_CLOCKS;
}

void polling_told(int said)
{
    told |= said;
    patience *= 2;
    wait_anew();
}

/* --- nothing can proceed ------------------------------------------------------------------------------------------- */

void stillness_start(void)
{
    calls = 0;
    told = 0;
    patience = setting(POLLING) * SECOND;
    wait_anew();
}

void stillness_wrote(void)
{
    calls = 0;
    wait_anew();
}

int stillness_clock(int64_t active_tiles)
{
    if (active_tiles) {
        calls = 0;
    } else if (calls++ % LOOK_EVERY == 0 && !told) {
        if (calls == 1)
            since = now();
        else
            told = now() - since > setting(PATIENCE) * SECOND;
        return told;
    }
    return 0;
}
