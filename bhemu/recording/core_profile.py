"""Where the cores' instructions and rounds went: by function, by source line, by what was waited for.

What is counted is exact for the tile's schedule (tile rule T34): in a round each core executes at most one instruction,
and a round in which the coprocessor executes something takes no time. That is not time on silicon; the only such figure
here is the lower bound of core_figures.py.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.recording.core_figures import (
    BRANCH_NOT_TAKEN,
    CLASS_NAMES,
    DIVIDE,
    DIVIDE_CYCLES,
    JUMP,
    L1_MISS_EXTRA,
    LOAD_L1,
    MISPREDICTED_EXTRA,
)
from bhemu.recording.core_log import CoreLog, top

TOP: Final = 10
ESTIMATE: Final = (
    "cycles at least: a core's own pipeline with documented latencies, every branch predicted, every fetch and load "
    "from L1 a cache hit, no contention, waiting and polling left out (BlackholeA0/TensixTile/BabyRISCV/README.md)"
)


@dataclass(frozen=True)
class Spot:
    """A function or a source line.

    Attributes:
        name: `main`, or `kernel.c:12`.
        instructions: executed there, polling included.
        cycles: lower bound of the modelled pipeline.
    """

    name: str
    instructions: int
    cycles: int


@dataclass(frozen=True)
class Wait:
    """A place where a core was blocked or polled.

    Attributes:
        place: `main+0x8 (kernel.c:3)`.
        what: waited for.
        rounds: spent.
    """

    place: str
    what: str
    rounds: int


@dataclass(frozen=True)
class CoreProfile:
    """One core.

    Attributes:
        name: B, T0, T1, T2 or NC.
        instructions: executed, polling included.
        rounds: of the recording.
        running, polling, blocked: rounds; what is left it was in reset or halted.
        functions, lines: most instructions first.
        blocked_on, polls: most rounds first.
        cycles: lower bound of the modelled pipeline; polling left out. 0 where instructions were only counted.
        mix: instructions by class, polling left out, most first. Empty where they were only counted.
        loads_l1, branches: what may add to `cycles`: cache misses, mispredictions.
    """

    name: str
    instructions: int
    rounds: int
    running: int
    polling: int
    blocked: int
    functions: tuple[Spot, ...]
    lines: tuple[Spot, ...]
    blocked_on: tuple[Wait, ...]
    polls: tuple[Wait, ...]
    cycles: int
    mix: dict[str, int]
    loads_l1: int
    branches: int
    divisions: int


@dataclass(frozen=True)
class Profile:
    """A recorded run.

    Attributes:
        rounds, clocks: of the tile while it was recorded.
        cores: those that executed something.
    """

    rounds: int
    clocks: int
    cores: tuple[CoreProfile, ...]


def profile(log: CoreLog) -> Profile:
    """Where instructions and rounds of a recorded run went."""
    cores = tuple(_core(log, core) for core in range(CORES) if log.retired(core) or _sum(log, core, log.waits))
    return Profile(log.rounds[1] - log.rounds[0], log.clocks, cores)


def _sum(log: CoreLog, core: int, waits: Counter[tuple[int, int, str]]) -> int:
    return sum(rounds for (number, _, _), rounds in waits.items() if number == core)


def _core(log: CoreLog, core: int) -> CoreProfile:
    names = log.names
    functions: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    function_cycles: Counter[str] = Counter()
    line_cycles: Counter[str] = Counter()
    for pc, count, cycles in log.counted(core):
        name = names.function(core, pc)[0]
        if name == "?":
            name = "(no symbol)"
        functions[name] += count
        function_cycles[name] += cycles
        line = names.line(core, pc)
        if line is not None:
            text = f"{line.file.rpartition('/')[2]}:{line.line}"
            lines[text] += count
            line_cycles[text] += cycles
    mix = {CLASS_NAMES[i]: int(log.mix[core, i]) for i in np.argsort(-log.mix[core], kind="stable") if log.mix[core, i]}
    return CoreProfile(
        name=CORE_NAMES[core],
        instructions=log.retired(core),
        rounds=log.rounds[1] - log.rounds[0],
        running=int(log.ran[core]),
        polling=_sum(log, core, log.polls),
        blocked=_sum(log, core, log.waits),
        functions=tuple(Spot(name, n, function_cycles[name]) for name, n in top(functions, len(functions))),
        lines=tuple(Spot(name, n, line_cycles[name]) for name, n in top(lines, len(lines))),
        blocked_on=_waits(log, core, log.waits),
        polls=_waits(log, core, log.polls),
        cycles=int(log.modelled[core]),
        mix=mix,
        loads_l1=int(log.mix[core, LOAD_L1]),
        branches=int(log.mix[core, JUMP] + log.mix[core, BRANCH_NOT_TAKEN]),
        divisions=int(log.mix[core, DIVIDE]),
    )


def _waits(log: CoreLog, core: int, waits: Counter[tuple[int, int, str]]) -> tuple[Wait, ...]:
    own = {key: rounds for key, rounds in waits.items() if key[0] == core}
    found = []
    for (_, pc, what), rounds in top(own, len(own)):
        line = log.names.line(core, pc)
        place = f"{pc:#07x} {log.names.place(core, pc)}".strip()
        if line is not None:
            place += f" ({line.file.rpartition('/')[2]}:{line.line})"
        found.append(Wait(place, what, rounds))
    return tuple(found)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def core_lines(found: Profile) -> list[str]:
    """How the cores spent the rounds, and how long their own work takes at least, as lines of text."""
    lines = [
        f"RISC-V cores: {found.rounds:,} rounds in {found.clocks:,} clocks; a core executes one instruction a round, "
        "without caches or latencies",
        f"{'core':<6}{'instructions':>14}{'running':>10}{'polling':>10}{'blocked':>10}{'idle':>8}"
        f"{'cycles at least':>18}",
    ]
    for core in found.cores:
        idle = core.rounds - core.running - core.polling - core.blocked
        shares = [_share(part, core.rounds) for part in (core.running, core.polling, core.blocked)]
        lines.append(
            f"{core.name:<6}{core.instructions:>14,}{shares[0]:>10}{shares[1]:>10}{shares[2]:>10}"
            f"{_share(idle, core.rounds):>8}{f'{core.cycles:,}' if core.mix else '-':>18}"
        )
    for core in found.cores:
        often = ", ".join(f"{name} {count:,}" for name, count in core.mix.items())
        if often or not core.running:  # otherwise instructions were only counted
            lines.append(f"core {core.name}: executed {often or 'nothing'}")
        extra = _extra(core)
        if extra:
            lines.append(f"core {core.name}: cycles at least {core.cycles:,}, and more for {extra}")
    return [*lines, ESTIMATE]


def profile_lines(found: Profile, *, number: int = TOP) -> list[str]:
    """Where the instructions and rounds of each core went, as lines of text.

    Args:
        found: of `profile`.
        number: entries of each list.
    """
    lines: list[str] = []
    for core in found.cores:
        if lines:
            lines.append("")
        lines.append(f"core {core.name}: functions")
        lines += _spots(core.functions, core.instructions, number)
        if core.lines:
            lines.append(f"core {core.name}: source lines")
            lines += _spots(core.lines, core.instructions, number)
        for title, waits in (("blocked on", core.blocked_on), ("polls", core.polls)):
            if waits:
                lines.append(f"core {core.name}: {title}")
                lines += [f"  {wait.rounds:>12,} rounds  {wait.what}, at {wait.place}" for wait in waits[:number]]
                lines += _left_out(len(waits) - number)
    return lines


def _spots(spots: tuple[Spot, ...], whole: int, number: int) -> list[str]:
    lines = [
        f"  {spot.instructions:>12,} {_share(spot.instructions, whole):>5}  {spot.cycles:>12,} cycles  {spot.name}"
        for spot in spots[:number]
    ]
    return lines + _left_out(len(spots) - number)


def _left_out(count: int) -> list[str]:
    return [f"  ... and {count} more"] if count > 0 else []


def _extra(core: CoreProfile) -> str:
    parts = []
    if core.loads_l1:
        parts.append(f"{core.loads_l1:,} loads from L1 (each miss at least {L1_MISS_EXTRA} more)")
    if core.branches:
        parts.append(f"{core.branches:,} branches and jumps (each misprediction {MISPREDICTED_EXTRA} more)")
    if core.divisions:
        parts.append(f"{core.divisions:,} divisions (counted as {DIVIDE_CYCLES}, up to 33)")
    return ", ".join(parts)


def profile_as_json(found: Profile) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "rounds": found.rounds,
        "clocks": found.clocks,
        "estimate": ESTIMATE,
        "cores": [
            vars(core)
            | {
                "functions": [vars(spot) for spot in core.functions],
                "lines": [vars(spot) for spot in core.lines],
                "blocked_on": [vars(wait) for wait in core.blocked_on],
                "polls": [vars(wait) for wait in core.polls],
            }
            for core in found.cores
        ],
    }
