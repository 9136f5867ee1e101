/* The client's end of a simulator in a process of its own, under Python: each call of the interface goes to it through
 * shared memory, and so do its accesses to the host's memory. */

#define _GNU_SOURCE
#include "remote.h"
#include "channel.h"
#include "explain.h"
#include "pace.h"
#include "settings.h"
#include "shim.h"
#include "windows.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct channel *channel;
static pid_t server;
extern char **environ;
static read_callback dma_read;
static write_callback dma_write;
static int is_fork; /* of the client's process: the simulator serves the other */

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
    refuse("libttsim", "the process of the simulator exited without an error message",
           "set BHEMU_PYTHON to a Python in which bhemu is installed; or memory is short");
}

enum { MEMORY = 3 }; /* number of the shared memory's file in the simulator's process, behind the standard ones */

/* Between fork and exec: other threads of the client may have held any lock, so only system calls are made. Files of
 * the client are closed, whose other ends may wait for that. */
static _Noreturn void become_server(int memory, char *const arguments[], char **environment)
{
    dup2(memory, MEMORY);
#ifdef SYS_close_range
    syscall(SYS_close_range, MEMORY + 1, ~0U, 0);
#endif
    execve(arguments[0], arguments, environment);
    _exit(127);
}

static void after_fork(void)
{
    is_fork = 1;
}

void remote_start(void)
{
    static char serve[] = "import sys; sys.path[:0] = sys.argv[2:]; from bhemu.client.entry import serve; serve(sys.argv[1], 3)";
    static int watches_forks;
    const struct python *python = find_python();
    if (channel && is_fork) /* the other process's */
        munmap(channel, sizeof *channel);
    else if (channel)
        return;
    is_fork = 0;
    if (!python)
        refuse("libttsim_init", "there is no Python for a process of the simulator's own",
               "set BHEMU_PYTHON to one in which bhemu is installed, or do not ask for such a process");
    int memory = memfd_create("bhemu", 0);
    if (memory < 0 || ftruncate(memory, sizeof *channel))
        refuse("libttsim_init", "no memory can be shared with the process of the simulator", "allow memfd_create");
    void *place = mmap(NULL, sizeof *channel, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (place == MAP_FAILED)
        refuse("libttsim_init", "no memory can be shared with the process of the simulator", "raise its limit");
    channel = place;
    channel->client = getpid();
    char *arguments[] = {(char *)python->program, "-E", "-c", serve, (char *)library_path(),
                         *python->path ? (char *)python->path : NULL, NULL};
    fflush(NULL);
    server = fork();
    if (server == 0)
        become_server(memory, arguments, environ);
    close(memory);
    if (!watches_forks)
        watches_forks = !pthread_atfork(NULL, NULL, after_fork);
    if (server < 0)
        refuse("libttsim_init", "the process of the simulator cannot be started", "raise the limit of processes");
}

void remote_set_callbacks(read_callback reads, write_callback writes)
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
    give(channel, ASKED);
    while (wait_for(channel, FREE, HOST_ASKED, look_after_server) == HOST_ASKED) {
        pace_share();
        if (channel->writes)
            pace_begin();
        if (channel->writes)
            dma_write(channel->a, channel->bytes, channel->size);
        else
            dma_read(channel->a, channel->bytes, channel->size);
        give(channel, HOST_ANSWERED);
    }
    return channel->answer;
}

uint32_t remote_call(enum function function, uint64_t a, uint64_t b, uint64_t c, const void *in, void *out,
                    uint32_t size)
{
    if (is_fork)
        refuse("libttsim", "the simulator belongs to the process from which this one was forked",
               "call libttsim_exit and libttsim_init here: they start one for this process");
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
    return answer;
}

void remote_post(enum function function, uint64_t a, const void *in, uint32_t size)
{
    enum { CLOCKS = 1 << 12 };
    static uint64_t clocks; /* posted, at least */
    struct posted call = {.function = function, .size = size, .a = a};
    size_t taken = sizeof call + ((size + 7ULL) & ~7ULL);
    clocks += function == CLOCK ? a : 0;
    int reaches_client = function == CLOCK || !(window_aims(a, in, size) || window_shows_memory(a, size));
    int may_end = function == CLOCK && setting(SEMIHOSTING); /* a kernel may end the process, and print */
    if (is_fork || ((dma_read || dma_write) && reaches_client) || may_end || clocks > CLOCKS || taken > POSTED) {
        clocks = 0;
        remote_call(function, a, 0, 0, in, NULL, size);
        return;
    }
    if (channel->posted_size + taken > POSTED)
        remote_call(NOTHING, 0, 0, 0, NULL, NULL, 0);
    unsigned char *at = channel->posted + channel->posted_size;
    memcpy(at, &call, sizeof call);
    if (in)
        memcpy(at + sizeof call, in, size);
    channel->posted_size += taken;
}

void remote_end(void)
{
    if (!is_fork)
        remote_call(EXIT, 0, 0, 0, NULL, NULL, 0);
}
