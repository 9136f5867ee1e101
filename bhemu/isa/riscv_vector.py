"""Words of core T2's vector instructions: `data/riscv_vector.tsv`, encoding and text (tile T7)."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bhemu.isa.tables import rows

ARITHMETIC: Final = 0x57
LOAD: Final = 0x07
STORE: Final = 0x27

_FORM_BASES: Final = MappingProxyType({"I": (0, 4, 3), "M": (2, 6, 2), "F": (1, 5, 1)})
"""funct3 of a class with a vector, a scalar and an immediate operand."""
_SCALARS: Final = frozenset({"vx", "wx", "vxm", "vf", "vfm", "s.x", "s.f"})
_IMMEDIATES: Final = frozenset({"vi", "wi", "vim", "r"})
_NO_SUFFIX: Final = frozenset({"v", "none", "r", "x.s", "x.m", "s.x", "f.s", "s.f"})
_UNMASKED: Final = frozenset({"mm", "vm", "x.s", "s.x", "f.s", "s.f", "r"})
_UNSIGNED: Final = ("vsll", "vsrl", "vsra", "vss", "vns", "vncl", "vslide", "vrgather")
_ADDEND_FIRST: Final = ("vmacc", "vnmsac", "vmadd", "vnmsub", "vwmacc", "vfmacc", "vfnmacc", "vfmsac", "vfnmsac")
_FLOAT_ADDEND_FIRST: Final = ("vfmadd", "vfnmadd", "vfmsub", "vfnmsub")


@dataclass(frozen=True, slots=True)
class VectorInstruction:
    """One form of an instruction.

    Attributes:
        name: as in the assembler, with its suffix.
        form: of the operands, as in the table.
        match, mask: a word is this instruction when `word & mask == match`.
    """

    name: str
    form: str
    match: int
    mask: int


def _suffix(form: str) -> str:
    return "" if form in _NO_SUFFIX else f".{form}"


def _load() -> tuple[VectorInstruction, ...]:
    made = []
    for name, kind, funct6, forms, fixed in rows("riscv_vector.tsv")[1:]:
        for form in forms.split():
            vector, scalar, immediate = _FORM_BASES[kind]
            funct3 = scalar if form in _SCALARS else immediate if form in _IMMEDIATES else vector
            match, mask = int(funct6, 16) << 26 | funct3 << 12 | ARITHMETIC, 0xFC00707F
            for field, _, value in (item.partition("=") for item in fixed.split() if item != "-"):
                lsb = 15 if field == "vs1" else 20
                match, mask = match | int(value) << lsb, mask | 31 << lsb
            if form in _UNMASKED:
                match, mask = match | 1 << 25, mask | 1 << 25
            elif form.endswith("m") and form != "x.m":
                mask |= 1 << 25  # v0 is an operand
            made.append(VectorInstruction(name + _suffix(form), form, match, mask))
    for funct3, name in ((0, "vmv.v.v"), (4, "vmv.v.x"), (3, "vmv.v.i"), (5, "vfmv.v.f")):
        made.append(VectorInstruction(name, name[-3:], 0x5E000057 | funct3 << 12, 0xFFF0707F))
    return tuple(made)


VECTOR_INSTRUCTIONS: Final = _load()
"""Every form of the arithmetic instructions."""
VECTOR_BY_NAME: Final = MappingProxyType({row.name: row for row in VECTOR_INSTRUCTIONS})

_WIDTHS: Final = MappingProxyType({0: 8, 5: 16, 6: 32})
_MULTIPLIERS: Final = ("m1", "m2", "m4", "m8", "?", "mf8", "mf4", "mf2")


def is_vector_word(word: int) -> bool:
    """True for a word of the vector extension: arithmetic and vset, or a vector load or store."""
    return word & 0x7F == ARITHMETIC or (word & 0x7F in (LOAD, STORE) and word >> 12 & 7 in (0, 5, 6, 7))


def _vtype(kind: int) -> str:
    tail, mask = "ta" if kind & 0x40 else "tu", "ma" if kind & 0x80 else "mu"
    return f"e{8 << (kind >> 3 & 7)}, {_MULTIPLIERS[kind & 7]}, {tail}, {mask}"


def _set(word: int, x: tuple[str, ...]) -> str:
    rd, rs1 = x[word >> 7 & 31], word >> 15 & 31
    if word >> 30 == 3:
        return f"vsetivli {rd}, {rs1}, {_vtype(word >> 20 & 0x3FF)}"
    if word >> 31:
        return f"vsetvl {rd}, {x[rs1]}, {x[word >> 20 & 31]}"
    return f"vsetvli {rd}, {x[rs1]}, {_vtype(word >> 20 & 0x7FF)}"


def _access(word: int, x: tuple[str, ...]) -> str | None:
    loads, mode, number = word & 0x7F == LOAD, word >> 26 & 3, word >> 20 & 31
    width, fields = _WIDTHS.get(word >> 12 & 7), (word >> 29) + 1
    letter, base = "l" if loads else "s", x[word >> 15 & 31]
    register, masked = f"v{word >> 7 & 31}", "" if word >> 25 & 1 else ", v0.t"
    if width is None or word >> 28 & 1:
        return None
    if mode == 0 and number == 8:
        return f"v{letter}{fields}r{f'e{width}' if loads else ''}.v {register}, ({base})"
    if mode == 0 and number == 11:
        return f"v{letter}m.v {register}, ({base})"
    if mode == 0 and number not in (0, 16):
        return None
    segment = f"seg{fields}" if fields > 1 else ""
    name = (f"{segment}e{width}", f"ux{segment}ei{width}", f"s{segment}e{width}", f"ox{segment}ei{width}")[mode]
    last = (f"{'ff' if number == 16 else ''}.v {register}, ({base})", f", v{number}", f", {x[number]}", f", v{number}")
    return f"v{letter}{name}{last[0] if mode == 0 else f'.v {register}, ({base}){last[mode]}'}{masked}"


def disassemble_vector(word: int, x: tuple[str, ...], f: tuple[str, ...]) -> str | None:
    """Text of a vector instruction, or None when T2 has none of that encoding.

    Args:
        x, f: names of the scalar registers.
    """
    if word & 0x7F != ARITHMETIC:
        return _access(word, x)
    if word >> 12 & 7 == 7:
        return _set(word, x)
    rows = [row for row in VECTOR_INSTRUCTIONS if word & row.mask == row.match]
    if not rows:
        return None
    row = max(rows, key=lambda row: row.mask.bit_count())
    vd, vs2, number = f"v{word >> 7 & 31}", f"v{word >> 20 & 31}", word >> 15 & 31
    form, masked = row.form, "" if word >> 25 & 1 else ", v0.t"
    signed = number if row.name.startswith(_UNSIGNED) else (number ^ 16) - 16
    if form in ("v.v", "v.x", "v.i", "v.f"):
        return (
            f"{row.name} {vd}, {({'v.v': f'v{number}', 'v.x': x[number], 'v.i': str(signed), 'v.f': f[number]})[form]}"
        )
    if form in ("x.s", "x.m"):
        return f"{row.name} {x[word >> 7 & 31]}, {vs2}{masked}"
    if form == "f.s":
        return f"{row.name} {f[word >> 7 & 31]}, {vs2}"
    if form in ("s.x", "s.f"):
        return f"{row.name} {vd}, {(x if form == 's.x' else f)[number]}"
    if form in ("v", "r"):
        return f"{row.name} {vd}, {vs2}{masked}"
    if form == "none":
        return f"{row.name} {vd}{masked}"
    operand = f"v{number}"
    if form in _SCALARS:
        operand = (f if form.startswith("vf") else x)[number]
    elif form in _IMMEDIATES:
        operand = str(signed)
    if form.endswith("m") and form not in ("mm", "vm"):
        return f"{row.name} {vd}, {vs2}, {operand}, v0"
    base = row.name.split(".", 1)[0]
    swapped = base.startswith(_ADDEND_FIRST) or base in _FLOAT_ADDEND_FIRST
    operands = f"{operand}, {vs2}" if swapped else f"{vs2}, {operand}"
    if base in ("vmadc", "vmsbc") and masked:
        return f"{row.name}m {vd}, {operands}, v0"
    return f"{row.name} {vd}, {operands}{masked}"
