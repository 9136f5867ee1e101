/* Memory of many tiles (pages.c). */

#ifndef BHEMU_PAGES_H
#define BHEMU_PAGES_H

#include <stdint.h>

/* Chips start: no tile has been used. */
void pages_start(void);

/* The selected chip ends: threads may give back some of the memory of its tiles. */
void pages_end(void);

/* The client reaches a tile of the selected chip. */
void pages_reach(int64_t index);

#endif
