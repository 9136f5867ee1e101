"""Words that are not instructions of the baby cores: their extension, and what to use instead (tile E1)."""

from __future__ import annotations

from typing import Any, Final

from bhemu.errors import BhemuError, UndefinedBehavior, Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord


def _declare(name: str, what: str, remedy: str, rule: str, error: type[BhemuError] = UndefinedBehavior) -> int:
    return fault(f"riscv.{name}", error, f"{{0:#010x}} {what}", remedy=remedy, rule=rule)


NO_INSTRUCTION: Final = _declare(
    "illegal",
    "is not an instruction of the baby cores",
    "compile for RV32IM with Zaamo, Zba and Zbb; or the core has run into data",
    "tile T1",
)
LONG: Final = _declare(
    "long", "would be an instruction of more than 32 bits", "the core has probably run into data", "tile T1"
)
RV64: Final = _declare(
    "rv64", "is an instruction of RV64", "compile for 32 bits: -march=rv32im_zba_zbb -mabi=ilp32", "tile T1"
)
LR_SC: Final = _declare(
    "lr-sc",
    "is lr.w or sc.w: the cores have the AMOs, but no load-reserved and store-conditional",
    "use an AMO (amoswap.w makes a lock); compile with zaamo instead of a, compare-exchange needs a lock",
    "tile T5",
)
AMO_WIDTH: Final = _declare(
    "amo-width",
    "is an atomic operation that the cores do not have: they have those of 32 bits",
    "use a 32-bit AMO",
    "tile T5",
)
DIVIDE: Final = _declare(
    "fdiv",
    "is fdiv.s or fsqrt.s: the cores' floating point has no division and no square root",
    "multiply by a reciprocal, use soft floating point (-march without f), or let the vector unit compute it",
    "tile T6",
)
DOUBLE: Final = _declare(
    "double", "belongs to the D extension, which the cores do not have", "compile without d", "tile T1"
)
QUAD: Final = _declare(
    "quad", "belongs to the Q extension, which the cores do not have", "compile without q", "tile T1"
)
HALF: Final = _declare(
    "half",
    "belongs to Zfh: silicon has half precision in a variant of its own, and bhemu does not have it yet",
    "compile without zfh; compute in FP32",
    "tile T7",
    Unimplemented,
)
VECTOR: Final = _declare(
    "vector",
    "belongs to the V extension, which core T2 alone has in part",
    "compile without v, or run the code on core T2",
    "tile T7",
)
CARRY_LESS: Final = _declare("zbc", "belongs to Zbc, which the cores do not have", "compile without zbc", "tile T3")
SINGLE_BIT: Final = _declare("zbs", "belongs to Zbs, which the cores do not have", "compile without zbs", "tile T3")
BIT_PACKING: Final = _declare(
    "zbkb", "belongs to Zbkb, of which the cores have pack and brev8 only", "compile without zbkb", "tile T3"
)
REVERSALS: Final = _declare(
    "grevi",
    "is a bit reversal other than rev8 and brev8: silicon seems to have it, and bhemu does not",
    "use rev8, brev8 and shifts",
    "tile T3",
    Unimplemented,
)
CONDITIONAL: Final = _declare(
    "zicond", "belongs to Zicond, which the cores do not have", "compile without zicond", "tile T1"
)
SYSTEM: Final = _declare(
    "system",
    "is a SYSTEM instruction other than ecall, ebreak, mret and CSR accesses",
    "the cores have one privilege level and no wfi: poll, or end in a loop",
    "tile T9",
)

_AMO: Final = 0x2F
_LOAD_FP: Final = 0x07
_STORE_FP: Final = 0x27
_VECTOR: Final = 0x57
_OP_FP: Final = 0x53
_OP: Final = 0x33
_OP_IMM: Final = 0x13
_SYSTEM: Final = 0x73
_LOAD: Final = 0x03
_STORE: Final = 0x23


@kernel
def _of_width(funct3: Int) -> Any:
    """Load-fp and store-fp: the extension is in the width."""
    if funct3 == 1:
        return HALF
    if funct3 == 3:
        return DOUBLE
    return QUAD if funct3 == 4 else VECTOR


@kernel
def _of_format(fmt: Int) -> Any:
    if fmt == 1:
        return DOUBLE
    return HALF if fmt == 2 else QUAD


@kernel
def _float(word: Int) -> Any:
    fmt = (word >> 25) & 3
    if fmt != 0:
        return _of_format(fmt)
    function = word >> 27
    if function in (0x03, 0x0B):
        return DIVIDE
    if function == 0x08:  # fcvt.s from another format
        source = (word >> 20) & 31
        if source >= 1 and source <= 3:
            return _of_format(source)
    return NO_INSTRUCTION


@kernel
def _register(word: Int, funct3: Int, funct7: Int) -> Any:
    if funct7 == 0x05 and funct3 < 4:
        return CARRY_LESS
    if funct7 in (0x14, 0x24, 0x34):
        return SINGLE_BIT
    if funct7 == 0x04:
        return BIT_PACKING
    return CONDITIONAL if funct7 == 0x07 else NO_INSTRUCTION


@kernel
def _immediate(word: Int, funct3: Int, funct7: Int) -> Any:
    if funct3 == 5 and funct7 == 0x34:
        return REVERSALS
    if funct7 in (0x14, 0x24, 0x34):
        return SINGLE_BIT
    if funct7 == 0x04:
        return BIT_PACKING
    return RV64 if funct7 & 1 else NO_INSTRUCTION  # a shift by 32 or more


@kernel
def what_it_is(word: Int) -> Any:
    """The fault of a word that is not an instruction of the cores."""
    opcode = word & 0x7F
    funct3 = (word >> 12) & 7
    funct7 = word >> 25
    if opcode & 0x1F == 0x1F:
        return LONG
    if opcode == _AMO:
        return LR_SC if funct3 == 2 and (word >> 27) in (2, 3) else AMO_WIDTH
    if opcode in (_LOAD_FP, _STORE_FP):
        return _of_width(funct3)
    if opcode == _VECTOR:
        return VECTOR
    if opcode in (0x43, 0x47, 0x4B, 0x4F):
        return _of_format((word >> 25) & 3)
    if opcode == _OP_FP:
        return _float(word)
    if opcode == _OP:
        return _register(word, funct3, funct7)
    if opcode == _OP_IMM:
        return _immediate(word, funct3, funct7)
    if opcode == _SYSTEM:
        return SYSTEM
    if opcode in (0x1B, 0x3B) or (opcode == _LOAD and funct3 in (3, 6)) or (opcode == _STORE and funct3 == 3):
        return RV64
    return NO_INSTRUCTION


@kernel
def is_vector(word: Int) -> Bool:
    """True for a word of the vector extension."""
    opcode, width = word & 0x7F, (word >> 12) & 7
    return opcode == _VECTOR or (opcode in (_LOAD_FP, _STORE_FP) and (width == 0 or width >= 5))


@kernel
def refuse_word(t: TileRecord, word: Int) -> Int:
    """Refuse a word that is not an instruction of the cores."""
    return refuse(t, what_it_is(word), word)
