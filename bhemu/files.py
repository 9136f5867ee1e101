"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


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
