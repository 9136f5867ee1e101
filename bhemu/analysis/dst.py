"""Which rows of Dst an instruction reads and writes, as blocks of eight physical rows (Y13; rules I.3)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from bhemu.analysis.access import Access, access
from bhemu.isa.registers import config
from bhemu.machine.dst import DST_ROWS, high_row, plain
from bhemu.recording import log as column

Operands = Mapping[str, int]

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
_OUT_FORMAT: Final = config("THCON_SEC0_REG2_Out_data_format")
_TO_DST_CONTEXTS: Final = (
    config("THCON_SEC0_REG2_Unpack_if_sel_cntx0"),
    config("THCON_SEC0_REG2_Unpack_if_sel_cntx4"),
)

BLOCK_ROWS: Final = 8
"""Rows of the aligned 8 x 16 block that the scoreboard watches (Y13)."""
WIDE_FORMATS: Final = frozenset({0, 4, 8})
"""FP32, TF32, INT32: 32 bits in Dst."""


def _physical_blocks(row: int, count: int, wide: bool) -> frozenset[int]:
    """8-row blocks of physical Dst that `count` rows from `row` lie in; a 32-bit row has two halves (rules I.3)."""
    blocks = set()
    for r in {row, row + count - 1, *range(row, row + count, BLOCK_ROWS)}:
        place = r % DST_ROWS
        if not wide:
            blocks.add(place // BLOCK_ROWS)
            continue
        high = plain(high_row)(place) & (DST_ROWS - 1)
        blocks |= {high // BLOCK_ROWS, (high // BLOCK_ROWS + 1) % (DST_ROWS // BLOCK_ROWS)}
    return frozenset(blocks)


ALL_BLOCKS: Final = frozenset(range(DST_ROWS // BLOCK_ROWS))
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
    if name in ("SFPLOAD", "SFPSTORE", "SFPLOADMACRO"):
        mode = o["instr_mod0"]
        both = mode in _WIDE_LOADS or (mode == 0 and bool(_field(alu, _SFPU_FP32)))
        blocks = _physical_blocks((o["dest_reg_addr"] + row) & ~3, 4, both)
        if name == "SFPLOADMACRO":  # its macro may store what it has loaded
            return blocks, blocks
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
        return _physical_blocks(start, 32, False) if start < DST_ROWS else _NOTHING
    start = 16 * (tile + (32 if row & 0x200 else 0))
    return _physical_blocks(start, 16, False) if start < DST_ROWS else _NOTHING


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
    return _physical_blocks(first % DST_ROWS, max(datums // 16, 64), code in WIDE_FORMATS)
