/* Memory that the process of a client and that of its simulator share: one call of the interface at a time.
 *
 * Calls without an answer wait in `posted` for the next one with an answer.
 * `turn` says who may touch the rest. The client has it while it is FREE or HOST_ASKED, the simulator otherwise. */

#ifndef BHEMU_CHANNEL_H
#define BHEMU_CHANNEL_H

#include <stdatomic.h>
#include <stdint.h>

enum turn { FREE, ASKED, HOST_ASKED, HOST_ANSWERED };

enum { PIECE = 1 << 24, POSTED = 1 << 20 }; /* bytes that are moved at a time; bytes of posted calls */

/* A call that is carried out before the next one that is answered; its bytes follow, and fill up whole words. */
struct posted {
    uint32_t function, size;
    uint64_t a;
};

struct channel {
    _Atomic uint32_t turn;
    _Atomic uint32_t sleepers;
    uint32_t function;
    uint32_t size;
    uint64_t a, b, c;
    uint32_t answer;
    uint32_t writes; /* HOST_ASKED: 1 the simulator writes to the host's memory, 0 it reads */
    uint32_t has_read, has_write;
    int32_t client;
    uint32_t posted_size;
    unsigned char posted[POSTED] __attribute__((aligned(8)));
    unsigned char bytes[PIECE];
};

/* Hand the channel over. */
void give(struct channel *channel, enum turn turn);

/* Wait until it is one of two turns; `look` is called now and then, and does not return when the other end has gone. */
enum turn wait_for(struct channel *channel, enum turn one, enum turn other, void (*look)(void));

#endif
