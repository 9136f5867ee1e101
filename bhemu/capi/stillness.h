/* Clients that wait for ever are told so, once for each system of chips: those that let clocks pass where nothing can proceed,
 * and change nothing, after BHEMU_PATIENCE seconds; and those that poll, where cores do no more than poll, either, after
 * BHEMU_POLLING seconds. */

#ifndef BHEMU_STILLNESS_H
#define BHEMU_STILLNESS_H

#include <stdint.h>

/* A new chip. */
void stillness_start(void);

/* The client has changed something. */
void stillness_wrote(void);

/* Clocks have passed, and so many tiles can still move; 1 when the client is to be told. */
int stillness_clock(int64_t active_tiles);

/* What tells what has happened on chips that are in other processes: another number when something has. NULL: chips are here. */
void polling_ask(int64_t (*happened)(void));

/* Clocks are to pass that may take long. */
void polling_begin(void);

/* So many have passed; 1 when the client has polled for long, and on the chips nothing was seen but what cores do that poll. */
int polling_clock(uint32_t clocks);

/* Whether the client has been told. If cores turned out to do more than poll, it takes twice as long until the next look. */
void polling_told(int said);

#endif
