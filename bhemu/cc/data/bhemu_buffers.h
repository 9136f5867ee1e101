/*
 * bhemu_buffers.h: circular buffers between two cores of a tile. <bhemu.h> includes this.
 *
 * A buffer is a ring of pages in L1. Its counters are two registers of a stream of the NoC overlay, as tt-metal has them:
 * pages received, which only the producer changes, and pages acknowledged, which only the consumer changes (K51). Each
 * core keeps a bhemu_buffer of its own, with the same stream, address and sizes:
 *
 *   bhemu_buffer out = {.stream = 0, .base = 0x20000, .page_bytes = 2048, .pages = 4};
 *
 * One core calls bhemu_buffer_reset before the others start.
 */

#ifndef BHEMU_BUFFERS_H
#define BHEMU_BUFFERS_H

#define BHEMU_STREAM_ACKED    0x020
#define BHEMU_STREAM_RECEIVED 0x028

#if !defined(__ASSEMBLER__)

typedef struct {
    uint32_t stream;     /* 0-63 */
    uint32_t base;       /* in L1 */
    uint32_t page_bytes; /* of a page */
    uint32_t pages;      /* of the ring, 1-65535 */
    uint32_t count;      /* pages that this core has pushed or popped, modulo 2^16 */
    uint32_t page;       /* where in the ring this core is */
} bhemu_buffer;

BHEMU_INLINE uint32_t bhemu_buffer_register(const bhemu_buffer *buffer, uint32_t offset) {
    return BHEMU_OVERLAY + 0x1000 * buffer->stream + offset;
}

BHEMU_INLINE uint32_t bhemu_buffer_received(const bhemu_buffer *buffer) {
    return bhemu_load(bhemu_buffer_register(buffer, BHEMU_STREAM_RECEIVED)) & 0xFFFF;
}

BHEMU_INLINE uint32_t bhemu_buffer_acked(const bhemu_buffer *buffer) {
    return bhemu_load(bhemu_buffer_register(buffer, BHEMU_STREAM_ACKED)) & 0xFFFF;
}

/* Empties the counters of a stream. */
BHEMU_INLINE void bhemu_buffer_reset(const bhemu_buffer *buffer) {
    bhemu_store(bhemu_buffer_register(buffer, BHEMU_STREAM_RECEIVED), 0);
    bhemu_store(bhemu_buffer_register(buffer, BHEMU_STREAM_ACKED), 0);
    bhemu_fence();
}

BHEMU_INLINE void bhemu_buffer_advance(bhemu_buffer *buffer, uint32_t pages) {
    buffer->count = (buffer->count + pages) & 0xFFFF;
    buffer->page += pages;
    if (buffer->page >= buffer->pages) {
        buffer->page -= buffer->pages;
    }
}

/* Address of the page that the producer fills, or that the consumer reads, next. */
BHEMU_INLINE uint32_t bhemu_buffer_address(const bhemu_buffer *buffer) {
    return buffer->base + buffer->page_bytes * buffer->page;
}

/* Producer: waits until `pages` of the ring are free. */
BHEMU_INLINE void bhemu_buffer_reserve(const bhemu_buffer *buffer, uint32_t pages) {
    while (((buffer->count - bhemu_buffer_acked(buffer)) & 0xFFFF) + pages > buffer->pages) {
    }
}

/* Producer: hands over `pages` that it has filled. What the coprocessor packs must have arrived: bhemu_tensix_sync. */
BHEMU_INLINE void bhemu_buffer_push(bhemu_buffer *buffer, uint32_t pages) {
    bhemu_fence();
    bhemu_buffer_advance(buffer, pages);
    bhemu_store(bhemu_buffer_register(buffer, BHEMU_STREAM_RECEIVED), buffer->count);
}

/* Consumer: waits until `pages` are there. */
BHEMU_INLINE void bhemu_buffer_wait(const bhemu_buffer *buffer, uint32_t pages) {
    while (((bhemu_buffer_received(buffer) - buffer->count) & 0xFFFF) < pages) {
    }
    bhemu_fence();
}

/* Consumer: gives `pages` back. What the coprocessor unpacks must have been read: bhemu_tensix_sync. */
BHEMU_INLINE void bhemu_buffer_pop(bhemu_buffer *buffer, uint32_t pages) {
    bhemu_fence();
    bhemu_buffer_advance(buffer, pages);
    bhemu_store(bhemu_buffer_register(buffer, BHEMU_STREAM_ACKED), buffer->count);
}

#endif /* __ASSEMBLER__ */
#endif /* BHEMU_BUFFERS_H */
