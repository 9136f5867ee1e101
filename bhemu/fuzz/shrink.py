"""The smallest program that still shows something."""

from __future__ import annotations

from collections.abc import Callable

from bhemu.fuzz.machine import Program

MOST_TRIALS = 600


def shrink(program: Program, shows: Callable[[Program], bool]) -> Program:
    """Leave out words, then data, as long as what is left still shows it.

    Args:
        program: one that shows it.
        shows: whether a program does.
    """
    left = program.words
    trials = 0
    size = max(1, len(left) // 2)
    while True:
        at, changed = 0, False
        while at < len(left) and trials < MOST_TRIALS:
            trials += 1
            candidate = left[:at] + left[at + size :]
            if candidate and shows(Program.of(candidate, program.data)):
                left, changed = candidate, True
            else:
                at += size
        if trials >= MOST_TRIALS or (size == 1 and not changed):
            break
        if not changed or size > len(left):
            size = max(1, size // 2)
    found = Program.of(left, program.data)
    for address, _ in program.data:
        fewer = Program(found.items, tuple(piece for piece in found.data if piece[0] != address))
        if shows(fewer):
            found = fewer
    return found
