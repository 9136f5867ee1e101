"""Random and mutated input, compared: `bhemu fuzz`; and one run for each file and parameter: `bhemu sweep`.

`words` makes instruction words from the instruction table, `programs` makes programs of them and keeps those that reach
something new, `machine` executes a program. `tensix`, `library`, `riscv` and `parsers` are kinds of fuzzing: each has a
function that does one batch. `campaign` does batches, in one process or on Dask, and keeps what they found.
"""
