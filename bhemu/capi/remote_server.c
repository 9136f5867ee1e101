/* The simulator's end of `remote.c`, in a process of the Python that has written the library: it calls the interface's
 * own functions. */

#define _GNU_SOURCE
#include "remote.h"
#include "channel.h"
#include "shim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct channel *channel;

static void look_after_client(void)
{
    if (getppid() != channel->client)
        _exit(0);
}

/* Move bytes between the host's memory and here. */
static void ask_host(uint32_t writes, uint64_t address, unsigned char *bytes, uint32_t size)
{
    for (uint32_t done = 0; done < size; done += PIECE) {
        uint32_t piece = size - done < PIECE ? size - done : PIECE;
        channel->writes = writes;
        channel->a = address + done;
        channel->size = piece;
        if (writes)
            memcpy(channel->bytes, bytes + done, piece);
        give(channel, HOST_ASKED);
        wait_for(channel, HOST_ANSWERED, HOST_ANSWERED, look_after_client);
        if (!writes)
            memcpy(bytes + done, channel->bytes, piece);
    }
}

static void read_host(uint64_t address, void *bytes, uint32_t size)
{
    ask_host(0, address, bytes, size);
}

static void write_host(uint64_t address, const void *bytes, uint32_t size)
{
    ask_host(1, address, (unsigned char *)bytes, size);
}

/* Carry out what stands in the channel. Accesses to the host's memory use it meanwhile, so bytes are copied. */
static uint32_t carry_out(unsigned char *bytes)
{
    uint32_t size = channel->size;
    uint64_t a = channel->a, b = channel->b, c = channel->c;
    switch ((enum function)channel->function) {
    case INIT:
        libttsim_set_pci_dma_mem_callbacks(channel->has_read ? read_host : NULL,
                                           channel->has_write ? write_host : NULL);
        libttsim_init();
        break;
    case EXIT:
        libttsim_exit();
        break;
    case CONFIG_READ:
        return libttsim_pci_config_rd32(a, b);
    case CONFIG_WRITE:
        libttsim_pci_config_wr32(a, b, c);
        break;
    case MEMORY_READ:
        libttsim_pci_mem_rd_bytes(a, bytes, size);
        memcpy(channel->bytes, bytes, size);
        break;
    case MEMORY_WRITE:
        memcpy(bytes, channel->bytes, size);
        libttsim_pci_mem_wr_bytes(a, bytes, size);
        break;
    case CLOCK:
        libttsim_clock(a);
        break;
    case TILE_READ:
        libttsim_tile_rd_bytes(b, c, a, bytes, size);
        break;
    case TILE_WRITE:
        libttsim_tile_wr_bytes(b, c, a, bytes, size);
        break;
    }
    return 0;
}

/* Serve the client that has started this process, until it ends. */
EXPORT void bhemu_serve(int memory)
{
    channel = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    unsigned char *bytes = malloc(PIECE);
    if (channel == MAP_FAILED || !bytes)
        refuse("libttsim_init", "no memory can be shared with the client", "raise the limit of memory");
    close(memory);
    for (;;) {
        wait_for(channel, ASKED, ASKED, look_after_client);
        channel->answer = carry_out(bytes);
        give(channel, FREE);
    }
}
