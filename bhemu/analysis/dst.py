"""Which rows of Dst an instruction reads and writes, as blocks of eight physical rows (Y13; rules I.3).

The table of roles says how many rows an instruction means and from which operand; here the counters are added. Rows
that depend on more state have a function each, which the table names (`BY`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from bhemu.analysis.access import Access, Places, access
from bhemu.isa.registers import config
from bhemu.isa.roles import Role
from bhemu.isa.timing import FACTS
from bhemu.machine.dst import DST_ROWS, high_row
from bhemu.machine.kernel import plain
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

BLOCK_ROWS: Final = FACTS["scoreboard_rows"].value
WIDE_FORMATS: Final = frozenset({0, 4, 8})
"""FP32, TF32, INT32: 32 bits in Dst."""


def _physical_blocks(row: int, count: int, wide: bool) -> Places:
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
_NOTHING: Final[Places] = frozenset()


def _field(word: int, place: tuple[int, int, int]) -> int:
    return word >> place[1] & place[2]


_WIDE_LOADS: Final = frozenset({3, 4, 10, 12})
"""Modes of SFPLOAD and SFPSTORE that use 32-bit rows (V8)."""
_WIDE_STORES: Final = _WIDE_LOADS | {7, 9}


def dst_blocks(found: Access, row: Any) -> tuple[Places, Places]:
    """(blocks read, blocks written) of Dst, as 8-row blocks of physical rows; row-valid flags count as written rows."""
    return _dst_blocks(int(row[column.WORD]), tuple(int(v) for v in row[column.DST : column.L1_BEGIN]))


@functools.lru_cache(maxsize=1 << 16)
def _dst_blocks(word: int, state: tuple[int, ...]) -> tuple[Places, Places]:
    found = access(word)
    return _blocks(found, word, found.roles_read, state), _blocks(found, word, found.roles_written, state)


def _blocks(found: Access, word: int, roles: Iterable[Role], state: tuple[int, ...]) -> Places:
    blocks: Places = frozenset()
    for role in roles:
        if role.file not in ("dst", "dst_valid"):
            continue
        if role.by:
            blocks |= BY[role.by](found.operands, state)
            continue
        first = (role.first(word) or 0) + state[0]
        blocks |= _physical_blocks(first - first % role.align, role.count, _is_wide(found, state))
    return blocks


def _is_wide(found: Access, state: tuple[int, ...]) -> bool:
    """Whether an instruction of the matrix or vector unit sees Dst as rows of 32 bits (F3, V7, V8)."""
    alu = state[column.ALU - column.DST]
    if found.unit == "matrix":
        # dest_32b_lo writes low halves whatever the view (F19); TF32 writes both, which the log does not show.
        return bool(_field(alu, _FP32) or _field(alu, _INT8) or found.operands.get("dest_32b_lo"))
    mode = found.operands["instr_mod0"]
    wide = _WIDE_STORES if found.mnemonic == "SFPSTORE" else _WIDE_LOADS
    return mode in wide or (mode == 0 and bool(_field(alu, _SFPU_FP32)))


def cleared_rows(o: Operands, state: tuple[int, ...]) -> Places:
    """Rows whose flags ZEROACC changes (F26)."""
    row, alu = state[0], state[column.ALU - column.DST]
    wide = bool(_field(alu, _FP32) or _field(alu, _INT8))
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


def packer_rows(o: Operands, state: tuple[int, ...]) -> Places:
    """Rows that a PACR reads (P2, P4)."""
    at = {name: state[name - column.DST] for name in range(column.PACK_X, column.L1_BEGIN)}
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
    wide = bool(_field(at[column.PACK_DST] >> 32, _READ_32B))
    if not o["DstAccessMode"]:
        return _physical_blocks(first, mask.bit_length(), wide)
    rows = (first + 16 * k for k in range(mask.bit_length()) if mask >> k & 1)  # P5
    return frozenset().union(*(_physical_blocks(row, 1, wide) for row in rows))


def writes_dst(row: Any, o: Operands) -> bool:
    """Whether an UNPACR of unpacker 0 goes to Dst (U10)."""
    context = int(row[column.UNPACK_DEST]) >> 32
    if not o["OvrdThreadId"]:
        return bool(_field(int(row[column.UNPACK_REG2]), _TO_DST))
    place = _TO_DST_CONTEXTS[context >> 2]
    return bool(int(row[column.UNPACK_REG2_NEXT]) >> (place[1] + (context & 3)) & 1)


def unpacker_rows(o: Operands, state: tuple[int, ...]) -> Places:
    """Rows that an UNPACR of unpacker 0 writes (U8, U10)."""
    row = (0,) * column.DST + state
    if not writes_dst(row, o):
        return _NOTHING
    code = _field(state[column.UNPACK_REG2 - column.DST], _OUT_FORMAT)
    first = (state[column.UNPACK_DEST - column.DST] & 0xFFFF) // 16 - 4
    x = state[column.UNPACK_X - column.DST]
    datums = (x >> 32) - (x & 0xFFFFFFFF) + 1
    # Channel 1 may add Y, Z and W strides to the address, so the tile around it is meant (U8).
    return _physical_blocks(first % DST_ROWS, max(datums // 16, 64), code in WIDE_FORMATS)


def stack_rows(o: Operands, state: tuple[int, ...]) -> Places:
    """Rows that the stack form of SFPLOAD and SFPSTORE uses: the log has no stack pointer, so they may be any (V7)."""
    return ALL_BLOCKS


BY: Final[Mapping[str, Callable[[Operands, tuple[int, ...]], Places]]] = {
    function.__name__: function for function in (cleared_rows, packer_rows, stack_rows, unpacker_rows)
}
"""Functions that roles name, by name."""
