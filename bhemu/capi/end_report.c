/* What is said when the simulator ends. */

#define _GNU_SOURCE
#include "settings.h"
#include "simulator.h"

#include <stdio.h>
#include <unistd.h>

/* In timed mode: how much of what clocks are made of is guessed. */
static void report_time(void)
{
    int64_t all = 0, guessed = 0;
    for (int n = 0; instances[0].chip_time && n < CHIPS * TILES; n++) {
        const int64_t *time = instances[n / TILES].tile_time + (size_t)(n % TILES) * TILE_TIME_WORDS;
        all += time[TILE_TIME_BUSY] + time[TILE_TIME_CORES];
        guessed += time[TILE_TIME_GUESSED] + time[TILE_TIME_CORES_GUESSED];
    }
    if (all)
        dprintf(STDOUT_FILENO, "[%lld] bhemu: clocks are estimates of cycles of silicon; %.1f%% of what they are made of is "
                "guessed\n", (long long)simulator_time(), 100.0 * guessed / all);
}

void simulator_report(void)
{
    int64_t said[64];
    int count = 0;
    fflush(NULL);
    select_chip(0);
    for (int n = 0; setting(ALLOW_OPEN) && n < CHIPS * TILES; n++) {
        if (!tile_is_made(instances[n / TILES].chip, n % TILES))
            continue;
        for (int i = 0; i < TILE_OPEN_CHOICES; i++) {
            const char *record = instances[n / TILES].tiles + (size_t)(n % TILES) * TILE_BYTES;
            int64_t code = (&FIELD(TILE_OPEN_USED_TYPE, record, TILE_OPEN_USED))[i];
            int known = !code || count == 64;
            for (int k = 0; k < count; k++)
                known |= said[k] == code;
            if (known)
                continue;
            said[count++] = code;
            const struct fault *fault = fault_of(code);
            dprintf(STDOUT_FILENO, "[%lld] bhemu: no source settles this, a choice was made: %s\n",
                    (long long)simulator_time(), fault ? machine_texts + fault->name : "?");
        }
    }
    report_time();
    double seconds = (now() - simulator.started) / 1e9;
    dprintf(STDOUT_FILENO, "[%lld] bhemu: %.2f seconds, %.1f kHz\n", (long long)simulator_time(), seconds,
            simulator_time() / (seconds > 1e-9 ? seconds : 1e-9) / 1e3);
}
