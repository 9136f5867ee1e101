"""What each instruction reads and writes: GPRs, config words, source banks, LRegs, and blocks of Dst.

`access(word)` holds what the word alone decides; `dst_blocks` adds the Dst rows, which depend on counters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bhemu.debug import log as column
from bhemu.isa.instructions import decode
from bhemu.isa.registers import FIRST_SHARED_WORD, config, thread
from bhemu.machine.config_access import UNITS_OF_WORD, UNPACK0_BIT, UNPACK1_BIT

Operands = Mapping[str, int]

STATE_ID: Final = thread("CFG_STATE_ID_StateID")[0]
_FP32: Final = config("ALU_ACC_CTRL_Fp32_enabled")
_INT8: Final = config("ALU_ACC_CTRL_INT8_math_enabled")
_SFPU_FP32: Final = config("ALU_ACC_CTRL_SFPU_Fp32_enabled")
_READ_32B: Final = config("PCK_DEST_RD_CTRL_Read_32b_data")
_IN_FORMAT: Final = config("THCON_SEC0_REG1_In_data_format")
_PACK_OFFSET: Final = config("DEST_TARGET_REG_CFG_PACK_SEC0_Offset")
_Y: Final = config("PCK0_ADDR_CTRL_XY_REG_0_Ystride")
_Z: Final = config("PCK0_ADDR_CTRL_ZW_REG_0_Zstride")
_W: Final = config("PCK0_ADDR_CTRL_ZW_REG_0_Wstride")
_X: Final = config("PCK0_ADDR_CTRL_XY_REG_0_Xstride")
_TO_DST: Final = config("THCON_SEC0_REG2_Unpack_If_Sel")
_TO_DST_CONTEXTS: Final = (
    config("THCON_SEC0_REG2_Unpack_if_sel_cntx0"),
    config("THCON_SEC0_REG2_Unpack_if_sel_cntx4"),
)
_OUT_FORMAT: Final = config("THCON_SEC0_REG2_Out_data_format")

ROWS: Final = 1024
BLOCK_ROWS: Final = 8
"""Rows of the aligned 8 x 16 block that the scoreboard watches (Y13)."""
WIDE_FORMATS: Final = frozenset({0, 4, 8})
"""FP32, TF32, INT32: 32 bits in Dst."""

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


# --- Dst --------------------------------------------------------------------------------------------------------------


def _physical_blocks(row: int, count: int, wide: bool) -> frozenset[int]:
    """8-row blocks of physical Dst that `count` rows from `row` lie in; a 32-bit row has two halves (rules I.3)."""
    blocks = set()
    for r in {row, row + count - 1, *range(row, row + count, BLOCK_ROWS)}:
        place = r % ROWS
        if not wide:
            blocks.add(place // BLOCK_ROWS)
            continue
        high = ((place & 0x1F8) << 1 | place & 7 | place & 0x200) & (ROWS - 1)
        blocks |= {high // BLOCK_ROWS, (high // BLOCK_ROWS + 1) % (ROWS // BLOCK_ROWS)}
    return frozenset(blocks)


ALL_BLOCKS: Final = frozenset(range(ROWS // BLOCK_ROWS))
_NOTHING: Final[frozenset[int]] = frozenset()


def _field(word: int, place: tuple[int, int, int]) -> int:
    return word >> place[1] & place[2]


_ROWS_WRITTEN: Final = {
    **dict.fromkeys(("MVMUL", "DOTPV", "ELWMUL", "ELWADD", "ELWSUB"), 8),
    **dict.fromkeys(("GAPOOL", "GMPOOL"), 4),
}
ACCUMULATING: Final = frozenset({"MVMUL", "DOTPV", "ELWMUL", "GAPOOL", "GMPOOL"})
"""They read the rows that they write; ELWADD and ELWSUB do with dest_accum_en."""
_MOVB2D_ROWS: Final = {2: 8, 3: 8, 4: 4, 5: 4, 6: 8, 7: 8}
_WIDE_LOADS: Final = frozenset({3, 4, 12, 13, 14})
"""Modes of SFPLOAD and SFPSTORE that look at 32-bit rows (V8)."""


def accumulates(found: Access) -> bool:
    """Whether the instruction adds to what stands in Dst."""
    return found.mnemonic in ACCUMULATING or bool(found.operands.get("dest_accum_en"))


def dst_blocks(found: Access, row: Any) -> tuple[frozenset[int], frozenset[int]]:
    """(blocks read, blocks written) of Dst, as 8-row blocks of physical rows."""
    return _dst_blocks(found.mnemonic, int(row[column.WORD]), tuple(int(v) for v in row[column.DST :]))


@functools.lru_cache(maxsize=1 << 16)
def _dst_blocks(name: str, word: int, state: tuple[int, ...]) -> tuple[frozenset[int], frozenset[int]]:
    o = access(word).operands
    row, alu = state[0], state[column.ALU - column.DST]
    wide = bool(_field(alu, _FP32) or _field(alu, _INT8))
    if name in _ROWS_WRITTEN:
        blocks = _physical_blocks(o["dst"] + row & ~3, _ROWS_WRITTEN[name], wide)
        return (blocks if accumulates(access(word)) else _NOTHING), blocks
    if name in ("MOVA2D", "MOVDBGA2D"):
        count = 8 if o["instr_mod"] & 2 else 1
        return _NOTHING, _physical_blocks(o["dst"] + row, count, wide)
    if name in ("MOVB2D", "MOVDBGB2D"):
        return _NOTHING, _physical_blocks(o["dst"] + row, _MOVB2D_ROWS.get(o["movb2d_instr_mod"], 1), wide)
    if name in ("MOVD2A", "MOVD2B"):
        return _physical_blocks(o["dst"] + row, 4 if o["instr_mod"] & 2 else 1, wide), _NOTHING
    if name == "ZEROACC":
        return _NOTHING, _zeroacc(o, row, wide)
    if name in ("SFPLOAD", "SFPSTORE"):
        mode = o["instr_mod0"]
        both = mode in _WIDE_LOADS or (mode == 0 and bool(_field(alu, _SFPU_FP32)))
        blocks = _physical_blocks((o["dest_reg_addr"] + row) & ~3, 4, both)
        return (blocks, _NOTHING) if name == "SFPLOAD" else (_NOTHING, blocks)
    if name == "PACR":
        return _pacr(o, state), _NOTHING
    if name == "UNPACR":
        return _NOTHING, _unpacr(o, state)
    return _NOTHING, _NOTHING


def _zeroacc(o: Operands, row: int, wide: bool) -> frozenset[int]:
    """F26. A tile may also be counted from the other half; both are taken then."""
    where, mode = o["where"], o["clear_mode"]
    if mode == 3:
        return ALL_BLOCKS
    if mode == 2:
        return frozenset(range(64 * (where & 1), 64 * (where & 1) + 64))
    if mode == 0:
        return _physical_blocks(where + row, 1, wide)
    tile = where & 0xFF
    if o["use_32_bit_mode"]:
        start = 32 * (tile + (16 if row & 0x300 else 0))
        return _physical_blocks(start, 32, False) if start < ROWS else _NOTHING
    start = 16 * (tile + (32 if row & 0x200 else 0))
    return _physical_blocks(start, 16, False) if start < ROWS else _NOTHING


def _pacr(o: Operands, state: tuple[int, ...]) -> frozenset[int]:
    """Rows that a PACR reads (P2, P4)."""
    if o["ZeroWrite"] or o["Flush"]:
        return _NOTHING
    at = {name: state[name - column.DST] for name in range(column.PACK_X, column.COLUMNS)}
    x = at[column.PACK_X] & 0xFFFFFFFF
    y, z, w = (at[column.PACK_YZW] >> 16 * i & 0xFFFF for i in range(3))
    address = at[column.PACK_FORMAT] >> 32
    address += x * (_field(at[column.PACK_XY], _X) & 15) + y * _field(at[column.PACK_XY], _Y)
    address += z * _field(at[column.PACK_ZW], _Z) + w * _field(at[column.PACK_ZW], _W)
    code = _field(at[column.PACK_FORMAT] & 0xFFFFFFFF, _IN_FORMAT)
    size = {0: 4, 1: 2}.get(code & 3, 1)  # the width class of the format (P4)
    offset = _field(at[column.PACK_DST] & 0xFFFFFFFF, _PACK_OFFSET)
    first = address // size // 16 + offset
    mask = o["ReadIntfSel"] or 0xF
    spread = 16 if o["DstAccessMode"] else 1
    count = mask.bit_length() * spread
    return _physical_blocks(first, count, bool(_field(at[column.PACK_DST] >> 32, _READ_32B)))


def writes_dst(row: Any, o: Operands) -> bool:
    """Whether an UNPACR of unpacker 0 goes to Dst (U10)."""
    if o["Unpack_block_selection"]:
        return False
    context = int(row[column.UNPACK_DEST]) >> 32
    if not o["OvrdThreadId"]:
        return bool(_field(int(row[column.UNPACK_REG2]), _TO_DST))
    place = _TO_DST_CONTEXTS[context >> 2]
    return bool(int(row[column.UNPACK_REG2_NEXT]) >> (place[1] + (context & 3)) & 1)


def _unpacr(o: Operands, state: tuple[int, ...]) -> frozenset[int]:
    row = (0,) * column.DST + state
    if not writes_dst(row, o):
        return _NOTHING
    code = _field(state[column.UNPACK_REG2 - column.DST], _OUT_FORMAT)
    first = (state[column.UNPACK_DEST - column.DST] & 0xFFFF) // 16 - 4
    x = state[column.UNPACK_X - column.DST]
    datums = (x >> 32) - (x & 0xFFFFFFFF) + 1
    # Channel 1 may add Y, Z and W strides to the address, so the tile around it is meant (U8).
    return _physical_blocks(first % ROWS, max(datums // 16, 64), code in WIDE_FORMATS)
