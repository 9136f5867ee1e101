/* What the two halves of the C library share: shim.c (the interface) and apart.c (the simulator in another process). */

#ifndef BHEMU_SHIM_H
#define BHEMU_SHIM_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*read_callback)(uint64_t, void *, uint32_t);
typedef void (*write_callback)(uint64_t, const void *, uint32_t);

/* Print a refusal in the interface's form, and end the process. */
_Noreturn void refuse(const char *function, const char *text, const char *remedy);

/* The functions of the interface, by their names without `libttsim_`. */
enum function { INIT, EXIT, CONFIG_READ, CONFIG_WRITE, MEMORY_READ, MEMORY_WRITE, CLOCK, TILE_READ, TILE_WRITE };

/* Start the process of the simulator, which ends with this one. Later calls do nothing. */
void apart_start(void);

/* Let the simulator's process do what a function of the interface does.
 *
 * a, b, c: its numbers, in its order. in, out: bytes that it takes or fills, or NULL. Returns its answer, or 0. */
uint32_t apart_call(enum function function, uint64_t a, uint64_t b, uint64_t c, const void *in, void *out, uint32_t size);

/* What the simulator may use to reach the host's memory; NULL: nothing. */
void apart_set_callbacks(read_callback reads, write_callback writes);

#endif
