"""Arrays in `.npy` files that NumPy reads by itself: a format that NumPy does not have is saved as float32, exactly."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.errors import FormatError
from bhemu.files import write_whole

Array = np.ndarray[Any, Any]


@checked
def load(path: str | Path) -> Array:
    """The array of a `.npy` file.

    Raises:
        FormatError: no such file, not a `.npy` file, truncated, or of a dtype that `.npy` does not describe.
    """
    path = checks.path(path)
    if not path.is_file():
        raise FormatError(f"{path}: {'not a file' if path.exists() else 'no such file'}", remedy="name a .npy file")
    try:
        with path.open("rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                raise FormatError(f"{path} is not a .npy file", remedy="write it with numpy.save(path, array)")
            stream.seek(0)
            array: Array = np.load(stream, allow_pickle=False)
    except FormatError:
        raise
    except Exception as error:  # NumPy's reader fails in many ways on a damaged header
        reason = " ".join(str(error).split())
        raise FormatError(
            f"{path}: the .npy file is truncated or damaged ({reason})",
            remedy="write it again with numpy.save(path, array)",
        ) from None
    if array.dtype.kind == "V":
        raise FormatError(
            f"{path}: dtype {array.dtype} does not say what the bytes mean; .npy files cannot name bfloat16 or FP8",
            remedy="use bhemu.formats.files.save, or save array.astype(numpy.float32), which loses nothing; bhemu "
            "converts to the tensor's format",
        )
    return array


def portable(array: Array) -> Array:
    """The array in a dtype that `.npy` can name: floats as float32 (exact for every Tensix format), integers as is."""
    return array if array.dtype.kind in "biu" else array.astype(np.float32)


def npy(array: Array) -> bytes:
    """The content of a `.npy` file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


@checked
def save(path: str | Path, array: Array) -> Path:
    """Save an array as a `.npy` file that NumPy and bhemu's commands read back, see `portable`.

    Returns:
        The path.

    Raises:
        FormatError: the file cannot be written.
    """
    target = checks.path(path)
    try:
        write_whole(target, npy(portable(np.asarray(array))))
    except OSError as error:
        raise FormatError(
            f"cannot write {target}: {error.strerror}", remedy="name a file in a folder that exists"
        ) from None
    return target
