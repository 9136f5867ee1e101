"""What an access does to each register of the control, debug and status block (tile K31).

The table of `bhemu.isa.tile_registers` says which registers there are and of which kind each is. One that acts is
handled in control.py or the module that it names.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.errors import BhemuError, MissingSpecification, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import KINDS, Kind, registers_of
from bhemu.machine.faults import fault

WORDS: Final = region("control").size // 4

NOTHING: Final = 0
"""No register: an access is undefined."""
ACTS: Final = 1
"""Handled one by one."""
PLAIN: Final = 2
"""Keeps what is written. Nothing that bhemu models depends on it."""
OPEN: Final = 3
"""Keeps what is written where open choices are allowed: no source says what it does."""
RESULT: Final = 4
"""Read-only and always 0, because what would count or report here cannot be started."""
REFUSED: Final = 5
"""In the header, but bhemu does not have what it does, or no source documents it."""
_NUMBER: Final[dict[Kind, int]] = dict(zip(KINDS, (ACTS, PLAIN, OPEN, RESULT, REFUSED), strict=True))


def _kinds() -> np.ndarray[Any, Any]:
    kinds = np.zeros(WORDS, np.int64)
    for row in registers_of("control"):
        kinds[row.offset // 4] = _NUMBER[row.kind]
    return kinds


def _faults(
    kind: Kind, reason: str, text: str, remedy: str, error: type[BhemuError] = Unimplemented
) -> np.ndarray[Any, Any]:
    codes = np.zeros(WORDS, np.int64)
    for row in registers_of("control"):
        if row.kind == kind:
            message = text.format(name=row.name, address=f"{row.address:#x}")
            codes[row.offset // 4] = fault(
                f"control.{reason}.{row.name}", error, message, remedy=remedy, rule="tile K31"
            )
    return codes


KIND: Final = _kinds()
"""What an access does, by offset / 4."""
NOT_BUILT: Final = _faults(
    "refused",
    "not-built",
    "{name} ({address}) is in the vendor's header, and no source says what it does",
    "leave the register alone",
)
UNKNOWN: Final = _faults(
    "open",
    "open",
    "no source says what {name} ({address}) does",
    "leave the register alone, or allow open choices to have it kept without effect",
    MissingSpecification,
)
READ_ONLY: Final = _faults(
    "result",
    "read-only",
    "{name} ({address}) reports, and what a store of {{0:#x}} to it does is not documented",
    "only load from it, or store 0",
)
