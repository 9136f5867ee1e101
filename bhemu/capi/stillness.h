/* A client that lets clocks pass on a chip in which nothing can proceed, and changes nothing, waits for ever: after some
 * seconds it is told, once for each chip, what waits for what. */

#ifndef BHEMU_STILLNESS_H
#define BHEMU_STILLNESS_H

#include <stdint.h>

/* A new chip. */
void stillness_start(void);

/* The client has changed something. */
void stillness_wrote(void);

/* Clocks have passed, and so many tiles can still move; 1 when the client is to be told. */
int stillness_clock(int64_t active_tiles);

#endif
