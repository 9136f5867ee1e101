/* The environment, read once for each chip. */

#define _GNU_SOURCE
#include "machine.h"
#include "shim.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 3 };

struct row {
    const char *name;
    int words; /* 0: a number from 1 on */
    const char *word[MOST_WORDS];
    int64_t least, value; /* of a number the smallest one; when it is not set */
    const char *remedy;
};

#define WANTS_SETTINGS
#include "settings.h"

extern char **environ;
static int64_t values[SETTINGS];

int64_t setting(enum setting which)
{
    return values[which];
}

static int64_t processors(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    return count < MOST_THREADS ? count : MOST_THREADS;
}

static _Noreturn void refuse_value(const struct row *row, const char *text)
{
    char quote = strchr(text, '\'') && !strchr(text, '"') ? '"' : '\'';
    char message[512];
    snprintf(message, sizeof message, "%s is %c%s%c", row->name, quote, text, quote);
    refuse("libttsim_init", message, row->remedy);
}

static int64_t value_of(const struct row *row)
{
    const char *text = getenv(row->name);
    if (!text || !*text)
        return row->value;
    for (int i = 0; i < row->words; i++)
        if (!strcmp(text, row->word[i]))
            return i;
    size_t digits = strspn(text, "0123456789");
    int64_t number = digits < 11 ? strtoll(text, NULL, 10) : -1;
    if (row->words || text[digits] || number < row->least || number > INT32_MAX)
        refuse_value(row, text);
    return number;
}

static int is_known(const char *name, size_t length)
{
    for (int i = 0; i < SETTINGS; i++)
        if (strlen(rows[i].name) == length && !strncmp(rows[i].name, name, length))
            return 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t all = strlen(others[i]);
        if (others[i][all - 1] == '*' ? length >= all - 1 && !strncmp(others[i], name, all - 1)
                                      : length == all && !strncmp(others[i], name, all))
            return 1;
    }
    return 0;
}

const char *records(void)
{
    for (int i = 0; i < UNDER_PYTHON; i++) {
        const char *text = getenv(others[i]);
        if (text && *text)
            return others[i];
    }
    return NULL;
}

int only_records(void)
{
    int found = 0;
    for (int i = 0; i < UNDER_PYTHON; i++) {
        const char *text = getenv(others[i]);
        if (text && *text) {
            if (strcmp(others[i], "BHEMU_RECORD"))
                return 0;
            found = 1;
        }
    }
    return found;
}

const char *needs_python(void)
{
    const char *name = records(), *hosts = getenv(HOSTS_VARIABLE);
    if (name)
        return name;
    if (setting(SEMIHOSTING))
        return rows[SEMIHOSTING].name;
    if (setting(WORKERS))
        return rows[WORKERS].name;
    return hosts && *hosts ? HOSTS_VARIABLE : NULL;
}

/* Timed mode, and what it cannot be combined with. It has the order of the hardware. */
static void check_time(void)
{
    for (size_t i = 0; i < sizeof untimed / sizeof *untimed; i++) {
        const char *text = getenv(untimed[i].name);
        char message[512];
        if (!text || !*text || (*untimed[i].value && strcmp(text, untimed[i].value)))
            continue;
        snprintf(message, sizeof message, "%s is 'silicon', and %s is '%.99s': %s", rows[TIME].name, untimed[i].name, text,
                 untimed[i].why);
        refuse("libttsim_init", message, "unset one of them");
    }
    const char *python = needs_python();
    if (CHIPS > 1 && python) {
        char message[512];
        snprintf(message, sizeof message, "%s is 'silicon', and %s needs Python between two clocks, which times one chip alone",
                 rows[TIME].name, python);
        refuse("libttsim_init", message, "unset one of them, or use a library with one chip");
    }
    values[ORDER] = 1;
}

void read_settings(void)
{
    for (char **variable = environ; *variable; variable++) {
        size_t length = strcspn(*variable, "=");
        if (!strncmp(*variable, "BHEMU_", 6) && !is_known(*variable, length)) {
            char message[512], remedy[512] = "unset it; there are";
            snprintf(message, sizeof message, "%.*s is not a variable of bhemu", (int)(length < 200 ? length : 200), *variable);
            for (int i = 0; i < SETTINGS; i++)
                snprintf(remedy + strlen(remedy), sizeof remedy - strlen(remedy), "%s %s", i ? "," : "", rows[i].name);
            refuse("libttsim_init", message, remedy);
        }
    }
    for (int i = 0; i < SETTINGS; i++)
        values[i] = value_of(&rows[i]);
    if (!values[THREADS])
        values[THREADS] = processors();
    if (setting(TIME) == SILICON)
        check_time();
}
