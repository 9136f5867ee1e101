"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write beside the target, then rename: a full disk or an interrupt leaves what was there before.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_bytes(content)
        return
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    descriptor, temporary = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        rights = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        Path(temporary).chmod(rights)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
