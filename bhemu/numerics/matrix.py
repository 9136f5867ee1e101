"""Matrix products and pooling of the matrix unit: MVMUL, GAPOOL, GMPOOL (math F7..F10, F12..F18)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from bhemu.checks import checked
from bhemu.errors import ConfigurationError, FormatError
from bhemu.formats import DataFormat
from bhemu.isa.instructions import encode
from bhemu.numerics import loops
from bhemu.numerics.arrangement import (
    Arrangement,
    Fidelity,
    SourceFormat,
    arrange,
    matrix_shape,
    phase_plan,
    phases_of,
    same_shape,
)
from bhemu.numerics.conversion import src_cells
from bhemu.numerics.operands import SRC_BITS, U32, Array, raw_bits
from bhemu.numerics.unit import DATA, unit

ROWS_A_CALL: Final = 512
"""Dst rows of the 32-bit view."""
_DEPTH_A_CALL: Final = 512
_RIGHT: Final = DATA
_DST: Final = _RIGHT + _DEPTH_A_CALL * 16
_LEFT: Final = _DST + ROWS_A_CALL * 16

_MVMUL: Final = encode("MVMUL")
_GAPOOL: Final = encode("GAPOOL", instr_mod19=1)
_GMPOOL: Final = encode("GMPOOL", instr_mod19=1)


def _padded(array: U32, rows: int) -> U32:
    """The array with zero cells below and to the right, to whole multiples of `rows` and of 16 columns."""
    height, width = -(-array.shape[0] // rows) * rows, -(-array.shape[1] // 16) * 16
    if (height, width) == array.shape:
        return array
    out = np.zeros((height, width), np.uint32)
    out[: array.shape[0], : array.shape[1]] = array
    return out


def _dot(
    word: int,
    rows: int,
    left: U32,
    right: U32,
    dst: U32 | None,
    formats: Arrangement,
    phases: tuple[int, ...],
    depth: int,
) -> U32:
    """dst + left x right on cells and Dst bits."""
    m, inner = matrix_shape(left, "left")
    other, n = matrix_shape(right, "right")
    if inner != other:
        raise FormatError(
            f"left has {inner} columns and right {other} rows", remedy="pass left [M, K] and right [K, N]"
        )
    if depth not in (16, 32, 48, 64):
        raise ConfigurationError(f"depth {depth}", remedy="say 16, 32, 48 or 64: what one bank of SrcA holds")
    result = np.zeros((m, n), np.uint32) if dst is None else same_shape(dst, (m, n))
    if 0 in (m, n, inner):
        return result
    left, right, values = _padded(left, rows), _padded(right, 16), _padded(result, rows)
    turn = depth // 16
    chunk = _DEPTH_A_CALL // depth * depth
    blocks_a_call = ROWS_A_CALL // loops.SRC_BLOCK
    with unit("matrix") as u:
        formats.configure(u)
        for m0 in range(0, left.shape[0], blocks_a_call * rows):
            for k0 in range(0, left.shape[1], chunk):
                part = left[m0 : m0 + blocks_a_call * rows, k0 : k0 + chunk]
                u.words[_LEFT : _LEFT + part.size].reshape(part.shape)[...] = part
                plan = {
                    loops.P_WORD: word,
                    loops.P_ORDER: formats.order,
                    loops.P_BLOCKS: len(part) // rows,
                    loops.P_ROWS: rows,
                    loops.P_A: _RIGHT,
                    loops.P_B: _LEFT,
                    loops.P_DST: _DST,
                    loops.P_STEPS: part.shape[1] // 16,
                    loops.P_STEPS_A_TURN: turn,
                    loops.P_LEFT_STRIDE: part.shape[1],
                } | phase_plan(phases)
                staged_right = u.words[_RIGHT : _RIGHT + part.shape[1] * 16].reshape(-1, 16)
                staged = u.words[_DST : _DST + len(part) * 16].reshape(-1, 16)
                for n0 in range(0, right.shape[1], 16):
                    block = values[m0 : m0 + len(part), n0 : n0 + 16]
                    staged_right[...] = right[k0 : k0 + chunk, n0 : n0 + 16]
                    staged[...] = block
                    u.execute("numerics_dot", loops.dot_loop, [word >> 24], plan)
                    block[...] = staged
    return values[:m, :n]


@checked
def mvmul_bits(
    left: ArrayLike,
    right: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    depth: int = 32,
) -> Array:
    """`mvmul` on raw bits.

    Args:
        left, right: 19-bit cells {sign, mantissa[10], exponent[8]} of SrcB [M, K] and SrcA [K, N] (rules I.2).
        dst: Dst values in the usual order of `dst_format` bits (INT32: sign-magnitude).

    Returns:
        [M, N], bits of `dst_format`, uint32 or uint16.
    """
    formats = arrange(source_format, dst_format, left_is_b=True)
    cells = raw_bits(left, "left", SRC_BITS), raw_bits(right, "right", SRC_BITS)
    old = None if dst is None else formats.raw_dst(dst)
    return formats.bits_result(_dot(_MVMUL, 8, *cells, old, formats, phases_of(fidelity), depth))


@checked
def mvmul(
    left: ArrayLike,
    right: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    depth: int = 32,
) -> Array:
    """left @ right + dst as MVMUL accumulates it: 8x16 blocks of Dst, sixteen products at a time (math F8..F15).

    `left` is SrcB and `right` is SrcA, as the hardware has them.

    Order: along K in steps of 16 from k = 0 up, each an instruction that rounds Dst to its format. The products of a
    step form two groups, k = 0..7 and 8..15. Within a group each product is shifted to the largest exponent, half up on
    its magnitude, and the eight are summed exactly; then both sums and Dst are aligned to the largest of their three
    exponents (ties toward plus infinity; Dst half away from zero), added, and rounded to `dst_format`, half away from
    zero. With more than one fidelity phase, `depth` columns of K pass one phase before the next begins. K that is not a
    multiple of 16 is filled up with zeros.

    Fidelity: LoFi is phase 0 alone, which sees 5 of the 11 significand bits of SrcA (`right`) and 7 of SrcB (`left`);
    HiFi2 adds the next 5 bits of SrcA, HiFi3 the low bits of SrcB, HiFi4 both. The last bit of SrcA is never used.

    Special values: exponent 0 counts as zero, so no denormal is read, and none is made (+0 instead). There is no NaN
    and no infinity on input: exponent 255 is the number 2**128 * (1 + m), exponent 31 of FP16 an ordinary one. FP32 and
    BF16 results overflow to an infinity pattern, FP16 ones to 131008. An exact zero is +0. With FP16 operands and an
    FP32 Dst a zero product carries exponent 97 and can push small Dst values out (F9).

    Integers: INT8 (-127 .. 127) or UINT8 with INT32 Dst, saturating at +-(2**31 - 1). A phase sees bits 7:5 or 4:0 of
    SrcA (`right`) and 9:4 or 3:0 of SrcB (`left`), so only HiFi4 is the exact product.

    Args:
        left: [M, K]. Numbers go to `source_format` as UNPACR brings them from FP32, by truncation; arrays that are in
            BF16 or FP16 already (ml_dtypes.bfloat16, float16) keep their bits. Types wider than float32 are rounded
            to float32 by NumPy first.
        right: [K, N].
        dst: old values, broadcast to [M, N], brought to `dst_format` the same way; zeros by default.
        fidelity: "LoFi", "HiFi2", "HiFi3", "HiFi4", or phases such as [0, 2].
        dst_format: "fp32", "bf16" (BF16 and TF32 operands), "fp16" (FP16 operands) or "int32" (integers).
        source_format: "bf16", "tf32", "fp16", "int8" or "uint8", or a pair (left, right).
        depth: columns of K between changes of phase: 32 as kernels for 32x32 tiles do, 16, 48 or 64.

    Returns:
        [M, N] float32 that holds the `dst_format` values exactly, or int32.

    Raises:
        FormatError: shapes that do not fit, or arrays of another kind.
        ConfigurationError: formats, fidelity or depth that do not exist.

    Example:
        >>> import numpy as np
        >>> left, right = np.full((8, 16), 1.5, np.float32), np.ones((16, 4), np.float32)
        >>> mvmul(left, right)[0].tolist()
        [24.0, 24.0, 24.0, 24.0]
        >>> third = np.full((1, 1), 1 / 3, np.float32)  # LoFi sees 1.0101 of SrcA's 1.010101..., phase 1 more of it
        >>> [mvmul([[1]], third, None, f)[0, 0].item() for f in ("LoFi", "HiFi2")]
        [0.328125, 0.33203125]
    """
    formats = arrange(source_format, dst_format, left_is_b=True)
    cells = src_cells(left, formats.b, "left"), src_cells(right, formats.a, "right")
    old = None if dst is None else formats.dst_bits(dst)
    return formats.values_result(_dot(_MVMUL, 8, *cells, old, formats, phases_of(fidelity), depth))


@checked
def gapool_bits(
    left: ArrayLike,
    right: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    depth: int = 32,
) -> Array:
    """`gapool` on raw bits; see `mvmul_bits`."""
    formats = arrange(source_format, dst_format, left_is_b=True)
    cells = raw_bits(left, "left", SRC_BITS), raw_bits(right, "right", SRC_BITS)
    old = None if dst is None else formats.raw_dst(dst)
    return formats.bits_result(_dot(_GAPOOL, 4, *cells, old, formats, phases_of(fidelity), depth))


@checked
def gapool(
    left: ArrayLike,
    right: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    depth: int = 32,
) -> Array:
    """Average pooling: GAPOOL, a product of four SrcB rows (`left`) with sixteen SrcA rows (`right`) (math F16).

    Arguments, rounding and special values are those of `mvmul`; averages come from weights 1 / n in `left`.

    Example:
        >>> import numpy as np
        >>> columns = np.arange(32, dtype=np.float32).reshape(16, 2)
        >>> gapool(np.full((1, 16), 1 / 16, np.float32), columns, fidelity="HiFi4")[0].tolist()
        [15.0, 16.0]
    """
    formats = arrange(source_format, dst_format, left_is_b=True)
    cells = src_cells(left, formats.b, "left"), src_cells(right, formats.a, "right")
    old = None if dst is None else formats.dst_bits(dst)
    return formats.values_result(_dot(_GAPOOL, 4, *cells, old, formats, phases_of(fidelity), depth))


# --- maximum ---------------------------------------------------------------------------------------------------------

_ONE: Final = {DataFormat.FP16: 15}
"""Exponent field of the scale 1.0 in SrcB; 127 where it has eight bits."""


def _gmpool(cells: U32, dst: U32 | None, formats: Arrangement) -> U32:
    rows, columns = matrix_shape(cells, "a")
    if rows == 0:
        raise FormatError("a has no rows: there is no maximum", remedy="pass at least one row")
    height = -(-rows // 16) * 16
    whole = np.concatenate(
        [cells, np.broadcast_to(cells[-1:], (height - rows, columns))]
    )  # a repeated row wins nothing
    whole = _padded(whole, 16)
    values = np.zeros(whole.shape[1], np.uint32)
    if dst is not None:
        values[:columns] = same_shape(dst, (columns,))
    out = np.empty(whole.shape[1], np.uint32)
    with unit("matrix") as u:
        formats.configure(u)
        u.record["srcb"][...] = _ONE.get(formats.a, 127)
        for n0 in range(0, whole.shape[1], 16):
            for first in range(0, height, _DEPTH_A_CALL * 16):
                part = whole[first : first + _DEPTH_A_CALL * 16, n0 : n0 + 16]
                u.words[_LEFT : _LEFT + part.size].reshape(part.shape)[...] = part
                u.words[_DST : _DST + 16] = values[n0 : n0 + 16] if first == 0 else out[n0 : n0 + 16]
                plan = {
                    loops.P_WORD: _GMPOOL,
                    loops.P_ORDER: formats.order,
                    loops.P_A: _LEFT,
                    loops.P_DST: _DST,
                    loops.P_STEPS: len(part) // 16,
                    loops.P_USE_DST: int(first > 0 or dst is not None),
                }
                u.execute("numerics_pool", loops.pool_loop, [_GMPOOL >> 24], plan)
                out[n0 : n0 + 16] = u.words[_DST : _DST + 16]
    return out[:columns]


@checked
def gmpool_bits(
    a: ArrayLike,
    dst: ArrayLike | None = None,
    dst_format: DataFormat | str | None = None,
    *,
    source_format: DataFormat | str = "bf16",
) -> Array:
    """`gmpool` on raw bits: 19-bit SrcA cells [R, N] and Dst bits [N]."""
    formats = arrange(source_format, dst_format)
    old = None if dst is None else formats.raw_dst(dst)
    return formats.bits_result(_gmpool(raw_bits(a, "a", SRC_BITS), old, formats))


@checked
def gmpool(
    a: ArrayLike,
    dst: ArrayLike | None = None,
    dst_format: DataFormat | str | None = None,
    *,
    source_format: DataFormat | str = "bf16",
) -> Array:
    """Maximum of each column, and of dst, as GMPOOL finds it, sixteen SrcA rows at a time, scaled by 1.0 (math F17).

    Nothing is rounded; of an FP32 Dst the 13 low mantissa bits are dropped. Order is sign-magnitude: -0 is below +0 and
    a NaN pattern is a large number. Values with exponent 0 count as +0.

    Args:
        a: [R, N], brought to `source_format` as `mvmul` does.
        dst: [N], taking part in the maximum; by default minus infinity.
        dst_format, source_format: as `mvmul`. FP16 into an FP32 Dst is open and refused; integers and FP16 rest on
            documents alone (F18).

    Raises:
        FormatError: no rows, or shapes that do not fit.
        MissingSpecification: FP16 into FP32.

    Example:
        >>> gmpool([[1.0, -3.0], [2.0, -4.0]]).tolist()
        [2.0, -3.0]
        >>> gmpool([[1.0, -3.0]], [1.5, 0.0]).tolist()
        [1.5, 0.0]
    """
    formats = arrange(source_format, dst_format)
    old = None if dst is None else formats.dst_bits(dst)
    return formats.values_result(_gmpool(src_cells(a, formats.a, "a"), old, formats))
