"""Refusals raised from compiled code.

Compiled code cannot raise an exception with text. It records a fault code and up to four values in the tile and
returns; the host turns them into an exception (design section 4). A fault is declared where it is used:

    X_RANGE = fault("unpack.x-range", UndefinedBehavior, "channel-1 X ({0}) is below channel-0 X ({1})",
                    remedy="set X with SETADCXX", rule="U5")
    ...
    return refuse(t, X_RANGE, x1, x0)

The code is a hash of the fault's name, so that it is the same in every process and may live in cached machine code.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Final

from bhemu.errors import BhemuError
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

DONE: Final = 0
"""The instruction has finished."""
WAIT: Final = 1
"""The instruction cannot be accepted yet; nothing was changed, try again."""
REFUSED: Final = 2
"""The instruction was refused; `fault_code` says why."""
SCHEDULED: Final = 5
"""The instruction has finished, and has scheduled others for the next cycles (SFPLOADMACRO alone)."""
REQUEST_PENDING: Final = 6
"""The store has started a NoC request that the chip carries out; the store ends when the request has."""


@dataclass(frozen=True)
class Fault:
    """One reason to refuse.

    Attributes:
        name: unique, `unit.reason`.
        error: the exception class, which is the category.
        text: message; `{0}` .. `{3}` are the recorded values (a format such as `{0:#x}` may follow).
        remedy: what to do instead.
        rule: the rule id that says so.
    """

    name: str
    error: type[BhemuError]
    text: str
    remedy: str
    rule: str


FAULTS: dict[int, Fault] = {}
"""Every declared fault by its code."""


def fault(name: str, error: type[BhemuError], text: str, *, remedy: str, rule: str) -> int:
    """Declare a fault and return its code (positive, 31 bits, stable across processes)."""
    code = zlib.crc32(name.encode()) & 0x7FFFFFFF
    known = FAULTS.get(code)
    if known is not None and known.name != name:
        raise ValueError(f"fault names {known.name!r} and {name!r} collide")
    FAULTS[code] = Fault(name, error, text, remedy, rule)
    return code


@kernel
def refuse(t: TileRecord, code: Int, value0: Int = 0, value1: Int = 0, value2: Int = 0, value3: Int = 0) -> Int:
    """Record a fault (the first one wins) and return `REFUSED`."""
    if t.fault_code == 0:
        t.fault_code = code
        t.fault_value[0] = value0
        t.fault_value[1] = value1
        t.fault_value[2] = value2
        t.fault_value[3] = value3
    return REFUSED


@kernel
def note_open_choice(t: TileRecord, code: Int) -> None:
    """Remember that the recommended choice was used for an open case, so that the host can say so once."""
    for i in range(16):
        if t.open_used[i] == code:
            return
        if t.open_used[i] == 0:
            t.open_used[i] = code
            return


@kernel
def open_choice(t: TileRecord, code: Int, value0: Int = 0, value1: Int = 0) -> bool:
    """True when the user lets bhemu use its recommended choice for a case that no source settles; that is noted.

    Records the fault and returns False otherwise.
    """
    if t.allow_open == 0:
        refuse(t, code, value0, value1)
        return False
    note_open_choice(t, code)
    return True
