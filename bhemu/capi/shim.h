/* The interface of the C library, and what its files share. */

#ifndef BHEMU_SHIM_H
#define BHEMU_SHIM_H

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*read_callback)(uint64_t, void *, uint32_t);
typedef void (*write_callback)(uint64_t, const void *, uint32_t);

/* Nanoseconds since some time. */
int64_t now(void);

/* Print a refusal in the interface's form. */
void say_refusal(const char *function, const char *text, const char *remedy);

/* The same, and end the process: there can be no chip. */
_Noreturn void refuse(const char *function, const char *text, const char *remedy);

/* Whether the simulator runs, which the function needs; a refusal else. */
int check_running(const char *function);

/* The chip is in a process of its own. */
int chip_is_remote(void);

/* The interface (tile H1); functions.c, made by slots.py, has the others. */
void libttsim_set_pci_dma_mem_callbacks(read_callback, write_callback);
void libttsim_init(void);
void libttsim_exit(void);
void libttsim_pci_mem_rd_bytes(uint64_t, void *, uint32_t);
void libttsim_pci_mem_wr_bytes(uint64_t, const void *, uint32_t);
void libttsim_clock(uint32_t);
void libttsim_tile_rd_bytes(uint32_t, uint32_t, uint64_t, void *, uint32_t);
void libttsim_tile_wr_bytes(uint32_t, uint32_t, uint64_t, const void *, uint32_t);

#endif
