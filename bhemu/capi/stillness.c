/* Clients that wait for a chip in which nothing can proceed. */

#include "stillness.h"
#include "settings.h"
#include "shim.h"

enum { LOOK_EVERY = 256 };

static uint32_t calls;
static int64_t since;
static int told;

void stillness_start(void)
{
    calls = 0;
    told = 0;
}

void stillness_wrote(void)
{
    calls = 0;
}

int stillness_clock(int64_t active_tiles)
{
    if (active_tiles) {
        calls = 0;
    } else if (calls++ % LOOK_EVERY == 0 && !told) {
        if (calls == 1)
            since = now();
        else
            told = now() - since > setting(PATIENCE) * 1000000000;
        return told;
    }
    return 0;
}
