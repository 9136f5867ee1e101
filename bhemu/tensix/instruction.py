"""The registry of instructions: one Python function each, named as the mnemonic, with the table's operand names.

    @instruction(Mode("immediate", VERIFIED, vectors="scalar:setdma", rule="I.11"))
    def SETDMAREG(t, thread, value, RegIndex16b):
        ...
        return DONE

The decorator takes the operands' bit positions from the instruction table. A parameter named `word` receives the
whole word. Bits of the word that belong to no operand must be zero, or the instruction is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS, Form, Instruction
from bhemu.machine.faults import fault
from bhemu.tensix.vector_queue import SUB_UNIT_OF

VERIFIED: Final = "verified"
"""Bit-exact against conformance vectors."""
DOCUMENTED: Final = "documented"
"""Specified by the documents alone; the reference refuses the case."""
OPEN: Final = "open"
"""No source settles it: refused, unless the user opts in."""
MISSING: Final = "missing"
"""Not built yet: refused as Unimplemented."""

RESERVED_BITS: Final = fault(
    "instruction.reserved-bits",
    UndefinedBehavior,
    "bits {0:#010x} of the word belong to no operand and must be zero",
    remedy="clear the reserved bits of the instruction word",
    rule="math 0",
)


@dataclass(frozen=True)
class Mode:
    """One way to use an instruction, and how far it can be trusted.

    Attributes:
        name: what a user would call it, such as `register form`.
        fidelity: VERIFIED, DOCUMENTED, OPEN or MISSING.
        vectors: for VERIFIED, `family:label` of conformance cases that execute it.
        rule: rule ids that it follows.
    """

    name: str
    fidelity: str
    vectors: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Handler:
    """An instruction's function and how to call it.

    Attributes:
        instruction: its row of the instruction table.
        function: `function(t, thread, operand, ...) -> DONE | WAIT | REFUSED`.
        source: text of the wrapper that takes the operands out of the word.
        modes: fidelity, a mode each.
    """

    instruction: Instruction
    function: Callable[..., int]
    source: str
    modes: tuple[Mode, ...]


HANDLERS: dict[int, Handler] = {}
"""Handlers by opcode."""

F = TypeVar("F", bound=Callable[..., Any])


def instruction(*modes: Mode, reserved: int = 0) -> Callable[[F], F]:
    """Register the decorated function as the handler of the instruction that it is named after.

    Args:
        modes: fidelity of each way to use it.
        reserved: bits outside the operands that software is known to set and hardware to ignore.
    """

    def register(function: F) -> F:
        name = function.__name__
        row = INSTRUCTIONS[name]
        HANDLERS[row.opcode] = Handler(row, function, _wrapper(row, function, reserved), modes)
        return function

    return register


def _wrapper(row: Instruction, function: Callable[..., Any], reserved: int) -> str:
    layouts: tuple[Instruction | Form, ...] = (row, *row.forms)
    fields = {field.name: field for form in layouts for field in form.fields}
    fields |= {field.name: field for field in row.parts}
    arguments = []
    for parameter in list(inspect.signature(function).parameters)[2:]:
        if parameter == "word":
            arguments.append("word")
        elif parameter in fields:
            arguments.append(f"(word >> {fields[parameter].lsb}) & {fields[parameter].max:#x}")
        else:
            raise TypeError(f"{row.mnemonic} has no operand {parameter!r}")
    known = 0xFF000000 | reserved
    for form in layouts:
        for field in form.fields:
            known |= field.mask
    spare = ~known & 0xFFFFFFFF
    lines = [
        "from bhemu.machine.faults import refuse",
        "def entry(t, thread, word):",
    ]
    if spare:
        lines += [f"    if word & {spare:#x}:", f"        return refuse(t, {RESERVED_BITS}, word & {spare:#x})"]
    if row.mnemonic in SUB_UNIT_OF:
        unit = SUB_UNIT_OF[row.mnemonic]
        lines.insert(1, "from bhemu.tensix.vector_queue import EXECUTE, issue_regular")
        lines += [
            "    if t.macro.cycle:",
            f"        status = issue_regular(t, {-1 if unit is None else unit})",
            "        if status != EXECUTE:",
            "            return status",
        ]
    call = f"body(t, thread{''.join(', ' + a for a in arguments)})"
    if row.mnemonic in SUB_UNIT_OF and "word" in arguments:  # it may have been captured in some lanes (V1)
        lines += [f"    status = {call}", "    t.vector.acting_lanes = 0xFFFFFFFF", "    return status"]
    else:
        lines.append(f"    return {call}")
    return "\n".join(lines) + "\n"
