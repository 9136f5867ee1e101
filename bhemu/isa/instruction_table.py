"""The instruction table of the Blackhole Tensix core: `data/instructions.toml`, loaded once and given types.

A word is 32 bits: opcode in [31:24], operands in [23:0]. `bhemu.isa.instructions` encodes and decodes words with it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from bhemu.errors import AssemblyError
from bhemu.isa.tables import content

#: The units that instructions belong to, in the order of the data file.
UNITS = ("frontend", "misc", "sync", "scalar", "config", "unpack", "pack", "matrix", "vector", "mover")

#: Sub-units of the vector unit: one instruction of each may execute in a cycle (math V.7).
SUB_UNITS = ("simple", "mad", "round", "store", "load")

_BLOCK_BITS = tuple(f"B{bit}" for bit in range(9))


@dataclass(frozen=True, slots=True)
class Field:
    """A range of bits [msb:lsb] of an instruction word, with the name of the operand that it holds."""

    name: str
    msb: int
    lsb: int

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.msb - self.lsb + 1

    @property
    def max(self) -> int:
        """Largest value that fits."""
        return (1 << self.width) - 1

    @property
    def mask(self) -> int:
        """The bits of the word that the field covers, in place."""
        return self.max << self.lsb

    def extract(self, word: int) -> int:
        """Value of the field in `word`."""
        return (word >> self.lsb) & self.max


@dataclass(frozen=True, slots=True)
class Form:
    """One of several layouts that share an opcode, told apart by the values of its selector fields.

    `fields` includes the selectors, most significant bit first.
    """

    name: str
    selectors: Mapping[str, int]
    fields: tuple[Field, ...]

    @property
    def operands(self) -> tuple[Field, ...]:
        """The fields that the form leaves free, in positional order."""
        return tuple(f for f in self.fields if f.name not in self.selectors)

    @property
    def mask(self) -> int:
        """The operand bits that some field covers."""
        return union_mask(self.fields)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One row of the instruction table.

    Attributes:
        mnemonic: name, as in the LLK macros.
        opcode: bits 31:24 of the word.
        unit: one of `UNITS`.
        block: block-mask bits (`"B0"`..`"B8"`) that concern the instruction at the wait gate (Y10); empty when it never
            reaches the gate.
        block_rule: `"any"` when each bit of `block` holds the instruction, `"all"` when only all of them together do.
        fields: operands in the order of the LLK macro. For an instruction with `forms` these ranges may overlap: the
            macro adds its operands up.
        named_only: names in `fields` that no macro operand exists for; not positional.
        parts: further names for ranges inside a field (`Ch1Y` in UNPACR's `AddrMode`).
        forms: alternative layouts; empty for most instructions.
        summary: what it does, in one line.
        sub_unit: of a vector instruction, one of `SUB_UNITS` (V.7); "" for other units.
        scheduled: how a scheduled instruction uses the operands of V.7, as the head of the data file explains.
    """

    mnemonic: str
    opcode: int
    unit: str
    block: tuple[str, ...]
    block_rule: Literal["any", "all"]
    fields: tuple[Field, ...]
    named_only: frozenset[str]
    parts: tuple[Field, ...]
    forms: tuple[Form, ...]
    summary: str
    sub_unit: str = ""
    scheduled: frozenset[str] = frozenset()

    @property
    def base(self) -> int:
        """The word with all operands zero."""
        return self.opcode << 24

    @property
    def positional(self) -> tuple[Field, ...]:
        """The operands of the LLK macro, in order."""
        return tuple(f for f in self.fields if f.name not in self.named_only)

    @property
    def block_mask(self) -> int:
        """`block` as bits of the block mask of STALLWAIT, SEMWAIT and STREAMWAIT (bit n = Bn)."""
        return sum(1 << _BLOCK_BITS.index(name) for name in self.block)

    def is_held_by(self, stall_mask: int) -> bool:
        """Whether a latched wait with block mask `stall_mask` holds this instruction at the gate (Y10).

        `stall_mask` is the effective mask: a wait word whose mask field is zero acts as B6, and the caller replaces it.
        """
        mask = self.block_mask
        return stall_mask & mask == mask != 0 if self.block_rule == "all" else stall_mask & mask != 0

    def form(self, name: str) -> Form:
        """The form called `name`; raises `AssemblyError` when there is none."""
        for candidate in self.forms:
            if candidate.name == name:
                return candidate
        if not self.forms:
            raise AssemblyError(
                f"{self.mnemonic} has no forms, so form={name!r} means nothing", remedy="Leave form out."
            )
        raise AssemblyError(
            f"{self.mnemonic} has no form {name!r}", remedy=suggestion(str(name), [f.name for f in self.forms], "form")
        )

    def field(self, name: str) -> Field:
        """The field or part called `name` in any layout; raises `AssemblyError` when there is none."""
        known = {f.name: f for form in self.forms for f in form.fields}
        known |= {f.name: f for f in (*self.fields, *self.parts)}
        if name in known:
            return known[name]
        raise AssemblyError(f"{self.mnemonic} has no operand {name!r}", remedy=suggestion(name, known, "operand"))

    def form_of(self, word: int) -> Form | None:
        """The form whose selectors match `word`; None for an instruction without forms."""
        for form in self.forms:
            if all(f.extract(word) == form.selectors[f.name] for f in form.fields if f.name in form.selectors):
                return form
        return None


def suggestion(wrong: str, known: Iterable[str], what: str) -> str:
    """A remedy for a name that does not exist: the closest known names, or all of them when none is close."""
    names = list(dict.fromkeys(known))
    folded = {name.lower(): name for name in reversed(names)}
    close = [folded[name] for name in difflib.get_close_matches(wrong.lower(), folded, n=3, cutoff=0.6)]
    if close:
        return f"Did you mean {' or '.join(close)}?"
    return f"Known {what}s: {', '.join(names)}." if names else f"It has no {what}s."


def union_mask(fields: Iterable[Field]) -> int:
    """All the bits that `fields` cover."""
    bits = 0
    for f in fields:
        bits |= f.mask
    return bits


def _fields(rows: Iterable[Sequence[Any]]) -> tuple[Field, ...]:
    return tuple(Field(str(name), int(msb), int(lsb)) for name, msb, lsb in rows)


def _instruction(row: Mapping[str, Any]) -> Instruction:
    block = row["block"]
    return Instruction(
        mnemonic=row["mnemonic"],
        opcode=row["opcode"],
        unit=row["unit"],
        block=_BLOCK_BITS if isinstance(block, str) else tuple(block),
        block_rule="all" if block == "all" else "any",
        fields=_fields(row["fields"]),
        named_only=frozenset(row.get("named_only", ())),
        parts=_fields(row.get("parts", ())),
        forms=tuple(
            Form(form["name"], MappingProxyType(dict(form["selectors"])), _fields(form["fields"]))
            for form in row.get("forms", ())
        ),
        summary=row["summary"],
        sub_unit=row.get("sub_unit", ""),
        scheduled=frozenset(row.get("scheduled", ())),
    )


def _load() -> Mapping[str, Instruction]:
    rows = [_instruction(row) for row in content("instructions.toml")["instruction"]]
    return MappingProxyType({row.mnemonic: row for row in sorted(rows, key=lambda row: row.opcode)})


#: Every instruction by mnemonic, in opcode order.
INSTRUCTIONS: Mapping[str, Instruction] = _load()


def _by_opcode() -> tuple[Instruction | None, ...]:
    table: list[Instruction | None] = [None] * 256
    for row in INSTRUCTIONS.values():
        table[row.opcode] = row
    return tuple(table)


#: Every instruction by opcode, None where no source defines the opcode.
BY_OPCODE: tuple[Instruction | None, ...] = _by_opcode()


def instruction(mnemonic: str) -> Instruction:
    """The row of `mnemonic`; raises `AssemblyError` with the closest names when there is none."""
    try:
        return INSTRUCTIONS[mnemonic]
    except KeyError:
        close = difflib.get_close_matches(str(mnemonic).upper(), INSTRUCTIONS, n=3, cutoff=0.6)
        remedy = f"Did you mean {' or '.join(close)}?" if close else "See bhemu.isa.INSTRUCTIONS for the table."
        raise AssemblyError(f"no instruction is called {mnemonic!r}", remedy=remedy) from None
