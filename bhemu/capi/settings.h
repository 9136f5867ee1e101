/* The environment, as bhemu/capi/settings.py declares it. */

#ifndef BHEMU_SETTINGS_H
#define BHEMU_SETTINGS_H

#include <stdint.h>

#include "settings_table.h"

/* Read all variables; refuses values that mean nothing, and variables of bhemu that do not exist. */
void read_settings(void);

/* The value of a variable as it was read. */
int64_t setting(enum setting which);

/* The name of a variable that is set and lets what the client does be recorded; NULL when there is none. */
const char *records(void);

/* What the client does is recorded, and nothing else looks on between clocks. */
int only_records(void);

/* The name of a variable that is set and needs a simulator under Python; NULL when there is none. */
const char *needs_python(void);

#endif
