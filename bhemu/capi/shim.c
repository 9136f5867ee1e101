/* The C interface that clients of the official simulator load (tile H1): it joins the Python of the process, or starts
 * one, and lets bhemu/capi/entry.py fill in what the functions do. `bhemu library` compiles it with
 * BHEMU_PYTHON, BHEMU_LIBPYTHON, BHEMU_PATH, BHEMU_PACKAGES (where bhemu's dependencies are, for processes of another
 * environment of the same Python), BHEMU_MAJOR and BHEMU_MINOR defined. */

#define _GNU_SOURCE
#include "shim.h"
#include "remote.h"
#include "slots.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

static struct slots calls; /* Python fills it in (slots.py) */
static int running;
static int remote; /* the simulator is in a process of its own (remote.c) */
static int (*python_is_alive)(void);

static void *symbol(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found)
        refuse("libttsim_init", name, "the Python of this process lacks this function: use the one that wrote the library");
    return found;
}

/* Let the process have a running Python; false when it cannot and `must` is not set. */
static int start_python(int must)
{
    int (*is_initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (is_initialized && is_initialized())
        return 1;
    if (!is_initialized) {
        if (!*BHEMU_LIBPYTHON && !must)
            return 0;
        if (!*BHEMU_LIBPYTHON)
            refuse("libttsim_init", "this Python has no shared library (libpython), so this process cannot load it",
                   "do not set BHEMU_PROCESS: the simulator then has a process of its own");
        if (!dlopen(BHEMU_LIBPYTHON, RTLD_NOW | RTLD_GLOBAL))
            refuse("libttsim_init", dlerror(), "run `bhemu library` again: the Python that wrote this library has moved");
    }
    static wchar_t program[4096];
    mbstowcs(program, BHEMU_PYTHON, 4095);
    ((void (*)(const wchar_t *))symbol("Py_SetProgramName"))(program);
    ((void (*)(int))symbol("Py_InitializeEx"))(0);
    ((void *(*)(void))symbol("PyEval_SaveThread"))();
    return 1;
}

/* Fill in `calls`; false when the Python of this process cannot run bhemu, and `must` is not set. */
static int fill_calls(int must)
{
    static const char form[] =
        "import sys\n"
        "from importlib.util import find_spec\n"
        "known = set(sys.modules)\n"
        "path = list(sys.path)\n"
        "try:\n"
        "    same = sys.version_info[:2] == (%d, %d)\n"
        "    if not find_spec('bhemu'):\n"
        "        if not same and not %d:\n"
        "            raise ImportError('bhemu is not installed for it')\n"
        "        sys.path.append(%s)\n"
        "    if same and not (find_spec('numba') and find_spec('greenlet')):\n"
        "        sys.path.extend(place for place in %s if place not in sys.path)\n"
        "    from bhemu.capi import entry\n"
        "    entry.fill_table(%lu)\n"
        "except Exception as error:\n"
        "    if %d:\n"
        "        import os\n"
        "        text = '[0] ERROR: ConfigurationError: libttsim_init: the Python %%d.%%d of this process cannot run '\n"
        "        text += 'bhemu: %%s\\n  remedy: do not set BHEMU_PROCESS: the simulator then has a process of its own; or '\n"
        "        text += 'start the client with Python %d.%d, for which bhemu is installed\\n'\n"
        "        sys.stdout.flush()\n"
        "        os.write(1, (text %% (*sys.version_info[:2], error)).encode())\n"
        "        os._exit(1)\n"
        "    sys.path[:] = path\n"
        "    for name in set(sys.modules) - known:\n"
        "        del sys.modules[name]\n"
        "    import importlib\n"
        "    importlib.invalidate_caches()\n";
    char text[8192];
    snprintf(text, sizeof text, form, BHEMU_MAJOR, BHEMU_MINOR, must, BHEMU_PATH, BHEMU_PACKAGES,
             (unsigned long)(uintptr_t)&calls, must, BHEMU_MAJOR, BHEMU_MINOR);
    int state = ((int (*)(void))symbol("PyGILState_Ensure"))();
    int failed = ((int (*)(const char *))symbol("PyRun_SimpleString"))(text);
    ((void (*)(int))symbol("PyGILState_Release"))(state);
    if (must && (failed || !calls.init))
        refuse("libttsim_init", "bhemu does not start in the Python of this process (see the lines above)",
               "install bhemu for this Python and run `bhemu library` there");
    return calls.init != NULL;
}

/* Where the simulator shall be: in the client's process if that can run it, else, or if the user wants it, in one of its own. */
static void choose_process(void)
{
    const char *wanted = getenv("BHEMU_PROCESS");
    int must = wanted && !strcmp(wanted, "client");
    if (wanted && *wanted && !must && strcmp(wanted, "own"))
        refuse("libttsim_init", "BHEMU_PROCESS is neither client nor own", "set it to one of them, or not at all");
    remote = wanted && !strcmp(wanted, "own");
    if (!remote)
        remote = !start_python(must) || !fill_calls(must);
    if (remote)
        remote_start();
    else
        python_is_alive = (int (*)(void))symbol("Py_IsInitialized");
}

/* A client that lets clocks pass on a chip in which nothing can proceed, and changes nothing, waits for ever: after some
 * seconds it is told, once, who waits for what. */
static struct {
    uint32_t calls;
    int64_t since;
    int told;
} still;

static void watch_stillness(void)
{
    enum { LOOK_EVERY = 256 };
    if (!calls.active_tiles || *calls.active_tiles) {
        still.calls = 0;
    } else if (still.calls++ % LOOK_EVERY == 0 && !still.told) {
        if (still.calls == 1) {
            still.since = now();
        } else if (now() - still.since > calls.patience) {
            still.told = 1;
            calls.report_stillness();
        }
    }
}

/* A client that reads again and again and never lets clocks pass: it is told, once, that nothing can change. */
static uint32_t reads_without_clock;

static void watch_time(void)
{
    enum { MANY = 1 << 20 };
    if (++reads_without_clock == MANY && calls.report_missing_clocks)
        calls.report_missing_clocks();
}

/* A client whose thread keeps Python's lock and waits for another one that needs it here waits for ever: it is told so,
 * once, by a thread that looks on. The thread that has started the simulator is not looked at. */
static _Thread_local int is_first;

static void *look_on(void *unused)
{
    static const struct timespec nap = {0, 200000000};
    for (;;) {
        nanosleep(&nap, NULL);
        int64_t since = __atomic_load_n(&calls.waiting, __ATOMIC_RELAXED);
        if (since && now() - since > calls.patience)
            break;
    }
    printf("bhemu: a thread of the client has waited for %d seconds for Python's lock, which another thread keeps; "
           "with BHEMU_PROCESS=own the simulator has a process of its own, and needs no lock\n",
           (int)(calls.patience / 1000000000));
    fflush(stdout);
    return unused;
}

static void start_looking_on(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, look_on, NULL) == 0)
        pthread_detach(thread);
}

static void before_python(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (is_first)
        return;
    __atomic_store_n(&calls.waiting, now(), __ATOMIC_RELAXED);
    pthread_once(&once, start_looking_on);
}

static void check(const char *function)
{
    if (!running)
        refuse(function, "the simulator is not running: call libttsim_init first",
               "libttsim_init, then everything else, then libttsim_exit");
    if (!remote && !python_is_alive())
        refuse(function, "the Python of this process has ended, and the simulator with it",
               "end the simulator before Python ends");
}

EXPORT void libttsim_set_pci_dma_mem_callbacks(read_callback reads, write_callback writes)
{
    if (running)
        refuse(__func__, "callbacks are set before libttsim_init", "call libttsim_exit, or set them first");
    calls.dma_read = reads;
    calls.dma_write = writes;
    remote_set_callbacks(reads, writes);
}

EXPORT void libttsim_init(void)
{
    if (running)
        refuse(__func__, "the simulator is running already", "call libttsim_exit first; one process has one chip");
    if (!calls.init && !remote)
        choose_process();
    if (remote) {
        remote_call(INIT, 0, 0, 0, NULL, NULL, 0);
    } else {
        if (!python_is_alive())
            refuse(__func__, "the Python of this process has ended", "start the simulator before Python ends");
        is_first = 1;
        calls.init();
    }
    running = 1;
}

EXPORT void libttsim_exit(void)
{
    if (!running)
        check(__func__);
    running = 0;
    if (remote)
        remote_call(EXIT, 0, 0, 0, NULL, NULL, 0);
    else if (python_is_alive()) /* clients end the simulator from destructors that run after Python */
        calls.exit();
}

EXPORT uint32_t libttsim_pci_config_rd32(uint32_t bdf, uint32_t offset)
{
    check(__func__);
    if (remote)
        return remote_call(CONFIG_READ, bdf, offset, 0, NULL, NULL, 0);
    before_python();
    return calls.config_read(bdf, offset);
}

EXPORT void libttsim_pci_config_wr32(uint32_t bdf, uint32_t offset, uint32_t data)
{
    check(__func__);
    if (remote) {
        remote_call(CONFIG_WRITE, bdf, offset, data, NULL, NULL, 0);
        return;
    }
    before_python();
    calls.config_write(bdf, offset, data);
}

EXPORT void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    check(__func__);
    if (remote) {
        remote_call(MEMORY_READ, paddr, 0, 0, NULL, p, size);
        return;
    }
    const void *at = calls.find ? (void *)calls.find(calls.chip, paddr, size, 0) : NULL;
    if (at) {
        memcpy(p, at, size);
    } else {
        before_python();
        calls.memory_read(paddr, p, size);
    }
    watch_time();
}

EXPORT void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    check(__func__);
    if (remote) {
        remote_call(MEMORY_WRITE, paddr, 0, 0, p, NULL, size);
        return;
    }
    still.calls = 0;
    void *at = calls.find ? (void *)calls.find(calls.chip, paddr, size, 1) : NULL;
    if (at) {
        memcpy(at, p, size);
    } else {
        before_python();
        calls.memory_write(paddr, p, size);
    }
}

EXPORT void libttsim_clock(uint32_t clocks)
{
    check(__func__);
    if (remote) {
        remote_call(CLOCK, clocks, 0, 0, NULL, NULL, 0);
        return;
    }
    reads_without_clock = 0;
    if (!calls.run || *calls.active_tiles * clocks >= calls.worth_threads) {
        before_python();
        calls.clock(clocks);
    } else if (clocks && calls.run(calls.chip, calls.handlers, clocks)) {
        before_python();
        calls.finish_clock();
    }
    watch_stillness();
}

EXPORT void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *p, uint32_t size)
{
    (void)p;
    check(__func__);
    if (remote)
        remote_call(TILE_READ, address, x, y, NULL, NULL, size);
    else
        calls.tile_access(0, x, y, address, size);
}

EXPORT void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *p, uint32_t size)
{
    (void)p;
    check(__func__);
    if (remote)
        remote_call(TILE_WRITE, address, x, y, NULL, NULL, size);
    else
        calls.tile_access(1, x, y, address, size);
}
