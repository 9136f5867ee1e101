"""One Tensix tile for notebooks and scripts: memory, registers, instructions, snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from bhemu.errors import AssemblyError, MemoryError_, UndefinedBehavior
from bhemu.formats import DataFormat, TileShape, decode, encode, tensor_size
from bhemu.host.views import ConfigView, DstView, SrcView
from bhemu.isa.assembler import assemble_program, disassemble
from bhemu.machine.agents import AGENT_NAMES, NOC
from bhemu.machine.state import L1_SIZE, new_tiles, reset
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores

Array = np.ndarray[Any, Any]


class Snapshot:
    """A copy of a whole tile, from `Tile.snapshot`."""

    def __init__(self, content: Array) -> None:
        self._content = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and bool(np.array_equal(self._content, other._content))

    __hash__ = None  # type: ignore[assignment]


class Recorder(Protocol):
    """What the host tells a recorder (`bhemu.debug.Recorder`)."""

    def attach(self, tile: Tile) -> None:
        """Record what the tile executes from now on."""

    def note(self, thread: int, kind: str, values: tuple[int, ...], line: int) -> None:
        """A thread's core did something past its FIFO: `store` (config words), `post` or `get` (a semaphore)."""

    def resumed(self, thread: int, waited_for_others: bool) -> None:
        """The schedule lets a thread's core go on."""


class Tile:
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

    def __init__(self, *, allow_open: bool = False) -> None:
        """
        Args:
            allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
        """
        self._tiles = new_tiles(1)
        self.record: Any = self._tiles[0]
        self.record.allow_open = int(allow_open)
        self.coprocessor = Coprocessor(self._tiles)
        self.cores = Cores(self.coprocessor)
        self.recorder: Recorder | None = None

    # --- memory -----------------------------------------------------------------------------------------------------

    @property
    def l1(self) -> Array:
        """uint8 [1572864]: L1, writable."""
        return self.record["l1"]  # type: ignore[no-any-return]

    def write_tensor(
        self,
        address: int,
        array: Any,
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        rounding: Any = "nearest",
    ) -> int:
        """Encode a tensor into L1 at a byte address; returns the number of bytes.

        Raises:
            FormatError: the format cannot hold the tensor, or its shape is not whole tiles.
            MemoryError_: the address is not a multiple of 16, or the tensor does not fit.
        """
        content = encode(array, data_format, tile_shape=tile_shape, rounding=rounding)
        check_range(address, len(content))
        self.l1[address : address + len(content)] = content
        return len(content)

    def read_tensor(
        self,
        address: int,
        shape: tuple[int, ...],
        data_format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
    ) -> Array:
        """Decode a tensor of `shape` from L1 at a byte address.

        Raises:
            FormatError: the shape is not whole tiles.
            MemoryError_: the tensor does not lie inside L1.
        """
        size = tensor_size(shape, data_format, tile_shape=tile_shape)
        check_range(address, size)
        return decode(self.l1[address : address + size].copy(), data_format, shape, tile_shape=tile_shape)

    # --- registers --------------------------------------------------------------------------------------------------

    @property
    def dst(self) -> DstView:
        """The destination register file."""
        return DstView(self.record)

    @property
    def srca(self) -> SrcView:
        """Source register file A."""
        return SrcView(self.record, 0)

    @property
    def srcb(self) -> SrcView:
        """Source register file B."""
        return SrcView(self.record, 1)

    @property
    def lregs(self) -> Array:
        """uint32 [16, 32]: the vector unit's registers, writable; `.view(np.float32)` reads them as FP32."""
        return self.record["lregs"][:16]  # type: ignore[no-any-return]

    @property
    def gpr(self) -> Array:
        """uint32 [3, 64]: general-purpose registers [thread, register], writable."""
        return self.record["gpr"]  # type: ignore[no-any-return]

    @property
    def config(self) -> ConfigView:
        """Configuration fields by name, bank 0 and thread 0; see `ConfigView.for_bank` and `for_thread`."""
        return ConfigView(self.record)

    @property
    def semaphores(self) -> Array:
        """int32 [8]: semaphore values, writable."""
        return self.record["semaphore"]  # type: ignore[no-any-return]

    def load_word(self, address: int, core: str = "B") -> int:
        """The 32-bit word that a core finds at an address of the GPR or configuration window.

        Args:
            address: byte address, GPRs from 0xffe00000, configuration from 0xffef0000 (rules I.10, tile K7, K8).
            core: who loads: `B`, `NC`, `T0`, `T1`, `T2`, or `HOST` for an access over the NoC.

        Raises:
            UndefinedBehavior: the core has no word there, or may not load it.
            NonContractualBehavior: the address belongs to the window that stores to both banks.
        """
        _check_word(address, "address")
        return self.coprocessor.load(_core(core), address)

    def store_word(self, address: int, value: int, core: str = "B") -> None:
        """Store a 32-bit word as a core does, with all that writing a word of configuration means; see `load_word`.

        Raises:
            AssemblyError: the value does not fit.
            UndefinedBehavior: the core has no word there, or may not store to it.
        """
        _check_word(address, "address")
        _check_word(value, "value")
        self.coprocessor.store(_core(core), address, value)

    # --- execution --------------------------------------------------------------------------------------------------

    def execute(self, thread: int, instructions: str | int | Iterable[str | int]) -> None:
        """Execute instructions on a thread, one after the other, and what they scheduled with SFPLOADMACRO.

        Args:
            thread: 0 unpack, 1 math, 2 pack.
            instructions: assembly text (one or more lines), an instruction word, or an iterable of those.

        Raises:
            AssemblyError: the text is no instruction.
            UndefinedBehavior: an instruction waits for something that nobody in this tile will do.
            BhemuError: an instruction was refused; its category says why.
        """
        if thread not in (0, 1, 2):
            raise UndefinedBehavior(f"thread {thread} does not exist", remedy="use 0 (unpack), 1 (math) or 2 (pack)")
        for word in _words(instructions):
            self.coprocessor.push(thread, word)
            if not self.coprocessor.drain(thread):
                self.record.gate_full[thread] = 0
                self.record.wait_word[thread] = 0
                raise UndefinedBehavior(
                    f"{disassemble(word)} waits on thread {thread}, and nothing else runs that could end the wait",
                    remedy="execute the instruction of the other thread first, or run a program with three threads",
                )
        self.coprocessor.settle()

    def clock(self, clocks: int) -> None:
        """Let clocks of the tile pass: cores that are out of reset and the coprocessor execute (tile T34).

        Raises:
            BhemuError: an instruction was refused; the core at fault stands still, the tile can go on.
        """
        self.cores.advance(clocks)

    def reset(self) -> None:
        """Back to the state after reset; L1 keeps its contents."""
        allow_open = int(self.record.allow_open)
        reset(self._tiles, 0)
        self.record.allow_open = allow_open

    def snapshot(self) -> Snapshot:
        """A copy of the whole state, L1 included."""
        return Snapshot(self._bytes().copy())

    def restore(self, snapshot: Snapshot) -> None:
        """Put the tile back into a snapshot's state."""
        self._bytes()[...] = snapshot._content

    def _bytes(self) -> Array:
        """The record's memory; copying it field by field would copy L1 once for each of its views."""
        return self._tiles.view(np.ndarray).view(np.uint8)

    def __repr__(self) -> str:
        return f"<Tile: {int(self.record.issued.sum())} instructions executed>"


def _core(name: str) -> int:
    names = AGENT_NAMES[: NOC + 1]
    if name not in names:
        raise UndefinedBehavior(f"core {name!r} does not exist", remedy=f"use one of {', '.join(names)}")
    return names.index(name)


def _check_word(number: int, what: str) -> None:
    if not 0 <= number < 1 << 32:
        raise AssemblyError(f"{what} {number:#x} does not fit 32 bits", remedy="use 0 to 0xffffffff")


def _words(instructions: str | int | Iterable[str | int]) -> Iterable[int]:
    if isinstance(instructions, str):
        yield from assemble_program(instructions)
    elif isinstance(instructions, (int, np.integer)):
        yield int(instructions)
    else:
        for item in instructions:
            yield from _words(item)


def check_range(address: int, size: int) -> None:
    """Raise MemoryError_ unless [address, address + size) is a 16-byte aligned range of L1."""
    if address % 16:
        raise MemoryError_(
            f"L1 address {address:#x} is not a multiple of 16",
            remedy="unpackers and packer address L1 in 16-byte units",
        )
    if address < 0 or address + size > L1_SIZE:
        raise MemoryError_(
            f"L1 range {address:#x}..{address + size:#x} is outside of L1 (0..{L1_SIZE:#x})",
            remedy="choose a lower address or a smaller tensor",
        )
