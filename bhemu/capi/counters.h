/* Counts of all Tensix tiles of a chip in the client's process: a recording that only counts needs no other process. */

#ifndef BHEMU_COUNTERS_H
#define BHEMU_COUNTERS_H

#include <stdint.h>

/* The environment asks for counts of a chip alone, and for nothing that a process under Python has to do. */
int counters_wanted(void);

/* Count a new chip, if that is wanted. */
void counters_start(void);

/* Tiles are counted. */
extern int counters_file; /* of the recording; -1: there is none */
static inline int counters_count(void)
{
    return counters_file >= 0;
}

/* Clocks are about to pass: see what the client has started. */
void counters_begin(void);

/* Clocks have passed, at most RECORDED_STEP: see which programs have begun and ended. */
void counters_arrive(void);

/* The client has changed something: a program may have begun. */
void counters_wrote(void);

/* The chip has stopped in the middle of a clock: a tile's table of waits is full, which this empties. */
void counters_attend(void);

/* Write what is left. Later calls do nothing. */
void counters_end(void);

#endif
