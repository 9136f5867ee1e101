"""`.npy` files: what goes in must be complete, what comes out is complete or absent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bhemu.errors import FormatError
from bhemu.files import write_all
from bhemu.formats.files import npy

Array = np.ndarray[Any, Any]


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
        write_all({path: content if isinstance(content, bytes) else npy(content) for path, content in contents.items()})
    except OSError as error:
        raise FormatError(f"cannot write {error.filename}: {error.strerror}", remedy="check the disk") from None
