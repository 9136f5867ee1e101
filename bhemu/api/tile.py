"""One Tensix tile for notebooks and scripts: memory, registers, instructions, snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

import bhemu.checks as checks
from bhemu.api.tile_view import TileView
from bhemu.checks import checked
from bhemu.chip.snapshot import LAYOUT
from bhemu.errors import ConfigurationError, UndefinedBehavior
from bhemu.isa.assembler import assemble_program, disassemble
from bhemu.machine.state import TILE, new_tiles, reset
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores
from bhemu.timed import SiliconTime

Array = np.ndarray[Any, Any]


@checked
class Snapshot:
    """A copy of a whole tile, from `Tile.snapshot`; it can be compared and pickled."""

    def __init__(self, content: Array) -> None:
        self._content = content
        self._layout = LAYOUT

    def content_for(self, size: int) -> Array:
        """The bytes of the tile's record.

        Raises:
            ConfigurationError: another version of bhemu has made the copy.
        """
        if self._layout != LAYOUT or self._content.size != size:
            raise ConfigurationError(
                "the copy was made by a version of bhemu that keeps other state", remedy="make it with this version"
            )
        return self._content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bool(np.array_equal(self._content, other._content))

    __hash__ = None  # type: ignore[assignment]


@runtime_checkable
class Recorder(Protocol):
    """What the host reports to a recorder (`bhemu.recording.Recorder`)."""

    def attach(self, tile: Tile) -> None:
        """Record what the tile executes from now on."""

    def note(self, thread: int, kind: str, values: tuple[int, ...], line: int) -> None:
        """A thread's core did something past its FIFO: `store` (config words), `post` or `get` (a semaphore)."""

    def saw(self, thread: int, value: int) -> None:
        """What a thread's core finds, or would find: after each cycle, and when it continues or waits."""

    def resumed(self, thread: int, waited_for_others: bool) -> None:
        """The schedule lets a thread's core go on."""


class Tile(TileView):
    """A Tensix tile after reset.

    Example:
        >>> import numpy as np
        >>> import bhemu
        >>> tile = bhemu.Tile()
        >>> tile.write_tensor(0x10000, np.ones((32, 32), np.float32), "bf16")
        2048
        >>> tile.execute(0, "SETDMAREG 0x1234, 6")
        >>> hex(tile.gpr[0, 3])
        '0x1234'
    """

    def __init__(self, *, allow_open: bool = False, timed: bool = False) -> None:
        """
        Args:
            allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
            timed: a clock of the tile is an estimate of a cycle of silicon (docs/time.md): for programs of its cores.
                `execute` takes no account of time.
        """
        allowed = checks.flag(allow_open, "allow_open")
        is_timed = checks.flag(timed, "timed")
        self._tiles = new_tiles(1)
        super().__init__(Cores(Coprocessor(self._tiles)))
        self._driver = self._cores.coprocessor
        self.record.allow_open = int(allowed)
        self.recorder: Recorder | None = None
        self.time = SiliconTime() if is_timed else None
        """What the cycles of a timed tile are made of: `tile.time.report()`; None in functional mode."""
        if self.time is not None:
            self.time.attach(self)

    @property
    def coprocessor(self) -> Coprocessor:
        """The three threads, or the recorder that has taken their place."""
        return self._driver

    @coprocessor.setter
    def coprocessor(self, driver: Coprocessor) -> None:
        self._driver = driver

    # --- execution --------------------------------------------------------------------------------------------------

    def execute(self, thread: int, instructions: str | int | Iterable[str | int]) -> None:
        """Execute instructions on a thread, one after the other, and what they scheduled with SFPLOADMACRO.

        Args:
            thread: 0 unpack, 1 math, 2 pack.
            instructions: assembly text (one or more lines), an instruction word, or an iterable of those.

        Raises:
            AssemblyError: the text is not an instruction.
            UndefinedBehavior: an instruction waits for something that no agent of this tile will do.
            BhemuError: an instruction was refused; its category says why.
        """
        if checks.integer(thread, "thread") not in (0, 1, 2):
            raise UndefinedBehavior(f"thread {thread} does not exist", remedy="use 0 (unpack), 1 (math) or 2 (pack)")
        for word in list(_words(instructions)):
            self.coprocessor.push(thread, word)
            if not self.coprocessor.drain(thread):
                self.record.frontend.gate_full[thread] = 0
                self.record.frontend.wait_word[thread] = 0
                raise UndefinedBehavior(
                    f"{disassemble(word)} waits on thread {thread}, and nothing else runs that could end the wait",
                    remedy="execute the instruction of the other thread first, or run a program with three threads",
                )
        self.coprocessor.settle()

    def clock(self, clocks: int) -> None:
        """Let clocks of the tile pass: cores that are out of reset and the coprocessor execute (tile T34).

        Raises:
            BhemuError: an instruction was refused; the core at fault halts, the tile can go on.
        """
        self.cores.advance(checks.integer(clocks, "clocks", 0, checks.MAX_CLOCKS))

    def reset(self) -> None:
        """Back to the state after reset; L1 keeps its contents."""
        allow_open = int(self.record.allow_open)
        reset(self._tiles, 0)
        self.record.allow_open = allow_open
        if self.time is not None:
            self.time.restart()

    def snapshot(self) -> Snapshot:
        """A copy of the whole state, L1 included."""
        content = self._bytes().copy()
        content.view(TILE)["handlers"] = 0  # no state: where this process has its compiled functions
        return Snapshot(content)

    def restore(self, snapshot: Snapshot) -> None:
        """Put the tile back into a snapshot's state. Whether it uses recommended choices (`allow_open`) stays its own.

        Raises:
            ConfigurationError: another version of bhemu has made the snapshot.
        """
        content = checks.instance(snapshot, "snapshot", Snapshot).content_for(self._bytes().size)
        handlers, allow_open = int(self.record.handlers), int(self.record.allow_open)
        self._bytes()[...] = content
        self.record.handlers, self.record.allow_open = handlers, allow_open
        if self.time is not None:
            self.time.restart()

    def __getstate__(self) -> tuple[bool, bool, Snapshot]:
        """What `copy` and `pickle` take: the state, and whether it is timed. A recorder stays with the original."""
        return bool(self.record.allow_open), self.time is not None, self.snapshot()

    def __setstate__(self, state: tuple[bool, bool, Snapshot]) -> None:
        allow_open, timed, snapshot = state
        Tile.__init__(self, allow_open=allow_open, timed=timed)
        self.restore(snapshot)

    def _bytes(self) -> Array:
        """The record's memory; copying it field by field would copy L1 once for each of its views."""
        return self._tiles.view(np.ndarray).view(np.uint8)

    def _repr_html_(self) -> str:
        from bhemu.api.html import tile_html

        return tile_html(self.record, repr(self)[1:-1])

    def __repr__(self) -> str:
        return f"<Tile: {int(self.record.issued.sum())} instructions executed>"


def _words(instructions: str | int | Iterable[str | int]) -> Iterable[int]:
    if isinstance(instructions, str):
        yield from assemble_program(instructions)
    elif isinstance(instructions, Iterable) and not isinstance(instructions, bytes):
        for item in instructions:
            yield from _words(item)
    else:
        yield checks.integer(instructions, "instruction", 0, 0xFFFFFFFF)
