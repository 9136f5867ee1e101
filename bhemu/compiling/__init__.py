"""How Numba compiles a kernel, and how far compiling is: nothing here knows the chip."""
