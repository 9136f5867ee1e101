/* Counts of all Tensix tiles of a chip (counters.h): what capi/attach.py and recording/chip_recording.py do for a chip under
 * Python. Compiled code counts (bhemu/counting) and sees programs begin and end (bhemu/counting/chip.py). */

#define _GNU_SOURCE
#include "counters.h"
#include "parts.h"
#include "settings.h"
#include "simulator.h"
#include "windows.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
enum { MOST_BYTES = 1 << 20 /* until parts are written */ };

static struct tile {
    int64_t *log;  /* of bhemu/counting/layout.py */
    int64_t *kept; /* what was taken because there was no room */
    int64_t begin, started, launches;
} tiles[RECORDED];

struct piece {
    uint64_t hash;
    uint32_t size;
    char *content;
};

static struct piece *known; /* pieces of code that are in the file, which names them by their places here */
static int known_count, known_room;

int counters_file = -1;
static char path[PATH_MAX];
static int64_t *followed; /* of bhemu/counting/chip.py */
static int64_t *found, *joined;
static struct bytes parts, numbers, mailboxes;
static int64_t written, flushed, flush_after; /* nanoseconds */
static int is_fork, has_written; /* the client has, since clocks have passed */

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

int counters_wanted(void)
{
    static const char *const others[] = {"BHEMU_TILES",  "BHEMU_START", "BHEMU_STOP", "BHEMU_STATES", "BHEMU_STATES_EVERY",
                                         "BHEMU_CHECK", "BHEMU_SUPPRESSIONS", "BHEMU_DEBUG"};
    const char *detail = variable("BHEMU_DETAIL"), *limit = variable("BHEMU_RECORD_LIMIT");
    if (CHIPS > 1 || !variable("BHEMU_RECORD") || !detail || strcmp(detail, "counters"))
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (variable(others[i]))
            return 0;
    if (limit && limit[strspn(limit, "0123456789")])
        return 0; /* Python refuses it */
    return setting(TIME) != SILICON && !setting(SEMIHOSTING) && setting(PROCESS) != 2 && parts_can_be_written();
}

static void say(const char *format, const char *error)
{
    fflush(NULL);
    dprintf(STDOUT_FILENO, format, (long long)simulator_time(), path, error);
}

/* The tiles run by the plain clock again. */
static void let_go(void)
{
    for (int n = 0; n < RECORDED; n++) {
        if (simulator.chip)
            (&FIELD(int64_t, simulator.chip, CHIP_OBSERVER))[machine_recorded[n].index] = 0;
        if (tiles[n].log)
            munmap(tiles[n].log, COUNTED_WORDS * sizeof(int64_t));
        free(tiles[n].kept);
        tiles[n] = (struct tile){0};
    }
    for (int i = 0; i < known_count; i++)
        free(known[i].content);
    free(known);
    known = NULL;
    known_count = known_room = 0;
    if (found)
        munmap(found, COUNTED_MOST * sizeof *found);
    if (joined)
        munmap(joined, 2 * COUNTED_MOST * sizeof *joined);
    free(followed);
    found = joined = followed = NULL;
    parts.size = numbers.size = mailboxes.size = 0;
    close(counters_file);
    counters_file = -1;
}

/* Write a frame; 0, or -1: that failed, and the recording has ended. */
static int write_frame(const struct bytes *description, const struct array *arrays, int count)
{
    if (!parts_frame(counters_file, description, arrays, count))
        return 0;
    say("[%lld] bhemu: the recording ends: %s: %s\n", strerror(errno));
    let_go();
    return -1;
}

/* The command of the client, as JSON. */
static void append_command(struct bytes *text)
{
    char command[1 << 16];
    int from = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = from < 0 ? 0 : read(from, command, sizeof command - 1);
    if (from >= 0)
        close(from);
    size = size < 0 ? 0 : size;
    command[size] = 0;
    append_text(text, "[");
    for (ssize_t at = 0; at < size; at += strlen(command + at) + 1) {
        append_text(text, at ? ", " : "");
        append_string(text, command + at);
    }
    append_text(text, "]");
}

/* What the report must know of the client; see `about_client` of attach.py. */
static int write_about(void)
{
    struct bytes text = {0};
    char directory[PATH_MAX] = "", when[32];
    time_t seconds = time(NULL);
    struct tm local;
    if (variable("BHEMU_CLIENT_DIRECTORY"))
        snprintf(directory, sizeof directory, "%s", variable("BHEMU_CLIENT_DIRECTORY"));
    else if (!getcwd(directory, sizeof directory))
        *directory = 0;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
    append_text(&text, "{\"kind\": \"about\", \"chip\": \"the C library\", \"detail\": \"counters\", \"elf\": [], \"pid\": %d, "
                "\"time\": \"%s\", \"command\": ", (int)getpid(), when);
    append_command(&text);
    append_text(&text, ", \"directory\": ");
    append_string(&text, directory);
    append_text(&text, ", \"environment\": {");
    for (size_t i = 0, count = 0; i < NAMING; i++)
        if (getenv(machine_naming[i])) {
            append_text(&text, "%s\"%s\": ", count++ ? ", " : "", machine_naming[i]);
            append_string(&text, getenv(machine_naming[i]));
        }
    append_text(&text, "}, \"tiles\": [");
    for (int n = 0; n < RECORDED; n++)
        append_text(&text, "%s[%d, %d]", n ? ", " : "", machine_recorded[n].x, machine_recorded[n].y);
    append_text(&text, "]");
    int status = write_frame(&text, NULL, 0);
    free(text.at);
    return status;
}

static void fork_ends_it(void)
{
    is_fork = 1;
}

static void follow(void)
{
    followed = calloc(FOLLOWED_FIRST + RECORDED * FOLLOWED_COLUMNS, sizeof *followed);
    if (!followed)
        refuse("libttsim_init", "there is no memory for counters", "free some memory");
    followed[FOLLOWED_COUNT] = RECORDED;
    followed[FOLLOWED_JUMP] = followed[FOLLOWED_LAYOUT] = -1;
    followed[FOLLOWED_LAYOUTS] = LAYOUTS;
    for (int i = 0; i < LAYOUTS; i++) {
        const struct firmware *firmware = machine_firmware + i;
        int64_t row[FOLLOWED_LAYOUT_COLUMNS] = {firmware->jump, firmware->index, firmware->signal, firmware->pointer};
        memcpy(followed + FOLLOWED_FIRST_LAYOUT + i * FOLLOWED_LAYOUT_COLUMNS, row, sizeof row);
    }
    for (int n = 0; n < RECORDED; n++)
        followed[FOLLOWED_FIRST + n * FOLLOWED_COLUMNS + FOLLOWED_INDEX] = machine_recorded[n].index;
}

void counters_start(void)
{
    static int watches_forks;
    struct timespec clock;
    if (!counters_wanted())
        return;
    clock_gettime(CLOCK_REALTIME, &clock);
    if (snprintf(path, sizeof path, "%s/%d-%lld.parts", getenv("BHEMU_RECORD"), (int)getpid(),
                 clock.tv_sec * (long long)SECOND + clock.tv_nsec) >= (int)sizeof path)
        errno = ENAMETOOLONG;
    else
        counters_file = parts_open(path);
    if (counters_file < 0) {
        say("[%lld] bhemu: nothing is recorded: %s: %s\n", strerror(errno));
        return;
    }
    if (!watches_forks)
        watches_forks = !pthread_atfork(NULL, NULL, fork_ends_it);
    is_fork = 0;
    follow();
    found = simulator_memory(COUNTED_MOST * sizeof *found);
    joined = simulator_memory(2 * COUNTED_MOST * sizeof *joined);
    for (int n = 0; n < RECORDED; n++) {
        int index = machine_recorded[n].index;
        tiles[n] = (struct tile){.log = simulator_memory(COUNTED_WORDS * sizeof(int64_t)), .started = -1};
        begin_counted(simulator.tiles + (size_t)index * TILE_BYTES, (intptr_t)tiles[n].log, 0);
        tiles[n].log[OBSERVER_ENTRY] = (intptr_t)advance_counted;
        (&FIELD(int64_t, simulator.chip, CHIP_OBSERVER))[index] = (intptr_t)tiles[n].log;
    }
    written = flushed = now();
    flush_after = COUNTED_SECONDS * SECOND;
    write_about();
}

/* --- parts ------------------------------------------------------------------------------------------------------------ */

/* The name of a piece of code in the file, which gets it if it does not have it; -1: it cannot be written any more. */
static int name_of_code(const char *content, uint32_t size)
{
    uint64_t hash = size, bits;
    for (uint32_t at = 0; at + sizeof bits <= size; at += sizeof bits) {
        memcpy(&bits, content + at, sizeof bits);
        hash = mix(hash, bits);
    }
    for (int i = 0; i < known_count; i++)
        if (known[i].hash == hash && known[i].size == size && !memcmp(known[i].content, content, size))
            return i;
    if (known_count == known_room) {
        struct piece *more = realloc(known, (2 * known_room + 64) * sizeof *known);
        known_room = more ? 2 * known_room + 64 : known_room;
        known = more ? more : known;
    }
    char *copied = known_count < known_room ? malloc(size) : NULL;
    if (!copied) {
        say("[%lld] bhemu: the recording ends: %s: %s\n", strerror(ENOMEM));
        let_go();
        return -1;
    }
    memcpy(copied, content, size);
    known[known_count] = (struct piece){hash, size, copied};
    struct bytes text = {0};
    append_text(&text, "{\"kind\": \"code\", \"digest\": \"%d\"", known_count);
    int status = write_frame(&text, &(struct array){"code", content, size, 0}, 1);
    free(text.at);
    return status ? -1 : known_count++;
}

static int by_first(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Name the pieces of L1 with what was executed; see `executed_pieces` of counting/recorder.py. */
static int append_code(const char *l1, int64_t *pieces, int64_t count)
{
    qsort(pieces, count, 2 * sizeof *pieces, by_first);
    append_text(&parts, "[");
    for (int64_t i = 0, after; i < count; i = after) {
        int64_t end = pieces[2 * i + 1];
        for (after = i + 1; after < count && pieces[2 * after] - end <= COUNTED_GAP; after++)
            end = pieces[2 * after + 1] > end ? pieces[2 * after + 1] : end;
        int name = name_of_code(l1 + 4 * pieces[2 * i], 4 * (end - pieces[2 * i]));
        if (name < 0)
            return -1;
        append_text(&parts, "%s[%lld, \"%d\"]", i ? ", " : "", 4 * (long long)pieces[2 * i], name);
    }
    append_text(&parts, "]");
    return 0;
}

/* Write the parts that have not been written. */
static int write_parts(void)
{
    struct bytes text = {0};
    int status = 0;
    written = now();
    if (parts.size) {
        append_text(&text, "{\"kind\": \"counted\", \"parts\": [");
        append(&text, parts.at, parts.size);
        append_text(&text, "]");
        text.lacks |= parts.lacks | numbers.lacks | mailboxes.lacks;
        struct array arrays[] = {{"numbers", numbers.at, numbers.size, 1}, {"mailboxes", mailboxes.at, mailboxes.size, 0}};
        parts.size = 0;
        status = write_frame(&text, arrays, 2);
        free(text.at);
        numbers.size = mailboxes.size = 0;
    }
    return status;
}

/* A part of a tile ends; `launch`: the number of its launch that ends with it, or 0. -1: the recording has ended. */
static int cut(int n, int64_t launch)
{
    struct tile *tile = tiles + n;
    const struct recorded *place = machine_recorded + n;
    const char *record = simulator.tiles + (size_t)place->index * TILE_BYTES;
    int64_t size = cut_counted(simulator.chip, place->index, (intptr_t)tile->log, (intptr_t)found), *taken = found;
    if (tile->kept) {
        size = join_counted((void *)record, (intptr_t)tile->kept, (intptr_t)found, (intptr_t)joined);
        taken = joined;
        free(tile->kept);
        tile->kept = NULL;
    }
    int64_t begin = tile->begin, layout = followed[FOLLOWED_LAYOUT], pieces = taken[COUNTED_PIECES];
    const struct firmware *firmware = layout < 0 ? NULL : machine_firmware + layout;
    tile->begin = simulator_time();
    int has_counts = 0;
    for (int i = 0; i < COUNTED_PIECES; i++)
        has_counts |= taken[i] != 0;
    if (!launch && !has_counts)
        return 0;
    size_t boxes = firmware ? firmware->mailboxes_end - firmware->mailboxes : 0;
    if (firmware)
        append(&mailboxes, record + TILE_L1 + firmware->mailboxes, boxes);
    append(&numbers, taken, size * sizeof *taken); /* before its pieces are sorted: what they are is the same */
    append_text(&parts, "%s[%d, %d, %lld, %lld, %lld, ", parts.size ? ", " : "", place->x, place->y, (long long)begin,
                (long long)tile->begin, (long long)launch);
    append_text(&parts, tile->started < 0 ? "null" : "%lld", (long long)tile->started);
    append_text(&parts, ", %lld, %lld, %zu, ", firmware ? (long long)firmware->end : 0LL, (long long)size, boxes);
    if (append_code(record + TILE_L1, taken + size - 2 * pieces, pieces))
        return -1;
    append_text(&parts, "]");
    if (launch)
        tile->started = -1;
    return 0;
}

/* End the parts of all tiles where something has happened, and write them. */
static int flush_all(void)
{
    int64_t begin = now();
    for (int n = 0; n < RECORDED; n++)
        if (cut(n, 0))
            return -1;
    if (write_parts())
        return -1;
    flushed = now();
    int64_t share = COUNTED_SHARE * (flushed - begin), least = COUNTED_SECONDS * SECOND;
    flush_after = share > least ? share : least;
    return 0;
}

/* See which programs have begun or ended. */
static void look(void)
{
    if (!look_counted(simulator.chip, (intptr_t)followed, 0))
        return;
    const int64_t *happened = followed + FOLLOWED_FIRST + FOLLOWED_HAPPENED;
    help_pause();
    for (int n = 0; n < RECORDED; n++)
        if (happened[n * FOLLOWED_COLUMNS] & ENDED && cut(n, ++tiles[n].launches))
            return;
    for (int n = 0; n < RECORDED; n++)
        if (happened[n * FOLLOWED_COLUMNS] & BEGUN)
            tiles[n].started = simulator_time();
}

void counters_arrive(void)
{
    if (!counters_count())
        return;
    look();
    int64_t time = now();
    int flushes = time - flushed > flush_after;
    if (!counters_count() || !(flushes || numbers.size + mailboxes.size > MOST_BYTES || time - written > SECOND))
        return;
    help_pause();
    if (flushes)
        flush_all();
    else
        write_parts();
}

void counters_begin(void)
{
    if (!counters_count())
        return;
    if (is_fork) /* the file is the other process's */
        let_go();
    else if (has_written)
        counters_arrive(); /* what the client has started begins with these clocks */
    has_written = 0;
}

void counters_wrote(void)
{
    has_written = 1;
}

void counters_attend(void)
{
    int64_t index = FIELD(int64_t, simulator.chip, CHIP_CURRENT);
    for (int n = 0; n < RECORDED; n++) {
        struct tile *tile = tiles + n;
        void *record = simulator.tiles + (size_t)index * TILE_BYTES;
        if (machine_recorded[n].index != index || !tile->log)
            continue;
        int64_t size = take_counters(record, (intptr_t)tile->log, (intptr_t)found, 0), *taken = found;
        if (tile->kept) {
            size = join_counted(record, (intptr_t)tile->kept, (intptr_t)found, (intptr_t)joined);
            taken = joined;
        }
        free(tile->kept);
        tile->kept = malloc(size * sizeof *taken);
        if (!tile->kept)
            refuse("libttsim_clock", "there is no memory for counters", "free some memory");
        memcpy(tile->kept, taken, size * sizeof *taken);
    }
    (&FIELD(uint8_t, simulator.chip, CHIP_STATUS))[index] |= ATTENDED;
    FIELD(int64_t, simulator.chip, CHIP_TIME) = (&FIELD(int64_t, simulator.chip, CHIP_LOCAL))[index];
    FIELD(int64_t, simulator.chip, CHIP_CURRENT) = -1;
}

void counters_end(void)
{
    if (!counters_count())
        return;
    if (is_fork || !flush_all())
        let_go();
}
