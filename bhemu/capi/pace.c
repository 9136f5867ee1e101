/* How many clocks pass in a call of libttsim_clock (docs/library.md, "The pace of clocks").
 *
 * A client lets one clock pass for each time that it polls; a host polls a real card once in a thousand clocks. With
 * BHEMU_PACE=adaptive more clocks pass in a call while the client only reads and clocks, and reads the same as before:
 * twice as many after each such round, up to MOST. A write, or a word that is not what it was at the same address, takes
 * the pace back to one. The rule depends on the calls and their answers alone, so equal calls have equal results. */

#include "pace.h"
#include "settings.h"

#include <string.h>

enum { PLACES_KEPT = 64, BYTES_KEPT = 8, PATIENT = 16, MOST = 1024 };

struct place {
    uint64_t paddr, bytes;
    uint32_t size;
};

static struct place places[PLACES_KEPT]; /* what was read last, by address */
static uint32_t pace, same; /* calls since something was written or has changed */
static int adaptive, has_read;

static void back_to_one(void)
{
    pace = 1;
    same = 0;
}

void pace_start(void)
{
    adaptive = setting(PACE);
    has_read = 0;
    memset(places, 0, sizeof places);
    back_to_one();
}

void pace_wrote(void)
{
    back_to_one();
}

void pace_read(uint64_t paddr, const void *bytes, uint32_t size)
{
    struct place *place = &places[paddr / 4 % PLACES_KEPT];
    uint64_t now = 0;
    if (!adaptive)
        return;
    memcpy(&now, bytes, size < BYTES_KEPT ? size : BYTES_KEPT);
    has_read = 1;
    if (size > BYTES_KEPT || place->paddr != paddr || place->size != size || place->bytes != now)
        back_to_one();
    *place = (struct place){paddr, now, size};
}

uint32_t pace_of(uint32_t clocks)
{
    if (!adaptive || clocks != 1)
        return clocks;
    if (has_read && ++same > PATIENT && pace < MOST)
        pace *= 2;
    has_read = 0;
    return pace;
}
