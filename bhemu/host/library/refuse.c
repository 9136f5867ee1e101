/* How the C library ends a process when Python cannot say why: in the form that the interface's clients know. */

#include "shim.h"

#include <stdio.h>
#include <unistd.h>

_Noreturn void refuse(const char *function, const char *text, const char *remedy)
{
    printf("[0] ERROR: ConfigurationError: %s: %s\n  remedy: %s\n", function, text, remedy);
    fflush(stdout);
    _exit(1);
}
