"""Writing files whole or not at all, finding them, and what a file may say about an array in it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

_ARRAY_TYPE: Final = re.compile(r"[<>|=]?[?a-zA-Z]\d{0,6}")
"""What `dtype.str` gives. NumPy reads more than that, some of it as Python."""


def array_type(text: object) -> np.dtype[Any]:
    """The type of an array as a file has it: `dtype.str`, such as `<u4`.

    Raises:
        TypeError, ValueError: it is not such a text.
    """
    if not isinstance(text, str) or not _ARRAY_TYPE.fullmatch(text):
        raise ValueError(f"{text!r} is not the type of an array")
    return np.dtype(text)


def files_below(directory: Path, ending: str) -> Iterator[Path]:
    """Files whose names end so, in a directory and those below it; none where there is no such directory.

    What another process removes meanwhile is passed over; that is not an error here, as it is with `Path.rglob`.
    """
    for where, _, names in os.walk(directory):
        yield from (path for name in names if name.endswith(ending) and (path := Path(where, name)).is_file())


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: a full disk or an interrupt leaves what was there before.

    Raises:
        OSError: the file cannot be written.
    """
    write_all({path: content})


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write all the files or, when one cannot be written, none; see `write_whole`.

    Raises:
        OSError: a file cannot be written; `filename` says which.
    """
    written: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for path, content in contents.items():
            if path.exists() and not path.is_file():  # such as /dev/stdout
                path.write_bytes(content)
                continue
            target = Path(os.path.realpath(path))  # a symbolic link stays one
            descriptor, temporary = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
            written.append((Path(temporary), target))
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            rights = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
            Path(temporary).chmod(rights)
        for place, path in written:
            place.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        for place, _ in written:
            with contextlib.suppress(OSError):
                place.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
