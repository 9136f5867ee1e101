"""What the environment says of the C library: its clients have no other way to choose."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from bhemu.chip.clock.clocks import QUANTUM as DEFAULT_QUANTUM
from bhemu.errors import ConfigurationError

ALLOW_OPEN: Final = "BHEMU_ALLOW_OPEN"
ORDER: Final = "BHEMU_ORDER"
SEMIHOSTING: Final = "TTSIM_SEMIHOSTING"
QUANTUM: Final = "BHEMU_QUANTUM"
THREADS: Final = "BHEMU_THREADS"
PATIENCE: Final = "BHEMU_PATIENCE"

_MOST_THREADS: Final = 8
_DEFAULT_PATIENCE: Final = 10


@dataclass(frozen=True)
class Settings:
    """The environment, read.

    Attributes:
        allow_open: use the recommended choice where no source settles what silicon does (BHEMU_ALLOW_OPEN=1).
        simulator_order: queues as the official simulator has them, where NOP takes no time and runs take as many clocks
            (tile E43, T34); else those of a Blackhole, as bhemu's other commands do (BHEMU_ORDER=hardware).
        semihosting: serve `ecall` of core B (TTSIM_SEMIHOSTING=1, H26, H27).
        quantum: clocks that tiles may run ahead of each other, at most (BHEMU_QUANTUM, chip/clock/run.py).
        threads: that tiles run on; by default as many as there are processors, up to 8 (BHEMU_THREADS).
        patience: seconds after which a client that waits for a chip in which no core or thread can proceed is told so
            (BHEMU_PATIENCE).
    """

    allow_open: bool
    simulator_order: bool
    semihosting: bool
    quantum: int
    threads: int
    patience: int


def read_settings() -> Settings:
    """The settings of this process.

    Raises:
        ConfigurationError: a variable has a value that means nothing.
    """
    order = os.environ.get(ORDER, "") or "simulator"
    if order not in ("simulator", "hardware"):
        raise ConfigurationError(f"{ORDER} is {order!r}", remedy="set it to simulator or hardware, or not at all")
    return Settings(
        allow_open=_switch(ALLOW_OPEN, "", "0"),
        simulator_order=order == "simulator",
        semihosting=_switch(SEMIHOSTING, ""),
        quantum=_number(QUANTUM, DEFAULT_QUANTUM),
        threads=_number(THREADS, _processors()),
        patience=_number(PATIENCE, _DEFAULT_PATIENCE),
    )


def _switch(name: str, *off: str) -> bool:
    """True for 1; `off` are the other values that it may have."""
    text = os.environ.get(name, "")
    if text not in ("1", *off):
        raise ConfigurationError(f"{name} is {text!r}", remedy="set it to 1, or not at all")
    return text == "1"


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ConfigurationError(f"{name} is {text!r}", remedy="set it to a number from 1 on, or not at all")
    return int(text)


def _processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(len(affinity(0)) if affinity else os.cpu_count() or 1, _MOST_THREADS)
