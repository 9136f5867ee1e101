/* Memory of many tiles in pages of 2 MiB (pages.c). */

#ifndef BHEMU_PAGES_H
#define BHEMU_PAGES_H

#include <stdint.h>

/* Chips start: no tile has been used. */
void pages_start(void);

/* Chips end, and their memory has been given back. */
void pages_end(void);

/* The client reaches a tile of the selected chip. Nothing else may use the tile meanwhile. */
void pages_reach(int64_t index);

#endif
