"""The packer's section of the state record: decoded configuration, open streams and what the packer keeps accounts of.

`t.pack.<field>`; the stages in `bhemu/tensix/pack/` are its only writers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_DECODED: list[tuple[str, str]] = [
    ("key", "i8"),  # bank, context and openness that the fields below were decoded for; 0 = nothing
    # input address (P4); strides in bytes
    ("input_base", "i8"),
    ("x_stride", "i8"),
    ("y_stride", "i8"),
    ("z_stride", "i8"),
    ("w_stride", "i8"),
    ("size_shift", "i8"),  # log2 of the bytes that a datum counts in the input address
    ("column_mask", "i8"),  # ADC X bits that choose the column
    ("dst_offset", "i8"),  # rows
    ("remap", "i8"),
    ("swizzle", "i8"),
    ("source_l1", "i8"),
    ("l1_source", "i8"),
    # early conversion (P6)
    ("read_32b", "i8"),
    ("unsigned", "i8"),
    ("fp8", "i8"),  # 1 = In_data_format is FP8
    ("early", "i8"),
    ("descale", "i8"),  # right shift of integer magnitudes
    ("descale_by_z", "i8"),
    ("kind", "i8"),  # what the intermediate datum is, see early_conversion.py
    # edge masks (P7)
    ("edge_free", "i8"),  # 1 = every mask passes every column
    ("edge_faces", "i8"),  # bits of Z that choose a face set; 0 = one set for all
    ("edge_fill", "i8"),  # replaces a masked datum
    ("reads", "i8"),
    ("yz_transposed", "i8"),
    ("z_offset", "i8"),
    # ReLU (P8)
    ("relu", "i8"),
    ("relu_threshold", "i8"),
    ("relu_sign", "i8"),  # position of the sign bit; 32 = the datum has none
    ("narrow", "i8"),  # 1 = the datum goes from TF32 to FP16 behind the ReLU
    ("threshold", "i8"),  # exponent threshold, 0 = off
    ("exponent_shift", "i8"),
    ("exponent_mask", "i8"),
    ("downsample", "i8"),  # 16-bit mask, 0xFFFF = keep all
    # late conversion (P9) and assembly (P10)
    ("late_widen", "i8"),
    ("late_narrow", "i8"),
    ("late_final", "i8"),
    ("bfp_bits", "i8"),  # 8, 4, 2; 0 = no shared exponent
    ("bfp_family_a", "i8"),
    ("datum_bits", "i8"),
    ("out_format", "i8"),
    ("compressed", "i8"),
    ("zero_flags", "i8"),
    ("accumulate", "i8"),
    # output address (P11)
    ("l1_address", "i8"),  # 16-byte units, header unit included
    ("l1_base", "i8"),  # bytes
    ("y1_stride", "i8"),
    ("z1_stride", "i8"),
    ("w1_stride", "i8"),
    ("add_offset", "i8"),
    ("fifo_limit", "i8"),
    ("fifo_size", "i8"),
    ("row_start_size", "i8"),
    ("exp_size", "i8"),
    ("has_exp_section", "i8"),
    ("header_units", "i8"),
    ("auto_interfaces", "i8"),
    ("planes_per_context", "i8"),
]

_STREAMS: list[tuple[str, str]] = [
    ("open", "i8"),
    ("x", "i8"),  # tile position generator (P7)
    ("y", "i8"),
    ("z", "i8"),
    ("data_start", "i8"),  # byte addresses
    ("data_address", "i8"),
    ("exp_start", "i8"),
    ("exp_address", "i8"),
    ("row_start_start", "i8"),
    ("row_start_address", "i8"),
    ("group_count", "i8"),  # datums waiting in `group`
    ("datums", "i8"),  # datums since the streams were opened, padding included
    # zero compression
    ("concat", "i8"),  # 1 = the next PACR continues the compression row
    ("pending", "i8"),
    ("pending_zeros", "i8"),
    ("has_pending", "i8"),
    ("augmented", "i8"),  # augmented datums of the open tile
    ("row_is_zero", "i8"),
    ("rows", "i8"),  # finished compression rows
    # hardware context (P3)
    ("context", "i8"),
    ("planes", "i8"),
    # accounts (read by SETDMAREG and TDMA-RISC)
    ("histogram_max", "i8"),
    ("all_zero_flags", "i8"),
    ("last_tile_size", "i8"),  # 16-byte units
    ("last_thread", "i8"),
    # set by TDMA-RISC
    ("l1_dest_addr_offset", "i8"),
]

PACKER: Final[np.dtype[Any]] = np.dtype(
    [
        *_DECODED,
        *_STREAMS,
        ("edge_mask", "i4", (16, 16)),  # [Z & 15, Y & 15] column mask
        ("group", "u4", (16,)),  # intermediate datums that wait for a whole group
        ("row", "u4", (16,)),  # the row in work
        ("zero_counts", "u1", (32,)),  # zeros behind each augmented datum of the open group of 32
        ("acc_tile_size", "i8", (3,)),  # [thread] 16-byte units
        ("histogram", "u1", (32,)),
        ("setreg_base", "u4", (2,)),
        ("setreg_scaler", "u4", (4,)),
        ("setreg_data", "u4", ()),  # what PACR_SETREG writes, programmed in halves
    ],
    align=True,
)
"""dtype of `t.pack`."""

# Without the compiler a field is an attribute of a NumPy scalar, whose own attributes would hide it.
if hidden := set(PACKER.names or ()) & set(dir(np.record)):
    raise RuntimeError(f"fields of the packer's state need other names: {sorted(hidden)}")
