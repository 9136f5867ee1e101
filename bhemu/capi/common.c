/* What the other files of the C library share. */

#include "shim.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * (int64_t)1000000000 + time.tv_nsec;
}

void say_refusal(const char *function, const char *text, const char *remedy)
{
    printf("[0] ERROR: ConfigurationError: %s: %s\n  remedy: %s\n", function, text, remedy);
    fflush(stdout);
}

_Noreturn void refuse(const char *function, const char *text, const char *remedy)
{
    say_refusal(function, text, remedy);
    _exit(1);
}
