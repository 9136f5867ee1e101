"""Programs on another library: what memory it leaves, or why it refuses; and the same programs on bhemu."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bhemu.compare.calls import parse_message
from bhemu.compare.library import LibraryError, check_library
from bhemu.fuzz import layout, library_child
from bhemu.fuzz.layout import GPRS, OWN_PAGES, TILES
from bhemu.fuzz.machine import PAGE, FuzzTile, Program
from bhemu.machine.state import L1_SIZE

_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\d+")

Pieces = Sequence[tuple[int, int]]
"""(first byte, bytes) in L1."""
ALL: Final[Pieces] = ((0, L1_SIZE),)


@dataclass
class Answer:
    """What a library makes of a program.

    Attributes:
        pages: content of the pages of L1 that have changed, by number.
        ended: it came to the end of the program; False: it waits.
        refusal: its message; "" when it has not refused anything.
        clock: of the refusal, counted from the start of the program.
        killed: the signal that has ended it without a message.
    """

    pages: dict[int, bytes] = field(default_factory=dict)
    ended: bool = False
    refusal: str = ""
    clock: int = 0
    killed: int = 0


class OtherLibrary:
    """A library in a process of its own that executes programs.

    Raises:
        LibraryError: it cannot be loaded.
    """

    def __init__(self, path: Path) -> None:
        check_library(path)
        self._path = path
        requests, requests_to = os.pipe()
        replies_from, replies = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-S", library_child.__file__, str(path.resolve()), str(requests), str(replies)],
            pass_fds=(requests, replies),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(requests)
        os.close(replies)
        self._to = os.fdopen(requests_to, "wb", 1 << 20)
        self._from = os.fdopen(replies_from, "rb", 1 << 20)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()

    def run(self, programs: Sequence[tuple[Program, int, Pieces]]) -> list[Answer]:
        """Execute programs, each on a tile of its own.

        Args:
            programs: at most as many as there are tiles, each with the clocks that bhemu needs, and the parts of L1,
                by whole pages, that are looked at afterwards.
        """
        assert len(programs) <= len(TILES)
        request = len(programs).to_bytes(4, "little")
        for tile, (program, clocks, pieces) in enumerate(programs):
            request += library_child.pack_case(**layout.case(program, tile, clocks, pieces))
        try:
            self._to.write(request)
            self._to.flush()
            return [self._answer() for _ in programs]
        except BrokenPipeError:
            raise self._failed() from None

    def _answer(self) -> Answer:
        head = self._from.read(library_child.REPLY.size)
        if len(head) < library_child.REPLY.size:
            raise self._failed()
        how, size = library_child.REPLY.unpack(head)
        content = self._from.read(size)
        if how == library_child.GONE_ON:
            pages = {
                int.from_bytes(content[at : at + 4], "little"): content[at + 4 : at + 4 + PAGE]
                for at in range(1, size, 4 + PAGE)
            }
            return Answer(pages, ended=bool(content[0]))
        status, before = int.from_bytes(content[:4], "little"), int.from_bytes(content[4:12], "little")
        text = content[12:].decode("utf-8", "replace")
        said = parse_message(text)
        if said is not None:
            return Answer(refusal=f"{said.category}: {said.text}", clock=(said.clock or before) - before)
        if os.WIFSIGNALED(status):
            return Answer(killed=os.WTERMSIG(status))
        return Answer(refusal=f"ended with status {os.WEXITSTATUS(status)} and no message")

    def _failed(self) -> LibraryError:
        return LibraryError(
            f"{self._path}: its process has ended with status {self._process.wait()}",
            remedy="it must be a library with the interface of libttsim (tile H1)",
        )


def kind_of(refusal: str) -> str:
    """A message without its numbers, of one line: refusals of one kind are counted together."""
    return _NUMBERS.sub("#", refusal.splitlines()[0])[:160]


def pieces_of(tile: FuzzTile, program: Program) -> Pieces:
    """The pages of L1 that a program on bhemu has changed, and those with the GPRs."""
    changed = np.asarray(tile.record.l1).view(np.uint64) != layout.memory(layout.image(program)).view(np.uint64)
    pages = changed.reshape(-1, PAGE // 8).any(axis=1)
    pages[GPRS // PAGE] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], pages.astype(np.int8), [0]]))).tolist()
    return [(PAGE * low, PAGE * (high - low)) for low, high in zip(edges[::2], edges[1::2], strict=True)]


def differences(tile: FuzzTile, program: Program, answer: Answer) -> list[str]:
    """Where bhemu, which has executed the program on `tile`, and the library differ."""
    if answer.killed:
        return [f"the library is ended by {signal.Signals(answer.killed).name}"]
    if not answer.ended:
        return ["the library waits forever"]
    theirs = layout.memory(layout.image(program))
    for number, content in answer.pages.items():
        theirs[PAGE * number : PAGE * (number + 1)] = np.frombuffer(content, np.uint8)
    ours = np.asarray(tile.record.l1)
    found = []
    one, other = ours.view(np.uint32), theirs.view(np.uint32)
    for at in np.flatnonzero(one != other).tolist():
        if 4 * at // PAGE not in OWN_PAGES:
            found.append(f"L1 {4 * at:#x}: {int(one[at]):#010x}, library {int(other[at]):#010x}")
    for thread in np.unique(program.items >> 32).tolist():
        start = GPRS + 256 * thread
        gprs = theirs[start : start + 256].view(np.uint32)
        for number in np.flatnonzero(gprs != tile.record.gpr[thread]).tolist():
            ours_gpr = int(tile.record.gpr[thread, number])
            found.append(f"gpr[{thread}, {number}]: {ours_gpr:#x}, library {int(gprs[number]):#x}")
    return found
