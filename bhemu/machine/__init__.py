"""The state record, lanes, compiling and caching, faults raised from compiled code."""

# First of all: it decides how Numba makes machine code, before a kernel of this package can make Numba choose.
import bhemu.machine.codegen  # noqa: F401
