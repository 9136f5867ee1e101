"""Element-wise arithmetic of the matrix unit: ELWADD, ELWSUB, ELWMUL (math F8, F9, F11, F12)."""

from __future__ import annotations

from typing import Any, Final

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
    phase_plan,
    phases_of,
    same_shape,
)
from bhemu.numerics.conversion import src_cells
from bhemu.numerics.operands import SRC_BITS, U32, Array, raw_bits, shown
from bhemu.numerics.unit import DATA, unit

_BLOCKS_A_CALL: Final = 256
_BLOCK: Final = 128
"""Elements of one instruction."""
_A: Final = DATA
_B: Final = _A + _BLOCKS_A_CALL * _BLOCK
_VALUES: Final = _B + _BLOCKS_A_CALL * _BLOCK


def _elementwise(
    mnemonic: str, a: U32, b: U32, dst: U32 | None, formats: Arrangement, phases: tuple[int, ...], keep_denormals: bool
) -> U32:
    """Dst bits of one instruction for each block of 8x16 elements."""
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise FormatError(
            f"shapes {a.shape} and {b.shape} do not broadcast", remedy="see NumPy's broadcasting"
        ) from None
    adds = mnemonic != "ELWMUL"
    use_dst = not adds or dst is not None
    word = encode(mnemonic, dest_accum_en=int(adds and use_dst))
    size = int(np.prod(shape))
    flat_a, flat_b = np.broadcast_to(a, shape).reshape(-1), np.broadcast_to(b, shape).reshape(-1)
    flat_dst = np.zeros(size, np.uint32) if dst is None else same_shape(dst, shape).reshape(-1)
    out = np.empty(size, np.uint32)
    step = _BLOCKS_A_CALL * _BLOCK
    with unit("matrix") as u:
        formats.configure(u, keep_denormals=keep_denormals)
        for first in range(0, size, step):
            count = min(step, size - first)
            blocks = -(-count // _BLOCK)
            for position, source in ((_A, flat_a), (_B, flat_b), (_VALUES, flat_dst)):
                u.words[position : position + count] = source[first : first + count]
                u.words[position + count : position + blocks * _BLOCK] = 0
            plan = {
                loops.P_WORD: word,
                loops.P_ORDER: formats.order,
                loops.P_BLOCKS: blocks,
                loops.P_A: _A,
                loops.P_B: _B,
                loops.P_DST: _VALUES,
                loops.P_USE_DST: int(use_dst),
            } | phase_plan(phases)
            u.execute("numerics_elementwise", loops.elementwise_loop, [word >> 24], plan)
            out[first : first + count] = u.words[_VALUES : _VALUES + count]
    return out.reshape(shape)


def _elementwise_values(
    mnemonic: str, a: ArrayLike, b: ArrayLike, dst: Any, formats: Arrangement, fidelity: Fidelity, keep_denormals: bool
) -> Array:
    cells = src_cells(a, formats.a, "a"), src_cells(b, formats.b, "b")
    old = None if dst is None else formats.dst_bits(dst)
    bits = _elementwise(mnemonic, *cells, old, formats, phases_of(fidelity), keep_denormals)
    return shown(formats.values_result(bits))  # type: ignore[no-any-return]


@checked
def elementwise_bits(
    mnemonic: str,
    a: ArrayLike,
    b: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    keep_denormals: bool = False,
) -> Array:
    """`elwadd`, `elwsub` and `elwmul` on raw bits.

    Args:
        mnemonic: "ELWADD", "ELWSUB" or "ELWMUL".
        a, b: 19-bit cells of SrcA and SrcB, broadcast (rules I.2).
        dst: Dst values in the usual order of `dst_format` bits (INT32: sign-magnitude).

    Returns:
        Bits of `dst_format`, uint32 or uint16.

    Raises:
        ConfigurationError: another instruction.
    """
    if mnemonic not in ("ELWADD", "ELWSUB", "ELWMUL"):
        raise ConfigurationError(f"{mnemonic!r} is not element-wise", remedy="say ELWADD, ELWSUB or ELWMUL")
    formats = arrange(source_format, dst_format)
    cells = raw_bits(a, "a", SRC_BITS), raw_bits(b, "b", SRC_BITS)
    old = None if dst is None else formats.raw_dst(dst)
    bits = _elementwise(mnemonic, *cells, old, formats, phases_of(fidelity), keep_denormals)
    return shown(formats.bits_result(bits))  # type: ignore[no-any-return]


@checked
def elwadd(
    a: ArrayLike,
    b: ArrayLike,
    dst: ArrayLike | None = None,
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    keep_denormals: bool = False,
) -> Array:
    """a + b, or dst + (a + b), as ELWADD computes it (math F11, F12). `a` is SrcA, `b` SrcB.

    The operand with the smaller magnitude is shifted to the exponent of the other, half up on its magnitude, and drops
    out from a distance of 12. The sum is aligned with Dst (ties toward plus infinity), added, and rounded to
    `dst_format` half away from zero.

    Special values: as `mvmul`. Operands with exponent 0 are +0, whatever their sign, unless `keep_denormals`; the
    result zero is +0.

    Args:
        a, b: broadcast; brought to `source_format` as `mvmul` does.
        dst: old values (dest_accum_en = 1); by default Dst is overwritten (dest_accum_en = 0).
        dst_format, source_format: as `mvmul`.
        keep_denormals: Zero_Flag_disabled_src: SrcB keeps its denormals (F5).

    Raises:
        FormatError, ConfigurationError: as `mvmul`.

    Example:
        >>> elwadd(1.0, 2.0**-10, source_format="tf32").item()
        1.0009765625
        >>> elwadd(1.0, 2.0**-8, dst_format="bf16").item()  # a tie grows
        1.0078125
    """
    formats = arrange(source_format, dst_format)
    return _elementwise_values("ELWADD", a, b, dst, formats, "LoFi", keep_denormals)


@checked
def elwsub(
    a: ArrayLike,
    b: ArrayLike,
    dst: ArrayLike | None = None,
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    keep_denormals: bool = False,
) -> Array:
    """a - b, or dst + (a - b), as ELWSUB computes it: `elwadd` with the sign of `b` flipped first (math F11).

    Example:
        >>> elwsub([3.0, 1.0], 1.0).tolist()
        [2.0, 0.0]
    """
    formats = arrange(source_format, dst_format)
    return _elementwise_values("ELWSUB", a, b, dst, formats, "LoFi", keep_denormals)


@checked
def elwmul(
    a: ArrayLike,
    b: ArrayLike,
    dst: ArrayLike | None = None,
    fidelity: Fidelity = "LoFi",
    dst_format: DataFormat | str | None = None,
    *,
    source_format: SourceFormat = "bf16",
    keep_denormals: bool = False,
) -> Array:
    """dst + a * b as ELWMUL computes it, one instruction a fidelity phase (math F8, F9, F11, F12).

    `a` is SrcA, of whose 11 significand bits a phase sees 5 and never the last; `b` is SrcB, of which it sees 7 or 4.
    Each phase rounds Dst to `dst_format`, half away from zero. A product whose exponent falls to 0 or below is zero.
    Special values: as `mvmul`.

    Args:
        a, b: broadcast; brought to `source_format` as `mvmul` does.
        dst: old values, zeros by default: ELWMUL always accumulates.
        fidelity, dst_format, source_format: as `mvmul`.
        keep_denormals: Zero_Flag_disabled_src: SrcB keeps its denormals (F5).

    Raises:
        FormatError, ConfigurationError: as `mvmul`.

    Example:
        >>> elwmul(1.0, 1.875, 1.0).item()
        2.875
        >>> [elwmul(1.03125, 1.125, fidelity=f).item() for f in ("LoFi", "HiFi2")]
        [1.125, 1.16015625]
    """
    formats = arrange(source_format, dst_format)
    return _elementwise_values("ELWMUL", a, b, dst, formats, fidelity, keep_denormals)
