"""Text to instruction words and back.

One line is one instruction: a mnemonic, then operands in place or as `name=value`, separated by commas. LLK macro calls
(`TTI_SETADCXX(4, 15, 0)`) and the listings of a disassembler (`ttsetadcxx 4,15,0`) are lines of this language, as is
everything that `disassemble` prints. Comments start with `;`, `#` or `//`, or are between `/*` and `*/` in a line.
"""

from __future__ import annotations

import re
from typing import SupportsIndex

from bhemu.checks import checked, flag, integer
from bhemu.errors import AssemblyError
from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS, decode, encode, instruction

_COMMENT = re.compile(r"(;|#|//).*")
_INLINE_COMMENT = re.compile(r"/\*.*?\*/")
_LINE = re.compile(r"(?P<mnemonic>\.?[A-Za-z_]\w*)\s*(?:\((?P<call>[^()]*)\)|(?P<plain>[^()]*))")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|0|[1-9][0-9_]*)")
_OPERAND = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)\s*=\s*)?(?P<value>[^=]+)")
# Longest first: TT_OP_X must not be read as TT_ and OP_X.
_PREFIXES = ("TT_OP_", "TTI_", "TT_", "TT")

#: Fields wider than this are printed in hexadecimal: they hold addresses, masks and bit patterns.
_DECIMAL_BITS = 10


@checked
def assemble(text: str) -> int:
    """Assemble one instruction.

    A mnemonic may be in either case and carry `TTI_`, `TT_OP_`, `TT_` or `tt` in front; operand names keep their case.
    Numbers are decimal, 0x, 0b or 0o. `form=` and `reserved=` act as in `encode`. `.word N` is the word N itself, and
    `.ttinsn N` is the word that a RISC-V instruction stream carries as N.

    Returns:
        The 32-bit word (opcode in [31:24]).

    Raises:
        AssemblyError: not an instruction, or a mnemonic, operand or value that does not exist or fit.

    Example:
        >>> hex(assemble("TTI_SETADCXX(4, 15, x_start=0x0)  // packer"))
        '0x5e803c00'
    """
    line = _strip(text)
    match = _LINE.fullmatch(line)
    if match is None:
        raise AssemblyError(
            f"{line!r} is not an instruction" if line else "an empty line has no instruction",
            remedy="Write a mnemonic and its operands: SETADCXX CntSetMask=4, x_end2=15, x_start=0.",
        )
    mnemonic = match["mnemonic"]
    arguments = match["call"] if match["call"] is not None else match["plain"]
    operands = [part.strip() for part in arguments.split(",")] if arguments.strip() else []
    if mnemonic.startswith("."):
        return _directive(mnemonic, operands)
    return _encode_operands(_mnemonic(mnemonic), operands)


@checked
def assemble_program(text: str) -> list[int]:
    """Assemble a program of one instruction a line; empty lines and comments give nothing.

    Raises:
        AssemblyError: as `assemble`, with the line number and the line in front.
    """
    words = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not _strip(line):
            continue
        try:
            words.append(assemble(line))
        except AssemblyError as error:
            raise AssemblyError(f"line {number}: {line.strip()}: {error.message}", remedy=error.remedy) from error
    return words


def disassemble(word: SupportsIndex, *, terse: bool = False) -> str:
    """Canonical text of a word: `assemble` gives the same word back.

    Every operand is named. Set bits that no field covers show as `reserved=`, and a word whose opcode no source defines
    as `.word`. With `terse`, operands that are zero are left out, except those that choose a form.

    Raises:
        AssemblyError: `word` is not a 32-bit value.

    Example:
        >>> disassemble(0x5E803C00)
        'SETADCXX CntSetMask=4, x_end2=15, x_start=0'
    """
    value, terse = _word(word), flag(terse, "terse")
    if BY_OPCODE[value >> 24] is None:
        return f".word 0x{value:08X}"
    decoded = decode(value)
    layout = decoded.form or decoded.instruction
    selectors = decoded.form.selectors if decoded.form else {}
    operands = [
        f"{f.name}={decoded.operands[f.name]:{'d' if f.width <= _DECIMAL_BITS else '#x'}}"
        for f in layout.fields
        if not terse or decoded.operands[f.name] or f.name in selectors
    ]
    if decoded.reserved_bits:
        operands.append(f"reserved=0x{decoded.reserved_bits:06X}")
    return f"{decoded.mnemonic} {', '.join(operands)}".rstrip()


def to_ttinsn(word: SupportsIndex) -> int:
    """The word as a RISC-V instruction stream carries it: rotated left by two bits.

    The two low bits of such a word are the top bits of the opcode. No defined opcode has both set, so a core tells the
    word from its own 32-bit instructions, which end in 0b11.
    """
    value = _word(word)
    return (value << 2 | value >> 30) & 0xFFFFFFFF


def from_ttinsn(word: SupportsIndex) -> int:
    """The instruction word that a RISC-V instruction stream carries as `word`: rotated right by two bits."""
    value = _word(word)
    return (value >> 2 | value << 30) & 0xFFFFFFFF


def _strip(text: str) -> str:
    """`text` without its comments and outer blanks."""
    return _COMMENT.sub("", _INLINE_COMMENT.sub(" ", text)).strip()


def _word(word: SupportsIndex) -> int:
    value = integer(word, "word")
    if not 0 <= value <= 0xFFFFFFFF:
        raise AssemblyError(f"{value:#x} is not a 32-bit word")
    return value


def _mnemonic(text: str) -> str:
    """The table's name for a mnemonic as written; raises `AssemblyError` when there is none."""
    name = text.upper()
    if name in INSTRUCTIONS:
        return name
    stems = [name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)]
    for stem in stems:
        if stem in INSTRUCTIONS:
            return stem
    return instruction(stems[0] if stems else name).mnemonic


def _number(text: str, what: str) -> int:
    if _NUMBER.fullmatch(text):
        try:
            return int(text, 0)
        except ValueError:  # misplaced underscores
            pass
    remedy = "Numbers are decimal, 0x.., 0b.. or 0o..; constants by name and expressions are not known here."
    if re.fullmatch(r"0[0-7]+", text):
        remedy = f"Write 0o{text.lstrip('0') or '0'} for octal, {text.lstrip('0') or '0'} for decimal."
    raise AssemblyError(f"{what} {text!r} is not a number" if text else f"{what} is empty", remedy=remedy)


def _directive(name: str, operands: list[str]) -> int:
    if name not in (".word", ".ttinsn"):
        raise AssemblyError(f"no directive is called {name!r}", remedy="Directives: .word, .ttinsn.")
    if len(operands) != 1:
        raise AssemblyError(f"{name} takes one number, {len(operands)} given")
    word = _word(_number(operands[0], f"{name} operand"))
    return word if name == ".word" else from_ttinsn(word)


def _encode_operands(mnemonic: str, operands: list[str]) -> int:
    in_place: list[int] = []
    named: dict[str, int] = {}
    form: str | None = None
    for position, operand in enumerate(operands, start=1):
        match = _OPERAND.fullmatch(operand)
        name = match["name"] if match else None
        if match is None or name is None:
            if named:
                raise AssemblyError(
                    f"{mnemonic} operand {position} {operand!r} is in place, but follows a named operand",
                    remedy="Give operands in place first, or name all of them.",
                )
            in_place.append(_number(operand, f"{mnemonic} operand {position}"))
        elif name in named or (name == "form" and form is not None):
            raise AssemblyError(f"{mnemonic} operand {name} is given twice")
        elif name == "form":
            form = match["value"].strip()
        else:
            named[name] = _number(match["value"].strip(), f"{mnemonic} operand {name} =")
    reserved = named.pop("reserved", 0)
    return encode(mnemonic, *in_place, form=form, reserved=reserved, **named)
