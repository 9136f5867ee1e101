"""bhemu beside another library with the interface of the official simulator: the same calls, answer by answer.

`calls` are what a client does; `trace` keeps them in a file; `capture` and `elf` make a `session` of programs, which is
calls again. `chip_side` and `library` are the two that answer, `lockstep` compares what they say, `locate` finds the
clock in which memory begins to differ.
"""
