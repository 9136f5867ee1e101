/* Pages of memory, taken before they are touched (fresh_pages.c). */

#ifndef BHEMU_FRESH_PAGES_H
#define BHEMU_FRESH_PAGES_H

#include <stddef.h>

/* Memory whose pages may be taken so, until it is unmapped. */
void fresh_pages_start(char *memory, size_t bytes);

/* Take pages of it that have not been touched; one that has keeps what it holds. */
void take_fresh_pages(char *at, size_t bytes);

/* That memory has been unmapped. */
void fresh_pages_end(void);

#endif
