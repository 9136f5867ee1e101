"""What each instruction reads and writes: GPRs, config words, source banks, LRegs, and blocks of Dst.

`access(word)` holds what the word alone decides; `dst_blocks` adds the Dst rows, which depend on counters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bhemu.isa.instructions import decode
from bhemu.isa.registers import FIRST_SHARED_WORD, config, thread
from bhemu.machine.config_access import UNITS_OF_WORD, UNPACK0_BIT, UNPACK1_BIT
from bhemu.recording import log as column

Operands = Mapping[str, int]

STATE_ID: Final = thread("CFG_STATE_ID_StateID")[0]

SRCA: Final = 0
SRCB: Final = 1


@dataclass(frozen=True, slots=True)
class Access:
    """What a word decides by itself.

    Attributes:
        mnemonic, unit: of the instruction table.
        operands: decoded fields.
        gpr_reads, gpr_writes: own GPRs; the writes are done when the scalar unit is.
        gpr_later: GPRs whose value arrives after the instruction (LOADIND and others, I.11).
        gpr_config: GPR that RDCFG writes, at the end of the configuration unit's pipeline.
        config_writes: Config words.
        lreg_reads: LRegs read in the normal way, where the hardware stalls for a two-cycle result.
        lreg_hidden: LRegs read in a way that the hardware does not see (Y14).
        lreg_writes: LRegs written.
        needs: source files whose bank the instruction waits for (F30, U1).
        touches: source files of the matrix unit's banks that are read or written without that wait (F21, F23, F27).
        hands_over: source files given to the other side.
    """

    mnemonic: str
    unit: str
    operands: Operands
    gpr_reads: frozenset[int] = frozenset()
    gpr_writes: frozenset[int] = frozenset()
    gpr_later: frozenset[int] = frozenset()
    gpr_config: int | None = None
    config_writes: frozenset[int] = frozenset()
    lreg_reads: frozenset[int] = frozenset()
    lreg_hidden: frozenset[int] = frozenset()
    lreg_writes: frozenset[int] = frozenset()
    needs: frozenset[int] = frozenset()
    touches: frozenset[int] = frozenset()
    hands_over: frozenset[int] = frozenset()


def _four(register: int) -> frozenset[int]:
    return frozenset(range(register & 0x3C, (register & 0x3C) + 4))


def _one(register: int) -> frozenset[int]:
    return frozenset((register & 0x3F,))


# --- scalar and configuration unit (I.11) -----------------------------------------------------------------------------


def _setdmareg(o: Operands) -> dict[str, Any]:
    if o["SetSignalsMode"] and o["ResultSize"] >= 2:
        return {"gpr_writes": _four(o["RegIndex16b"] >> 1)}
    return {"gpr_writes": _one(o["RegIndex16b"] >> 1)}


def _arithmetic(o: Operands) -> dict[str, Any]:
    reads = _one(o["OpARegIndex"])
    if not o["OpBisConst"]:
        reads |= _one(o["OpBRegIndex"])
    return {"gpr_reads": reads, "gpr_writes": _one(o["ResultRegIndex"])}


def _address(o: Operands) -> dict[str, Any]:
    offset = _one(o["OffsetIndex"] >> 1)
    return {"gpr_reads": _one(o["AddrRegIndex"]) | offset, "gpr_writes": offset if o["AutoIncSpec"] else frozenset()}


def _loadind(o: Operands) -> dict[str, Any]:
    later = _one(o["DataRegIndex"]) if o["SizeSel"] else _four(o["DataRegIndex"])
    return _address(o) | {"gpr_later": later}


def _storeind(o: Operands) -> dict[str, Any]:
    sets = _address(o)
    data = _one(o["DataRegIndex"])
    if o["MemHierSel"]:
        if o["Size"] == 0:
            data = _four(o["DataRegIndex"])
    elif "StoreToSrcB" in o:
        data = frozenset((o["DataRegIndex"] & 0x3C, o["DataRegIndex"] & 0x3C | 1))
    sets["gpr_reads"] |= data
    return sets


def _atomic_add(o: Operands) -> dict[str, Any]:
    return {
        "gpr_reads": _one(o["AddrRegIndex"]) | _one(o["DataRegIndex"]),
        "gpr_later": _one(o["DataRegIndex"]),
    }


def _atswap(o: Operands) -> dict[str, Any]:
    data = _one(o["DataRegIndex"]) if o["SingleDataReg"] else _four(o["DataRegIndex"])
    return {"gpr_reads": _one(o["AddrRegIndex"]) | data}


def _wrcfg(o: Operands) -> dict[str, Any]:
    if not o["wr128b"]:
        return {"gpr_reads": _one(o["GprAddress"]), "config_writes": frozenset((o["CfgReg"],))}
    first = o["CfgReg"] & ~3
    return {"gpr_reads": _four(o["GprAddress"]), "config_writes": frozenset(range(first, first + 4))}


_SCALAR: Final[dict[str, Callable[[Operands], dict[str, Any]]]] = {
    "SETDMAREG": _setdmareg,
    **dict.fromkeys(
        ("ADDDMAREG", "SUBDMAREG", "MULDMAREG", "BITWOPDMAREG", "SHIFTDMAREG", "CMPDMAREG"),
        _arithmetic,
    ),
    "LOADIND": _loadind,
    "STOREIND": _storeind,
    "LOADREG": lambda o: {"gpr_later": _one(o["TdmaDataRegIndex"])},
    "STOREREG": lambda o: {"gpr_reads": _one(o["TdmaDataRegIndex"])},
    "ATINCGET": _atomic_add,
    "ATINCGETPTR": lambda o: {"gpr_reads": _one(o["AddrRegIndex"]), "gpr_later": _one(o["DataRegIndex"])},
    "ATSWAP": _atswap,
    "ATCAS": lambda o: {"gpr_reads": _one(o["AddrRegIndex"])},
    "REG2FLOP": lambda o: {"gpr_reads": _one(o["RegIndex"])},
    "WRCFG": _wrcfg,
    "RDCFG": lambda o: {"gpr_config": o["GprAddress"] & 0x3F},
    **dict.fromkeys(
        ("RMWCIB0", "RMWCIB1", "RMWCIB2", "RMWCIB3"), lambda o: {"config_writes": frozenset((o["CfgRegAddr"],))}
    ),
    "CFGSHIFTMASK": lambda o: {"config_writes": frozenset((o["CfgReg"],))},
    "STREAMWRCFG": lambda o: {"config_writes": frozenset((o["CfgReg"],))},
}

# --- source banks (F21, F28 to F30, U1, U11) --------------------------------------------------------------------------

_A: Final = frozenset((SRCA,))
_B: Final = frozenset((SRCB,))
_BOTH: Final = frozenset((SRCA, SRCB))
_NEEDS: Final[dict[str, frozenset[int]]] = {
    **dict.fromkeys(("MOVA2D", "SHIFTXA"), _A),
    **dict.fromkeys(("MOVB2D", "MOVB2A", "TRNSPSRCB", "SHIFTXB"), _B),
    **dict.fromkeys(("MVMUL", "DOTPV", "GAPOOL", "GMPOOL", "ELWMUL", "ELWADD", "ELWSUB"), _BOTH),
}
_TOUCHES: Final[dict[str, frozenset[int]]] = {
    "MOVD2A": _A,
    "MOVB2A": _A,
    "MOVDBGA2D": _A,
    "MOVD2B": _B,
    "MOVDBGB2D": _B,
}


def _files(mask: int) -> frozenset[int]:
    return frozenset(file for file in (SRCA, SRCB) if mask >> file & 1)


def _banks(mnemonic: str, o: Operands) -> dict[str, Any]:
    given = next((o[name] for name in ("clear_dvalid", "clear_ab_vld", "cleardvalid") if name in o), 0)
    if mnemonic == "SETDVALID":
        given = o["setvalid"]
    elif mnemonic == "UNPACR":
        given = o["SetDatValid"] << o["Unpack_block_selection"]
    elif mnemonic == "UNPACR_NOP":
        given = o["Set_Dvalid"] << o["Unpacker_Select"]
    return {
        "needs": _NEEDS.get(mnemonic, frozenset()),
        "touches": _TOUCHES.get(mnemonic, frozenset()),
        "hands_over": _files(given),
    }


# --- vector unit (Y12, Y14) -------------------------------------------------------------------------------------------

TWO_CYCLES: Final = frozenset(
    {"SFPMAD", "SFPADD", "SFPMUL", "SFPMULI", "SFPADDI", "SFPLUT", "SFPLUTFP32", "SFPMUL24", "SFPSWAP"}
)
_THREE_SOURCES: Final = frozenset({"SFPMAD", "SFPADD", "SFPMUL", "SFPMUL24"})
_DEST_IS_SOURCE: Final = frozenset({"SFPMULI", "SFPADDI", "SFPSETEXP", "SFPSETMAN", "SFPSETSGN", "SFPXOR"})


def is_slow_shift(mnemonic: str, o: Operands) -> bool:
    """SFPSHFT2 in the modes that take two cycles (Y12)."""
    return mnemonic == "SFPSHFT2" and o["instr_mod1"] in (2, 3, 4)


def _vector(mnemonic: str, o: Operands) -> dict[str, Any]:
    reads: set[int] = set()
    hidden: set[int] = set()
    writes: set[int] = set()
    dest = o.get("lreg_dest")
    source = o.get("lreg_c", o.get("lreg_src_c"))
    if mnemonic in ("SFPLOAD", "SFPLOADI"):
        writes.add(o["lreg_ind"])
    elif mnemonic == "SFPSTORE":
        reads.add(o["lreg_ind"])
    elif mnemonic in _THREE_SOURCES:
        reads |= {o["lreg_src_a"], o["lreg_src_b"], o["lreg_src_c"]}
    elif mnemonic in ("SFPLUT", "SFPLUTFP32"):
        reads |= {0, 1, 2, 3} | ({4, 5, 6} if mnemonic == "SFPLUTFP32" else set())
        dest = o.get("lreg_ind", dest)
    elif mnemonic == "SFPCONFIG":
        dest = None
        if not o["instr_mod1"] & 1:
            hidden.add(0)
    elif mnemonic == "SFPSWAP":
        assert dest is not None
        assert source is not None
        hidden |= {dest, source}
        writes |= {dest, source}
    elif mnemonic == "SFPSHFT2":
        if o["instr_mod1"] >= 2:
            hidden.add(o["lreg_src_c"])
        else:
            reads |= {0, 1, 2, 3}
            writes |= {0, 1, 2, 3}
    elif mnemonic == "SFPTRANSP":
        reads |= set(range(8))
        writes |= set(range(8))
        dest = None
    elif source is not None:
        reads.add(source)
        assert dest is not None
        if mnemonic in ("SFPIADD", "SFPSHFT"):
            hidden.add(dest)
        elif mnemonic in ("SFPAND", "SFPOR"):
            # With modifier 1 the second operand is a register of its own, in the immediate's place.
            (hidden.add(o["imm12_math"] & 15) if o["instr_mod1"] & 1 else reads.add(dest))
        elif mnemonic in _DEST_IS_SOURCE:
            reads.add(dest)
    if dest is not None and mnemonic not in ("SFPSTORE", "SFPSETCC", "SFPENCC", "SFPCOMPC", "SFPPUSHC", "SFPPOPC"):
        writes.add(dest)
    if mnemonic in ("SFPMULI", "SFPADDI"):
        reads.add(o["lreg_dest"])
    if mnemonic == "SFP_STOCH_RND":
        reads |= {o["lreg_src_b"], o["lreg_src_c"]}
    return {
        "lreg_reads": frozenset(reads),
        "lreg_hidden": frozenset(hidden),
        "lreg_writes": frozenset(r for r in writes if r < 8),
    }


@functools.cache
def access(word: int) -> Access:
    """What the word reads and writes, Dst excepted."""
    decoded = decode(word)
    name, o = decoded.mnemonic, decoded.operands
    sets: dict[str, Any] = {}
    if name in _SCALAR:
        sets = _SCALAR[name](o)
    elif decoded.instruction.unit == "vector":
        sets = _vector(name, o)
    elif decoded.instruction.unit in ("matrix", "unpack", "misc"):
        sets = _banks(name, o)
    return replace(Access(name, decoded.instruction.unit, o), **sets)


# --- configuration that an instruction consumes -----------------------------------------------------------------------

_BASES: Final = ((76, 124), (92, 140))
"""First word of the base addresses and of the offsets, by unpacker; context c stands c words further (U3)."""
_ALU_WORDS: Final = frozenset({0, 1, 2, config("DEST_ACCESS_CFG_remap_addrs")[0]})
_NO_CONFIG: Final = frozenset(
    {"SETRWC", "INCRWC", "CLEARDVALID", "GATESRCRST", "CLREXPHIST", "SFPNOP", "SFPENCC", "SFPPUSHC", "SFPPOPC"}
)


def _words_of_unpacker(unpacker: int) -> frozenset[int]:
    bit = UNPACK1_BIT if unpacker else UNPACK0_BIT
    words = {word for word in range(FIRST_SHARED_WORD) if UNITS_OF_WORD[word] & bit}
    for first in _BASES:
        words -= set(range(first[unpacker], first[unpacker] + 8))
    return frozenset(words | {0, 1})


_UNPACKER_WORDS: Final = (_words_of_unpacker(0), _words_of_unpacker(1))
PACKER_WORDS: Final = frozenset(
    {*range(1, 3), *range(12, 40), *range(68, 72), *range(96, 104), *range(116, 120), *range(144, 152)}
    | {*range(180, 184), config("DEST_ACCESS_CFG_remap_addrs")[0]}
)
"""Config words that a PACR looks at (rules I.9); some belong to another context of the packer."""


def consumed_words(found: Access, row: Any) -> frozenset[int]:
    """Config words that an instruction outside of the configuration unit looks at.

    Args:
        found: of the word.
        row: its row of the log, for the context of an UNPACR.
    """
    if found.mnemonic == "UNPACR":
        unpacker = found.operands["Unpack_block_selection"]
        context = int(row[column.UNPACK_DEST]) >> 32
        own = {first[unpacker] + (context & 3) for first in _BASES}
        if context > 3:
            own.add(_BASES[0][unpacker] + context)
        return _UNPACKER_WORDS[unpacker] | own
    if found.mnemonic == "UNPACR_NOP":
        return _UNPACKER_WORDS[found.operands["Unpacker_Select"]]
    if found.unit == "pack":
        return PACKER_WORDS
    if found.unit in ("matrix", "vector") and found.mnemonic not in _NO_CONFIG:
        return _ALU_WORDS
    return frozenset()
