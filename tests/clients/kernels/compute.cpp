// Prints on two of its cores, and lets an assert of the low-level kernels fail where its argument asks for that.

#include "api/compute/common.h"
#include "api/debug/assert.h"
#include "api/debug/dprint.h"
#include "llk_assert.h"

void kernel_main() {
    uint32_t mode = get_arg_val<uint32_t>(0);
    MATH(DPRINT("math: mode {}\n", mode));
    PACK(DPRINT("pack: mode {}\n", mode));
    MATH(LLK_ASSERT(mode != 3, "the argument asks for it"));
}
