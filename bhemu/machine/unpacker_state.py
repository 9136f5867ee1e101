"""The unpackers' section of the state record, `t.unpack`: decoded configuration, counters, the datums in progress.

First index = unpacker: 0 fills SrcA and Dst, 1 fills SrcB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bhemu.machine.decoded import NONE, Copies, decoded
from bhemu.machine.section import section

CONTEXTS: Final = 8
SINGLE: Final = 8
"""Slot of the single-context form (OvrdThreadId = 0); slots 0 to 7 are contexts."""
SLOTS: Final = CONTEXTS + 1


def _by_slot(
    single: str, context: str, *, of: int = CONTEXTS, unpackers: tuple[int, ...] = (0, 1)
) -> Callable[[int, int], str]:
    """Name of a field that each context has (or each of the first `of`), of these unpackers; else that of `single`."""

    def name(unpacker: int, slot: int) -> str:
        if slot == SINGLE or unpacker not in unpackers:
            return single
        return context.replace("{1}", str(slot % of))

    return name


def _blob_starts(unpacker: int, slot: int) -> str:
    if unpacker == 0 and slot != SINGLE:
        pair = "23" if slot & 2 else "01"
        return f"UNP0_BLOBS_Y_START_CNTX_{pair}_blobs_y_start"
    return "THCON_SEC{0}_REG0_TileDescriptor_blobs_y_start_lo"


def _only(condition: Callable[[int, int], bool], of: str) -> Callable[[int, int], str]:
    return lambda unpacker, slot: of if condition(unpacker, slot) else NONE


def _only_first(of: Callable[[int, int], str]) -> Callable[[int, int], str]:
    """The field of unpacker 0; unpacker 1 has none."""
    return lambda unpacker, slot: NONE if unpacker else of(unpacker, slot)


_DESCRIPTOR = "THCON_SEC{0}_REG0_TileDescriptor_"
_REG2 = "THCON_SEC{0}_REG2_"
_REG7 = "THCON_SEC{0}_REG7_"
_REG10 = "THCON_SEC{0}_REG10_"
_IN_FORMAT = _DESCRIPTOR + "in_data_format"
_OUT_FORMAT = _REG2 + "Out_data_format"

# Attribute -> field; `{0}` is the unpacker. Tile base addresses change with every tile: they are read undecoded.
_FIELDS: dict[str, str | Callable[[int, int], str]] = {
    "in_format": _IN_FORMAT,
    "out_format": _OUT_FORMAT,
    "ovrd_format": _REG2 + "Ovrd_data_format",
    "in_format_instead": _by_slot(_IN_FORMAT, _REG7 + "Unpack_data_format_cntx{1}"),  # what Ovrd_data_format selects
    "out_format_instead": _by_slot(_OUT_FORMAT, _REG7 + "Unpack_out_data_format_cntx{1}"),
    "uncompressed": _by_slot(_DESCRIPTOR + "uncompressed", _REG2 + "Disable_zero_compress_cntx{1}"),
    "no_exp_section": _DESCRIPTOR + "no_bfp_exp_section",
    "blobs": _DESCRIPTOR + "blobs_per_xy_plane",
    "x_dim": _by_slot(_DESCRIPTOR + "x_dim", "THCON_SEC{0}_REG5_Tile_x_dim_cntx{1}", of=4, unpackers=(0,)),
    "y_dim": _DESCRIPTOR + "y_dim",
    "z_dim": _DESCRIPTOR + "z_dim",
    "w_dim": _DESCRIPTOR + "w_dim",
    "blob_starts": _blob_starts,
    "blob_starts_hi": _only(lambda unpacker, slot: unpacker == 1 or slot == SINGLE, _DESCRIPTOR + "blobs_y_start_hi"),
    "digest": _DESCRIPTOR + "digest_size",
    "haloize": _REG2 + "Haloize_mode",
    "tileize": _REG2 + "Tileize_mode",
    "src_row_update": _REG2 + "Unpack_Src_Reg_Set_Upd",
    "to_dst": _only_first(_by_slot(_REG2 + "Unpack_If_Sel", _REG2 + "Unpack_if_sel_cntx{1}")),  # U10
    "dest_address": _by_slot(NONE, "THCON_SEC{0}_REG5_Dest_cntx{1}_address", of=4, unpackers=(0,)),
    "add_dest": "UNP{0}_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr",
    "upsample_rate": _REG2 + "Upsample_rate",
    "interleave": _REG2 + "Upsample_and_interleave",
    "column_shift": _only_first(_by_slot(_REG2 + "Shift_amount_cntx0", _REG2 + "Shift_amount_cntx{1}", of=4)),  # U9
    "stride_nibble0": _REG2 + "Shift_amount_cntx0",  # of the stride that Tileize_mode reads there
    "stride_nibble1": _REG2 + "Shift_amount_cntx1",
    "stride_nibble2": _REG2 + "Shift_amount_cntx2",
    "force_exp": _REG2 + "Force_shared_exp",
    "forced_exp": "UNP{0}_FORCED_SHARED_EXP_shared_exp",
    "context_count": _REG2 + "Context_count",
    "count_non_log2": _REG2 + "Context_count_non_log2",
    "non_log2_en": _REG2 + "Context_count_non_log2_en",
    "limit": _REG2 + "Unpack_limit_address",
    "fifo": _REG2 + "Unpack_fifo_size",
    "own_limit_en": _only(lambda unpacker, slot: slot == 1, _REG10 + "Unpack_limit_address_en"),  # context 1 alone
    "own_limit": _only(lambda unpacker, slot: slot == 1, _REG10 + "Unpack_limit_address"),
    "own_fifo": _only(lambda unpacker, slot: slot == 1, _REG10 + "Unpack_fifo_size"),
    "out_base": "UNP{0}_ADDR_BASE_REG_1_Base",
    "out_y_stride": "UNP{0}_ADDR_CTRL_XY_REG_1_Ystride",
    "out_z_stride": "UNP{0}_ADDR_CTRL_ZW_REG_1_Zstride",
    "out_w_stride": "UNP{0}_ADDR_CTRL_ZW_REG_1_Wstride",
    "e4m3": "THCON_SEC{0}_REG1_Unp_LF8_4b_exp",
    "unsigned": lambda unpacker, slot: f"ALU_FORMAT_SPEC_REG0_Src{'AB'[unpacker]}Unsigned",
    "throttle": _REG2 + "Throttle_mode",
    "ovrd_throttle": "THCON_SEC{0}_REG1_ovrd_default_throttle_mode",
}


def _copies(unpacker: int) -> Copies:
    """The fields of an unpacker; form = slot."""
    return Copies(
        {
            attribute: [
                (of if isinstance(of, str) else of(unpacker, slot)).replace("{0}", str(unpacker))
                for slot in range(SLOTS)
            ]
            for attribute, of in _FIELDS.items()
        },
        SLOTS,
    )


COPIES: Final = (_copies(0), _copies(1))
"""What each unpacker's decoded configuration is made of; form = slot."""

OF_FORMATS: Final = (
    "fault",  # code of the refusal that the configuration earns, 0 = none
    "datum_size",  # sizes are in 1/16 byte: an exponent byte serves 16 datums, so a datum takes 1/16 of it
    "row_shift",  # log2 of the datums in an unpack row (U7)
    "is_bfp",
    "bfp_shift",
    "normalise",
    "layout",
    "tf32_to_src",
    "out_shift",
)
"""Attributes that follow from the two formats and from the kind of target."""

DECODED: Final = decoded(
    COPIES[0],
    (
        *OF_FORMATS,
        "dest_mode",  # DEST_* of tensix/unpack/decode.py
        "upsample_zeros",
        "z_stride",  # datums per Z step of the tile
        "w_stride",
        "row_datums",
        "row_stride",
        "exponent_section",
        "exponent_skip",  # the part of the section that the datum address skips
        "start_index_section",
        "burst_rows",
    ),
    [("of_formats", OF_FORMATS[0], len(OF_FORMATS))],
)
"""dtype of `t.unpack.decoded[config bank, slot, unpacker]`."""

WALK: Final = section(
    [
        ("target", "i8", ()),  # TO_* of tensix/unpack/place.py
        ("bank", "i8", ()),
        ("row_mask", "i8", ()),  # register rows count modulo this + 1
        ("datum", "i8", ()),  # addresses, in 1/16 byte: of the first datum, ...
        ("exponents", "i8", ()),  # of its exponent ...
        ("counts", "i8", ()),  # and of its zero count
        ("index", "i8", ()),  # datums `index` to `end` - 1, until `keep` have been output
        ("end", "i8", ()),
        ("drop", "i8", ()),  # datums, inserted zeros included, to leave out at the start
        ("keep", "i8", ()),
        ("out", "i8", ()),  # position of the first output datum, in datums
        ("zero", "i8", ()),  # 1: write zeros and do not read L1
    ]
)
"""What one UNPACR moves datum by datum."""

UNPACKERS: Final[np.dtype[Any]] = section(
    [
        ("decoded_slots", "i4", (2, 2)),  # [unpacker, config bank]: bit n = slot n of `decoded` is up to date
        ("bank", "i4", (2,)),  # Src bank that the unpacker fills
        ("src_row", "i4", (3, 2)),  # [thread, unpacker] SrcRow (U9, U11)
        ("context_counter", "i4", (3, 2)),  # [thread, unpacker] (U2, U11)
        ("walk", WALK, ()),
        ("bits", "u4", (16,)),  # scratch of one UNPACR: up to 16 datums as L1 holds them, ...
        ("exponents", "u4", (16,)),  # their shared exponents, ...
        ("zeros", "u4", (16,)),  # the zeros that follow each in a compressed tile, ...
        ("cells", "u4", (16,)),  # and the cells that they become
        ("accumulator", "i4", (2,)),  # message count that the enhanced pop of UNPACR_NOP accumulates (I.7)
        # Large, so it comes last; what both unpackers have of a slot lies together.
        ("decoded", DECODED, (2, SLOTS, 2)),
    ]
)
"""dtype of `t.unpack`."""
