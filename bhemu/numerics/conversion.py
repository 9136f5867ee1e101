"""Format conversions of the unpackers (rules I.5) and of the packer (rules P6, P9, P10), by UNPACR and PACR."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bhemu.checks import checked
from bhemu.errors import ConfigurationError, FormatError
from bhemu.formats import DataFormat
from bhemu.formats import bfp as bfp_formats
from bhemu.formats import integers as integer_formats
from bhemu.formats.data_format import DATUMS_PER_EXPONENT
from bhemu.isa.instructions import encode
from bhemu.machine.counters import CH0_X, CH1_X, PACKER, UNPACKER0
from bhemu.numerics import loops
from bhemu.numerics.loops import PACK_THREAD, UNPACK_THREAD
from bhemu.numerics.operands import (
    F32,
    SRC_BITS,
    U32,
    Array,
    as_array,
    bits_of_src,
    float_bits,
    float_of_bits,
    raw_bits,
)
from bhemu.numerics.unit import Unit, unit

_D = DataFormat

TILE_DATUMS: Final = 1024
"""Datums of one UNPACR: all 64 rows of SrcA."""
_TILES_A_CALL: Final = 64
_UNPACK_IN: Final = 0x1000  # bytes
_UNPACK_OUT: Final = 0x90000
_UNPACR: Final = encode("UNPACR", OvrdThreadId=1, Last=1)

_PACK_ROWS_A_CALL: Final = 512
_PACK_IN: Final = 0x1000
_PACK_OUT: Final = 0x20000
_PACR: Final = encode("PACR")
_PACR_LAST: Final = encode("PACR", Last=1)


def _prepare_unpack(u: Unit) -> None:
    u.configure(
        UNPACK_THREAD,
        {
            "THCON_SEC0_REG0_TileDescriptor_uncompressed": 1,
            "THCON_SEC0_REG0_TileDescriptor_x_dim": TILE_DATUMS,
            "THCON_SEC0_REG0_TileDescriptor_y_dim": 1,
            "THCON_SEC0_REG0_TileDescriptor_z_dim": 1,
            "THCON_SEC0_REG2_Disable_zero_compress_cntx0": 1,
            "THCON_SEC0_REG5_Tile_x_dim_cntx0": TILE_DATUMS,
            "THCON_SEC0_REG5_Dest_cntx0_address": 64,  # unpacker 0 subtracts four rows (U8)
            "SRCA_SET_SetOvrdWithAddr": 1,
        },
    )
    u.record["adc"][UNPACK_THREAD, UNPACKER0, CH0_X] = 0
    u.record["adc"][UNPACK_THREAD, UNPACKER0, CH1_X] = TILE_DATUMS - 1


def unpack_tiles(tiles: NDArray[np.uint8], source: DataFormat, target: DataFormat) -> U32:
    """SrcA cells of tiles of 1024 datums as L1 holds them, exponent sections included.

    Args:
        tiles: uint8 [tiles, bytes]; bytes is a multiple of 16.

    Returns:
        uint32 [tiles, 1024].
    """
    out = np.empty((len(tiles), TILE_DATUMS), np.uint32)
    size = tiles.shape[1]
    with unit("unpack", _prepare_unpack) as u:
        u.configure(
            UNPACK_THREAD,
            {
                "THCON_SEC0_REG0_TileDescriptor_in_data_format": source.code,
                "THCON_SEC0_REG2_Out_data_format": target.code,
                "THCON_SEC0_REG1_Unp_LF8_4b_exp": int(source.needs_e4m3_bit),
                "ALU_FORMAT_SPEC_REG0_SrcAUnsigned": int(source.needs_unsigned_bit),
            },
        )
        for first in range(0, len(tiles), _TILES_A_CALL):
            batch = tiles[first : first + _TILES_A_CALL]
            u.bytes[_UNPACK_IN : _UNPACK_IN + batch.size] = batch.reshape(-1)
            plan = {
                loops.U_WORD: _UNPACR,
                loops.U_TILES: len(batch),
                loops.U_UNIT: _UNPACK_IN // 16,
                loops.U_UNITS_A_TILE: size // 16,
                loops.U_OUT: _UNPACK_OUT // 4,
            }
            u.execute("numerics_unpack", loops.unpack_loop, [_UNPACR >> 24], plan)
            cells = u.words[_UNPACK_OUT // 4 :][: len(batch) * TILE_DATUMS]
            out[first : first + len(batch)] = cells.reshape(-1, TILE_DATUMS)
    return out


@checked
def unpack_convert(
    bits: ArrayLike,
    in_format: DataFormat | str,
    out_format: DataFormat | str | None = None,
    *,
    exponents: ArrayLike = (),
) -> U32:
    """What UNPACR makes of datums of L1: SrcA cells (rules I.2, I.5).

    FP32 goes to TF32, BF16 or FP16 by truncation: TF32 and BF16 lose mantissa bits, BF16 makes a signed zero of
    exponent 0 first; FP16 has exponent 31 as an ordinary exponent, makes a signed zero of what lies below exponent 0
    and 0x7FFF of what lies above 31, Inf and NaN included. All other formats go to themselves: BF16 and FP16 bits stay,
    FP8 becomes FP16, BFP becomes BF16 (family B) or FP16 (family A), where the code of minus zero is minus infinity.

    Args:
        bits: raw bits of the datums, any shape; one code per element also for 4- and 2-bit formats.
        in_format: as L1 holds them.
        out_format: `in_format` unless it is FP32.
        exponents: BFP only: one shared exponent for each 16 consecutive elements.

    Returns:
        uint32, shape of `bits`: 19-bit cells {sign, mantissa[10], exponent[8]}. `src_values` reads them.

    Raises:
        FormatError: bits too wide; BFP without the right number of exponents.
        BhemuError: UNPACR refuses the pair of formats; the category says why.

    Example:
        >>> import numpy as np
        >>> cells = unpack_convert(np.array([0x3FC0_FFFF], np.uint32), "fp32", "bf16")
        >>> hex(cells[0]), src_values(cells, "bf16").tolist()
        ('0x2007f', [1.5])
        >>> src_values(unpack_convert([0x60] * 16, "bfp8", exponents=[127]), "bf16")[:2].tolist()
        [1.5, 1.5]
    """
    source = DataFormat.parse(in_format)
    target = source if out_format is None else DataFormat.parse(out_format)
    raw = raw_bits(bits, "bits", source.bits)
    datums = raw.reshape(-1).astype(source.bits_dtype)
    count = -(-datums.size // TILE_DATUMS)
    padded = np.zeros(count * TILE_DATUMS, datums.dtype)
    padded[: datums.size] = datums
    given = raw_bits(np.asarray(exponents, np.int64) if np.size(exponents) == 0 else exponents, "exponents", 8)
    if not source.is_bfp:
        if given.size:
            raise FormatError(f"{source.name} shares no exponents", remedy="leave `exponents` out")
        tiles = padded.view(np.uint8).reshape(count, TILE_DATUMS * source.bits // 8)
    else:
        if datums.size % DATUMS_PER_EXPONENT or given.size * DATUMS_PER_EXPONENT != datums.size:
            raise FormatError(
                f"{datums.size} {source.name} datums with {given.size} exponents",
                remedy=f"pass one exponent for each {DATUMS_PER_EXPONENT} datums, and whole groups",
            )
        section = np.zeros(count * (TILE_DATUMS // DATUMS_PER_EXPONENT), np.uint8)
        section[: given.size] = given.reshape(-1)
        packed = bfp_formats.pack_datums(padded.reshape(count, TILE_DATUMS), source.bits)
        tiles = np.concatenate([section.reshape(count, -1), packed], axis=1)
    return unpack_tiles(tiles, source, target).reshape(-1)[: datums.size].reshape(raw.shape)


@checked
def src_values(cells: ArrayLike, data_format: DataFormat | str) -> F32:
    """SrcA or SrcB cells as float32, without loss and without the matrix unit's reading of special values.

    Args:
        cells: 19-bit cells.
        data_format: TF32, BF16 (also for BFP) or FP16 (also for FP8 and the A family); exponent 31 of FP16 is an
            ordinary exponent.

    Raises:
        FormatError: another format, or more than 19 bits.

    Example:
        >>> src_values([0x2007F], "bf16").tolist()
        [1.5]
    """
    parsed = DataFormat.parse(data_format)
    if parsed not in (_D.TF32, _D.BF16, _D.FP16):
        raise FormatError(f"Src cells hold no {parsed.name}", remedy="say tf32, bf16 or fp16")
    return float_of_bits(bits_of_src(raw_bits(cells, "cells", SRC_BITS), parsed), parsed)


def src_cells(values: ArrayLike, data_format: DataFormat, name: str) -> U32:
    """Src cells of numbers, as UNPACR brings them there from FP32, or from their own format when they are in it."""
    if data_format.is_integer:
        array = as_array(values, name)
        return unpack_convert(integer_formats.encode(array, data_format, saturate=False), data_format)
    array = as_array(values, name)
    if array.dtype == data_format.dtype and data_format.bits == 16:
        return unpack_convert(np.ascontiguousarray(array).view(np.uint16).reshape(array.shape), data_format)
    return unpack_convert(float_bits(array, name), _D.FP32, data_format)


# --- packer ----------------------------------------------------------------------------------------------------------

_ORDERS: Final = {
    _D.FP32: loops.ORDER_32,
    _D.INT32: loops.ORDER_32,
    _D.BF16: loops.ORDER_BF16,
    _D.FP16: loops.ORDER_FP16,
    _D.INT16: loops.ORDER_RAW,
}
_INTERMEDIATES: Final = {
    _D.BFP4: _D.BFP8,
    _D.BFP2: _D.BFP8,
    _D.BFP4A: _D.BFP8A,
    _D.BFP2A: _D.BFP8A,
    _D.FP8_E4M3: _D.FP16,
    _D.FP8_E5M2: _D.FP16,
}
"""Intermediate format of outputs whose format is not one, as kernel libraries choose it."""


class Packed(NamedTuple):
    """Result of `pack_convert`.

    Attributes:
        bits: raw bits of the datums, one an element, shape of the values.
        exponents: uint8, one for each 16 consecutive datums of a BFP format; else empty.
    """

    bits: Array
    exponents: NDArray[np.uint8]


def _prepare_pack(u: Unit) -> None:
    u.configure(
        PACK_THREAD,
        {
            "PCK_EDGE_OFFSET_SEC0_mask": 0xFFFF,
            "PACK_COUNTERS_SEC0_pack_reads_per_xy_plane": 1,
            "THCON_SEC0_REG1_Disable_zero_compress": 1,
            "THCON_SEC0_REG1_L1_Dest_addr": _PACK_OUT // 16 - 1,
        },
    )
    u.record["adc"][PACK_THREAD, PACKER, CH0_X] = 0
    u.record["adc"][PACK_THREAD, PACKER, CH1_X] = 15


@checked
def pack_convert(
    bits: ArrayLike,
    out_format: DataFormat | str,
    *,
    dst_format: DataFormat | str = "fp32",
    intermediate: DataFormat | str | None = None,
    round_10b: bool | None = None,
    read_raw: bool = False,
) -> Packed:
    """What PACR makes of Dst values: early conversion, late conversion and BFP assembly (P6, P9, P10).

    The early conversion rounds half away from zero, makes +0 of denormals and of -0, and Inf of NaN where the exponent
    has 8 bits; the late conversion truncates. A BFP group has the largest exponent of its 16 values (255 is an ordinary
    one); magnitudes are rounded half up to 7 bits, then cut to the format's; a zero magnitude loses its sign.

    Args:
        bits: raw bits of Dst values in the usual order of `dst_format` (INT32: sign-magnitude), any shape; for BFP a
            multiple of 16 elements.
        out_format: format in L1.
        dst_format: what Dst holds: FP32 and INT32 use its 32-bit view, BF16, FP16 and INT16 the 16-bit view.
        intermediate: format between the two conversions (ALU_FORMAT_SPEC_REG2_Dstacc and In_data_format). By default
            `out_format` itself; BFP8 (A: BFP8A) for narrower BFP, FP16 for FP8.
        round_10b: Round_10b_mant; by default on where FP16 is made of a 32-bit Dst.
        read_raw: Read_raw (the register map's Read_int8): no rounding to the intermediate format.

    Raises:
        FormatError: bits too wide, or a BFP group that is not whole.
        ConfigurationError: `dst_format` is not a format of Dst.
        BhemuError: PACR refuses the formats; the category says why.

    Example:
        >>> import numpy as np
        >>> value = np.array([1.00390625], np.float32).view(np.uint32)  # half way between two BF16 numbers
        >>> hex(pack_convert(value, "bf16").bits[0])
        '0x3f81'
        >>> ones = np.full(16, 0x3F80_0000, np.uint32)
        >>> packed = pack_convert(ones, "bfp8")
        >>> hex(packed.bits[0]), packed.exponents.tolist()
        ('0x40', [127])
    """
    target, held = DataFormat.parse(out_format), DataFormat.parse(dst_format)
    between = _INTERMEDIATES.get(target, target) if intermediate is None else DataFormat.parse(intermediate)
    if held not in _ORDERS:
        raise ConfigurationError(f"Dst holds no {held.name}", remedy="say fp32, bf16, fp16, int32 or int16")
    wide = held.bits == 32
    raw = raw_bits(bits, "bits", held.bits)
    if target.is_bfp and raw.size % DATUMS_PER_EXPONENT:
        raise FormatError(
            f"{raw.size} values are not whole {target.name} groups", remedy="pass a multiple of 16 values"
        )
    settings = {
        "ALU_FORMAT_SPEC_REG2_Dstacc": between.code,
        "THCON_SEC0_REG1_In_data_format": between.code,
        "THCON_SEC0_REG1_Out_data_format": target.code,
        "THCON_SEC0_REG1_Pac_LF8_4b_exp": int(target.needs_e4m3_bit),
        "PCK_DEST_RD_CTRL_Read_32b_data": int(wide),
        "PCK_DEST_RD_CTRL_Read_unsigned": int(target.needs_unsigned_bit),
        "PCK_DEST_RD_CTRL_Read_int8": int(read_raw),
        "PCK_DEST_RD_CTRL_Round_10b_mant": int((wide and between is _D.FP16) if round_10b is None else round_10b),
        # Bytes of a Dst row by the intermediate format, in whose datums the packer counts (P4).
        "PCK0_ADDR_CTRL_XY_REG_0_Ystride": 16 * (4, 2, 1, 1)[between.code & 3],
        "THCON_SEC0_REG1_Exp_section_size": 0,
    }
    flat = raw.reshape(-1)
    datums = np.empty(flat.size, target.bits_dtype)
    groups: list[NDArray[np.uint8]] = [np.empty(0, np.uint8)]
    step = _PACK_ROWS_A_CALL * 16
    with unit("pack", _prepare_pack) as u:
        for first in range(0, flat.size, step):
            batch = flat[first : first + step]
            rows = -(-batch.size // (16 * loops.PACK_ROWS)) * loops.PACK_ROWS
            staged = u.words[_PACK_IN // 4 :][: rows * 16]
            staged[: batch.size] = batch
            staged[batch.size :] = 0
            section = (rows + 15) // 16 if target.is_bfp else 0
            u.configure(PACK_THREAD, settings | {"THCON_SEC0_REG1_Exp_section_size": section})
            order = _ORDERS[held]
            plan = {loops.K_WORD: _PACR, loops.K_LAST_WORD: _PACR_LAST, loops.K_ORDER: order}
            plan |= {loops.K_ROWS: rows, loops.K_IN: _PACK_IN // 4}
            u.execute("numerics_pack", loops.pack_loop, [_PACR >> 24], plan)
            data = u.bytes[_PACK_OUT + section * 16 :][: rows * 2 * target.bits]
            if target.bits < 8:
                codes = bfp_formats.unpack_datums(data, target.bits)
            else:
                codes = data.view(target.bits_dtype)
            datums[first : first + batch.size] = codes[: batch.size]
            if target.is_bfp:
                groups.append(u.bytes[_PACK_OUT:][: batch.size // 16].copy())
    return Packed(datums.reshape(raw.shape), np.concatenate(groups))
