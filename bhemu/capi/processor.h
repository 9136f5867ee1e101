/* What the library's machine code needs of a processor. */

#ifndef BHEMU_PROCESSOR_H
#define BHEMU_PROCESSOR_H

#include <stdint.h>

struct feature {
    const char *name;
    uint32_t leaf, word, bit; /* of CPUID, of the four words of its answer, of that word */
    uint32_t width;           /* of the vectors that the system has to keep for it, in bits */
};

/* Made by machine_text.py; one without a name ends them. */
extern const struct feature machine_features[];

/* This processor has all of them; else the client is told which one it has not, and the process ends. */
void check_processor(void);

#endif
