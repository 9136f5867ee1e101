/* A library with the simulator's interface that has nothing but a memory, and goes wrong as the environment says.
 *
 * Windows of 2 MiB all lead to the same memory; registers swallow what is written. FAULT says what happens in clock
 * FAULT_CLOCK: flip (FAULT_WORD changes), refuse, hang, crash, exit. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char memory[0x180000];
static uint32_t entries[640];
static uint64_t now;

static int fault(const char *name)
{
    const char *wanted = getenv("FAULT");
    return wanted && !strcmp(wanted, name);
}

static uint64_t number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, 0, 0) : 0;
}

static unsigned char *place(uint64_t paddr, uint32_t size)
{
    uint64_t window = (paddr - 0x100000000) >> 21;
    uint64_t at = ((uint64_t)entries[3 * window] | (uint64_t)(entries[3 * window + 1] & 0x7FF) << 32) << 21;
    at += paddr & 0x1FFFFF;
    return paddr >= 0x100000000 && window < 202 && at + size <= sizeof memory ? memory + at : 0;
}

static void happen(void)
{
    if (fault("flip"))
        memory[number("FAULT_WORD")] ^= 0x10;
    if (fault("hang"))
        for (;;)
            pause();
    if (fault("crash"))
        abort();
    if (fault("exit"))
        _exit(3);
    if (fault("refuse")) {
        printf("[%llu] ERROR: %s: some_function: what it does not like\n", (unsigned long long)now, getenv("CATEGORY"));
        _exit(1);
    }
}

void libttsim_set_pci_dma_mem_callbacks(void *reads, void *writes) { (void)reads, (void)writes; }

void libttsim_init(void)
{
    printf("a library that has a memory\n");
    if (number("FAULT_CLOCK") == 0)
        happen();
}

void libttsim_exit(void) {}

#ifndef WITHOUT_CONFIG
uint32_t libttsim_pci_config_rd32(uint32_t bdf, uint32_t offset)
{
    return bdf == 0 && offset == 0 ? 0xB1401E52 : 0xFFFFFFFF;
}
#endif

void libttsim_pci_config_wr32(uint32_t bdf, uint32_t offset, uint32_t data) { (void)bdf, (void)offset, (void)data; }

void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    unsigned char *from = place(paddr, size);
    if (from)
        memcpy(p, from, size);
    else
        memset(p, 0x5A, size);
}

void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    unsigned char *to = place(paddr, size);
    if (paddr >= 0x11FC00000 && paddr < 0x11FC009D8)
        memcpy((char *)entries + (paddr - 0x11FC00000), p, size);
    else if (to)
        memcpy(to, p, size);
}

void libttsim_clock(uint32_t clocks)
{
    uint64_t first = now;
    now += clocks;
    if (first < number("FAULT_CLOCK") && number("FAULT_CLOCK") <= now) {
        now = number("FAULT_CLOCK");
        happen();
        now = first + clocks;
    }
}

void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *p, uint32_t size)
{
    (void)x, (void)y, (void)address, (void)p, (void)size;
}

void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *p, uint32_t size)
{
    (void)x, (void)y, (void)address, (void)p, (void)size;
}
