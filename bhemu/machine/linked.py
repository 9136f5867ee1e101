"""The library of all entries, which `bhemu warm` links: loading it takes milliseconds, loading entry by entry a second.

It is in the directory of the cache. A small file beside it, made and checked as all files of the cache are, has its
name and digest, for one processor and one set of compilers. Entries have the names under which the cache knows them, so
an entry whose text has changed since is not found here.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import marshal
from pathlib import Path
from typing import Final

from bhemu.machine.cache import cache_directory, fetch, is_intact, store

_MARSHAL: Final = 4
COUNT: Final = "bhemu_entry_count"
"""Symbol of the library: how many entries it has, int64."""
TABLE: Final = "bhemu_entries"
"""Symbol of the library: name and address of each entry."""


class _Row(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_int64))


def _note(toolchain: tuple[object, ...]) -> Path:
    return cache_directory() / f"library-{hashlib.sha256(repr(toolchain).encode()).hexdigest()[:24]}.bin"


def _known(toolchain: tuple[object, ...]) -> tuple[str, bytes, bytes] | None:
    """(name, digest, hash of what it is made of) of the library that was made last."""
    known = fetch(_note(toolchain))
    return None if known is None else marshal.loads(known)


def library_path(toolchain: tuple[object, ...]) -> Path | None:
    """The library for these compilers and this processor; None when there is none, or it is not what was made."""
    known = _known(toolchain)
    if known is None:
        return None
    path = cache_directory() / known[0]
    return path if is_intact(path, known[1]) else None


def library_made_of(toolchain: tuple[object, ...], made_of: bytes) -> bytes | None:
    """The content of the library, if it is made of what a hash says."""
    known, path = _known(toolchain), library_path(toolchain)
    return path.read_bytes() if known is not None and path is not None and known[2] == made_of else None


def keep_library(toolchain: tuple[object, ...], content: bytes, made_of: bytes) -> None:
    """Put a library into the cache, in the place of the one before."""
    digest = hashlib.blake2b(content, digest_size=32).digest()
    directory, before = cache_directory(), library_path(toolchain)
    name = f"bhemu-{digest.hex()[:24]}.so"
    store(directory / name, content, header=False)
    store(_note(toolchain), marshal.dumps((name, digest, made_of), _MARSHAL))
    if before is not None and before.name != name:
        with contextlib.suppress(OSError):  # processes that have loaded it keep it
            before.unlink()


@functools.cache
def addresses(toolchain: tuple[object, ...]) -> dict[str, int]:
    """Addresses of the library's entries by name; nothing when there is no library."""
    path = library_path(toolchain)
    if path is None:
        return {}
    try:
        library = ctypes.CDLL(str(path))
        count = ctypes.c_int64.in_dll(library, COUNT).value
        rows = (_Row * count).in_dll(library, TABLE)
    except (OSError, ValueError):  # of another kind of system, or replaced meanwhile
        return {}
    return {row.name.decode(): row.address for row in rows}
