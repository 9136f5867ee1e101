/* Pages of 2 MiB in place of pages of records (large_pages.c). */

#ifndef BHEMU_LARGE_PAGES_H
#define BHEMU_LARGE_PAGES_H

/* Put a piece of a large page in the place of what firmware uses of a tile's record; what this holds is kept. False: it stays
 * as it was, as the system has none, or is slow with them. */
int large_page_put(char *record);

/* Give back what has not become a part of a record. */
void large_pages_end(void);

#endif
