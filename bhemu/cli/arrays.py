"""`.npy` files: what goes in must be complete, what comes out is complete or absent."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bhemu.errors import FormatError
from bhemu.files import write_all

Array = np.ndarray[Any, Any]


def load_array(path: Path) -> Array:
    """The array of a `.npy` file.

    Raises:
        FormatError: no such file, not a `.npy` file, truncated, or of a dtype that `.npy` does not describe.
    """
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
            remedy="save array.astype(numpy.float32), which loses nothing; bhemu converts to the tensor's format",
        )
    return array


def portable(array: Array) -> Array:
    """The array in a dtype that `.npy` can name: floats as float32 (exact for every Tensix format), integers as is."""
    return array if array.dtype.kind in "biu" else array.astype(np.float32)


def check_target(path: Path) -> Path:
    """Refuse an output path that could not be written; returns the file that a symbolic link leads to.

    Raises:
        FormatError: the folder does not exist or is not writable, or the path is something other than a plain file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise FormatError(f"{path} is not a plain file", remedy="name a file, for example result.npy")
    folder = target.parent
    if not folder.is_dir():
        raise FormatError(f"{path}: there is no folder {folder}", remedy="create it, or write somewhere else")
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FormatError(
            f"{path}: cannot write into {folder} ({error.strerror})", remedy="choose a folder that you may write to"
        ) from None
    return target


def write_files(contents: Mapping[Path, Array | bytes]) -> None:
    """Write all the files or none. Arrays become `.npy` files.

    Raises:
        FormatError: the disk refused.
    """
    try:
        write_all(
            {path: content if isinstance(content, bytes) else _npy(content) for path, content in contents.items()}
        )
    except OSError as error:
        raise FormatError(f"cannot write {error.filename}: {error.strerror}", remedy="check the disk") from None


def _npy(array: Array) -> bytes:
    """The content of a `.npy` file."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()
