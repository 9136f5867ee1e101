/* How many clocks pass in a call of libttsim_clock. */

#ifndef BHEMU_PACE_H
#define BHEMU_PACE_H

#include <stdint.h>

/* A new chip: from now on as many as are asked for, until the client has begun to poll. */
void pace_start(void);

/* The client has written something. */
void pace_wrote(void);

/* The client has read something. */
void pace_read(uint64_t paddr, const void *bytes, uint32_t size);

/* The clocks that pass when so many are asked for. */
uint32_t pace_of(uint32_t clocks);

#endif
