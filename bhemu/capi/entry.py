"""A simulator under Python, in a process of its own: what the calls of a client do there (tile H1).

Where bhemu refuses, the message is printed and the process ends, and the client with it (tile H20); with
BHEMU_REFUSAL=stop both live, and no more clocks pass.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bhemu.capi.attach import attach, attach_timed
from bhemu.capi.refusals import refusal_text, say, write
from bhemu.capi.settings import read_settings
from bhemu.capi.slots import SLOTS, Table, fill
from bhemu.chip.clock.clocks import WORTH_THREADS
from bhemu.chip.device import Device
from bhemu.chip.entries import chip_entry
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.chip.state import CHIP
from bhemu.machine.agents import B
from bhemu.machine.codegen import JIT
from bhemu.machine.core_state import HALT_ECALL, HALTED
from bhemu.machine.faults import FAULTS
from bhemu.machine.state import offset_of
from bhemu.recording.chip_recording import ChipRecording

if TYPE_CHECKING:
    from bhemu.api.semihosting import Semihosting
    from bhemu.timed.recording import TimedRecording

_REFUSED: Final = 1
_INTERRUPTED: Final = 130
_ALL_ONES: Final = 0xFFFFFFFF

_chip: Device | None = None
_semihosting: Semihosting | None = None
_recording: ChipRecording | TimedRecording | None = None
_started = 0.0
_reported = False
_refusal_stops = False
_stopped = False
_overseer: Overseer | None = None


class Overseer(Protocol):
    """Stands between the client and the chip: a debugger (bhemu.client)."""

    def host(self, host: HostMemory) -> HostMemory:
        """A new chip is about to be made: the client's memory for it."""

    def begin(self, device: Device) -> None:
        """The chip has been made."""

    def call(self, device: Device | None, name: str, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Carry out a call of the client, by the name of its slot."""

    def close(self) -> None:
        """The process is about to end."""


def oversee(overseer: Overseer) -> None:
    """Let an overseer stand between the client and the chips that it will have."""
    global _overseer
    _overseer = overseer


def clock_now() -> int:
    """Clocks that have passed; 0 without a chip."""
    return 0 if _chip is None else _chip.time


def _refuse(function: str, error: BaseException) -> None:
    """Print the message that clients expect and further details, and end the process, or stop the chip."""
    global _stopped
    _end_recording()
    if isinstance(error, KeyboardInterrupt):
        say(f"[{clock_now()}] bhemu: interrupted\n")
        _close()
        os._exit(_INTERRUPTED)
    say(refusal_text(function, error, _chip))
    if not _refusal_stops:
        _close()
        os._exit(_REFUSED)
    _stopped = True


def _close() -> None:
    if _overseer is not None:
        _overseer.close()


def _chip_now() -> Device:
    assert _chip is not None  # the C side checks that the simulator is running
    return _chip


_ReadHost = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32)


def _tell(text: str) -> None:
    say(f"[{clock_now()}] bhemu: {text}\n")


def _host_memory(reads: int | None, writes: int | None) -> HostMemory:
    """Memory of the host behind functions in C at these addresses."""
    read, write = (_ReadHost(address) if address else None for address in (reads, writes))

    def read_bytes(address: int, size: int) -> bytes:
        assert read is not None
        buffer = ctypes.create_string_buffer(size)
        read(address, buffer, size)
        return buffer.raw

    def write_bytes(address: int, content: bytes) -> None:
        assert write is not None
        write(address, ctypes.create_string_buffer(content, len(content)), len(content))

    return HostMemory(read_bytes if read else None, write_bytes if write else None)


def init(table: Table, reads: int | None, writes: int | None) -> None:
    """A new chip, all cores in reset.

    Args:
        table: that the server reads.
        reads, writes: addresses of functions that reach the client's memory.
    """
    global _chip, _semihosting, _recording, _started, _reported, _refusal_stops, _stopped
    settings = read_settings()
    _refusal_stops = _stopped = False
    _semihosting = _new_semihosting() if settings.semihosting else None
    host = _host_memory(reads, writes)
    _chip = Device(
        simulator_order=settings.simulator_order,
        allow_open=settings.allow_open,
        host=host if _overseer is None else _overseer.host(host),
        quantum=settings.quantum,
        threads=settings.threads,
    )
    _recording = _attach_timed(_chip) if settings.timed else attach(_chip, _tell)
    _connect(table, _chip, timed=settings.timed)
    _started = time.perf_counter()
    _reported = False
    _refusal_stops = settings.refusal_stops
    if _overseer is not None:
        _overseer.begin(_chip)


def _new_semihosting() -> Semihosting:
    from bhemu.api.semihosting import Semihosting

    return Semihosting(write)


def _attach_timed(chip: Device) -> TimedRecording | None:
    from bhemu.timed import ChipTime

    return attach_timed(chip, ChipTime(chip), _tell)


def _connect(table: Table, chip: Device, *, timed: bool) -> None:
    """Let the server call compiled code without Python.

    Semihosting needs Python between two clocks, a recording when programs begin and end, and the clock of a timed chip
    has a buffer of its own.
    """
    table.unseen_clocks = None
    table.watched_count = 0
    if not JIT or _overseer is not None:
        return
    clocks = chip.clocks
    table.find = chip_entry("chip_find").address
    table.chip = clocks.target
    table.active_tiles = clocks.target + offset_of(CHIP, "active_count")
    table.run = None
    if _semihosting is None and not timed:
        table.handlers = clocks.cores(0).table
        table.worth_threads = WORTH_THREADS if clocks.threads > 1 else 1 << 62
        table.run = chip_entry("chip_clock").address
    if isinstance(_recording, ChipRecording):
        table.unseen_clocks = ctypes.addressof(_unseen_clocks)
        _see(table, _recording)


def _see(table: Table, recording: ChipRecording) -> None:
    """A recording has seen the chip: it must see it again after some clocks, or when a program begins or ends."""
    words = recording.launch_words
    seen = np.zeros(len(words), np.uint32)
    _watched[:] = words, seen
    table.watched, table.seen, table.watched_count = words.ctypes.data, seen.ctypes.data, len(words)
    _unseen_clocks.value = recording.next_step()


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
    if _chip is None or _reported:
        return
    _reported = True
    seconds, clocks = time.perf_counter() - _started, _chip.time
    lines = [f"[{clocks}] bhemu: no source settles this, a choice was made: {name}" for name in choices_made()]
    lines.append(f"[{clocks}] bhemu: {seconds:.2f} seconds, {clocks / max(seconds, 1e-9) / 1e3:.1f} kHz")
    say("\n".join(lines) + "\n")


def exit_() -> None:
    """The chip ends."""
    global _chip
    _end_recording()
    _report()
    _chip = None


def config_read(bdf: int, offset: int) -> int:
    """A word of PCI configuration space."""
    return _chip_now().read_config(bdf, offset)


def config_write(bdf: int, offset: int, value: int) -> None:
    """Write a word of PCI configuration space."""
    _chip_now().write_config(bdf, offset, value)


def memory_read(paddr: int, pointer: int, size: int) -> None:
    """Bytes inside a BAR, to the caller's memory."""
    ctypes.memmove(pointer, _chip_now().read(paddr, size), size)


def memory_write(paddr: int, pointer: int, size: int) -> None:
    """Bytes of the caller's memory to a BAR."""
    _chip_now().write(paddr, ctypes.string_at(pointer, size) if size else b"")


def clock(table: Table, clocks: int) -> None:
    """Let clocks pass; 0: a recording has to see the chip."""
    if _stopped:
        return
    chip = _chip_now()
    advance = chip.clock if _recording is None else _recording.clock
    if _semihosting is None:
        advance(clocks)
        if isinstance(_recording, ChipRecording):
            if not clocks:
                _recording.arrive()
            _see(table, _recording)
        return
    for _ in range(clocks):
        advance(1)
        _serve(chip, _semihosting)


def report_stillness() -> None:
    """Clocks have passed for a while on a chip in which nothing can proceed, and the client has changed nothing."""
    if _stopped:
        what = "a refusal has stopped the chip, and the host still polls"
        say(f"[{_chip_now().time}] bhemu: {what}: libttsim_exit and libttsim_init start a new one\n")
        return
    from bhemu.api.chip_report import explain_device

    who = explain_device(_chip_now())
    if who:
        what = (
            "no core or thread on the chip can proceed, and the host only polls; what waits, by physical coordinates:"
        )
        say(f"[{_chip_now().time}] bhemu: {what}\n{who}\n")


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


_keep: list[Any] = []
_no_tiles = ctypes.c_int64(0)
_unseen_clocks = ctypes.c_int64(0)
_watched: list[Any] = [None, None]
"""The arrays whose addresses the table has."""


def _ones_for_word(*_: Any) -> int:
    return _ALL_ONES


def _ones_for_bytes(_: int, pointer: int, size: int) -> None:
    ctypes.memset(pointer, 0xFF, size)


def _guarded(table: Table, slot: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    answers: dict[Any, Callable[..., Any]] = {config_read: _ones_for_word, memory_read: _ones_for_bytes}
    instead = answers.get(function)

    def call(*arguments: Any) -> Any:
        try:
            if _overseer is None or _stopped:
                return function(*arguments)
            return _overseer.call(_chip, slot, function, arguments)
        except BaseException as error:
            _refuse(name, error)
        # The chip has stopped: the server asks Python for clocks, and counts as if no tile could proceed.
        table.run = None
        table.active_tiles = ctypes.addressof(_no_tiles)
        return instead(*arguments) if instead else None

    return call


def _fill_table() -> Table:
    """A table with the functions' addresses."""
    table = Table()
    functions: dict[str, Callable[..., Any]] = {
        "init": partial(init, table),
        "exit": exit_,
        "config_read": config_read,
        "config_write": config_write,
        "memory_read": memory_read,
        "memory_write": memory_write,
        "clock": partial(clock, table),
        "finish_clock": finish_clock,
        "report_stillness": report_stillness,
    }
    names = {slot.name: slot.refused_as for slot in SLOTS}
    guarded = {name: _guarded(table, name, str(names[name]), function) for name, function in functions.items()}
    _keep.extend(fill(table, guarded))
    atexit.register(_end_recording)
    return table


def serve(library: str, memory: int) -> None:
    """Serve the client that has started this process, through memory that it shares, until it ends.

    Args:
        library: path of the C library.
        memory: number of the shared memory's file.
    """
    table = _fill_table()
    ctypes.CDLL(library).bhemu_serve(memory, ctypes.byref(table))
