/* One thread of the client in the library at a time. A callback of the client's may call again. */

#ifndef BHEMU_LOCK_H
#define BHEMU_LOCK_H

/* Wait until no other thread is in the library. */
void lock(void);

/* Let others in. */
void unlock(void);

#endif
