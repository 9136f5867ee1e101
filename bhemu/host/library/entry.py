"""What the functions of the C library do: they drive one chip, and end the process where bhemu refuses (tile H20)."""

from __future__ import annotations

import ctypes
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, Final

from bhemu.chip.chip import Chip
from bhemu.errors import BhemuError
from bhemu.machine.faults import FAULTS

ALLOW_OPEN: Final = "BHEMU_ALLOW_OPEN"
"""Environment variable: 1 to use the recommended choice where no source settles what silicon does."""

_chip: Chip | None = None
_started = 0.0

CATEGORIES: Final = {
    "UndefinedBehavior": "UndefinedBehavior",
    "NonContractualBehavior": "NonContractualBehavior",
    "Unimplemented": "UnimplementedFunctionality",
    "MissingSpecification": "MissingSpecification",
    "ConfigurationError": "ConfigurationError",
    "MemoryError": "UndefinedBehavior",
}
"""The interface's names for bhemu's categories."""


def _refuse(function: str, error: BaseException) -> None:
    """Print the message that clients know, and end the process."""
    clock = 0 if _chip is None else _chip.time
    if isinstance(error, BhemuError):
        category = CATEGORIES.get(error.category, "UndefinedBehavior")
        text = str(error)
    else:
        category, text = "AssertionFailure", "".join(traceback.format_exception(error))
    sys.stdout.write(f"[{clock}] ERROR: {category}: {function}: {text}\n")
    sys.stdout.flush()
    os._exit(1)


def _chip_now() -> Chip:
    assert _chip is not None  # the C side checks that the simulator is running
    return _chip


def init() -> None:
    """A new chip, all cores in reset."""
    global _chip, _started
    _chip = Chip(simulator_order=True, allow_open=os.environ.get(ALLOW_OPEN, "") not in ("", "0"))
    _started = time.perf_counter()


def exit_() -> None:
    """The chip ends."""
    global _chip
    seconds = time.perf_counter() - _started
    clock = _chip_now().time
    for code in _chip_now().open_choices:
        sys.stdout.write(f"[{clock}] bhemu: no source settles this, a choice was made: {FAULTS[code].name}\n")
    sys.stdout.write(f"[{clock}] bhemu: {seconds:.2f} seconds, {clock / max(seconds, 1e-9) / 1e3:.1f} kHz\n")
    sys.stdout.flush()
    _chip = None


def config_read(bdf: int, offset: int) -> int:
    """A word of PCI configuration space."""
    return _chip_now().pci.read(bdf, offset)


def config_write(bdf: int, offset: int, value: int) -> None:
    """Write a word of PCI configuration space."""
    _chip_now().pci.write(bdf, offset, value)


def memory_read(paddr: int, pointer: int, size: int) -> None:
    """Bytes inside a BAR, to the caller's memory."""
    ctypes.memmove(pointer, _chip_now().read(paddr, size), size)


def memory_write(paddr: int, pointer: int, size: int) -> None:
    """Bytes of the caller's memory to a BAR."""
    _chip_now().write(paddr, ctypes.string_at(pointer, size))


def clock(clocks: int) -> None:
    """Let clocks pass."""
    _chip_now().clock(clocks)


def tile_access(x: int, y: int, address: int, size: int) -> None:
    """The left-overs of an older interface (H1)."""
    raise BhemuError(
        f"{size} bytes at {address:#x} of tile {x}-{y}: this function belongs to an older interface",
        remedy="use libttsim_pci_mem_rd_bytes and libttsim_pci_mem_wr_bytes",
    )


_U32, _U64, _P = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
_CALLS: Final[list[tuple[str, Any, tuple[Any, ...], Callable[..., Any]]]] = [
    ("libttsim_init", None, (), init),
    ("libttsim_exit", None, (), exit_),
    ("libttsim_pci_config_rd32", _U32, (_U32, _U32), config_read),
    ("libttsim_pci_config_wr32", None, (_U32, _U32, _U32), config_write),
    ("libttsim_pci_mem_rd_bytes", None, (_U64, _P, _U32), memory_read),
    ("libttsim_pci_mem_wr_bytes", None, (_U64, _P, _U32), memory_write),
    ("libttsim_clock", None, (_U32,), clock),
]
_TILE_ACCESS: Final = 9
_keep: list[Any] = []


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except BaseException as error:
            _refuse(name, error)

    return call


def fill(address: int) -> None:
    """Put the functions' addresses into the C library's table."""
    table = (ctypes.c_void_p * (_TILE_ACCESS + 1)).from_address(address)
    for place, (name, result, arguments, function) in enumerate(_CALLS):
        callback = ctypes.CFUNCTYPE(result, *arguments)(_guarded(name, function))
        _keep.append(callback)
        table[place] = ctypes.cast(callback, ctypes.c_void_p).value
    old = ctypes.CFUNCTYPE(None, _U32, _U32, _U64, _U32)(_guarded("libttsim_tile", tile_access))
    _keep.append(old)
    table[_TILE_ACCESS] = ctypes.cast(old, ctypes.c_void_p).value
