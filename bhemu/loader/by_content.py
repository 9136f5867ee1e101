"""Which ELF file the code in L1 comes from, found by the code itself.

A host may load a kernel at another address than it was linked for, and adapt the few instructions that depend on it.
So files are found by runs of equal instructions, and one counts when most of what was found is equal.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.errors import BhemuError
from bhemu.loader.elf import Executable, SourceLine, load_elf
from bhemu.loader.symbols import Symbol

Array = np.ndarray[Any, Any]

RUN: Final = 4
"""Instructions of a run."""
_EQUAL: Final = 0.8
"""A file is what is in memory when so large a part of its instructions there is equal."""
_FEWEST: Final = 6
"""Equal runs without which a file is not looked at."""
_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x27D4EB2F165667C5], np.uint64)
_ELF_HEADER: Final = struct.Struct("<16sHHIIIIIHHHHHH")
_PROGRAM_HEADER: Final = struct.Struct("<8I")
_PT_LOAD, _PF_X, _EM_RISCV = 1, 1, 243


@dataclass(frozen=True)
class Moved:
    """An executable that is in memory at another address than it was linked for.

    Attributes:
        executable: as it was linked.
        distance: bytes from there to where it is.
        first, end: addresses in memory that its code takes.
        equal: which part of the instructions that were compared is equal.
    """

    executable: Executable
    distance: int
    first: int
    end: int
    equal: float

    @property
    def path(self) -> Path:
        """The file."""
        return self.executable.path

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """The function that holds an address in memory, with its address there."""
        found = self.executable.symbol_at(address - self.distance)
        if found is None:
            return None
        return replace(found[0], address=found[0].address + self.distance), found[1]

    def line_at(self, address: int) -> SourceLine | None:
        """The source line of an address in memory."""
        return self.executable.line_at(address - self.distance)


def _hashes(words: Array) -> Array:
    """uint64 [n - RUN + 1]: of each run of instructions."""
    wide = words.astype(np.uint64)
    count = max(len(words) - RUN + 1, 0)
    mixed = np.zeros(count, np.uint64)
    for at in range(RUN):
        mixed ^= (wide[at : at + count] + np.uint64(at + 1)) * _FACTORS[at]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _FACTORS[(at + 1) % RUN]
    return mixed


def _text(path: Path) -> tuple[int, Array] | None:
    """(address, instructions) of the first executable segment of a file; None when it is not one for the cores."""
    try:
        content = path.read_bytes()
        head = _ELF_HEADER.unpack_from(content)
        if head[0][:5] != b"\x7fELF\x01" or head[2] != _EM_RISCV:
            return None
        for index in range(head[10]):
            kind, offset, address, _, size, _, flags, _ = _PROGRAM_HEADER.unpack_from(
                content, head[5] + index * head[9]
            )
            if kind == _PT_LOAD and flags & _PF_X and size >= 4:
                return address, np.frombuffer(content, "<u4", size // 4, offset)
    except (OSError, ValueError, struct.error):
        return None
    return None


class CodeIndex:
    """Instructions of many ELF files, to find which of them memory holds.

    Args:
        files: ELF files; others are passed over. Of equal ones the last counts.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files: list[tuple[Path, int, Array]] = []
        hashes, owners, offsets = [], [], []
        for path in files:
            found = _text(path)
            if found is None:
                continue
            runs = _hashes(found[1])
            hashes.append(runs)
            owners.append(np.full(len(runs), len(self._files), np.int64))
            offsets.append(np.arange(len(runs), dtype=np.int64))
            self._files.append((path, *found))
        self._hashes = np.concatenate(hashes) if hashes else np.zeros(0, np.uint64)
        order = np.argsort(self._hashes, kind="stable")
        self._hashes = self._hashes[order]
        self._owners = np.concatenate(owners)[order] if owners else np.zeros(0, np.int64)
        self._offsets = np.concatenate(offsets)[order] if offsets else np.zeros(0, np.int64)
        self._loaded: dict[Path, Executable | None] = {}
        self.used: set[Path] = set()
        """Files that were found in memory."""

    def __len__(self) -> int:
        return len(self._files)

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return [path for path, _, _ in self._files]

    def find(self, address: int, content: bytes) -> list[Moved]:
        """The files that a piece of memory holds code of, those with the most of it first.

        Args:
            address: of the piece.
            content: its bytes.
        """
        words = np.frombuffer(content, "<u4", len(content) // 4)
        runs = _hashes(words)
        low = np.searchsorted(self._hashes, runs, "left")
        count = np.searchsorted(self._hashes, runs, "right") - low
        at = np.repeat(np.arange(len(runs)), count)
        found = np.repeat(low, count) + (np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count))
        starts = at - self._offsets[found]  # where the file begins in the piece, in words
        keys, votes = np.unique(self._owners[found] << 32 | (starts + (1 << 31)), return_counts=True)
        taken = np.zeros(len(words), bool)
        result = []
        for index in np.lexsort((-keys, -votes)):
            if votes[index] < _FEWEST:
                break
            moved = self._compare(
                int(keys[index] >> 32), int(keys[index] & 0xFFFFFFFF) - (1 << 31), words, taken, address
            )
            if moved is not None:
                result.append(moved)
        return result

    def _compare(self, owner: int, start: int, words: Array, taken: Array, address: int) -> Moved | None:
        """The file when it is what is there, and that is not another one's already."""
        path, base, text = self._files[owner]
        first, end = max(start, 0), min(start + len(text), len(words))
        free = ~taken[first:end]
        if free.sum() < _FEWEST:
            return None
        equal = float((text[first - start : end - start] == words[first:end])[free].mean())
        if equal < _EQUAL:
            return None
        executable = self._load(path)
        if executable is None:
            return None
        taken[first:end] = True
        self.used.add(path)
        where = address + 4 * start
        return Moved(executable, where - base, where, where + 4 * len(text), equal)

    def _load(self, path: Path) -> Executable | None:
        if path not in self._loaded:
            try:
                self._loaded[path] = load_elf(path)
            except BhemuError:
                self._loaded[path] = None
        return self._loaded[path]
