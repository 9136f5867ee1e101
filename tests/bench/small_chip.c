/* A library with the simulator's interface that has a memory and one engine: a client writes how many clocks a piece of work
 * takes to ENGINE; so many clocks later, times SLOWNESS of the environment, the engine reads 64 bytes of the host's memory at
 * 0x1000 + 64 n, adds 1 to each, writes them to the host's memory at 0x40000000 + 64 n and to the memory at 0x100, and counts
 * the piece in DONE. CARD_WORD is what the library says about itself at CARD. With REFUSE it refuses the first piece. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENGINE = 0x10, DONE = 0x14, CARD = 0x18, RESULT = 0x100, SIZE = 64 };

static unsigned char memory[0x200000];
static uint64_t now, end_of_work, pieces;
static int working;
static void (*host_read)(uint64_t, void *, uint32_t);
static void (*host_write)(uint64_t, const void *, uint32_t);

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, 0, 0) : otherwise;
}

void libttsim_set_pci_dma_mem_callbacks(void (*reads)(uint64_t, void *, uint32_t), void (*writes)(uint64_t, const void *, uint32_t))
{
    host_read = reads;
    host_write = writes;
}

void libttsim_init(void)
{
    uint32_t word = (uint32_t)setting("CARD_WORD", 7);
    memcpy(memory + CARD, &word, 4);
}

void libttsim_exit(void) {}

uint32_t libttsim_pci_config_rd32(uint32_t bdf, uint32_t offset)
{
    return bdf == 0 && offset == 0 ? 0xB1401E52 : 0xFFFFFFFF;
}

static int is_window(uint64_t paddr)
{
    return paddr >= 0x11FC00000 && paddr < 0x11FC009D8;
}

void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    memcpy(p, memory + (paddr & 0x1FFFFF), size);
}

void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    uint32_t clocks;
    if (is_window(paddr))
        return;
    memcpy(memory + (paddr & 0x1FFFFF), p, size);
    if ((paddr & 0x1FFFFF) == ENGINE) {
        memcpy(&clocks, p, 4);
        end_of_work = now + clocks * setting("SLOWNESS", 1);
        working = 1;
        if (getenv("REFUSE")) {
            printf("[%llu] ERROR: UndefinedBehavior: engine: it does not like that\n", (unsigned long long)now);
            fflush(stdout);
            _exit(1);
        }
    }
}

void libttsim_clock(uint32_t clocks)
{
    unsigned char piece[SIZE];
    uint32_t done;
    now += clocks;
    if (!working || now < end_of_work)
        return;
    working = 0;
    host_read(0x1000 + SIZE * pieces, piece, SIZE);
    for (int i = 0; i < SIZE; i++)
        piece[i]++;
    host_write(0x40000000 + SIZE * pieces, piece, SIZE);
    memcpy(memory + RESULT, piece, SIZE);
    done = (uint32_t)++pieces;
    memcpy(memory + DONE, &done, 4);
}
