"""A tiny RISC-V assembler for tests, made of the rows of bhemu/isa/riscv.py: no compiler is needed.

    start:  li t0, 0x20000          # comments start with # or //
            la a0, table            # or `li a0, table`: two words, always
            lw a1, 4(a0)
            csrrs zero, 0x7c0, a1
            .ttinsn 0x02000000      # a Tensix word; the assembler rotates it
            bnez t0, start
    table:  .word 1, 2, start       # .word, .half, .byte, .zero N, .align BYTES

Every mnemonic of the table, and nop, li, la, mv, not, neg, seqz, snez, j, jr, ret, call, beqz, bnez, bltz, bgez, blez,
bgtz, bgt, ble, bgtu, bleu, csrr, csrw, fmv.s, fneg.s, fabs.s. Arithmetic of the F extension takes the rounding mode of
the register (7) unless a number is given as a last operand. Expressions are Python's, over labels.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from bhemu.isa.riscv import FLOAT_NAMES, REGISTER_NAMES, RISCV_BY_NAME

X = {name: i for i, name in enumerate(REGISTER_NAMES)} | {f"x{i}": i for i in range(32)} | {"fp": 8}
F = {name: i for i, name in enumerate(FLOAT_NAMES)} | {f"f{i}": i for i in range(32)}
_ADDRESS = re.compile(r"(?P<offset>.*)\((?P<base>\w+)\)")
_LABEL = re.compile(r"\s*([A-Za-z_]\w*):")
_COMMENT = re.compile(r"(#|//).*")
_DYNAMIC = 7

# What an alias becomes; operands by number
_ALIASES = {
    "nop": ["addi zero, zero, 0"],
    "mv": ["addi {0}, {1}, 0"],
    "not": ["xori {0}, {1}, -1"],
    "neg": ["sub {0}, zero, {1}"],
    "seqz": ["sltiu {0}, {1}, 1"],
    "snez": ["sltu {0}, zero, {1}"],
    "zext.h": ["pack {0}, {1}, zero"],
    "j": ["jal zero, {0}"],
    "call": ["jal ra, {0}"],
    "jr": ["jalr zero, 0({0})"],
    "ret": ["jalr zero, 0(ra)"],
    "beqz": ["beq {0}, zero, {1}"],
    "bnez": ["bne {0}, zero, {1}"],
    "bltz": ["blt {0}, zero, {1}"],
    "bgez": ["bge {0}, zero, {1}"],
    "blez": ["bge zero, {0}, {1}"],
    "bgtz": ["blt zero, {0}, {1}"],
    "bgt": ["blt {1}, {0}, {2}"],
    "ble": ["bge {1}, {0}, {2}"],
    "bgtu": ["bltu {1}, {0}, {2}"],
    "bleu": ["bgeu {1}, {0}, {2}"],
    "csrr": ["csrrs {0}, {1}, zero"],
    "csrw": ["csrrw zero, {0}, {1}"],
    "fmv.s": ["fsgnj.s {0}, {1}, {1}"],
    "fneg.s": ["fsgnjn.s {0}, {1}, {1}"],
    "fabs.s": ["fsgnjx.s {0}, {1}, {1}"],
}

Evaluate = Callable[[str], int]


class AsmError(ValueError):
    """A line of a test's program that is wrong."""


def _field(value: int, bits: int, shift: int, what: str) -> int:
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise AsmError(f"{what} {value} does not fit {bits} bits")
    return (value & ((1 << bits) - 1)) << shift


def _signed(value: int, bits: int, what: str) -> int:
    """A signed immediate; numbers above 2**31 are negative 32-bit numbers."""
    if value >= 1 << 31:
        value -= 1 << 32
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise AsmError(f"{what} {value} does not fit {bits} bits")
    return value


def branch_bits(distance: int) -> int:
    """Immediate field of a branch."""
    value = _signed(distance, 13, "branch distance")
    return (value >> 12 & 1) << 31 | (value >> 5 & 0x3F) << 25 | (value >> 1 & 0xF) << 8 | (value >> 11 & 1) << 7


def jump_bits(distance: int) -> int:
    """Immediate field of jal."""
    value = _signed(distance, 21, "jump distance")
    return (value >> 20 & 1) << 31 | (value >> 1 & 0x3FF) << 21 | (value >> 11 & 1) << 20 | (value >> 12 & 0xFF) << 12


def _base(operand: str, evaluate: Evaluate) -> tuple[int, int]:
    match = _ADDRESS.fullmatch(operand)
    if match is None:
        raise AsmError(f"{operand!r} is not an address such as 4(a0)")
    return (evaluate(match["offset"]) if match["offset"].strip() else 0), X[match["base"]]


def encode(name: str, operands: list[str], pc: int, evaluate: Evaluate) -> int:
    """The word of one instruction of the table at `pc`."""
    row = RISCV_BY_NAME[name]
    word, layout = row.match, row.layout
    if layout == "J" and len(operands) == 1:
        operands = ["ra", *operands]
    if layout == "U":
        return word | X[operands[0]] << 7 | _field(evaluate(operands[1]), 20, 12, "upper immediate")
    if layout == "J":
        return word | X[operands[0]] << 7 | jump_bits(evaluate(operands[1]) - pc)
    if layout == "B":
        return word | X[operands[0]] << 15 | X[operands[1]] << 20 | branch_bits(evaluate(operands[2]) - pc)
    if layout in ("jalr", "load", "fload"):
        offset, base = _base(operands[1], evaluate)
        rd = (F if layout == "fload" else X)[operands[0]]
        return word | rd << 7 | base << 15 | (_signed(offset, 12, "offset") & 0xFFF) << 20
    if layout in ("S", "fstore"):
        offset, base = _base(operands[1], evaluate)
        rs2 = (F if layout == "fstore" else X)[operands[0]]
        value = _signed(offset, 12, "offset") & 0xFFF
        return word | base << 15 | rs2 << 20 | (value >> 5) << 25 | (value & 31) << 7
    if layout == "I":
        value = _signed(evaluate(operands[2]), 12, "immediate")
        return word | X[operands[0]] << 7 | X[operands[1]] << 15 | (value & 0xFFF) << 20
    if layout == "shift":
        amount = evaluate(operands[2])
        if not 0 <= amount < 32:
            raise AsmError(f"shift by {amount}")
        return word | X[operands[0]] << 7 | X[operands[1]] << 15 | amount << 20
    if layout == "amo":
        _, base = _base(operands[2], evaluate)
        return word | X[operands[0]] << 7 | X[operands[1]] << 20 | base << 15
    if layout in ("csr", "csri"):
        source = evaluate(operands[2]) if layout == "csri" else X[operands[2]]
        return word | X[operands[0]] << 7 | source << 15 | evaluate(operands[1]) << 20
    if layout == "fence":
        return word | (evaluate(operands[0]) << 20 if operands else 0)
    if layout == "none":
        return word
    # Registers only: which file each operand is of
    files = {
        "R": (X, X, X),
        "unary": (X, X),
        "R4": (F, F, F, F),
        "FR": (F, F, F),
        "FR3": (F, F, F),
        "Fcmp": (X, F, F),
        "F2X": (X, F),
        "F2Xm": (X, F),
        "X2F": (F, X),
        "X2Fm": (F, X),
    }[layout]
    for file, operand, shift in zip(files, operands, (7, 15, 20, 27), strict=False):
        word |= file[operand] << shift
    if layout in ("R4", "FR", "F2X", "X2F"):
        word |= (evaluate(operands[len(files)]) if len(operands) > len(files) else _DYNAMIC) << 12
    return word


def _is_number(text: str) -> bool:
    try:
        eval(text, {"__builtins__": {}})
    except NameError:
        return False
    return True


def _load_immediate(register: str, value: int) -> list[str]:
    value &= 0xFFFFFFFF
    low = ((value & 0xFFF) ^ 0x800) - 0x800
    upper = (value - low) >> 12 & 0xFFFFF
    if upper == 0:
        return [f"addi {register}, zero, {low}"]
    return [f"lui {register}, {upper:#x}"] + ([f"addi {register}, {register}, {low}"] if low else [])


def _expand(line: str) -> list[str]:
    """Real instructions and directives of one line; labels stay names."""
    name, _, rest = line.partition(" ")
    operands = [part.strip() for part in rest.split(",")] if rest.strip() else []
    if name in ("li", "la"):
        register, value = operands
        if _is_number(value):
            return _load_immediate(register, int(eval(value, {"__builtins__": {}})))
        # The low half is signed, so the upper one is rounded.
        return [
            f"lui {register}, ((({value}) + 0x800) >> 12) & 0xfffff",
            f"addi {register}, {register}, (({value}) & 0xfff ^ 0x800) - 0x800",
        ]
    if name in _ALIASES:
        return [text.format(*operands) for text in _ALIASES[name]]
    return [line]


def _size(line: str, pc: int) -> int:
    name, _, rest = line.partition(" ")
    if name == ".zero":
        return int(rest, 0)
    if name == ".align":
        return -pc % int(rest, 0)
    width = {".word": 4, ".half": 2, ".byte": 1}.get(name)
    return width * (rest.count(",") + 1) if width else 4


def _content(line: str, pc: int, evaluate: Evaluate) -> bytes:
    name, _, rest = line.partition(" ")
    operands = [part.strip() for part in rest.split(",")] if rest.strip() else []
    if name in (".zero", ".align"):
        return bytes(_size(line, pc))
    if name in (".word", ".half", ".byte"):
        width = {".word": 4, ".half": 2, ".byte": 1}[name]
        return b"".join((evaluate(x) & ((1 << 8 * width) - 1)).to_bytes(width, "little") for x in operands)
    if name == ".ttinsn":
        word = evaluate(operands[0])
        return struct.pack("<I", (word << 2 | word >> 30) & 0xFFFFFFFF)
    return struct.pack("<I", encode(name, operands, pc, evaluate))


def assemble_with_labels(text: str, base: int = 0) -> tuple[bytes, dict[str, int]]:
    """The bytes of a program that lies at address `base`, and the addresses of its labels."""
    placed: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    pc = base
    for raw in text.splitlines():
        line = _COMMENT.sub("", raw)
        while (match := _LABEL.match(line)) is not None:
            labels[match[1]] = pc
            line = line[match.end() :]
        line = " ".join(line.split())
        if line:
            for real in _expand(line):
                placed.append((pc, real))
                pc += _size(real, pc)

    def evaluate(expression: str) -> int:
        return int(eval(expression, {"__builtins__": {}}, labels))

    content = bytearray()
    for place, line in placed:
        try:
            content += _content(line, place, evaluate)
        except (KeyError, IndexError, NameError, SyntaxError) as error:
            raise AsmError(f"{line!r}: {error!r}") from error
    return bytes(content), labels


def assemble(text: str, base: int = 0) -> bytes:
    """The bytes of a program that lies at address `base`."""
    return assemble_with_labels(text, base)[0]
