/* The simulator in another process: what the client's end offers, and how its calls are called. */

#ifndef BHEMU_REMOTE_H
#define BHEMU_REMOTE_H

#include "shim.h"
#include "slots.h"

/* Start the process of the simulator, which ends with this one. Later calls do nothing. */
void remote_start(void);

/* Let the simulator's process do what a function of the interface does.
 *
 * a, b, c: its numbers, in its order. in, out: bytes that it takes or fills, or NULL. Returns its answer, or 0. */
uint32_t remote_call(enum function function, uint64_t a, uint64_t b, uint64_t c, const void *in, void *out,
                    uint32_t size);

/* The same for a write or clocks, which have no answer: they are carried out before the next call. What may let the
 * chip reach the client's memory is answered. */
void remote_post(enum function function, uint64_t a, const void *in, uint32_t size);

/* The chip ends; nothing happens in a fork of the client. */
void remote_end(void);

/* What the simulator may use to reach the host's memory; NULL: nothing. */
void remote_set_callbacks(read_callback reads, write_callback writes);

#endif
