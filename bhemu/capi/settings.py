"""What the environment says of the C library: its clients have no other way to choose.

One declaration serves Python and C: `header` makes the table that settings.c reads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from bhemu.capi.c_text import c_string
from bhemu.chip.clock.clocks import QUANTUM as DEFAULT_QUANTUM
from bhemu.errors import ConfigurationError
from bhemu.riscv import translator

ALLOW_OPEN: Final = "BHEMU_ALLOW_OPEN"
ORDER: Final = "BHEMU_ORDER"
SEMIHOSTING: Final = "TTSIM_SEMIHOSTING"
QUANTUM: Final = "BHEMU_QUANTUM"
THREADS: Final = "BHEMU_THREADS"
PATIENCE: Final = "BHEMU_PATIENCE"
POLLING: Final = "BHEMU_POLLING"
PROCESS: Final = "BHEMU_PROCESS"
PACE: Final = "BHEMU_PACE"
REFUSAL: Final = "BHEMU_REFUSAL"
PYTHON: Final = "BHEMU_PYTHON"
TIME: Final = "BHEMU_TIME"
WORKERS: Final = "BHEMU_WORKERS"
HOSTS: Final = "BHEMU_HOSTS"
"""Environment variable: machines on which processes have the chips, `name` or `name:workers`, the first is this one."""
PREFIX: Final = "BHEMU_"

_MOST_THREADS: Final = 8
_DEFAULT_PATIENCE: Final = 10
_DEFAULT_POLLING: Final = 60


@dataclass(frozen=True)
class Setting:
    """A variable of the environment.

    Attributes:
        name: of the variable.
        words: what it may be; its value is the place in this tuple. Empty for a number from 1 on.
        default: when it is not set, or empty where `words` have no empty one; 0 for a number: counted at the start.
        remedy: behind the message about another value.
        least: the smallest number.
    """

    name: str
    words: tuple[str, ...] = ()
    default: int = 0
    remedy: str = "set it to a number from 1 on, or not at all"
    least: int = 1

    def value(self, text: str | None) -> int:
        """What a text means.

        Raises:
            ConfigurationError: nothing.
        """
        if not text:
            return self.default
        if text in self.words:
            return self.words.index(text)
        if not self.words and text.isascii() and text.isdecimal() and self.least <= int(text) < 1 << 31:
            return int(text)
        raise ConfigurationError(f"{self.name} is {text!r}", remedy=self.remedy)


SETTINGS: Final = (
    Setting(ALLOW_OPEN, ("0", "1"), remedy="set it to 1, or not at all"),
    Setting(ORDER, ("simulator", "hardware"), remedy="set it to simulator or hardware, or not at all"),
    Setting(SEMIHOSTING, ("", "1"), remedy="set it to 1, or not at all"),
    Setting(QUANTUM, default=DEFAULT_QUANTUM),
    Setting(THREADS),
    Setting(PATIENCE, default=_DEFAULT_PATIENCE),
    Setting(
        POLLING, default=_DEFAULT_POLLING, remedy="set it to a number of seconds, 0 for never, or not at all", least=0
    ),
    Setting(PROCESS, ("", "client", "own"), remedy="set it to client or own, or not at all"),
    Setting(PACE, ("adaptive", "exact"), remedy="set it to exact or adaptive, or not at all"),
    Setting(TIME, ("rounds", "silicon"), remedy="set it to silicon or rounds, or not at all"),
    Setting(REFUSAL, ("end", "stop"), remedy="set it to end or stop, or not at all"),
    Setting(WORKERS),
    # Neither 0 nor 1: what loops for long is translated, and nothing else (riscv/translation_state.py).
    Setting(translator.VARIABLE, translator.WORDS, default=len(translator.WORDS), remedy=translator.REMEDY),
)
"""Those that have a meaning for the simulator itself."""
UNDER_PYTHON: Final = ("RECORD", "DEBUG")
"""Further variables, behind the prefix: one that is set needs a simulator under Python."""
UNTIMED: Final = (
    (ORDER, "simulator", "the order of the official simulator has no time"),
    (QUANTUM, "", "timed tiles run ahead of each other by fewer cycles than any request takes"),
    (translator.VARIABLE, "1", "timed mode executes instruction by instruction"),
    ("BHEMU_DEBUG", "", "the debugger executes rounds"),
    (WORKERS, "", "processes of workers execute rounds"),
    (HOSTS, "", "processes of workers execute rounds"),
    ("TT_METAL_PROFILER_SYNC", "1", "it compares the host's clock with the chip's, which pass independently"),
)
"""What timed mode cannot be combined with: variable, its value ("": any), why."""
OTHERS: Final = (
    *("CACHE", "CHECK", "CLIENT_DIRECTORY", "DEBUG_WAIT", "DETAIL", "DUMP", "ELF", "HOSTS", "LLK*", "PROGRESS"),
    *("PYTHON", "RECORD_LIMIT", "RISCV_TESTS", "SFPI*", "START", "STATES", "STATES_EVERY", "STOP", "SUPPRESSIONS"),
    *("TILES", "TRACE", "TTNN*"),
)
"""Further variables, behind the prefix, that other parts of bhemu read; `*`: and all that begin so."""


RUN_AHEAD: Final = 128
"""Rounds that a core may be ahead of its tile where the pace adapts (chip/clock/run.py).

With 256, cores of tt-metal's dispatch poll for longer than is gained.
"""


@dataclass(frozen=True)
class Settings:
    """The environment, read.

    Attributes:
        allow_open: use the recommended choice where no source settles what silicon does (BHEMU_ALLOW_OPEN=1).
        simulator_order: queues as the official simulator has them, where NOP takes no time and runs take as many clocks
            (tile E43, T34); else those of a Blackhole, as bhemu's other commands do (BHEMU_ORDER=hardware).
        semihosting: serve `ecall` of core B (TTSIM_SEMIHOSTING=1, H26, H27).
        quantum: clocks that tiles may run ahead of each other, at most (BHEMU_QUANTUM, chip/clock/run.py).
        threads: that tiles run on; by default as many as there are processors, up to 8 (BHEMU_THREADS). Of several
            processes each has as many; by default they share the processors, and on several machines each has one.
        patience: seconds after which a client that waits for a chip in which no core or thread can proceed is told so
            (BHEMU_PATIENCE).
        polling: seconds after which a client that polls, as the cores do, is told so; 0: never (BHEMU_POLLING).
        timed: a clock is an estimate of a cycle of silicon (BHEMU_TIME=silicon, bhemu/timed).
        run_ahead: rounds that a core may be ahead of its tile: those of a client whose pace adapts although it is under
            Python, as it is recorded and nothing else (capi/pace.c), or has chips in several processes; else 0.
        refusal_stops: a refusal stops the chip, and the client's process lives (BHEMU_REFUSAL=stop).
        workers: processes that have the chips (BHEMU_WORKERS); 0: that is not set.
        hosts: machines that they are on (BHEMU_HOSTS); empty: this one.
    """

    allow_open: bool
    simulator_order: bool
    semihosting: bool
    quantum: int
    threads: int
    patience: int
    polling: int
    timed: bool
    refusal_stops: bool
    run_ahead: int
    workers: int
    hosts: tuple[str, ...]

    @property
    def spread(self) -> bool:
        """Several processes have the chips (capi/spread.py)."""
        return bool(self.workers or self.hosts)


def read_settings() -> Settings:
    """The settings of this process.

    Raises:
        ConfigurationError: a variable has a value that means nothing.
    """
    values = {setting.name: setting.value(os.environ.get(setting.name)) for setting in SETTINGS}
    timed = values[TIME] == 1
    hosts = tuple(filter(None, os.environ.get(HOSTS, "").split(",")))
    spread = bool(values[WORKERS] or hosts)
    for name, value, why in UNTIMED if timed else ():
        text = os.environ.get(name)
        if text and value in ("", text):
            raise ConfigurationError(f"{TIME} is 'silicon', and {name} is '{text}': {why}", remedy="unset one of them")
    return Settings(
        allow_open=bool(values[ALLOW_OPEN]),
        simulator_order=values[ORDER] == 0 and not timed,
        semihosting=bool(values[SEMIHOSTING]),
        quantum=values[QUANTUM],
        threads=values[THREADS] or (1 if hosts else max(_processors() // max(values[WORKERS], 1), 1)),
        patience=values[PATIENCE],
        polling=values[POLLING],
        timed=timed,
        refusal_stops=values[REFUSAL] == 1,
        run_ahead=RUN_AHEAD if values[PACE] == 0 and not timed and (_only_records() or spread) else 0,
        workers=values[WORKERS],
        hosts=hosts,
    )


def _only_records() -> bool:
    """As `only_records` of settings.c."""
    return [name for name in UNDER_PYTHON if os.environ.get(PREFIX + name)] == ["RECORD"]


def _processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _MOST_THREADS)


def header() -> str:
    """The C text of the same declaration, for settings.c."""
    rows = []
    for setting in SETTINGS:
        words = ", ".join(c_string(word) for word in setting.words)
        shape = f"{len(setting.words)}, {{{words or 'NULL'}}}, {setting.least}, {setting.default}"
        rows.append(f"    {{{c_string(setting.name)}, {shape}, {c_string(setting.remedy)}}},")
    names = ", ".join(setting.name.partition("_")[2] for setting in SETTINGS)
    others = ", ".join(c_string(PREFIX + other) for other in UNDER_PYTHON + OTHERS)
    return "\n".join(
        [
            f"enum setting {{ {names}, SETTINGS }};",
            f"enum {{ RUN_AHEAD = {RUN_AHEAD} }};",
            f"#define HOSTS_VARIABLE {c_string(HOSTS)}",
            f"enum {{ MOST_THREADS = {_MOST_THREADS}, UNDER_PYTHON = {len(UNDER_PYTHON)} }};",
            "enum { SILICON = 1, NEVER = 0, SOON = 1 };",
            "#ifdef WANTS_SETTINGS",
            "static const struct row rows[SETTINGS] = {",
            *rows,
            "};",
            "static const struct { const char *name, *value, *why; } untimed[] = {",
            *(f"    {{{', '.join(map(c_string, row))}}}," for row in UNTIMED),
            "};",
            f"static const char *const others[] = {{{others}}}; /* the first UNDER_PYTHON need Python */",
            "#endif",
            "",
        ]
    )
