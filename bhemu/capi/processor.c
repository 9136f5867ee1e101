/* Whether this processor has what the library's machine code uses.
 *
 * The compiler's own function for this asks the processor some ten times when the library is loaded. In a virtual machine
 * each time takes four microseconds: the host answers. */

#include "processor.h"
#include "shim.h"

#include <stdio.h>

#ifdef __x86_64__
#include <cpuid.h>

enum { OSXSAVE = 1 << 27, AVX = 1 << 28 }; /* leaf 1, ecx */
enum { AVX_STATE = 6, AVX512_STATE = 0xE6 }; /* registers that the system keeps for each thread */

static int has(const struct feature *feature, const uint32_t words[2][4], uint32_t kept)
{
    uint32_t state = feature->width == 512 ? AVX512_STATE : feature->width ? AVX_STATE : 0;
    return words[feature->leaf == 7][feature->word] >> feature->bit & 1 && (kept & state) == state;
}

void check_processor(void)
{
    uint32_t words[2][4] = {0}, kept = 0, high;
    if (!machine_features->name)
        return;
    __cpuid(1, words[0][0], words[0][1], words[0][2], words[0][3]);
    if (words[0][2] & OSXSAVE)
        __asm__("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if (words[0][2] & AVX) /* and so has leaf 7 */
        __cpuid_count(7, 0, words[1][0], words[1][1], words[1][2], words[1][3]);
    for (const struct feature *feature = machine_features; feature->name; feature++)
        if (!has(feature, words, kept)) {
            char text[128];
            snprintf(text, sizeof text, "this processor does not have %s, which this library uses", feature->name);
            refuse("libttsim_init", text,
                   "make one on this machine with `bhemu library DIR`, or one for older processors with `--for`");
        }
}
#else
void check_processor(void)
{
}
#endif
