"""Encoding and decoding of Tensix instruction words, from the instruction table.

No bit position is written here: all come from `bhemu.isa.instruction_table`. The word that a RISC-V core pushes with
`.ttinsn` is the word meant here rotated left by two bits (see `bhemu.isa.assembler`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import index
from typing import Any, NoReturn, SupportsIndex, overload

from bhemu.checks import integer, text
from bhemu.errors import AssemblyError
from bhemu.isa.instruction_table import (
    BY_OPCODE,
    INSTRUCTIONS,
    UNITS,
    Field,
    Form,
    Instruction,
    instruction,
    suggestion,
    union_mask,
)

__all__ = [
    "BY_OPCODE",
    "INSTRUCTIONS",
    "UNITS",
    "Decoded",
    "Field",
    "Form",
    "Instruction",
    "decode",
    "encode",
    "instruction",
]

_OPERAND_MASK = 0xFFFFFF

# Encoding ------------------------------------------------------------------------------------------------------------
#
# encode() runs as often as a Python program issues instructions, so everything that depends on the shape of the call
# alone (names, their order, the number of operands in place) is worked out once and cached as a plan.


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to encode calls of one shape: start from `base`, then put each operand at its shift."""

    base: int
    places: tuple[tuple[int, int, Field], ...]  # (lsb, largest value, field) of each operand, in the call's order
    reserved_mask: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """One way to read the operands: the LLK macro's, or a form's."""

    name: str
    positional: tuple[Field, ...]
    nameable: Mapping[str, Field]
    selectors: Mapping[str, int]
    reserved_mask: int


def _layouts(row: Instruction) -> tuple[_Layout, ...]:
    """The macro's layout first, then the forms'."""
    nameable = {f.name: f for f in (*row.fields, *row.parts)}
    # Which bits are reserved depends on the form; the macro's operands of a row with forms do not say which it is.
    reserved = 0 if row.forms else _OPERAND_MASK & ~union_mask(row.fields)
    macro = _Layout("macro", row.positional, nameable, {}, reserved)
    forms = (
        _Layout(f.name, f.operands, {g.name: g for g in f.fields}, f.selectors, _OPERAND_MASK & ~f.mask)
        for f in row.forms
    )
    return (macro, *forms)


_LAYOUTS: dict[str, tuple[_Layout, ...]] = {row.mnemonic: _layouts(row) for row in INSTRUCTIONS.values()}
_SELECTORS: dict[str, tuple[str, ...]] = {
    row.mnemonic: tuple(dict.fromkeys(name for f in row.forms for name in f.selectors))
    for row in INSTRUCTIONS.values()
    if row.forms
}


@overload
def encode(mnemonic: str, /, *operands: SupportsIndex, **named: SupportsIndex) -> int: ...


@overload
def encode(
    mnemonic: str,
    /,
    *operands: SupportsIndex,
    form: str | None,
    reserved: SupportsIndex = 0,
    **named: SupportsIndex,
) -> int: ...


def encode(
    mnemonic: str, /, *operands: SupportsIndex, form: Any = None, reserved: SupportsIndex = 0, **named: SupportsIndex
) -> int:
    """Encode one instruction.

    Operands may be given in place, in the order of the LLK macro, by name, or both; those left out are zero. For an
    instruction with forms (SETDMAREG, STOREIND) the names pick the form, or `form` does; without either, the number of
    operands in place must be that of the macro or of exactly one form.

    Args:
        mnemonic: name in the table, upper case.
        operands: values in place; unsigned, each must fit its field.
        form: name of the form, for an instruction that has forms.
        reserved: bits of [23:0] to set, in place, that no field covers.
        named: values by field or part name.

    Returns:
        The 32-bit word (opcode in [31:24]), not the rotated `.ttinsn` word.

    Raises:
        AssemblyError: unknown mnemonic, form or operand; value negative or too wide; two operands for the same bits.

    Example:
        >>> hex(encode("SETADCXX", 4, x_end2=15))
        '0x5e803c00'
    """
    selectors = _SELECTORS.get(text(mnemonic, "mnemonic"))
    chosen = tuple([named.get(name) for name in selectors]) if selectors else ()
    plan = _plan(mnemonic, form, len(operands), tuple(named), chosen)
    word = plan.base
    given = (*operands, *named.values()) if named else operands
    for operand, (shift, limit, place) in zip(given, plan.places, strict=True):
        try:
            value = index(operand)
        except TypeError:
            _refuse_value(mnemonic, place, operand)
        bits = value << shift
        if not 0 <= value <= limit or word & bits:
            _refuse_value(mnemonic, place, value)
        word |= bits
    return word | _checked_reserved(mnemonic, plan.reserved_mask, reserved) if reserved != 0 else word


@lru_cache(maxsize=8192)
def _plan(
    mnemonic: str, form: str | None, count: int, names: tuple[str, ...], chosen: tuple[SupportsIndex | None, ...]
) -> _Plan:
    """The plan for calls with `count` operands in place and these `names`; `chosen` are the values of selectors."""
    row = instruction(mnemonic)
    layout = _choose_layout(row, form, count, names, chosen)
    for name in names:
        if name not in layout.nameable:
            _refuse_name(row, name, layout)
    if count > len(layout.positional):
        raise AssemblyError(
            f"{mnemonic} takes at most {len(layout.positional)} operands in place, {count} given",
            remedy=f"In order: {', '.join(f.name for f in layout.positional) or 'none'}.",
        )
    used = 0
    by_name = tuple(layout.nameable[name] for name in names)
    for f in layout.positional[:count]:
        used |= f.mask
    for f in by_name:
        if used & f.mask:
            raise AssemblyError(
                f"{mnemonic} is given two operands for the bits of {f.name} [{f.msb}:{f.lsb}]",
                remedy="Give each operand once, in place or by name.",
            )
        used |= f.mask
    base = row.base
    for name, value in layout.selectors.items():
        if name not in names:
            base |= value << layout.nameable[name].lsb
    places = tuple((f.lsb, f.max, f) for f in layout.positional[:count] + by_name)
    return _Plan(base, places, layout.reserved_mask)


def _choose_layout(
    row: Instruction, form: str | None, count: int, names: tuple[str, ...], chosen: tuple[SupportsIndex | None, ...]
) -> _Layout:
    """The layout that a call means: see `encode`."""
    macro, *forms = _LAYOUTS[row.mnemonic]
    values = dict(zip(_SELECTORS.get(row.mnemonic, ()), chosen, strict=True))
    if form is not None:
        row.form(form)
        layout = next(candidate for candidate in forms if candidate.name == form)
        for name, value in layout.selectors.items():
            if values[name] not in (None, value):
                raise AssemblyError(f"{row.mnemonic} form {form} has {name}={value}, not {values[name]}")
        return layout
    if not forms:
        return macro

    def fits(layout: _Layout) -> bool:
        complete = not count or count + sum(f.name in names for f in layout.positional) == len(layout.positional)
        agrees = all(values[name] in (None, value) for name, value in layout.selectors.items())
        return complete and agrees and all(name in layout.nameable for name in names)

    if count and fits(macro):
        return macro
    fitting = [layout for layout in forms if fits(layout)]
    if not count:
        # Operands left out are zero, selectors too, so a form that agrees with that goes first.
        fitting = [f for f in fitting if not any(v for n, v in f.selectors.items() if n not in names)] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and not count and fits(macro):
        return macro
    for name in names:
        if not any(name in layout.nameable for layout in (macro, *forms)):
            _refuse_name(row, name)
    raise AssemblyError(
        f"these operands do not say which form of {row.mnemonic} is meant",
        remedy="Give all operands of the macro or of one form, or form=: "
        + "; ".join(f"{f.name}({', '.join(g.name for g in f.positional)})" for f in (macro, *forms))
        + ".",
    )


def _refuse_name(row: Instruction, name: str, layout: _Layout | None = None) -> NoReturn:
    if layout is None:
        known = [name for candidate in _LAYOUTS[row.mnemonic] for name in candidate.nameable]
    else:
        known = list(layout.nameable)
    raise AssemblyError(f"{row.mnemonic} has no operand {name!r}", remedy=suggestion(name, known, "operand"))


def _refuse_value(mnemonic: str, f: Field, value: object) -> NoReturn:
    if not isinstance(value, int):
        raise AssemblyError(
            f"{mnemonic} operand {f.name} must be an integer, not {value!r}", remedy="give its bits as an integer"
        )
    if 0 <= value <= f.max:
        raise AssemblyError(
            f"{mnemonic} operand {f.name} = {value} (0x{value:X}) shares set bits with an earlier operand",
            remedy="The macro adds its operands up; leave the upper bits to one of them.",
        )
    shown = f"{value} (0x{value:X})" if value >= 0 else f"{value}"
    raise AssemblyError(
        f"{mnemonic} operand {f.name} = {shown} is out of range 0..{f.max} (0x{f.max:X}): bits [{f.msb}:{f.lsb}]",
        remedy=None if value >= 0 else f"Operands are unsigned; for two's complement pass value & 0x{f.max:X}.",
    )


def _checked_reserved(mnemonic: str, mask: int, reserved: SupportsIndex) -> int:
    value = integer(reserved, "reserved")
    if value < 0 or value & ~mask:
        raise AssemblyError(
            f"{mnemonic} reserved = {value:#x} sets bits that are not reserved (0x{mask:06X})",
            remedy="Use the operands for bits that have names.",
        )
    return value


# Decoding ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decoded:
    """An instruction word taken apart.

    Attributes:
        word: the word itself.
        instruction: its row in the table.
        form: the form that the selector bits choose; None for an instruction without forms.
        operands: value of every field of the layout, selectors included, in the order of the table.
        reserved_bits: the bits of [23:0] that no field covers, in place; 0 in a well-formed word.
    """

    word: int
    instruction: Instruction
    form: Form | None
    operands: dict[str, int] = field(hash=False)
    reserved_bits: int

    @property
    def mnemonic(self) -> str:
        """Shorthand for `instruction.mnemonic`."""
        return self.instruction.mnemonic

    def __getitem__(self, name: str) -> int:
        """Value of a field, or of a part of a field."""
        try:
            return self.operands[name]
        except KeyError:
            return self.instruction.field(name).extract(self.word)


def decode(word: SupportsIndex) -> Decoded:
    """Take an instruction word (opcode in [31:24], not rotated) apart.

    Raises:
        AssemblyError: `word` is not a 32-bit value, or no source defines its opcode.

    Example:
        >>> decode(0x5E803C00).operands
        {'CntSetMask': 4, 'x_end2': 15, 'x_start': 0}
    """
    value = integer(word, "word")
    if not 0 <= value <= 0xFFFFFFFF:
        raise AssemblyError(f"{value:#x} is not a 32-bit instruction word")
    row = BY_OPCODE[value >> 24]
    if row is None:
        raise AssemblyError(
            f"word 0x{value:08X} has opcode 0x{value >> 24:02X}, which no source defines",
            remedy="If it came from a RISC-V instruction stream, rotate it first: from_ttinsn(word).",
        )
    form = row.form_of(value)
    fields, reserved_mask = _DECODE[row.mnemonic, form.name if form else ""]
    return Decoded(
        value, row, form, {name: (value >> lsb) & limit for name, lsb, limit in fields}, value & reserved_mask
    )


_DECODE: dict[tuple[str, str], tuple[tuple[tuple[str, int, int], ...], int]] = {
    (row.mnemonic, form.name if form else ""): (
        tuple((f.name, f.lsb, f.max) for f in (form or row).fields),
        _OPERAND_MASK & ~union_mask((form or row).fields),
    )
    for row in INSTRUCTIONS.values()
    for form in (row.forms or (None,))
}
