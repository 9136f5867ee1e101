/* The C library's header without its name `uint`, which tt-metal's headers give another type. */

#define uint bhemu_uint_of_the_c_library
#include_next <sys/types.h>
#undef uint
