"""Whole tensors to L1 bytes and back.

Example:
    >>> import numpy as np
    >>> weights = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    >>> data = encode(weights, "bfp8")
    >>> data.nbytes == tensor_size((64, 64), "bfp8") == 4 * 1088
    True
    >>> bool(np.abs(decode(data, "bfp8", (64, 64)).astype(np.float32) - weights).max() <= 2**-7)
    True
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

import bhemu.checks as checks
from bhemu.errors import FormatError
from bhemu.formats import bfp, floats, integers
from bhemu.formats.data_format import DATUMS_PER_EXPONENT, DataFormat, TileShape
from bhemu.formats.interchange import as_numpy
from bhemu.formats.layout import check_whole_tiles, tilize, untilize

Rounding = Literal["nearest", "hardware"]
Interpretation = Literal["ieee", "tensix"]
Bytes = bytes | bytearray | memoryview | NDArray[np.uint8]

_CHUNK_DATUMS = 1 << 18
"""Datums that a BFP conversion works on at a time, to keep its many temporaries in cache."""

_MOST_DATUMS = 1 << 48
"""More than any memory holds; counts of bytes stay far below 64 bits."""

_T = TypeVar("_T", bound=str)


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    full = checks.shape(shape, error=FormatError)
    if math.prod(full) > _MOST_DATUMS:
        raise FormatError(f"shape {full} has too many datums", remedy=f"use {_MOST_DATUMS:,} datums at most")
    return full


def _blocks(shape: tuple[int, ...], tile_shape: TileShape | None) -> tuple[int, int]:
    """Blocks that carry their own exponent section, and datums of one: tiles, or the whole tensor if row-major."""
    datums = int(np.prod(shape, dtype=np.int64))
    if tile_shape is None:
        return 1, datums
    check_whole_tiles(shape, tile_shape)
    per_tile = tile_shape[0] * tile_shape[1]
    return datums // per_tile, per_tile


def _choice(value: Any, known: tuple[_T, ...], name: str) -> _T:
    for candidate in known:
        if value == candidate:
            return candidate
    raise FormatError(f"unknown {name} {value!r}", remedy=f"use {' or '.join(repr(k) for k in known)}")


def _forced(data_format: DataFormat, forced_exponent: int | None) -> None:
    if forced_exponent is None:
        return
    if not data_format.is_bfp:
        raise FormatError(
            f"forced_exponent has no meaning for {data_format.name}", remedy="Force_shared_exp affects BFP formats only"
        )
    limit = 255 if data_format.exponent_family == "B" else 31
    if not 0 <= checks.integer(forced_exponent, "forced_exponent") <= limit:
        raise FormatError(
            f"forced_exponent {forced_exponent} is not an exponent of {data_format.name}", remedy=f"use 0..{limit}"
        )


def tensor_size(
    shape: int | tuple[int, ...],
    data_format: DataFormat | str,
    tile_shape: TileShape | None = (32, 32),
    *,
    forced_exponent: int | None = None,
) -> int:
    """Bytes of a tensor in L1.

    Args:
        shape: shape [..., rows, columns].
        data_format: format or its name.
        tile_shape: tile rows and columns, or None for row-major order, where a BFP tensor has one exponent section.
        forced_exponent: as in `encode`.

    Raises:
        FormatError: unknown format or tile shape, or not whole tiles.

    Example:
        >>> tensor_size((64, 96), "bf16"), tensor_size((100,), "bfp4", None)
        (12288, 66)
    """
    chosen, full = DataFormat.parse(data_format), _shape(shape)
    _forced(chosen, forced_exponent)
    blocks, datums = _blocks(full, tile_shape)
    exponents = chosen.exponent_section_bytes(datums) if forced_exponent is None else 0
    return blocks * (exponents + chosen.datum_section_bytes(datums))


def encode(
    array: Any,
    data_format: DataFormat | str,
    *,
    tile_shape: TileShape | None = (32, 32),
    rounding: Rounding = "nearest",
    intermediate: DataFormat | str | None = None,
    forced_exponent: int | None = None,
) -> NDArray[np.uint8]:
    """A tensor as the bytes that belong in L1.

    Args:
        array: NumPy, ml_dtypes or torch array (or anything that NumPy converts) of shape [..., rows, columns].
        data_format: format or its name, see `DataFormat.parse`.
        tile_shape: tile rows and columns, or None for row-major order.
        rounding: `"nearest"` rounds once, to nearest even, as NumPy and ml_dtypes do; for BFP see
            `bhemu.formats.bfp.encode_nearest`; floats to integers round to nearest even and must be in range.
            `"hardware"` gives the packer's bits for these values in Dst: float formats from FP32 (other inputs are
            rounded to FP32 first), integers from sign-magnitude INT32 (INT8 and UINT8 saturate).
        intermediate: for `"hardware"`, the packer's intermediate format where there is a choice, see
            `bhemu.formats.floats.INTERMEDIATES`.
        forced_exponent: for BFP with `"nearest"`, the exponent byte of all datums; no exponent section is written, as
            for an unpacker with `Force_shared_exp`.

    Returns:
        One-dimensional uint8 array. In row-major order it shares the memory of an array whose bits already match, so
        copy it before changing either.

    Raises:
        FormatError: dtype or value that the format cannot hold, not whole tiles, unknown names, contradicting options.

    Example:
        >>> encode([[1.0, -2.0]], "bf16", tile_shape=None).tobytes().hex()
        '803f00c0'
    """
    chosen = DataFormat.parse(data_format)
    rounding = _choice(rounding, ("nearest", "hardware"), "rounding")
    _forced(chosen, forced_exponent)
    if rounding == "hardware" and forced_exponent is not None:
        raise FormatError("the packer cannot force a shared exponent", remedy="use rounding='nearest'")
    if intermediate is not None:
        if rounding != "hardware" or chosen.is_integer:
            raise FormatError(
                "intermediate names a step of the packer's float conversion; this call has none",
                remedy="pass it with a float or BFP format and rounding='hardware'",
            )
        intermediate = floats.choose_intermediate(chosen, intermediate)
    values = as_numpy(array)
    _check_dtype(values.dtype, chosen)
    blocks, _ = _blocks(values.shape, tile_shape)
    if chosen.is_bfp:
        flat = (values if tile_shape is None else tilize(values, tile_shape)).reshape(-1)
        return _encode_bfp(flat, blocks, chosen, rounding, intermediate, forced_exponent)
    if chosen.is_integer:
        raw = integers.encode(_simple_dtype(values), chosen, saturate=rounding == "hardware")
    elif rounding == "hardware":
        raw = floats.encode_hardware(_to_single(values).view(np.uint32), chosen, intermediate)
    elif values.dtype == chosen.dtype and chosen is not DataFormat.TF32:
        raw = np.ascontiguousarray(values).view(chosen.bits_dtype)
    else:
        raw = floats.encode_nearest(_to_float(values), chosen)
    return _as_bytes(raw if tile_shape is None else tilize(raw, tile_shape))


def decode(
    data: Bytes,
    data_format: DataFormat | str,
    shape: int | tuple[int, ...],
    *,
    tile_shape: TileShape | None = (32, 32),
    interpretation: Interpretation = "ieee",
    forced_exponent: int | None = None,
) -> NDArray[Any]:
    """Bytes from L1 as a tensor.

    Args:
        data: exactly `tensor_size(...)` bytes.
        data_format: format or its name.
        shape: shape [..., rows, columns] of the result.
        tile_shape: tile rows and columns, or None for row-major order.
        interpretation: `"ieee"` reads float bits as NumPy and ml_dtypes do, so that none is lost; `"tensix"` gives
            float32 numbers in the Matrix Unit's reading: FP16 and FP8 without Inf and NaN (exponent 31 is ordinary),
            exponent 0 is zero. BFP datums are first expanded as the unpacker does (negative zero is minus infinity; see
            `bhemu.formats.bfp.decode`). Integers have one reading.
        forced_exponent: for BFP data without an exponent section, the exponent byte of all datums
            (`Force_shared_exp`).

    Returns:
        Array of dtype `data_format.dtype` (float32 for `"tensix"`). In row-major order it shares the memory of `data`,
        read-only if that is, where no bit changes (`"ieee"` floats but TF32; integers but INT8 and INT32).

    Raises:
        FormatError: wrong number of bytes, unknown names, contradicting options, undefined BFP exponents.

    Example:
        >>> decode(bytes.fromhex("803f00c0"), "bf16", (1, 2), tile_shape=None)
        array([[1, -2]], dtype=bfloat16)
    """
    chosen, full = DataFormat.parse(data_format), _shape(shape)
    interpretation = _choice(interpretation, ("ieee", "tensix"), "interpretation")
    _forced(chosen, forced_exponent)
    raw = raw_bytes(data)
    wanted = tensor_size(full, chosen, tile_shape, forced_exponent=forced_exponent)
    if raw.size != wanted:
        raise FormatError(
            f"{raw.size} bytes do not hold a {chosen.name} tensor of shape {full}",
            remedy=f"it takes {wanted} bytes ({_order_name(tile_shape)})",
        )
    if chosen.is_bfp:
        blocks, datums = _blocks(full, tile_shape)
        values = _decode_bfp(raw, blocks, datums, chosen, interpretation, forced_exponent)
    else:
        bits = raw.view(chosen.bits_dtype)
        if chosen.is_integer:
            values = integers.decode(bits, chosen)
        elif interpretation == "tensix":
            values = floats.decode_tensix(bits, chosen)
        else:
            values = floats.decode_ieee(bits, chosen)
    return values.reshape(full) if tile_shape is None else untilize(values, full, tile_shape)


# Steps --------------------------------------------------------------------------------------------


def _order_name(tile_shape: TileShape | None) -> str:
    return "row-major" if tile_shape is None else f"{tile_shape[0]}x{tile_shape[1]} tiles"


def _as_bytes(raw: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(raw).reshape(-1).view(np.uint8)


def raw_bytes(data: Bytes) -> NDArray[np.uint8]:
    """Any buffer as a one-dimensional uint8 array, without a copy if it is contiguous."""
    if isinstance(data, np.ndarray):
        if data.dtype != np.uint8:
            raise FormatError(
                f"data has dtype {data.dtype}, not uint8", remedy="pass the bytes: data.view(numpy.uint8)"
            )
        return np.ascontiguousarray(data).reshape(-1)
    try:
        return np.frombuffer(data, np.uint8)
    except (TypeError, BufferError) as error:
        raise FormatError(
            f"{type(data).__name__} does not give bytes: {error}", remedy="pass bytes, a buffer or a uint8 array"
        ) from error


def _check_dtype(dtype: np.dtype[Any], data_format: DataFormat) -> None:
    """Refuse dtypes that are not real numbers, or wider than the conversions are exact for."""
    if dtype.kind in "biu" or floats.is_host_float(dtype) or integers.is_host_integer(dtype):
        return
    if dtype.kind == "c":
        remedy = "encode array.real and array.imag as two tensors"
    elif dtype.kind == "f":
        remedy = "cast with array.astype(numpy.float64) first"
    elif dtype.kind in "mM":
        remedy = "take the integers behind it with array.view(numpy.int64)"
    elif dtype.kind in "OSUT":
        remedy = "convert to numbers first, for example with array.astype(numpy.float32)"
    else:
        remedy = "encode its fields one at a time"
    raise FormatError(f"dtype {dtype} cannot be held by {data_format.name}", remedy=remedy)


def _simple_dtype(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as bool, integer, float32 or float64."""
    if values.dtype.kind in "biu" or values.dtype in (np.float32, np.float64):
        return values
    return values.astype(np.float32 if floats.is_host_float(values.dtype) else np.int64)


def _to_float(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as float32 or float64; 64-bit integers that need more than 53 bits are rounded to odd."""
    simple = _simple_dtype(values)
    return integers.to_float64_odd(simple) if simple.dtype.kind in "biu" else simple


def _to_single(values: NDArray[Any]) -> NDArray[np.float32]:
    """The numbers as FP32, nearest-even: what a host would put into Dst."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.ascontiguousarray(_to_float(values).astype(np.float32, copy=False))


def _encode_bfp(
    flat: NDArray[Any],
    blocks: int,
    data_format: DataFormat,
    rounding: Rounding,
    intermediate: DataFormat | str | None,
    forced_exponent: int | None,
) -> NDArray[np.uint8]:
    """Datums in storage order to exponent and datum sections, block after block."""
    if not flat.size:
        return np.empty(0, np.uint8)
    datums = flat.size // blocks
    groups = -(-datums // DATUMS_PER_EXPONENT)
    exponents = np.empty(blocks * groups, np.uint8)
    cells = np.empty((blocks * groups, DATUMS_PER_EXPONENT), np.uint8)
    missing = groups * DATUMS_PER_EXPONENT - datums
    if missing:  # only a row-major tensor, which is one block
        flat = np.concatenate([flat, np.zeros(missing, flat.dtype)])
    grouped = flat.reshape(-1, DATUMS_PER_EXPONENT)
    step = _CHUNK_DATUMS // DATUMS_PER_EXPONENT
    for start in range(0, len(grouped), step):
        part = slice(start, start + step)
        if rounding == "hardware":
            fp32_bits = _to_single(grouped[part]).view(np.uint32)
            exponents[part], cells[part] = bfp.encode_hardware(fp32_bits, data_format, intermediate)
        else:
            numbers = _to_float(grouped[part])
            single = floats.to_float32_odd(numbers) if numbers.dtype == np.float64 else numbers
            exponents[part], cells[part] = bfp.encode_nearest(single, data_format, forced_exponent)
    exponent_bytes = 0 if forced_exponent is not None else data_format.exponent_section_bytes(datums)
    out = np.zeros((blocks, exponent_bytes + data_format.datum_section_bytes(datums)), np.uint8)
    if exponent_bytes:
        out[:, :groups] = exponents.reshape(blocks, groups)
    packed = bfp.pack_datums(cells.reshape(blocks, -1), data_format.bits)
    out[:, exponent_bytes:] = packed[:, : out.shape[1] - exponent_bytes]
    return out.reshape(-1)


def bfp_sections(
    raw: NDArray[np.uint8], blocks: int, datums: int, data_format: DataFormat, forced_exponent: int | None = None
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Exponents [groups] and datums [groups, 16] of BFP blocks of `datums` datums each; a short group ends in 0."""
    groups = -(-datums // DATUMS_PER_EXPONENT)
    exponent_bytes = 0 if forced_exponent is not None else data_format.exponent_section_bytes(datums)
    rows = raw.reshape(blocks, -1)
    if forced_exponent is None:
        exponents = rows[:, :groups].reshape(-1)
    else:
        exponents = np.full(blocks * groups, forced_exponent, np.uint8)
    cells = bfp.unpack_datums(rows[:, exponent_bytes:], data_format.bits)[:, :datums]
    missing = groups * DATUMS_PER_EXPONENT - datums
    if missing:
        cells = np.pad(cells, ((0, 0), (0, missing)))
    return exponents, cells.reshape(-1, DATUMS_PER_EXPONENT)


def _decode_bfp(
    raw: NDArray[np.uint8],
    blocks: int,
    datums: int,
    data_format: DataFormat,
    interpretation: Interpretation,
    forced_exponent: int | None,
) -> NDArray[Any]:
    """Exponent and datum sections to values in storage order."""
    dtype = np.dtype(np.float32) if interpretation == "tensix" else data_format.dtype
    if not raw.size:
        return np.empty(0, dtype)
    exponents, cells = bfp_sections(raw, blocks, datums, data_format, forced_exponent)
    values = np.empty(cells.shape, dtype)
    step = _CHUNK_DATUMS // DATUMS_PER_EXPONENT
    for start in range(0, len(cells), step):
        part = slice(start, start + step)
        values[part] = bfp.decode(exponents[part], cells[part], data_format, tensix=interpretation == "tensix")
    return values.reshape(-1)[: blocks * datums]
