/* What the library hands to bhemu/capi/explain.py, and where it finds Python. */

#ifndef BHEMU_EXPLAIN_H
#define BHEMU_EXPLAIN_H

#include <limits.h>
#include <stdint.h>

/* The description of the chip, beside the library, and what its comments begin with that name Python. */
#define DESCRIPTION "soc_descriptor.yaml"
#define PYTHON_MARK "# python: "
#define PACKAGE_MARK "# package: "

struct python {
    char program[PATH_MAX];
    char path[PATH_MAX]; /* where bhemu is; empty: it is installed */
};

/* The Python that has bhemu; NULL when none is known, or it is not there. */
const struct python *find_python(void);

/* Where this library is. */
const char *library_path(void);

enum what { REFUSED, STILLNESS, LINK_FAILS, POLLS };

/* The head of the state's copy; records of the chip and of its tiles follow from byte 4096 on. */
struct state {
    char layout[64]; /* of the records, and the version of bhemu: a hash */
    int64_t what, chip_bytes, tile_bytes, tiles, client;
    char function[64];
};

#endif
