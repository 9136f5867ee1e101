"""Files of the compile cache: read only when they are what was stored, and when no other user can have written them.

A file is a header, a digest and the content. The digest covers the file's own name too, so that a damaged file, or one
under another's name, counts as missing. A digest does not stop another user of the computer, who can compute it: a
directory or file that others can write to is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import tempfile
import warnings
from pathlib import Path
from typing import Final

_MAGIC: Final = b"bhemu cache 2\n"
_DIGEST_BYTES: Final = 32
_HAS_OWNERS: Final = hasattr(os, "getuid")


class CacheWarning(UserWarning):
    """The compile cache cannot be used, or cannot be written: results are the same, and come later."""


def cache_directory() -> Path:
    """`$BHEMU_CACHE`, else `$XDG_CACHE_HOME/bhemu`, else `~/.cache/bhemu`."""
    explicit = os.environ.get("BHEMU_CACHE")
    if explicit:
        return Path(explicit)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "bhemu"


@functools.cache
def _say_once(message: str) -> None:
    warnings.warn(message, CacheWarning, stacklevel=2)


@functools.cache
def _is_own_group(group: int) -> bool:
    """True for a group that has this user alone, as many systems make one for each."""
    import grp
    import pwd

    try:
        known, user = grp.getgrgid(group), pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return False
    return known.gr_name == user and set(known.gr_mem) <= {user}


def _reach_of_others(status: os.stat_result) -> str | None:
    """How another user can write a file or directory; None when only this user and the administrator can."""
    if status.st_uid not in (os.getuid(), 0):
        return f"belongs to user {status.st_uid}"
    if status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid)):
        return "can be written by other users"
    return None


def _reach_into(directory: Path) -> str | None:
    """How another user can put files into a directory; None when only this user and the administrator can."""
    if not _HAS_OWNERS:
        return None
    place = directory.absolute()
    for folder in (place, *place.parents):  # who can write to a parent can put another directory in its place,
        status = folder.stat()
        reason = _reach_of_others(status)
        if folder != place and status.st_mode & stat.S_ISVTX and status.st_uid in (os.getuid(), 0):
            reason = None  # unless it is like /tmp, where others cannot replace what is not theirs
        if reason is not None:
            return f"{folder} {reason}. Change that (chmod go-w {folder})"
    return None


@functools.cache
def _is_trusted(directory: Path) -> bool:
    """True when only this user, or the administrator, can put files there. A refusal is reported once."""
    reason = _reach_into(directory)
    if reason is not None:
        _say_once(
            f"the compile cache {directory} is not used: {reason}, or name a directory of your own in $BHEMU_CACHE"
        )
    return reason is None


def can_store() -> bool:
    """True when what `store` writes can be fetched later, as far as one can tell without writing."""
    place = cache_directory().absolute()
    there = next(folder for folder in (place, *place.parents) if os.path.exists(folder))
    return there.is_dir() and os.access(there, os.W_OK) and _reach_into(there) is None


def _digest(path: Path, content: bytes) -> bytes:
    digest = hashlib.blake2b(path.name.encode() + b"\0", digest_size=_DIGEST_BYTES)
    digest.update(content)
    return digest.digest()


def _is_own(file: int) -> bool:
    return not _HAS_OWNERS or _reach_of_others(os.fstat(file)) is None


def fetch(path: Path) -> bytes | None:
    """What `store` has written; None when the file is missing, or is another one."""
    try:
        with path.open("rb") as file:
            if not _is_trusted(path.parent) or not _is_own(file.fileno()):
                return None
            whole = file.read()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    content = whole[start:]
    if whole[:start] != _MAGIC + _digest(path, content):
        return None
    return content


def is_intact(path: Path, digest: bytes) -> bool:
    """True for a file without a header that has this BLAKE2b digest, and that no other user can have written."""
    try:
        with path.open("rb") as file:
            if not _is_trusted(path.parent) or not _is_own(file.fileno()):
                return False
            return hashlib.blake2b(file.read(), digest_size=len(digest)).digest() == digest
    except OSError:
        return False


def store(path: Path, content: bytes, *, header: bool = True) -> None:
    """Write a cache file so that a concurrent reader sees all of it or nothing.

    A cache that cannot be written is not an error; it is reported once.

    Args:
        path: of the file.
        content: what `fetch` will give back.
        header: False leaves out what `fetch` checks, for a file that others read; see `is_intact`.
    """
    temporary = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_trusted(path.parent):
            return
        descriptor, temporary = tempfile.mkstemp(".tmp", path.stem, path.parent)  # for this user alone
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MAGIC + _digest(path, content) + content if header else content)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        reason = error.strerror or str(error)
        _say_once(f"the compile cache {path.parent} cannot be written ({reason}): next time bhemu compiles again")
    except BaseException:  # interrupted
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise
