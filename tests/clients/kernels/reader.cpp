// A kernel that prints, says where it is, and does what its argument asks for.

#include "api/dataflow/dataflow_api.h"
#include "api/debug/assert.h"
#include "api/debug/dprint.h"
#include "api/debug/ring_buffer.h"
#include "api/debug/waypoint.h"

void kernel_main() {
    uint32_t mode = get_arg_val<uint32_t>(0);
    DPRINT("reader: mode {} of {}\n", mode, 4);
    WATCHER_RING_BUFFER_PUSH(0xB0E00000 + mode);
    WAYPOINT("USER");
    ASSERT(mode != 1);
    if (mode == 2) {
        noc_async_read(get_noc_addr(1, 2, 0x10000000), 0x20000, 64);  // there is no such address
        noc_async_read_barrier();
    }
}
