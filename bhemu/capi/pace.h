/* How many clocks pass in a call of libttsim_clock. */

#ifndef BHEMU_PACE_H
#define BHEMU_PACE_H

#include <stdint.h>

extern int pace_adapts; /* else as many as are asked for */

/* A new chip. */
void pace_start(void);

/* Something has changed: from now on few clocks, until the client has begun to poll. */
void pace_begin(void);

/* The chip has accessed the client's memory. */
void pace_share(void);

/* The client has read. */
void pace_look(uint64_t paddr, const void *bytes, uint32_t size);

/* The client sees what the chip does by its calls alone, and does not count clocks. */
int pace_posts(void);

/* The clocks that pass when so many are asked for. */
uint32_t pace_of(uint32_t clocks);

#endif
