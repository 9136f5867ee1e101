"""What the functions of the C library do: they drive one chip, and end the process where bhemu refuses (tile H20)."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NoReturn

import numpy as np

from bhemu.api.chip_report import explain_device
from bhemu.api.semihosting import Semihosting
from bhemu.capi.attach import attach
from bhemu.capi.fault_report import DUMP, fault_place, write_dump
from bhemu.capi.settings import ALLOW_OPEN, read_settings
from bhemu.capi.slots import SLOTS, Table, fill
from bhemu.chip.clock.clocks import WORTH_THREADS, chip_entry
from bhemu.chip.device import Device
from bhemu.chip.pcie.dma import HostMemory
from bhemu.chip.state import CHIP
from bhemu.errors import BhemuError, ConfigurationError, MissingSpecification
from bhemu.machine.agents import B
from bhemu.machine.compiler import JIT
from bhemu.machine.core_state import HALT_ECALL, HALTED, RUNNING
from bhemu.machine.faults import FAULTS
from bhemu.machine.state import offset_of
from bhemu.recording.chip_recording import ChipRecording

_STANDARD_OUTPUT: Final = 1
_REFUSED: Final = 1
_INTERRUPTED: Final = 130

_chip: Device | None = None
_semihosting: Semihosting | None = None
_recording: ChipRecording | None = None
_started = 0.0
_reported = False
_quiet = False

CATEGORIES: Final = {
    "UndefinedBehavior": "UndefinedBehavior",
    "NonContractualBehavior": "NonContractualBehavior",
    "Unimplemented": "UnimplementedFunctionality",
    "Unsupported": "UnsupportedFunctionality",
    "MissingSpecification": "MissingSpecification",
    "ConfigurationError": "ConfigurationError",
    "MemoryError": "UndefinedBehavior",
}
"""The interface's names for bhemu's categories; another error is a mistake in bhemu, an AssertionFailure."""


class Unsupported(BhemuError):
    """Exists by name in the interface, and will not be built."""


def _write(stream: int, content: bytes) -> None:
    """Write to the process's standard output or errors itself: Python's may lead elsewhere."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)
    with contextlib.suppress(OSError):  # its reader has ended
        while content:
            content = content[os.write(stream, content) :]


def _say(text: str) -> None:
    _write(_STANDARD_OUTPUT, text.encode("utf-8", "replace"))


def _category(error: BaseException) -> str:
    if isinstance(error, BhemuError):
        return CATEGORIES.get(error.category, "AssertionFailure")
    return "SystemError" if isinstance(error, OSError | MemoryError) else "AssertionFailure"


def _refuse(function: str, error: BaseException) -> NoReturn:
    """Print the message that clients expect and further details, and end the process."""
    clock = 0 if _chip is None else _chip.time
    _end_recording()
    if isinstance(error, KeyboardInterrupt):
        _say(f"[{clock}] bhemu: interrupted\n")
        os._exit(_INTERRUPTED)
    lines = []
    if isinstance(error, BhemuError):
        lines += error.message.splitlines()
        if _chip is not None:
            lines += fault_place(_chip, error)
        if error.remedy:
            lines.append(f"  remedy: {error.remedy}")
        if isinstance(error, MissingSpecification) and "open choices" in (error.remedy or ""):
            lines.append(f"  {ALLOW_OPEN}=1 allows open choices")
    else:
        lines += [f"{type(error).__name__}: {error}", *"".join(traceback.format_exception(error)).splitlines()]
    if _chip is not None and os.environ.get(DUMP):
        lines.append(f"  {write_dump(_chip, error)}")
    _say(f"[{clock}] ERROR: {_category(error)}: {function}: " + "\n".join(lines) + "\n")
    os._exit(_REFUSED)


def _chip_now() -> Device:
    assert _chip is not None  # the C side checks that the simulator is running
    return _chip


def _host_memory() -> HostMemory:
    """Memory of the host behind the callbacks that the client has given the C side."""
    types = {slot.name: slot.type() for slot in SLOTS}
    read = types["dma_read"](_table.dma_read) if _table.dma_read else None
    write = types["dma_write"](_table.dma_write) if _table.dma_write else None

    def read_bytes(address: int, size: int) -> bytes:
        assert read is not None
        buffer = ctypes.create_string_buffer(size)
        read(address, buffer, size)
        return buffer.raw

    def write_bytes(address: int, content: bytes) -> None:
        assert write is not None
        write(address, ctypes.create_string_buffer(content, len(content)), len(content))

    return HostMemory(read_bytes if read else None, write_bytes if write else None)


def init(table: Table) -> None:
    """A new chip, all cores in reset.

    Args:
        table: of the copy of the C library that asks for it.
    """
    global _chip, _semihosting, _recording, _started, _reported, _table
    if _chip is not None:
        raise ConfigurationError(
            "another copy of the library has a chip in this process",
            remedy="one process has one chip: end the other with libttsim_exit, or use a process for each",
        )
    _table = table
    settings = read_settings()
    _semihosting = Semihosting(_to_client) if settings.semihosting else None
    _chip = Device(
        simulator_order=settings.simulator_order,
        allow_open=settings.allow_open,
        host=_host_memory(),
        quantum=settings.quantum,
        threads=settings.threads,
    )
    _recording = attach(_chip, lambda text: _say(f"[{_chip_now().time}] bhemu: {text}\n"))
    _connect(_chip, settings.patience)
    _started = time.perf_counter()
    _reported = False


def _connect(chip: Device, patience: int) -> None:
    """Let the C side call compiled code without Python. Semihosting and recordings need Python between two clocks."""
    if not JIT:
        return
    clocks = chip.clocks
    _table.patience = patience * 1_000_000_000
    _table.find = chip_entry("chip_find").address
    _table.chip = clocks.target
    _table.active_tiles = clocks.target + offset_of(CHIP, "active_count")
    if _semihosting is None and _recording is None:
        _table.handlers = clocks.cores(0).table
        _table.worth_threads = WORTH_THREADS if clocks.threads > 1 else 1 << 62
        _table.run = chip_entry("chip_clock").address


def _disconnect() -> None:
    _table.run = _table.find = None


def _to_client(stream: int, content: bytes) -> None:
    """What a program writes by semihosting."""
    _write(stream, content)


def choices_made() -> list[str]:
    """Names of the open cases in which the chip has used the recommended choice so far."""
    return [] if _chip is None else [FAULTS[code].name for code in _chip.open_choices]


def _end_recording() -> None:
    """Write what is left of a recording."""
    global _recording
    ended, _recording = _recording, None
    if ended is not None:
        with contextlib.suppress(Exception):  # after a refusal of the machine or at the end of the process
            ended.stop()


def _report() -> None:
    """How fast it was, and which choices were made: once for each chip."""
    global _reported
    if _chip is None or _reported or _quiet:
        return
    _reported = True
    seconds, clocks = time.perf_counter() - _started, _chip.time
    lines = [f"[{clocks}] bhemu: no source settles this, a choice was made: {name}" for name in choices_made()]
    lines.append(f"[{clocks}] bhemu: {seconds:.2f} seconds, {clocks / max(seconds, 1e-9) / 1e3:.1f} kHz")
    _say("\n".join(lines) + "\n")


def keep_quiet() -> None:
    """Let the library say nothing of its speed, or of what its client does: for measurements."""
    global _quiet
    _quiet = True


def running_chip() -> Device:
    """The chip behind the library in this process."""
    return _chip_now()


def exit_() -> None:
    """The chip ends."""
    global _chip
    _end_recording()
    _report()
    _disconnect()
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
    _chip_now().write(paddr, ctypes.string_at(pointer, size) if size else b"")


def clock(clocks: int) -> None:
    """Let clocks pass."""
    chip = _chip_now()
    advance = chip.clock if _recording is None else _recording.clock
    if _semihosting is None:
        advance(clocks)
        return
    for _ in range(clocks):
        advance(1)
        _serve(chip, _semihosting)


def report_stillness() -> None:
    """Clocks have passed for a while on a chip in which nothing can proceed, and the client has changed nothing."""
    who = explain_device(_chip_now())
    if who:
        what = (
            "no core or thread on the chip can proceed, and the host only polls; what waits, by physical coordinates:"
        )
        _say(f"[{_chip_now().time}] bhemu: {what}\n{who}\n")


def report_missing_clocks() -> None:
    """The client has read very often since it last let clocks pass."""
    chip = _chip_now()
    if (chip.tiles["core_state"] == RUNNING).any() and not _quiet:
        what = "a million reads since the last libttsim_clock, without which no time passes on the chip"
        _say(f"[{chip.time}] bhemu: {what}\n")


def finish_clock() -> None:
    """A tile needs something in the middle of a clock: do it, and let the rest of them pass."""
    _chip_now().clocks.finish()


def _serve(chip: Device, semihosting: Semihosting) -> None:
    """Serve every core B that is halted at an `ecall`."""
    states, reasons = chip.tiles["core_state"][:, B], chip.tiles["core_halt_reason"][:, B]
    for index in np.flatnonzero((states == HALTED) & (reasons == HALT_ECALL)).tolist():
        goes_on = semihosting.serve(chip.tiles[index])
        if semihosting.status is not None:
            _report()
            os._exit(semihosting.status)
        if goes_on:
            chip.touch(index)[B].resume()


def tile_access(is_write: int, x: int, y: int, address: int, size: int) -> None:
    """The left-overs of an older interface (H1)."""
    _refuse(
        f"libttsim_tile_{'wr' if is_write else 'rd'}_bytes",
        Unsupported(
            f"{size} bytes at {address:#x} of tile {x}-{y}: this function belongs to an older interface",
            remedy="use libttsim_pci_mem_rd_bytes and libttsim_pci_mem_wr_bytes",
        ),
    )


_table: Any = None
_keep: list[Any] = []


def _guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        if _table is not None:
            _table.waiting = 0
        try:
            return function(*arguments)
        except BaseException as error:
            _refuse(name, error)

    return call


def fill_table(address: int) -> None:
    """Put the functions' addresses into the C library's table."""
    table = Table.from_address(address)
    functions: dict[str, Callable[..., Any]] = {
        "init": partial(init, table),
        "exit": exit_,
        "config_read": config_read,
        "config_write": config_write,
        "memory_read": memory_read,
        "memory_write": memory_write,
        "clock": clock,
        "finish_clock": finish_clock,
        "report_stillness": report_stillness,
        "report_missing_clocks": report_missing_clocks,
        "tile_access": tile_access,
    }
    names = {slot.name: slot.refused_as for slot in SLOTS}
    _keep.extend(fill(table, {name: _guarded(str(names[name]), function) for name, function in functions.items()}))
    atexit.register(_end_recording)
    atexit.register(_report)  # clients that never call exit, or call it when Python has ended
