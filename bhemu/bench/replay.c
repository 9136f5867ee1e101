/* Makes the calls of a plan (plan.py) on a library with the simulator's C interface, in a fresh process, as fast as they
 * can be made, and writes how long each function took as JSON:
 *
 *     replay LIBRARY PLAN RESULT
 *     replay --busy              burns a processor until its parent process ends
 *
 * The process that is measured is forked before the library is loaded; its parent measures it from the fork to its end. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- the plan: numbers as in plan.py ----------------------------------------------------------------------------------- */

enum kind { INIT, EXIT, CONFIG_READ, CONFIG_WRITE, READ, WRITE, CLOCK, PUT, POLL, AWAIT, REPEAT, SECTION };

struct operation {
    uint32_t kind;
    uint32_t size;   /* bytes; of CLOCK clocks; of POLL and REPEAT the operations after it that belong to it */
    uint64_t address;
    uint64_t data;   /* offset of the bytes in the plan; of CONFIG_* the value; NOTHING where nothing is expected */
    uint64_t count;  /* of POLL and AWAIT clocks until they give up; of CLOCK and REPEAT how often; else the call's number */
};

struct expectation { /* what the chip writes into the host's memory */
    uint64_t address;
    uint64_t data;
    uint64_t size;
    uint64_t call;
};

struct header {
    char magic[8];
    uint64_t operations, operations_at;
    uint64_t expectations, expectations_at;
    uint64_t longest; /* bytes of the longest read */
};

static const uint64_t NOTHING = UINT64_MAX;
static const char *plan;
static const struct operation *operations;
static const struct expectation *expectations;

/* --- the library ------------------------------------------------------------------------------------------------------ */

static void (*set_callbacks)(void (*)(uint64_t, void *, uint32_t), void (*)(uint64_t, const void *, uint32_t));
static void (*init)(void);
static void (*end)(void);
static uint32_t (*config_read)(uint32_t, uint32_t);
static void (*config_write)(uint32_t, uint32_t, uint32_t);
static void (*mem_read)(uint64_t, void *, uint32_t);
static void (*mem_write)(uint64_t, const void *, uint32_t);
static void (*clocks)(uint32_t);

/* --- what the measured process tells its parent ----------------------------------------------------------------------- */

enum { IDLE, LOAD, IN_INIT, IN_EXIT, IN_CONFIG, IN_READ, IN_WRITE, IN_CLOCK, IN_HOST, FUNCTIONS, SECTIONS = 64, SHOWN = 64 };
static const char *const names[] = {"replayer", "load", "init", "exit", "config", "read", "write", "clock", "host"};

struct difference {
    uint64_t call, address, offset;
    unsigned char expected[8], found[8];
    uint32_t size;
};

static struct shared {
    int64_t time[FUNCTIONS], section[SECTIONS];
    uint64_t calls[FUNCTIONS], clocks;
    uint64_t operation; /* under way */
    uint64_t differences;
    struct difference first[SHOWN];
    int finished;
    char message[512];
} *shared;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void fail(const char *text, const char *what)
{
    snprintf(shared->message, sizeof shared->message, "%s%s%s", text, what ? ": " : "", what ? what : "");
    _exit(3);
}

static int current = IDLE;
static int in_section;
static int64_t since;

/* The time is read where the function changes, so that a row of equal calls costs no clock readings of its own. */
static inline void enter(int function)
{
    if (function != current && !in_section) {
        int64_t time = now();
        shared->time[current] += time - since;
        since = time;
        current = function;
    }
}

static void section(uint64_t number)
{
    int64_t time = now();
    if (in_section)
        shared->section[in_section - 1] += time - since;
    else
        shared->time[current] += time - since;
    in_section = number == NOTHING ? 0 : (int)number + 1;
    current = IDLE;
    since = time;
}

static void differs(uint64_t call, uint64_t address, const unsigned char *expected, const unsigned char *found, uint32_t size)
{
    if (shared->differences < SHOWN) {
        struct difference *one = &shared->first[shared->differences];
        uint32_t offset = 0;
        while (offset < size - 1 && expected[offset] == found[offset])
            offset++;
        *one = (struct difference){.call = call, .address = address, .offset = offset, .size = size - offset};
        memcpy(one->expected, expected + offset, size - offset < 8 ? size - offset : 8);
        memcpy(one->found, found + offset, size - offset < 8 ? size - offset : 8);
    }
    shared->differences++;
}

/* --- the host's memory: regions of 1 GiB, where the chip or the plan touches it --------------------------------------- */

enum { REGION_BITS = 30, REGIONS = 64 };
static struct {
    uint64_t number;
    unsigned char *memory;
} regions[REGIONS];

static unsigned char *host_place(uint64_t address, uint32_t *size)
{
    uint64_t number = address >> REGION_BITS, offset = address & ((1u << REGION_BITS) - 1);
    if (*size > (1u << REGION_BITS) - offset)
        *size = (uint32_t)((1u << REGION_BITS) - offset);
    int at = 0;
    while (at < REGIONS && regions[at].memory && regions[at].number != number)
        at++;
    if (at == REGIONS)
        fail("the chip uses more than 64 GiB of the host's memory", NULL);
    if (!regions[at].memory) {
        void *made = mmap(NULL, 1u << REGION_BITS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED)
            fail("there is no memory for what the chip sees of the host's", NULL);
        regions[at].number = number;
        regions[at].memory = made;
    }
    return regions[at].memory + offset;
}

static void host_read(uint64_t address, void *to, uint32_t size)
{
    for (unsigned char *next = to; size;) {
        uint32_t part = size;
        const unsigned char *from = host_place(address, &part);
        memcpy(next, from, part);
        next += part, address += part, size -= part;
    }
}

static void host_put(uint64_t address, const void *from, uint32_t size)
{
    for (const unsigned char *next = from; size;) {
        uint32_t part = size;
        memcpy(host_place(address, &part), next, part);
        next += part, address += part, size -= part;
    }
}

/* Expected writes come in their order, or a little ahead of it. */
enum { AHEAD = 64 };
static unsigned char *come;
static uint64_t first_missing, expected_writes;

static void write_has_come(uint64_t number)
{
    come[number] = 1;
    while (first_missing < expected_writes && come[first_missing])
        first_missing++;
}

static void host_write(uint64_t address, const void *from, uint32_t size)
{
    host_put(address, from, size);
    for (uint64_t i = first_missing; i < expected_writes && i < first_missing + AHEAD; i++) {
        const struct expectation *one = &expectations[i];
        if (!come[i] && one->address == address && one->size == size && !memcmp(plan + one->data, from, size)) {
            /* What it has written there before may have come in fewer steps: a pointer that passes two entries at once. */
            for (uint64_t k = first_missing; k < i; k++)
                if (!come[k] && expectations[k].address == address && expectations[k].size == size)
                    write_has_come(k);
            write_has_come(i);
            return;
        }
    }
}

/* Other libraries may write the same bytes in other pieces. */
static int is_there(const struct expectation *one, unsigned char *found)
{
    host_read(one->address, found, (uint32_t)one->size);
    return !memcmp(found, plan + one->data, one->size);
}

static unsigned char *buffer;

static void look_for_writes(uint64_t until)
{
    for (uint64_t i = first_missing; i < until; i++)
        if (!come[i] && is_there(&expectations[i], buffer))
            write_has_come(i);
}

static void pass(uint32_t number)
{
    shared->calls[IN_CLOCK]++;
    shared->clocks += number;
    clocks(number);
}

/* Let clocks pass, `step` in a call, until the chip has written what it wrote when the calls were recorded. */
static void await(uint64_t until, uint32_t step, uint64_t bound)
{
    enum { LOOK_EVERY = 16 };
    enter(IN_CLOCK);
    for (uint64_t passed = 0, tries = 0; first_missing < until; tries++) {
        if (passed >= bound || tries % LOOK_EVERY == LOOK_EVERY - 1) {
            enter(IN_HOST);
            look_for_writes(until);
            enter(IN_CLOCK);
        }
        if (passed >= bound)
            break;
        if (first_missing < until)
            pass(step);
        passed += step;
    }
    for (uint64_t i = first_missing; i < until; i++)
        if (!come[i]) {
            const struct expectation *one = &expectations[i];
            is_there(one, buffer);
            differs(one->call, one->address, (const unsigned char *)plan + one->data, buffer, (uint32_t)one->size);
            write_has_come(i);
        }
}

/* --- the calls -------------------------------------------------------------------------------------------------------- */

static void run(uint64_t first, uint64_t last, int judge);

/* Make a step of a poll again and again until its read gives what it gave at last when the calls were recorded. */
static void poll(const struct operation *op)
{
    uint64_t first = (uint64_t)(op - operations) + 1;
    const struct operation *read = op + 1;
    while (read->kind != READ)
        read++;
    for (uint64_t passed = 0;;) {
        uint64_t before = shared->clocks;
        run(first, first + op->size, 0);
        if (read->data == NOTHING || !memcmp(buffer, plan + read->data, read->size))
            return;
        if (shared->clocks == before) {
            enter(IN_CLOCK);
            pass(1);
        }
        passed += shared->clocks - before;
        if (passed >= op->count)
            break;
    }
    differs(read->count, read->address, (const unsigned char *)plan + read->data, buffer, read->size);
}

static void run(uint64_t first, uint64_t last, int judge)
{
    for (uint64_t at = first; at < last; at++) {
        const struct operation *op = &operations[at];
        shared->operation = at;
        switch (op->kind) {
        case INIT:
            enter(IN_INIT);
            shared->calls[IN_INIT]++;
            init();
            break;
        case EXIT:
            enter(IN_EXIT);
            shared->calls[IN_EXIT]++;
            end();
            break;
        case CONFIG_READ: {
            enter(IN_CONFIG);
            shared->calls[IN_CONFIG]++;
            uint32_t value = config_read((uint32_t)(op->address >> 32), (uint32_t)op->address);
            uint32_t wanted = (uint32_t)op->data;
            if (op->data != NOTHING && value != wanted)
                differs(op->count, op->address, (unsigned char *)&wanted, (unsigned char *)&value, 4);
            break;
        }
        case CONFIG_WRITE:
            enter(IN_CONFIG);
            shared->calls[IN_CONFIG]++;
            if (!config_write)
                fail("the library has no function libttsim_pci_config_wr32", NULL);
            config_write((uint32_t)(op->address >> 32), (uint32_t)op->address, (uint32_t)op->data);
            break;
        case READ:
            enter(IN_READ);
            shared->calls[IN_READ]++;
            mem_read(op->address, buffer, op->size);
            if (judge && op->data != NOTHING && memcmp(buffer, plan + op->data, op->size))
                differs(op->count, op->address, (const unsigned char *)plan + op->data, buffer, op->size);
            break;
        case WRITE:
            enter(IN_WRITE);
            shared->calls[IN_WRITE]++;
            mem_write(op->address, plan + op->data, op->size);
            break;
        case CLOCK:
            enter(IN_CLOCK);
            for (uint64_t i = 0; i < op->count; i++)
                pass(op->size);
            break;
        case PUT:
            enter(IN_HOST);
            host_put(op->address, plan + op->data, op->size);
            break;
        case POLL:
            poll(op);
            at += op->size;
            break;
        case AWAIT:
            await(op->address, op->size, op->count);
            break;
        case REPEAT:
            for (uint64_t i = 0; i < op->count; i++)
                run(at + 1, at + 1 + op->size, judge);
            at += op->size;
            break;
        default:
            section(op->address);
        }
    }
}

static void *function(void *library, const char *name, int must)
{
    void *found = dlsym(library, name);
    if (!found && must)
        fail("the library lacks a function", name);
    return found;
}

static void measured(const char *path, const struct header *header)
{
    since = now();
    enter(LOAD);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail("the library cannot be loaded", dlerror());
    *(void **)&set_callbacks = function(library, "libttsim_set_pci_dma_mem_callbacks", 1);
    *(void **)&init = function(library, "libttsim_init", 1);
    *(void **)&end = function(library, "libttsim_exit", 1);
    *(void **)&config_read = function(library, "libttsim_pci_config_rd32", 1);
    *(void **)&config_write = function(library, "libttsim_pci_config_wr32", 0);
    *(void **)&mem_read = function(library, "libttsim_pci_mem_rd_bytes", 1);
    *(void **)&mem_write = function(library, "libttsim_pci_mem_wr_bytes", 1);
    *(void **)&clocks = function(library, "libttsim_clock", 1);
    set_callbacks(host_read, host_write);
    enter(IDLE);
    expected_writes = header->expectations;
    come = calloc(1, header->expectations + 1);
    buffer = malloc(header->longest + 8);
    if (!come || !buffer)
        fail("there is no memory for the replay", NULL);
    run(0, header->operations, 1);
    enter(IDLE);
    shared->finished = 1;
    fflush(stdout);
    _exit(0);
}

/* --- the parent ------------------------------------------------------------------------------------------------------- */

static void hex(FILE *out, const char *name, const unsigned char *bytes, uint32_t size)
{
    fprintf(out, ",\"%s\":\"", name);
    for (uint32_t i = 0; i < (size < 8 ? size : 8); i++)
        fprintf(out, "%02x", bytes[i]);
    fputc('"', out);
}

static void text(FILE *out, const char *content)
{
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)content; *at; at++)
        if (*at == '"' || *at == '\\' || *at < ' ')
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    fputc('"', out);
}

static int report(const char *path, int status, int64_t whole, const struct rusage *used)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return 2;
    fprintf(out, "{\"finished\":%s,\"status\":%d,\"signal\":%d,\"operation\":%llu,\"message\":",
            shared->finished ? "true" : "false", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            WIFSIGNALED(status) ? WTERMSIG(status) : 0, (unsigned long long)shared->operation);
    text(out, shared->message);
    fprintf(out, ",\"whole_ns\":%lld,\"cpu_ns\":%lld,\"most_kib\":%ld,\"clocks\":%llu", (long long)whole,
            (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000000LL +
                (used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1000LL,
            used->ru_maxrss, (unsigned long long)shared->clocks);
    fprintf(out, ",\"functions\":{");
    for (int i = 0; i < FUNCTIONS; i++)
        fprintf(out, "%s\"%s\":{\"calls\":%llu,\"ns\":%lld}", i ? "," : "", names[i],
                (unsigned long long)shared->calls[i], (long long)shared->time[i]);
    fprintf(out, "},\"sections\":[");
    for (int i = 0; i < SECTIONS; i++)
        fprintf(out, "%s%lld", i ? "," : "", (long long)shared->section[i]);
    fprintf(out, "],\"differences\":%llu,\"first\":[", (unsigned long long)shared->differences);
    for (uint64_t i = 0; i < shared->differences && i < SHOWN; i++) {
        const struct difference *one = &shared->first[i];
        fprintf(out, "%s{\"call\":%llu,\"address\":%llu,\"offset\":%llu", i ? "," : "", (unsigned long long)one->call,
                (unsigned long long)one->address, (unsigned long long)one->offset);
        hex(out, "expected", one->expected, one->size);
        hex(out, "found", one->found, one->size);
        fputc('}', out);
    }
    fprintf(out, "]}\n");
    return fclose(out) ? 2 : 0;
}

int main(int count, char **arguments)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (count == 2 && !strcmp(arguments[1], "--busy"))
        for (;;)
            __asm__ volatile("");
    if (count != 4) {
        fprintf(stderr, "replay LIBRARY PLAN RESULT\n");
        return 2;
    }
    int file = open(arguments[2], O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about))
        return 2;
    plan = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (plan == MAP_FAILED || shared == MAP_FAILED)
        return 2;
    const struct header *header = (const struct header *)plan;
    operations = (const struct operation *)(plan + header->operations_at);
    expectations = (const struct expectation *)(plan + header->expectations_at);
    int64_t started = now();
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        measured(arguments[1], header);
    }
    int status = 0;
    struct rusage used;
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 2;
    return report(arguments[3], status, now() - started, &used);
}
