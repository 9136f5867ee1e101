/* How many clocks pass in a call of libttsim_clock (docs/library.md, "The pace of clocks").
 *
 * A client lets one clock pass for each time that it polls; a host polls a real card once in a thousand clocks. Unless
 * BHEMU_PACE=exact says otherwise, or something looks on between clocks, more clocks pass in a call of a client that
 * polls: LEAST after its first PATIENT polls, and while it only aims windows, reads and clocks, and reads the same as
 * before, twice as many after each call, up to MOST. A client that does not read waits for what the chip writes into
 * its memory; it is believed to wait once the chip has accessed that. A write of the client's, one of the chip's to the
 * client's memory, or bytes that are not what they were at the same place, take the pace back to LEAST, which is prime:
 * a client that samples the pc of a short loop does not always see the same instruction. The rule depends on the calls
 * and their answers alone, so equal calls have equal results. */

#include "pace.h"
#include "settings.h"
#include "windows.h"

#include <string.h>

enum { PLACES_KEPT_BITS = 10, BYTES_KEPT = 64, PATIENT = 16, LEAST = 251, MOST = 1024 };

struct place {
    uint64_t place, bytes; /* of more than a word a hash */
    uint32_t size;
};

static struct place places[1 << PLACES_KEPT_BITS]; /* what was read last, by place */
static uint32_t pace, same; /* calls since something was written or has changed */
static uint32_t polls;      /* since the chip was made, up to PATIENT */
static int has_read, shares_memory;
int pace_adapts;

void pace_begin(void)
{
    pace = polls < PATIENT ? 1 : LEAST;
    same = 0;
}

void pace_share(void)
{
    shares_memory = 1;
}

void pace_start(void)
{
    pace_adapts = setting(PACE) == 0 && (!records() || only_records());
    memset(places, 0, sizeof places);
    has_read = shares_memory = 0;
    polls = 0;
    pace_begin();
}

static uint64_t hash_of(const void *bytes, uint32_t size)
{
    uint64_t hash = 0;
    uint32_t word;
    if (size == sizeof word) {
        memcpy(&word, bytes, sizeof word);
        return word;
    }
    for (uint32_t at = 0; at < size; at += 8) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)bytes + at, size - at < 8 ? size - at : 8);
        hash = mix(hash, bits);
    }
    return hash;
}

void pace_look(uint64_t paddr, const void *bytes, uint32_t size)
{
    uint64_t where = window_place(paddr);
    struct place *place = &places[mix(0, where) >> (64 - PLACES_KEPT_BITS)];
    has_read = size <= BYTES_KEPT;
    if (size > BYTES_KEPT) {
        pace_begin();
        return;
    }
    uint64_t hash = hash_of(bytes, size);
    if (place->place != where || place->size != size || place->bytes != hash) {
        pace_begin();
        *place = (struct place){where, hash, size};
    }
}

int pace_posts(void)
{
    return pace_adapts && !shares_memory;
}

uint32_t pace_of(uint32_t clocks)
{
    if (!pace_adapts || clocks != 1)
        return clocks;
    if (has_read || shares_memory) {
        if (polls == PATIENT && pace < LEAST)
            pace = LEAST;
        else if (++same > PATIENT && pace < MOST)
            pace = pace * 2 < MOST ? pace * 2 : MOST;
        polls += polls < PATIENT;
    }
    has_read = 0;
    return pace;
}
