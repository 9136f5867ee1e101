"""What `bhemu bench` times of a chip: clocks of no, one and all tiles, and calls of the C library."""

from __future__ import annotations

import contextlib
import ctypes
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from bhemu.bench.cores import CLOCKS, PROGRAMS
from bhemu.capi import build
from bhemu.chip.coordinates import NODES, TENSIX_TILES, tensix_place
from bhemu.chip.device import Device
from bhemu.chip.pcie.pci import BAR0
from bhemu.chip.pcie.windows import ENTRY_BYTES, SMALL_BITS, WINDOW_CONFIG, encode
from bhemu.loader.boot import ALL_HELD, SOFT_RESET
from bhemu.machine.agents import CORE_NAMES, B
from bhemu.machine.kernel import njit
from bhemu.machine.state import TILE
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC

Figure = tuple[Callable[[int], None], Callable[[], None]]

_REGISTERS: Final = SOFT_RESET >> SMALL_BITS << SMALL_BITS
"""A 2 MiB window that shows the soft-reset register."""


def _words() -> bytes:
    return np.array(PROGRAMS["alu"], np.uint32).tobytes()


def _held(cores: tuple[str, ...]) -> int:
    """The soft-reset register with these cores running."""
    return ALL_HELD & ~sum(1 << int(CORE_BIT[CORE_NAMES.index(name)]) for name in cores)


def _idle() -> Figure:
    chip = Device()
    passed = 0

    def execute(count: int) -> None:
        nonlocal passed
        for _ in range(count):
            chip.clock(CLOCKS)
        passed += count * CLOCKS

    def check() -> None:
        if chip.time != passed:
            raise AssertionError(f"{chip.time} clocks have passed instead of {passed}")

    return execute, check


def _busy(threads: int) -> Figure:
    """All tiles, with five cores in a loop each."""
    chip = Device(threads=threads)
    for index in range(TENSIX_TILES):
        node = NODES[tensix_place(index)]
        for core in range(len(CORE_NAMES)):
            chip.write_node(node, int(DEFAULT_PC[core]), _words())
        chip.write_node(node, SOFT_RESET, _held(CORE_NAMES).to_bytes(4, "little"))
    chip.clock(20 * CLOCKS)
    started = chip.time
    before = int(chip.tiles["core_retired"].sum())

    def execute(count: int) -> None:
        chip.clock(count * CLOCKS)

    def check() -> None:
        retired = int(chip.tiles["core_retired"].sum()) - before
        if retired != TENSIX_TILES * len(CORE_NAMES) * (chip.time - started):
            raise AssertionError(f"{retired} instructions in {chip.time - started} clocks of all cores")

    return execute, check


@njit
def _call_one(function: Any, count: int, argument: int) -> None:
    """Call a C function of one number `times` times, as a C client would."""
    for _ in range(count):
        function(argument)


@njit
def _call_three(function: Any, count: int, paddr: int, pointer: int, size: int) -> None:
    """The same for a read."""
    for _ in range(count):
        function(paddr, pointer, size)


class _Library:
    """The C library in this process, with core B of the first tile in a loop."""

    running: ClassVar[_Library | None] = None

    def __init__(self) -> None:
        if _Library.running is not None:  # one that was not measured
            _Library.running.end()
        _Library.running = self
        with tempfile.TemporaryDirectory() as directory, contextlib.suppress(OSError):
            self._library = ctypes.CDLL(str(build(Path(directory))))
        self._library.bhemu_keep_quiet()
        self._library.bhemu_record.restype = ctypes.c_void_p
        self._library.libttsim_init()
        self.clock = self._library.libttsim_clock
        self.clock.restype, self.clock.argtypes = None, [ctypes.c_uint32]
        self.read = self._library.libttsim_pci_mem_rd_bytes
        self.read.restype, self.read.argtypes = None, [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32]
        self._aim(0, 0)
        self._write(BAR0 + int(DEFAULT_PC[B]), _words())
        self._aim(1, _REGISTERS)
        self._write(BAR0 + (1 << SMALL_BITS) + SOFT_RESET - _REGISTERS, _held(("B",)).to_bytes(4, "little"))
        self.clock(20 * CLOCKS)
        self.retired = self._retired()

    def _write(self, paddr: int, content: bytes) -> None:
        self._library.libttsim_pci_mem_wr_bytes(ctypes.c_uint64(paddr), content, ctypes.c_uint32(len(content)))

    def _aim(self, window: int, address: int) -> None:
        """Let a window show an address of tile 1-2."""
        for n, word in enumerate(encode(address, (1, 2))):
            self._write(WINDOW_CONFIG + ENTRY_BYTES * window + 4 * n, word.to_bytes(4, "little"))

    def _retired(self) -> int:
        tile = (ctypes.c_uint8 * TILE.itemsize).from_address(self._library.bhemu_record(1))
        return int(np.frombuffer(memoryview(tile), TILE)["core_retired"][0, B])

    def check_retired(self, clocks: int) -> None:
        retired = self._retired() - self.retired
        if retired != clocks:
            raise AssertionError(f"{retired} instructions in {clocks} clocks")
        self.end()

    def end(self) -> None:
        """Let another begin."""
        _Library.running = None
        self._library.libttsim_exit()


def _library_clock(clocks: int) -> Figure:
    library = _Library()
    passed = 0

    def execute(count: int) -> None:
        nonlocal passed
        _call_one(library.clock, count, clocks)
        passed += count * clocks

    return execute, lambda: library.check_retired(passed)


def _library_read() -> Figure:
    library = _Library()
    buffer = ctypes.create_string_buffer(4)

    def execute(count: int) -> None:
        _call_three(library.read, count, BAR0 + int(DEFAULT_PC[B]), ctypes.addressof(buffer), 4)

    def check() -> None:
        if buffer.raw != _words()[:4]:
            raise AssertionError(f"read {buffer.raw.hex()}")
        library.check_retired(0)

    return execute, check


FIGURES: Final[dict[str, Callable[[], Figure]]] = {
    "chip.idle.clock1000": _idle,
    "chip.140x5.clock1000.threads1": lambda: _busy(1),
    "chip.140x5.clock1000.threads2": lambda: _busy(2),
    "library.read4": _library_read,
    "library.core.clock1": lambda: _library_clock(1),
    "library.core.clock1000": lambda: _library_clock(CLOCKS),
}
"""Nanoseconds for a thousand clocks of no core and of 700; for a call of the C library."""
