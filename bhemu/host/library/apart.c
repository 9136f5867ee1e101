/* The simulator in a process of its own, for clients whose Python cannot run bhemu or may not be entered: each call of
 * the interface goes to it through shared memory, and so do its accesses to the host's memory.
 *
 * The client's process has one end, `apart_call`; the other, `bhemu_serve`, runs in a process of the Python that has
 * written the library and calls the same functions there. One `turn` says who may touch the rest: whoever has it. */

#define _GNU_SOURCE
#include "shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum turn { FREE, ASKED, HOST_ASKED, HOST_ANSWERED };

enum { PIECE = 1 << 24 }; /* bytes that are moved at a time */
enum { SPIN = 20000 };    /* nanoseconds before a wait goes to sleep */

static struct channel {
    _Atomic uint32_t turn;
    _Atomic uint32_t sleepers;
    uint32_t function;
    uint32_t size;
    uint64_t a, b, c;
    uint32_t answer;
    uint32_t writes; /* HOST_ASKED: 1 the simulator writes to the host's memory, 0 it reads */
    uint32_t has_read, has_write;
    int32_t client;
    unsigned char bytes[PIECE];
} *channel;

static pid_t server;
extern char **environ;
static read_callback dma_read;
static write_callback dma_write;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static int is_fork; /* of the client's process: the simulator serves the other */

/* --- turns ------------------------------------------------------------------------------------------------------- */

static void give(enum turn turn)
{
    atomic_store(&channel->turn, turn);
    if (atomic_load(&channel->sleepers))
        syscall(SYS_futex, &channel->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int64_t nanoseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

/* Wait until it is one of two turns; `look` is called now and then, and does not return when the other end has gone. */
static enum turn wait_for(enum turn one, enum turn other, void (*look)(void))
{
    static const struct timespec nap = {0, 100000000};
    for (int64_t until = nanoseconds() + SPIN; nanoseconds() < until;)
        for (int i = 0; i < 64; i++) {
            enum turn turn = atomic_load(&channel->turn);
            if (turn == one || turn == other)
                return turn;
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        }
    for (;;) {
        atomic_fetch_add(&channel->sleepers, 1);
        uint32_t turn = atomic_load(&channel->turn);
        if (turn != one && turn != other)
            syscall(SYS_futex, &channel->turn, FUTEX_WAIT, turn, &nap, NULL, 0);
        atomic_fetch_sub(&channel->sleepers, 1);
        turn = atomic_load(&channel->turn);
        if (turn == one || turn == other)
            return turn;
        look();
    }
}

/* --- the client's end -------------------------------------------------------------------------------------------- */

/* The simulator ends the process when it refuses something, having said why, or when its program asks for it. */
static void look_after_server(void)
{
    int status;
    pid_t ended = waitpid(server, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && (errno == EINTR || kill(server, 0) == 0)))
        return;
    fflush(NULL);
    if (ended == server && WIFEXITED(status) && WEXITSTATUS(status) != 127)
        _exit(WEXITSTATUS(status));
    refuse("libttsim", "the process of the simulator has ended without a word",
           "run `bhemu library` again: the Python that wrote this library may have moved, or memory is short");
}

enum { MEMORY = 3 }; /* number of the shared memory's file in the simulator's process, behind the standard ones */

/* The environment of the simulator's process: this one's, but it shall not start another in its turn. */
static char **server_environment(void)
{
    static const char name[] = "BHEMU_PROCESS=";
    size_t count = 0;
    while (environ[count])
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    char **next = copy;
    if (!copy)
        refuse("libttsim_init", "there is no memory for an environment", "free some memory");
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], name, sizeof name - 1))
            *next++ = environ[i];
    *next = (char *)"BHEMU_PROCESS=client";
    return copy;
}

/* Between fork and exec: other threads of the client may have held any lock, so only system calls are made. Files of the
 * client are closed, whose other ends may wait for that. */
static _Noreturn void become_server(int memory, char *library, char **environment)
{
    static char serve[] = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).bhemu_serve(3)";
    static char python[] = BHEMU_PYTHON, alone[] = "-E", text[] = "-c";
    char *arguments[] = {python, alone, text, serve, library, NULL};
    dup2(memory, MEMORY);
#ifdef SYS_close_range
    syscall(SYS_close_range, MEMORY + 1, ~0U, 0);
#endif
    execve(python, arguments, environment);
    _exit(127);
}

static void after_fork(void)
{
    is_fork = 1;
}

void apart_start(void)
{
    if (channel)
        return;
    Dl_info library;
    int memory = memfd_create("bhemu", 0);
    if (memory < 0 || ftruncate(memory, sizeof *channel) || !dladdr((void *)apart_start, &library))
        refuse("libttsim_init", "no memory can be shared with the process of the simulator", "allow memfd_create");
    void *place = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (place == MAP_FAILED)
        refuse("libttsim_init", "no memory can be shared with the process of the simulator", "raise the limit of memory");
    channel = place;
    channel->client = getpid();
    char *path = realpath(library.dli_fname, NULL);
    char **environment = server_environment();
    fflush(NULL);
    server = fork();
    if (server == 0)
        become_server(memory, path ? path : (char *)library.dli_fname, environment);
    free(environment);
    free(path);
    close(memory);
    pthread_atfork(NULL, NULL, after_fork);
    if (server < 0)
        refuse("libttsim_init", "the process of the simulator cannot be started", "raise the limit of processes");
}

void apart_set_callbacks(read_callback reads, write_callback writes)
{
    dma_read = reads;
    dma_write = writes;
}

/* One call with at most PIECE bytes; the simulator may ask for the host's memory meanwhile. */
static uint32_t ask(enum function function, uint64_t a, uint64_t b, uint64_t c, uint32_t size)
{
    channel->function = function;
    channel->size = size;
    channel->a = a;
    channel->b = b;
    channel->c = c;
    channel->has_read = dma_read != NULL;
    channel->has_write = dma_write != NULL;
    give(ASKED);
    while (wait_for(FREE, HOST_ASKED, look_after_server) == HOST_ASKED) {
        if (channel->writes)
            dma_write(channel->a, channel->bytes, channel->size);
        else
            dma_read(channel->a, channel->bytes, channel->size);
        give(HOST_ANSWERED);
    }
    return channel->answer;
}

uint32_t apart_call(enum function function, uint64_t a, uint64_t b, uint64_t c, const void *in, void *out, uint32_t size)
{
    if (is_fork)
        refuse("libttsim", "the simulator belongs to the process from which this one was forked",
               "start the simulator in the process that uses it");
    pthread_mutex_lock(&one_at_a_time);
    uint32_t done = 0, answer;
    do {
        uint32_t piece = size - done < PIECE ? size - done : PIECE;
        if (in)
            memcpy(channel->bytes, (const char *)in + done, piece);
        answer = ask(function, a + done, b, c, piece);
        if (out)
            memcpy((char *)out + done, channel->bytes, piece);
        done += piece;
    } while (done < size);
    pthread_mutex_unlock(&one_at_a_time);
    return answer;
}

/* --- the simulator's end ----------------------------------------------------------------------------------------- */

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
        give(HOST_ASKED);
        wait_for(HOST_ANSWERED, HOST_ANSWERED, look_after_client);
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

void libttsim_set_pci_dma_mem_callbacks(read_callback, write_callback);
void libttsim_init(void);
void libttsim_exit(void);
uint32_t libttsim_pci_config_rd32(uint32_t, uint32_t);
void libttsim_pci_config_wr32(uint32_t, uint32_t, uint32_t);
void libttsim_pci_mem_rd_bytes(uint64_t, void *, uint32_t);
void libttsim_pci_mem_wr_bytes(uint64_t, const void *, uint32_t);
void libttsim_clock(uint32_t);
void libttsim_tile_rd_bytes(uint32_t, uint32_t, uint64_t, void *, uint32_t);
void libttsim_tile_wr_bytes(uint32_t, uint32_t, uint64_t, const void *, uint32_t);

/* Carry out what stands in the channel. Accesses to the host's memory use the channel meanwhile, so bytes are copied. */
static uint32_t carry_out(unsigned char *bytes)
{
    uint32_t size = channel->size;
    uint64_t a = channel->a, b = channel->b, c = channel->c;
    switch ((enum function)channel->function) {
    case INIT:
        libttsim_set_pci_dma_mem_callbacks(channel->has_read ? read_host : NULL, channel->has_write ? write_host : NULL);
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
        wait_for(ASKED, ASKED, look_after_client);
        channel->answer = carry_out(bytes);
        give(FREE);
    }
}
