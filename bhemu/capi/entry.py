"""A simulator under Python, in a process of its own: what the calls of a client do there (tile H1).

Where bhemu refuses, the message is printed and the process ends, and the client with it (tile H20); with
BHEMU_REFUSAL=stop both live, and no more clocks pass.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from bhemu.capi.attach import RECORD, attach_timed
from bhemu.capi.machine_text import TOPOLOGY
from bhemu.capi.refusals import STANDARD_ERRORS, polling_text, refusal_text, say, write
from bhemu.capi.settings import Settings, read_settings
from bhemu.capi.slots import SLOTS, Table, fill
from bhemu.capi.system import System
from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.topology import ALONE_TOPOLOGY, Topology, read_topology
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.machine.agents import B
from bhemu.machine.core_state import HALT_ECALL, HALTED

if TYPE_CHECKING:
    from bhemu.api.semihosting import Semihosting
    from bhemu.capi.spread import SpreadSystem
    from bhemu.timed import ChipTime
    from bhemu.timed.recording import TimedRecording

_REFUSED: Final = 1
_INTERRUPTED: Final = 130
_ALL_ONES: Final = 0xFFFFFFFF
_SWITCH: Final = 0.0005
"""Seconds for which the thread that writes a recording may keep the chip waiting for Python."""

_topology: Topology = ALONE_TOPOLOGY
_system: System | SpreadSystem | None = None
_semihosting: Semihosting | None = None
_timed: TimedRecording | None = None
_clock: ChipTime | None = None
"""Of a timed chip: what records it, if something does, and its timed mode."""
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
    return 0 if _system is None else _system.time


def _refuse(function: str, error: BaseException) -> None:
    """Print the message that clients expect and further details, and end the process, or stop the chip."""
    global _stopped
    _end_recording()
    if isinstance(error, KeyboardInterrupt):
        say(f"[{clock_now()}] bhemu: interrupted\n")
        _close()
        os._exit(_INTERRUPTED)
    say(refusal_text(function, error, None) if _system is None else _system.refusal(function, error))
    if not _refusal_stops:
        _close()
        os._exit(_REFUSED)
    _stopped = True


def _close() -> None:
    if _overseer is not None:
        _overseer.close()
    if _system is not None:
        _system.close()


def _system_now() -> System | SpreadSystem:
    assert _system is not None  # the C side checks that the simulator is running
    return _system


def _chip_now() -> Device | None:
    """The chip that a debugger sees: there is only one then."""
    return _system.devices[0] if isinstance(_system, System) else None


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
    """New chips, all cores in reset.

    Args:
        table: that the server reads.
        reads, writes: addresses of functions that reach the client's memory.
    """
    global _system, _semihosting, _timed, _clock, _refusal_stops, _stopped
    settings = read_settings()
    _refusal_stops = _stopped = False
    _semihosting = _new_semihosting() if settings.semihosting else None
    chips = len(_topology.chips)
    if settings.spread:
        _begin_spread(table, settings, _host_memory(reads, writes))
        return
    if _overseer is not None and chips > 1:
        raise ConfigurationError(
            f"a debugger is to be attached, and {_topology.name} has {chips} chips",
            remedy="use a library with one chip, or record the chips with BHEMU_RECORD",
        )
    if settings.timed and chips > 1:
        raise ConfigurationError(
            f"BHEMU_TIME is 'silicon', and {_topology.name} has {chips} chips: Python times one chip alone",
            remedy="unset BHEMU_PROCESS, or use a library with one chip",
        )
    host = _host_memory(reads, writes)
    _system = system = System(_topology, settings, host if _overseer is None else _overseer.host(host))
    first = system.devices[0]
    _clock = None
    if settings.timed:
        _timed = _attach_timed(first)
    elif os.environ.get(RECORD):
        sys.setswitchinterval(_SWITCH)
        system.record(_tell)
    table.write_all = table.happened = None  # they are for chips of other processes
    if _overseer is None:  # semihosting needs Python between two clocks, and a timed clock has a buffer of its own
        system.connect(table, needs_python=_semihosting is not None or settings.timed)
    _begin(table, settings)
    if _overseer is not None:
        _overseer.begin(first)


def _begin_spread(table: Table, settings: Settings, host: HostMemory) -> None:
    """New chips, in processes of workers."""
    global _system, _clock
    from bhemu.capi.spread import SpreadSystem  # other clients do not wait for its imports

    def refuse_write(error: BhemuError) -> None:
        _refuse("libttsim_pci_mem_wr_bytes", error)
        table.stopped = 1

    _clock = None
    _system = system = SpreadSystem(_topology, settings, host, refuse_write)
    system.connect(table)
    _begin(table, settings)


def _begin(table: Table, settings: Settings) -> None:
    global _started, _reported, _refusal_stops
    table.stopped = 0
    _started = time.perf_counter()
    _reported = False
    _refusal_stops = settings.refusal_stops


def _new_semihosting() -> Semihosting:
    from bhemu.api.semihosting import Semihosting

    return Semihosting(write)


def _attach_timed(chip: Device) -> TimedRecording | None:
    global _clock
    from bhemu.timed import ChipTime

    _clock = ChipTime(chip)
    return attach_timed(chip, _clock, _tell)


def choices_made() -> list[str]:
    """Names of the open cases in which a chip has used the recommended choice so far."""
    return [] if _system is None else _system.choices_made()


def _end_recording() -> None:
    """Write what is left of a recording."""
    global _timed
    ended = [] if _system is None else [_timed, _system.recording]
    _timed = None
    if isinstance(_system, System):
        _system.recording = None
    for one in ended:
        if one is not None:
            with contextlib.suppress(Exception):  # after a refusal of the machine or at the end of the process
                one.stop()


def _report() -> None:
    """How fast it was, and which choices were made: once for each chip."""
    global _reported
    if _system is None or _reported:
        return
    _reported = True
    seconds, clocks = time.perf_counter() - _started, _system.time
    lines = [f"[{clocks}] bhemu: no source settles this, a choice was made: {name}" for name in choices_made()]
    if _clock is not None and (found := _clock.report()).tiles:
        lines.append(
            f"[{clocks}] bhemu: clocks are estimates of cycles of silicon; "
            f"{found.guessed_share:.1%} of what they are made of is guessed"
        )
    lines.append(f"[{clocks}] bhemu: {seconds:.2f} seconds, {clocks / max(seconds, 1e-9) / 1e3:.1f} kHz")
    say("\n".join(lines) + "\n")


def exit_() -> None:
    """The chips end."""
    global _system
    _end_recording()
    if _system is not None:
        _system.flush()
    _report()
    if _system is not None:
        _system.close()
    _system = None


def config_read(bdf: int, offset: int) -> int:
    """A word of PCI configuration space."""
    device, rest = _system_now().device(bdf)
    return device.read_config(rest, offset)


def config_write(bdf: int, offset: int, value: int) -> None:
    """Write a word of PCI configuration space."""
    device, rest = _system_now().device(bdf)
    device.write_config(rest, offset, value)


def memory_read(paddr: int, pointer: int, size: int) -> None:
    """Bytes inside a BAR, to the caller's memory."""
    device, at = _system_now().place(paddr)
    ctypes.memmove(pointer, device.read(at, size), size)


def memory_write(paddr: int, pointer: int, size: int) -> None:
    """Bytes of the caller's memory to a BAR."""
    device, at = _system_now().place(paddr)
    device.write(at, ctypes.string_at(pointer, size) if size else b"")


def write_all(pointer: int, size: int) -> None:
    """Writes that the client has posted, as they stand in memory that it shares (remote_server.c)."""
    system = _system_now()
    assert not isinstance(system, System)  # its table does not have this function
    system.post(ctypes.string_at(pointer, size))


def happened() -> int:
    """A number that is another one when something has happened on chips of other processes (stillness.c)."""
    system = _system_now()
    assert not isinstance(system, System)
    return system.happened()


def clock(clocks: int) -> None:
    """Let clocks pass; 0: a recording has to see the chip."""
    if _stopped:
        return
    system = _system_now()
    advance = system.clock if _timed is None else _timed.clock
    if _semihosting is None or not isinstance(system, System):
        advance(clocks)
        return
    for _ in range(clocks):
        advance(1)
        for chip in system.devices:
            _serve(chip, _semihosting)


def report_stillness() -> None:
    """Clocks have passed for a while on a chip in which nothing can proceed, and the client has changed nothing."""
    if _stopped:
        what = "a refusal has stopped the chip, and the host still polls"
        say(f"[{clock_now()}] bhemu: {what}: libttsim_exit and libttsim_init start a new one\n")
        return
    _system_now().say_who_waits(say)


def report_polling() -> int:
    """The client polls, and so do the cores as far as was seen: say what, and return 1.

    0: a core does more, and nothing is said.
    """
    text = _system_now().say_who_polls()
    if text is None:
        return 0
    write(STANDARD_ERRORS, f"[{clock_now()}] bhemu: {polling_text(read_settings().polling)}\n{text}".encode())
    return 1


def attend() -> None:
    """A tile needs something in the middle of a clock: do it."""
    _system_now().attend()


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
            return _overseer.call(_chip_now(), slot, function, arguments)
        except BaseException as error:
            _refuse(name, error)
        # The chips have stopped: the server asks Python for clocks, and counts as if no tile could proceed.
        table.run = None
        table.stopped = 1
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
        "write_all": write_all,
        "happened": happened,
        "clock": clock,
        "attend": attend,
        "report_stillness": report_stillness,
        "report_polling": report_polling,
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
    global _topology
    loaded = ctypes.CDLL(library)
    described = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(loaded, TOPOLOGY)))
    _topology = read_topology(json.loads(described), library)
    table = _fill_table()
    loaded.bhemu_serve(memory, ctypes.byref(table))
