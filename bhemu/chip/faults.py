"""Refusals of the chip around its tiles: recorded in its record by compiled code, as a tile's are (machine/faults.py).

Texts may name a node: `{0:node}` is the node at the physical place x << X_LSB | y that the value holds.
"""

from __future__ import annotations

from typing import Any

from bhemu.chip.coordinates import NODES, X_LSB, Y_MASK
from bhemu.errors import BhemuError
from bhemu.machine.faults import FAULTS
from bhemu.machine.faults import refuse as refuse_in_record
from bhemu.machine.kernel import kernel
from bhemu.machine.types import ChipRecord, Int

_64_BITS = (1 << 64) - 1


@kernel
def refuse(chip: ChipRecord, code: Int, value0: Int = 0, value1: Int = 0, value2: Int = 0, value3: Int = 0) -> Int:
    """Record a fault of the chip and return REFUSED."""
    return refuse_in_record(chip, code, value0, value1, value2, value3)  # type: ignore[arg-type]  # the same fields


class _Value(int):
    """A recorded value as texts show it: negative numbers are addresses above 2**63."""

    def __format__(self, form: str) -> str:
        if form == "node":
            node = NODES[self >> X_LSB, self & Y_MASK]
            return f"{node.kind.value} tile {node.place[0]}-{node.place[1]}"
        return format(self & _64_BITS if form.endswith("x") else int(self), form)


def recorded(chip: Any) -> BhemuError:
    """The exception for the fault in a chip's record, from which it is taken."""
    known = FAULTS[int(chip.fault_code)]
    chip.fault_code = 0
    text = known.text.format(*(_Value(value) for value in chip.fault_value))
    return known.error(f"{text} [{known.rule}]", remedy=known.remedy)
