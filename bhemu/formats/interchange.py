"""Arrays of other libraries: in without a copy where memory allows, and out to torch. torch is never imported on the
way in: a caller who passes a tensor has imported it."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from bhemu.checks import checked
from bhemu.errors import FormatError

# torch dtypes that NumPy lacks: (dtype of the same width to carry the bits, dtype to read them as).
_TORCH_CARRIERS: dict[str, tuple[str, Any]] = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
}


def _is_torch(obj: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, getattr(torch, "Tensor", ()))


def as_numpy(obj: Any) -> NDArray[Any]:
    """Any array-like as a NumPy array in native byte order, sharing memory where possible.

    Args:
        obj: NumPy array, torch tensor on the CPU, object with `__array__`, or nested sequence of numbers.

    Raises:
        FormatError: a tensor on another device or a sparse one, a ragged sequence.
    """
    if _is_torch(obj):
        return _from_torch(obj)
    if isinstance(obj, np.ma.MaskedArray):
        raise FormatError("a masked array would lose its mask", remedy="pass array.filled(value)")
    try:
        array = np.asarray(obj)
    except (ValueError, TypeError) as error:
        raise FormatError(
            f"{type(obj).__name__} does not convert to a NumPy array: {error}", remedy="pass a rectangular array"
        ) from error
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _from_torch(tensor: Any) -> NDArray[Any]:
    if tensor.device.type != "cpu":
        raise FormatError(f"the tensor is on device {tensor.device}, not in host memory", remedy="pass tensor.cpu()")
    torch = sys.modules["torch"]
    plain = tensor.detach()
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        if name in _TORCH_CARRIERS:
            carrier, dtype = _TORCH_CARRIERS[name]
            array: NDArray[Any] = plain.view(getattr(torch, carrier)).numpy().view(dtype)
        else:
            array = plain.numpy()
    except (TypeError, RuntimeError) as error:
        raise FormatError(
            f"a torch tensor of dtype {name} does not convert to NumPy: {error}",
            remedy="pass a dense tensor of a plain dtype, for example tensor.to(torch.float32)",
        ) from error
    return array


@checked
def as_torch(array: NDArray[Any]) -> Any:
    """A NumPy or ml_dtypes array as a torch tensor that shares its memory; read-only arrays are copied.

    Raises:
        FormatError: torch is not installed, or it has no such dtype.
    """
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise FormatError("torch is not installed", remedy="pip install 'bhemu[torch]'") from error
    array = np.ascontiguousarray(array) if array.flags.writeable else array.copy()
    for name, (carrier, dtype) in _TORCH_CARRIERS.items():
        if array.dtype == dtype:
            return torch.from_numpy(array.view(carrier)).view(getattr(torch, name))
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise FormatError(f"torch has no dtype {array.dtype}", remedy="cast the array first") from error
