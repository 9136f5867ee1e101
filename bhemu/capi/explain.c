/* What is said about a refusal: by Python, when one with bhemu can be started, or in short by the library itself.
 *
 * Python runs in a process of its own, on a copy of the records (explain.py). BHEMU_PYTHON names it; else the
 * description beside the library does, in a comment that `bhemu library` has written. */

#define _GNU_SOURCE
#include "explain.h"
#include "settings.h"
#include "simulator.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STATE = 3,  /* number of the copy's file in the other process */
    CANNOT = 3, /* exit statuses of explain.py */
    COMPUTES = 4,
    DESCRIBED = 4 /* of many chips */
};

extern char **environ;
static struct python python;

/* The text behind a mark at the beginning of a line; empty when there is none. */
static void line_behind(FILE *file, const char *mark, char text[PATH_MAX])
{
    char line[PATH_MAX + 64];
    size_t length = strlen(mark);
    rewind(file);
    text[0] = 0;
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, mark, length)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(text, PATH_MAX, "%s", line + length);
            return;
        }
}

const char *library_path(void)
{
    static char path[PATH_MAX];
    Dl_info library;
    if (!*path && (!dladdr((void *)library_path, &library) || !realpath(library.dli_fname, path)))
        snprintf(path, sizeof path, "%s", library.dli_fname);
    return path;
}

const struct python *find_python(void)
{
    char name[PATH_MAX];
    const char *wanted = getenv("BHEMU_PYTHON");
    snprintf(name, sizeof name, "%s", library_path());
    char *slash = strrchr(name, '/');
    snprintf(slash ? slash + 1 : name, sizeof name - (slash ? slash + 1 - name : 0), "%s", DESCRIPTION);
    FILE *file = fopen(name, "r");
    if (file) {
        line_behind(file, PYTHON_MARK, python.program);
        line_behind(file, PACKAGE_MARK, python.path);
        fclose(file);
    }
    if (wanted && *wanted) {
        snprintf(python.program, sizeof python.program, "%s", wanted);
        python.path[0] = 0;
    }
    return access(python.program, X_OK) ? NULL : &python;
}

static int is_zero(const char *bytes, size_t size)
{
    return !bytes[0] && !memcmp(bytes, bytes + 1, size - 1);
}

/* Copy memory into a file at an offset; pages of zeros stay holes. */
static int put(int file, off_t at, const char *bytes, size_t size)
{
    for (size_t done = 0; done < size; done += PAGE_BYTES) {
        size_t piece = size - done < PAGE_BYTES ? size - done : PAGE_BYTES;
        if (!is_zero(bytes + done, piece) && pwrite(file, bytes + done, piece, at + done) != (ssize_t)piece)
            return 0;
    }
    return 1;
}

/* A file with the state of the chip: what explain.py reads. -1: there is no memory for it. */
static int copy_state(enum what what, const char *function)
{
    struct state state = {.layout = LAYOUT, .what = what, .chip_bytes = CHIP_BYTES, .tile_bytes = TILE_BYTES,
                          .tiles = TILES, .client = getpid()};
    snprintf(state.function, sizeof state.function, "%s", function);
    simulator_make_tiles();
    int file = memfd_create("bhemu", 0);
    off_t tiles_at = PAGE_BYTES + CHIP_BYTES;
    size_t tiles_size = (size_t)TILES * TILE_BYTES;
    if (file >= 0 && (ftruncate(file, tiles_at + tiles_size) || pwrite(file, &state, sizeof state, 0) != sizeof state ||
                      !put(file, PAGE_BYTES, simulator.chip, CHIP_BYTES) || !put(file, tiles_at, simulator.tiles, tiles_size))) {
        close(file);
        return -1;
    }
    return file;
}

/* Between vfork and exec: only system calls. */
static _Noreturn void become_python(int file, int out, char *const arguments[])
{
    int nothing = open("/dev/null", O_RDWR);
    dup2(out, STDOUT_FILENO);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDERR_FILENO); /* who cannot explain says so by the status */
    dup2(file, STATE);
#ifdef SYS_close_range
    syscall(SYS_close_range, STATE + 1, ~0U, 0);
#endif
    execve(arguments[0], arguments, environ);
    _exit(127);
}

/* Let Python say it to a file, and wait; returns its exit status, and CANNOT when there is none. */
static int python_says(enum what what, const char *function, int out)
{
    /* Plain Python needs no machine code, and has little to do. */
    static char text[] = "import os, sys; os.environ['NUMBA_DISABLE_JIT'] = '1'; sys.path[:0] = sys.argv[1:]; "
                         "from bhemu.capi.explain import main; main(3)";
    const struct python *found = find_python();
    int status, file;
    if (!found || (file = copy_state(what, function)) < 0)
        return CANNOT;
    char *arguments[] = {(char *)found->program, "-E", "-c", text, *found->path ? (char *)found->path : NULL, NULL};
    fflush(NULL);
    pid_t child = vfork(); /* a copy of a client's memory may be more than the system promises, though it is never made */
    if (child == 0)
        become_python(file, out, arguments);
    close(file);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : CANNOT;
}

/* The same; false when it cannot. */
static int let_python_say(enum what what, const char *function)
{
    return python_says(what, function, STDOUT_FILENO) == 0;
}

/* --- without Python ------------------------------------------------------------------------------------------------- */

struct text {
    char bytes[4096];
    size_t length;
};

static void add(struct text *text, const char *form, ...)
{
    va_list arguments;
    va_start(arguments, form);
    int more = vsnprintf(text->bytes + text->length, sizeof text->bytes - text->length, form, arguments);
    va_end(arguments);
    text->length += more > 0 ? (size_t)more : 0;
    if (text->length >= sizeof text->bytes)
        text->length = sizeof text->bytes - 1;
}

/* A value in a form of the messages (machine/faults.py, chip/faults.py): `x` hexadecimal, `c` a letter, `node` a place. */
static void add_value(struct text *text, const char *form, int64_t value)
{
    int width = 0;
    const char *digits = *form == '#' ? form + 1 : form;
    if (*digits == '0')
        width = atoi(digits + 1) - 2;
    if (!strncmp(form, "node", 4))
        add(text, "%s tile %d-%d", machine_nodes[value >> X_LSB][value & Y_MASK], (int)(value >> X_LSB), (int)(value & Y_MASK));
    else if (*form == 'c')
        add(text, "%c", (char)value);
    else if (form[strspn(form, "#0123456789")] == 'x')
        add(text, "%s%0*llx", *form == '#' ? "0x" : "", width > 0 ? width : 1, (long long)value);
    else
        add(text, "%lld", (long long)value);
}

/* The text of a fault with its values: `{n}` or `{n:form}` in the place of each. */
static void add_message(struct text *text, const char *form, const int64_t values[4])
{
    for (; *form; form++) {
        if (*form != '{') {
            add(text, "%c", *form);
            continue;
        }
        int number = form[1] - '0';
        const char *end = strchr(form, '}');
        add_value(text, form[2] == ':' ? form + 3 : "", values[number & 3]);
        form = end;
    }
}

const struct fault *fault_of(int64_t code)
{
    for (const struct fault *fault = machine_faults; fault->name; fault++)
        if (fault->code == code)
            return fault;
    return NULL;
}

/* The tile whose refusal stands in its record; -1: the chip around the tiles refuses. */
static int refusing_tile(void)
{
    int64_t candidates[] = {FIELD(int64_t, simulator.chip, CHIP_CURRENT), FIELD(int64_t, simulator.chip, CHIP_NOC_END)};
    if (FIELD(int64_t, simulator.chip, CHIP_FAULT_CODE))
        return -1;
    for (int i = 0; i < 2; i++)
        if (candidates[i] >= 0 && candidates[i] < TILES &&
            FIELD(int64_t, simulator.tiles + candidates[i] * TILE_BYTES, TILE_FAULT_CODE))
            return candidates[i];
    return candidates[0] >= 0 && candidates[0] < TILES ? candidates[0] : -1;
}

static void say_in_short(const char *function)
{
    struct text text = {.length = 0};
    int tile = refusing_tile();
    const char *record = tile < 0 ? simulator.chip : simulator.tiles + (size_t)tile * TILE_BYTES;
    const struct fault *fault =
        fault_of(FIELD(int64_t, record, tile < 0 ? CHIP_FAULT_CODE : TILE_FAULT_CODE));
    int64_t time = tile < 0 || strcmp(function, "libttsim_clock") ? simulator_time()
                                                                 : (&FIELD(int64_t, simulator.chip, CHIP_LOCAL))[tile];
    const char *category = fault ? machine_texts + fault->category : "UndefinedBehavior";
    add(&text, "[%lld] ERROR: %s: %s: ", (long long)time, category, function);
    if (tile >= 0) {
        int core = FIELD(int32_t, record, TILE_FAULT_CORE);
        const unsigned char *place = machine_places[tile];
        add(&text, "%s tile %d-%d: ", machine_nodes[place[0]][place[1]], place[0], place[1]);
        if (core > 0)
            add(&text, "core %s at %#07x: ", machine_cores[FIELD(int32_t, record, TILE_TILE_KIND)][core - 1],
                FIELD(uint32_t, record, TILE_FAULT_PC));
        else if (FIELD(uint32_t, record, TILE_FAULT_WORD))
            add(&text, "word %#010x of thread %d: ", FIELD(uint32_t, record, TILE_FAULT_WORD),
                FIELD(int32_t, record, TILE_FAULT_THREAD));
    }
    if (fault) {
        add_message(&text, machine_texts + fault->text, &FIELD(int64_t, record, tile < 0 ? CHIP_FAULT_VALUE : TILE_FAULT_VALUE));
        add(&text, " [%s]\n  remedy: %s\n", machine_texts + fault->rule, machine_texts + fault->remedy);
    } else {
        add(&text, "there is no such instruction\n");
    }
    add(&text, "  more: set BHEMU_PYTHON to a Python in which this version of bhemu is installed; rules are in its docs/rules\n");
    if (write(STDOUT_FILENO, text.bytes, text.length) < 0)
        _exit(1); /* its reader has ended */
}

/* Another refusal may follow where the process lives: this one is taken out of the records. */
static void forget_refusal(const char *function)
{
    int tile = refusing_tile();
    int64_t current = FIELD(int64_t, simulator.chip, CHIP_CURRENT);
    if (current >= 0 && current < TILES && !strcmp(function, "libttsim_clock"))
        FIELD(int64_t, simulator.chip, CHIP_TIME) = (&FIELD(int64_t, simulator.chip, CHIP_LOCAL))[current];
    if (tile >= 0)
        FIELD(int64_t, simulator.tiles + (size_t)tile * TILE_BYTES, TILE_FAULT_CODE) = 0;
    FIELD(int64_t, simulator.chip, CHIP_FAULT_CODE) = 0;
    FIELD(int64_t, simulator.chip, CHIP_CURRENT) = FIELD(int64_t, simulator.chip, CHIP_NOC_END) = -1;
}

void refuse_recorded(const char *function)
{
    if (CHIPS > 1) {
        fflush(NULL);
        dprintf(STDOUT_FILENO, "[%lld] bhemu: chip %d refuses:\n", (long long)simulator_time(), (int)(selected - instances));
    }
    if (!let_python_say(REFUSED, function))
        say_in_short(function);
    forget_refusal(function);
    simulator_refused();
}

/* Who waits for what on the selected chip; false when Python cannot say it. */
static int say_who_waits(void)
{
    return let_python_say(simulator_links_fail() ? LINK_FAILS : STILLNESS, "libttsim_clock");
}

/* The same for several chips: of a large system those whose links fail, or the first. */
static int say_who_waits_where(void)
{
    char concerned[CHIPS] = {0};
    int count = 0, said = 1;
    fflush(NULL);
    simulator_say_links();
    for (const struct link *link = machine_links; link->name; link++)
        if (link_fails(link))
            concerned[link->chip[0]] = concerned[link->chip[1]] = 1;
    for (int chip = 0; chip < CHIPS; chip++) {
        if ((!concerned[chip] && simulator_links_fail()) || count++ >= DESCRIBED)
            continue;
        dprintf(STDOUT_FILENO, "[%lld] bhemu: chip %d:\n", (long long)simulator_time(), chip);
        select_chip(chip);
        said &= say_who_waits();
    }
    select_chip(0);
    if (count > DESCRIBED)
        dprintf(STDOUT_FILENO, "[%lld] bhemu: %d more chips are not described\n", (long long)simulator_time(), count - DESCRIBED);
    return said;
}

void report_stillness(void)
{
    if (simulator_stopped()) {
        fflush(NULL);
        dprintf(STDOUT_FILENO,
                "[%lld] bhemu: a refusal has stopped the chip, and the host still polls: libttsim_exit and libttsim_init "
                "start a new one\n",
                (long long)simulator_time());
    } else if (CHIPS > 1 ? !say_who_waits_where() : !say_who_waits()) {
        fflush(NULL);
        dprintf(STDOUT_FILENO,
                "[%lld] bhemu: the host only polls, and no core or thread can proceed, or a link has failed; set BHEMU_PYTHON to a "
                "Python in which this version of bhemu is installed to see what waits\n",
                (long long)simulator_time());
    }
}

/* What a file holds, to the client's standard errors. */
static void tell(int file)
{
    char bytes[4096];
    ssize_t size;
    for (off_t at = 0; (size = pread(file, bytes, sizeof bytes, at)) > 0; at += size)
        if (write(STDERR_FILENO, bytes, size) < 0)
            return; /* its reader has ended */
}

int report_polling(void)
{
    int said = 0, computes = 0, text = memfd_create("bhemu", 0);
    for (int chip = 0; chip < CHIPS && chip < DESCRIBED && text >= 0; chip++) {
        select_chip(chip);
        if (CHIPS > 1)
            dprintf(text, "[%lld] bhemu: chip %d:\n", (long long)simulator_time(), chip);
        int status = python_says(POLLS, "libttsim_clock", text);
        said |= status == 0;
        computes |= status == COMPUTES;
    }
    select_chip(0);
    if (computes) {
        close(text);
        return 0; /* what was found so far is not said */
    }
    fflush(NULL);
    dprintf(STDERR_FILENO,
            "[%lld] bhemu: the host only polls, and so do the cores, for %lld seconds: none has written over a NoC or a link, or used "
            "its coprocessor\n",
            (long long)simulator_time(), (long long)setting(POLLING));
    if (said)
        tell(text);
    else
        dprintf(STDERR_FILENO, "  set BHEMU_PYTHON to a Python in which this version of bhemu is installed to see what they poll\n");
    if (said && CHIPS > DESCRIBED)
        dprintf(STDERR_FILENO, "[%lld] bhemu: %d more chips are not described\n", (long long)simulator_time(), CHIPS - DESCRIBED);
    if (text >= 0)
        close(text);
    return 1;
}
