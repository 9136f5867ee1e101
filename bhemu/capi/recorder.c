/* A library with the simulator's C interface that passes every call on to another one, and writes the calls and answers
 * into the file that BHEMU_TRACE names (%p in the name stands for the number of the process): a call trace for `bhemu
 * compare`. A call is written before it is made, for libraries end the process where they refuse something.
 *
 * `bhemu library DIR --record LIBRARY` compiles it with BHEMU_TARGET defined. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*read_callback)(uint64_t, void *, uint32_t);
typedef void (*write_callback)(uint64_t, const void *, uint32_t);

static void *target;
static FILE *trace;
static read_callback host_read;
static write_callback host_write;

static void refuse(const char *function, const char *text)
{
    printf("[0] ERROR: ConfigurationError: %s: %s\n", function, text);
    fflush(stdout);
    _exit(1);
}

static void *function(const char *name)
{
    if (!target)
        setenv("BHEMU_PACE", "exact", 0); /* a trace is compared clock for clock */
    if (!target && !(target = dlopen(BHEMU_TARGET, RTLD_NOW | RTLD_LOCAL)))
        refuse(name, dlerror());
    void *found = dlsym(target, name);
    if (!found)
        refuse(name, "the recorded library does not have this function");
    return found;
}

/* Each exported function finds its namesake once. */
#define NEXT(type) \
    static __typeof__(type) *next; \
    if (!next) \
        next = (__typeof__(type) *)function(__func__)

static void open_trace(void)
{
    const char *wanted = getenv("BHEMU_TRACE");
    if (!wanted || !*wanted)
        refuse("libttsim_init", "this library records calls: set BHEMU_TRACE to the name of the file for them");
    char name[4096];
    const char *number = strstr(wanted, "%p");
    if (number)
        snprintf(name, sizeof name, "%.*s%ld%s", (int)(number - wanted), wanted, (long)getpid(), number + 2);
    else
        snprintf(name, sizeof name, "%s", wanted);
    trace = fopen(name, "w");
    if (!trace)
        refuse("libttsim_init", "the file that BHEMU_TRACE names cannot be written");
    fputs("{\"trace\":\"libttsim\",\"version\":2}\n", trace);
}

static void hex(const void *content, uint32_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = content;
    char part[8192];
    while (size) {
        uint32_t count = size < sizeof part / 2 ? size : sizeof part / 2;
        for (uint32_t i = 0; i < count; i++) {
            part[2 * i] = digits[bytes[i] >> 4];
            part[2 * i + 1] = digits[bytes[i] & 15];
        }
        fwrite(part, 1, 2 * count, trace);
        bytes += count;
        size -= count;
    }
}

static void end_line(const char *text)
{
    if (fputs(text, trace) < 0 || fflush(trace))
        refuse("libttsim_init", "the file that BHEMU_TRACE names cannot be written any more");
}

static void answer(const void *content, uint32_t size)
{
    fputs("{\"answer\":\"", trace);
    hex(content, size);
    end_line("\"}\n");
}

static void read_host(uint64_t address, void *to, uint32_t size)
{
    host_read(address, to, size);
    fprintf(trace, "{\"host_read\":\"0x%llx\",\"bytes\":\"", (unsigned long long)address);
    hex(to, size);
    end_line("\"}\n");
}

static void write_host(uint64_t address, const void *from, uint32_t size)
{
    host_write(address, from, size);
    fprintf(trace, "{\"host_write\":\"0x%llx\",\"bytes\":\"", (unsigned long long)address);
    hex(from, size);
    end_line("\"}\n");
}

EXPORT void libttsim_set_pci_dma_mem_callbacks(read_callback reads, write_callback writes)
{
    NEXT(void(read_callback, write_callback));
    host_read = reads;
    host_write = writes;
    next(reads ? read_host : 0, writes ? write_host : 0);
}

EXPORT void libttsim_init(void)
{
    NEXT(void(void));
    if (!trace)
        open_trace();
    end_line("{\"call\":\"init\"}\n");
    next();
}

EXPORT void libttsim_exit(void)
{
    NEXT(void(void));
    if (trace)
        end_line("{\"call\":\"exit\"}\n");
    next();
}

static void check(const char *name)
{
    if (!trace)
        refuse(name, "the simulator is not running: call libttsim_init first");
}

EXPORT uint32_t libttsim_pci_config_rd32(uint32_t bdf, uint32_t offset)
{
    NEXT(uint32_t(uint32_t, uint32_t));
    check(__func__);
    fprintf(trace, "{\"call\":\"pci_config_rd32\",\"bdf\":%u,\"offset\":%u", bdf, offset);
    end_line("}\n");
    uint32_t value = next(bdf, offset);
    unsigned char bytes[4] = {value, value >> 8, value >> 16, value >> 24};
    answer(bytes, 4);
    return value;
}

EXPORT void libttsim_pci_config_wr32(uint32_t bdf, uint32_t offset, uint32_t data)
{
    NEXT(void(uint32_t, uint32_t, uint32_t));
    check(__func__);
    fprintf(trace, "{\"call\":\"pci_config_wr32\",\"bdf\":%u,\"offset\":%u,\"value\":%u", bdf, offset, data);
    end_line("}\n");
    next(bdf, offset, data);
}

EXPORT void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    NEXT(void(uint64_t, void *, uint32_t));
    check(__func__);
    fprintf(trace, "{\"call\":\"pci_mem_rd_bytes\",\"address\":\"0x%llx\",\"size\":%u", (unsigned long long)paddr, size);
    end_line("}\n");
    next(paddr, p, size);
    answer(p, size);
}

EXPORT void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    NEXT(void(uint64_t, const void *, uint32_t));
    check(__func__);
    fprintf(trace, "{\"call\":\"pci_mem_wr_bytes\",\"address\":\"0x%llx\",\"bytes\":\"", (unsigned long long)paddr);
    hex(p, size);
    end_line("\"}\n");
    next(paddr, p, size);
}

EXPORT void libttsim_clock(uint32_t clocks)
{
    NEXT(void(uint32_t));
    check(__func__);
    fprintf(trace, "{\"call\":\"clock\",\"clocks\":%u", clocks);
    end_line("}\n");
    next(clocks);
}

EXPORT void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *p, uint32_t size)
{
    NEXT(void(uint32_t, uint32_t, uint64_t, void *, uint32_t));
    next(x, y, address, p, size);
}

EXPORT void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *p, uint32_t size)
{
    NEXT(void(uint32_t, uint32_t, uint64_t, const void *, uint32_t));
    next(x, y, address, p, size);
}
