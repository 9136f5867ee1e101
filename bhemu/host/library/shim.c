/* The C interface that clients of the official simulator load (tile H1): it joins the Python of the process, or starts
 * one, and lets bhemu/host/library/entry.py fill in what the functions do. `bhemu library` compiles it with
 * BHEMU_PYTHON, BHEMU_LIBPYTHON, BHEMU_PATH, BHEMU_PACKAGES (where bhemu's dependencies are, for processes of another
 * environment of the same Python), BHEMU_MAJOR and BHEMU_MINOR defined. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define EXPORT __attribute__((visibility("default")))

typedef void (*read_callback)(uint64_t, void *, uint32_t);
typedef void (*write_callback)(uint64_t, const void *, uint32_t);

/* In the order of entry.py. */
static struct {
    void (*init)(void);
    void (*exit)(void);
    uint32_t (*config_read)(uint32_t, uint32_t);
    void (*config_write)(uint32_t, uint32_t, uint32_t);
    void (*memory_read)(uint64_t, void *, uint32_t);
    void (*memory_write)(uint64_t, const void *, uint32_t);
    void (*clock)(uint32_t);
    read_callback dma_read;
    write_callback dma_write;
    void (*tile_access)(uint32_t, uint32_t, uint32_t, uint64_t, uint32_t);
    void (*finish_clock)(void);
    /* Compiled code, called without Python; NULL where only Python may decide. */
    int64_t (*run)(void *, int64_t, int64_t);
    int64_t (*find)(void *, int64_t, int64_t, int64_t);
    void *chip;
    int64_t handlers;
    const int64_t *active_tiles;
    int64_t worth_threads; /* clocks of all tiles together from which on Python starts threads */
    void (*stands_still)(void);
    void (*never_clocks)(void);
    int64_t patience; /* nanoseconds */
} calls;

static int running;
static int (*python_is_alive)(void);

static void refuse(const char *function, const char *text, const char *remedy)
{
    printf("[0] ERROR: ConfigurationError: %s: %s\n  remedy: %s\n", function, text, remedy);
    fflush(stdout);
    _exit(1);
}

static void *symbol(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found)
        refuse("libttsim_init", name, "the Python of this process lacks this function: use the one that wrote the library");
    return found;
}

static void start_python(void)
{
    int (*is_initialized)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (is_initialized && is_initialized())
        return;
    if (!is_initialized) {
        if (!*BHEMU_LIBPYTHON)
            refuse("libttsim_init", "this Python has no shared library (libpython), so only a Python process can use bhemu",
                   "write the library with a Python that has one: on Debian, the package libpython3");
        if (!dlopen(BHEMU_LIBPYTHON, RTLD_NOW | RTLD_GLOBAL))
            refuse("libttsim_init", dlerror(), "run `bhemu library` again: the Python that wrote this library has moved");
    }
    static wchar_t program[4096];
    mbstowcs(program, BHEMU_PYTHON, 4095);
    ((void (*)(const wchar_t *))symbol("Py_SetProgramName"))(program);
    ((void (*)(int))symbol("Py_InitializeEx"))(0);
    ((void *(*)(void))symbol("PyEval_SaveThread"))();
}

static void fill_calls(void)
{
    static const char form[] =
        "import sys\n"
        "try:\n"
        "    from importlib.util import find_spec\n"
        "    sys.path.append(%s) if %s not in sys.path else None\n"
        "    if sys.version_info[:2] == (%d, %d) and not (find_spec('numba') and find_spec('greenlet')):\n"
        "        sys.path.extend(place for place in %s if place not in sys.path)\n"
        "    from bhemu.host.library import entry\n"
        "except Exception as error:\n"
        "    import os\n"
        "    text = '[0] ERROR: ConfigurationError: libttsim_init: the Python %%d.%%d of this process cannot run bhemu: %%s\\n'\n"
        "    text += '  remedy: start the client with Python %d.%d, for which bhemu is installed, or install bhemu for the '\n"
        "    text += 'Python of the client and run `bhemu library` there\\n'\n"
        "    sys.stdout.flush()\n"
        "    os.write(1, (text %% (sys.version_info[0], sys.version_info[1], error)).encode())\n"
        "    os._exit(1)\n"
        "entry.fill(%lu)\n";
    char text[8192];
    snprintf(text, sizeof text, form, BHEMU_PATH, BHEMU_PATH, BHEMU_MAJOR, BHEMU_MINOR, BHEMU_PACKAGES,
             BHEMU_MAJOR, BHEMU_MINOR, (unsigned long)(uintptr_t)&calls);
    int state = ((int (*)(void))symbol("PyGILState_Ensure"))();
    int failed = ((int (*)(const char *))symbol("PyRun_SimpleString"))(text);
    ((void (*)(int))symbol("PyGILState_Release"))(state);
    if (failed || !calls.init)
        refuse("libttsim_init", "bhemu does not start in the Python of this process (see the lines above)",
               "install bhemu for this Python and run `bhemu library` there");
}

/* A client that lets clocks pass on a chip in which nobody can move, and changes nothing, waits for ever: after some
 * seconds it is told, once, who waits for what. */
static struct {
    uint32_t calls;
    int64_t since;
    int told;
} still;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

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
            calls.stands_still();
        }
    }
}

/* A client that reads again and again and never lets clocks pass: it is told, once, that nothing can change. */
static uint32_t reads_without_clock;

static void watch_time(void)
{
    enum { MANY = 1 << 20 };
    if (++reads_without_clock == MANY && calls.never_clocks)
        calls.never_clocks();
}

static void check(const char *function)
{
    if (!running)
        refuse(function, "the simulator is not running: call libttsim_init first",
               "libttsim_init, then everything else, then libttsim_exit");
    if (!python_is_alive())
        refuse(function, "the Python of this process has ended, and the simulator with it",
               "end the simulator before Python ends");
}

EXPORT void libttsim_set_pci_dma_mem_callbacks(read_callback reads, write_callback writes)
{
    if (running)
        refuse(__func__, "callbacks are set before libttsim_init", "call libttsim_exit, or set them first");
    calls.dma_read = reads;
    calls.dma_write = writes;
}

EXPORT void libttsim_init(void)
{
    if (running)
        refuse(__func__, "the simulator is running already", "call libttsim_exit first; one process has one chip");
    if (!calls.init) {
        start_python();
        fill_calls();
        python_is_alive = (int (*)(void))symbol("Py_IsInitialized");
    }
    if (!python_is_alive())
        refuse(__func__, "the Python of this process has ended", "start the simulator before Python ends");
    calls.init();
    running = 1;
}

EXPORT void libttsim_exit(void)
{
    if (!running)
        check(__func__);
    running = 0;
    if (python_is_alive()) /* clients end the simulator from destructors that run after Python */
        calls.exit();
}

EXPORT uint32_t libttsim_pci_config_rd32(uint32_t bdf, uint32_t offset)
{
    check(__func__);
    return calls.config_read(bdf, offset);
}

EXPORT void libttsim_pci_config_wr32(uint32_t bdf, uint32_t offset, uint32_t data)
{
    check(__func__);
    calls.config_write(bdf, offset, data);
}

EXPORT void libttsim_pci_mem_rd_bytes(uint64_t paddr, void *p, uint32_t size)
{
    check(__func__);
    const void *at = calls.find ? (void *)calls.find(calls.chip, paddr, size, 0) : NULL;
    if (at)
        memcpy(p, at, size);
    else
        calls.memory_read(paddr, p, size);
    watch_time();
}

EXPORT void libttsim_pci_mem_wr_bytes(uint64_t paddr, const void *p, uint32_t size)
{
    check(__func__);
    still.calls = 0;
    void *at = calls.find ? (void *)calls.find(calls.chip, paddr, size, 1) : NULL;
    if (at)
        memcpy(at, p, size);
    else
        calls.memory_write(paddr, p, size);
}

EXPORT void libttsim_clock(uint32_t clocks)
{
    check(__func__);
    reads_without_clock = 0;
    if (!calls.run || *calls.active_tiles * clocks >= calls.worth_threads)
        calls.clock(clocks);
    else if (clocks && calls.run(calls.chip, calls.handlers, clocks))
        calls.finish_clock();
    watch_stillness();
}

EXPORT void libttsim_tile_rd_bytes(uint32_t x, uint32_t y, uint64_t address, void *p, uint32_t size)
{
    (void)p;
    check(__func__);
    calls.tile_access(0, x, y, address, size);
}

EXPORT void libttsim_tile_wr_bytes(uint32_t x, uint32_t y, uint64_t address, const void *p, uint32_t size)
{
    (void)p;
    check(__func__);
    calls.tile_access(1, x, y, address, size);
}
