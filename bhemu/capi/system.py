"""The chips behind the library when they are under Python: one, or several with one clock (ethernet 7)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bhemu.capi.attach import Recording, Say, attach
from bhemu.capi.bus import device_of, place_of
from bhemu.capi.image import new_devices
from bhemu.capi.refusals import refusal_text
from bhemu.capi.settings import Settings
from bhemu.capi.slots import Table
from bhemu.capi.told import say_who_waits, who_polls
from bhemu.chip.device import Device
from bhemu.chip.entries import chip_entry
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.clocks import ClusterClocks, cluster_entry
from bhemu.cluster.topology import Topology
from bhemu.errors import BhemuError
from bhemu.machine.codegen import JIT
from bhemu.machine.faults import FAULTS
from bhemu.recording.chip_recording import CLIENT_STEP, ChipRecording


class _Seen:
    """What a recording has seen of a chip whose clocks pass in compiled code (remote_server.c).

    It must see the chip again after some clocks, or when a program begins or ends.

    Args:
        table: that the server reads.
        recording: of the only chip.
    """

    def __init__(self, table: Table, recording: ChipRecording) -> None:
        self._table, self._recording = table, recording
        self._clocks = ctypes.c_int64(0)
        table.unseen_clocks = ctypes.addressof(self._clocks)

    def show(self) -> None:
        """The recording has just seen the chip."""
        table, self._words = self._table, self._recording.launch_words
        self._values = np.zeros(len(self._words), np.uint32)
        table.watched, table.seen = self._words.ctypes.data, self._values.ctypes.data
        table.watched_count = len(self._words)
        self._clocks.value = self._recording.next_step()


class System:
    """The chips.

    Args:
        topology: which.
        settings: of the library.
        host: the client's memory.

    Attributes:
        devices: the chips, by number.
        concerned: the chip that was accessed last, or has refused something.
        recording: of what they execute; None without one.
    """

    def __init__(self, topology: Topology, settings: Settings, host: HostMemory) -> None:
        self.devices = new_devices(
            topology,
            simulator_order=settings.simulator_order,
            allow_open=settings.allow_open,
            host=host,
            quantum=settings.quantum,
            threads=settings.threads,
        )
        for device in self.devices:
            device.record.run_ahead = settings.run_ahead
        self.concerned = self.devices[0]
        self.recording: Recording | None = None
        self._topology = topology
        self._seen: _Seen | None = None
        self._clocks = ClusterClocks(self.devices, topology, settings.threads) if len(self.devices) > 1 else None

    def record(self, say: Say) -> None:
        """Record the chips as the environment says."""
        self.recording = attach(self.devices, self._topology, say)

    def connect(self, table: Table, *, needs_python: bool) -> None:
        """Let the server call compiled code.

        Args:
            table: that the server reads.
            needs_python: something is done in Python between two clocks.
        """
        table.unseen_clocks = None
        table.watched_count = 0
        self._seen = None
        if not JIT:
            return
        first = self.devices[0].clocks
        self._addresses = np.array([device.clocks.target for device in self.devices], np.int64)
        table.find = chip_entry("chip_find").address
        table.chips = self._addresses.ctypes.data
        table.run = None
        recording = None if self.recording is None else self.recording.alone
        if needs_python or (self.recording is not None and (recording is None or self._clocks is not None)):
            return
        table.handlers = first.table
        table.help_chip = chip_entry("chip_help").address
        if self._clocks is not None:
            table.help_cluster = cluster_entry("cluster_help").address
        table.run = (chip_entry("chip_clock") if self._clocks is None else cluster_entry("cluster_clock")).address
        table.clocked = first.target if self._clocks is None else self._clocks.target
        if recording is not None:
            self._seen = _Seen(table, recording)
            self._seen.show()

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed on all chips."""
        return min(device.time for device in self.devices)

    def clock(self, clocks: int) -> None:
        """Let clocks pass, and record them; 0: a recording has to see what has passed in compiled code.

        Raises:
            BhemuError: an instruction was refused, on the chip that is `concerned` then.
        """
        if not clocks and self.recording is not None:
            self.recording.arrive()
        while clocks > 0:
            step = clocks if self.recording is None else self.recording.next_step(min(clocks, CLIENT_STEP))
            if self._clocks is None:
                self.devices[0].clock(step)
            else:
                with self._concerning(self._clocks):
                    self._clocks.advance(step)
            clocks -= step
            if self.recording is not None:
                self.recording.arrive()
        if self._seen is not None:
            self._seen.show()

    def attend(self) -> None:
        """Do what a tile needs in the middle of clocks."""
        if self._clocks is None:
            self.devices[0].clocks.attend()
        else:
            with self._concerning(self._clocks):
                self._clocks.attend()

    @contextmanager
    def _concerning(self, clocks: ClusterClocks) -> Iterator[None]:
        """A refusal concerns the chip that refuses."""
        try:
            yield
        except BhemuError:
            self.concerned = self.devices[clocks.refusing]
            raise

    def refusal(self, function: str, error: BaseException) -> str:
        """The message of a refusal: where it was, and on which of several chips."""
        if self._clocks is not None and isinstance(error, BhemuError):
            error.message = f"chip {self.devices.index(self.concerned)}: {error.message}"
        return refusal_text(function, error, self.concerned)

    def flush(self) -> None:
        """Nothing of the client's waits: what it asks for is done."""

    def close(self) -> None:
        """The chips end: with this object."""

    # --- what the host sees -----------------------------------------------------------------------------------------

    def device(self, bdf: int) -> tuple[Device, int]:
        """(the chip that is a device of bus 0, what is left of `bdf`): to the first chip others are not there."""
        number, rest = device_of(bdf, len(self.devices))
        self.concerned = self.devices[number]
        return self.concerned, rest

    def place(self, paddr: int) -> tuple[Device, int]:
        """(the chip that has a PCI address in its BARs, the address as the first chip has it)."""
        number, at = place_of(paddr, len(self.devices))
        self.concerned = self.devices[number]
        return self.concerned, at

    def say_who_waits(self, say: Say) -> None:
        """Say what waits for what: of several chips those whose links fail, or the first."""
        from bhemu.api.chip_report import explain_device  # clients wait for what is imported before their first call
        from bhemu.api.links import DeviceWiring, Links

        wiring = DeviceWiring(self.devices, self._topology)
        failed = [link.ends for link in Links(wiring, self._topology) if link.lost or not link.is_up]
        say_who_waits(
            say,
            self.time,
            len(self.devices),
            [end.chip for ends in failed for end in ends],
            lambda chip, moving: explain_device(self.devices[chip], moving=moving),
        )

    def say_who_polls(self) -> str | None:
        """What the cores poll, chip by chip; None when one of those that are looked at does more than poll."""
        from bhemu.capi.only_polls import explain_polling

        return who_polls(self.time, len(self.devices), lambda chip: explain_polling(self.devices[chip]))

    def choices_made(self) -> list[str]:
        """Names of the open cases in which a chip has used the recommended choice so far."""
        return list(dict.fromkeys(FAULTS[code].name for device in self.devices for code in device.open_choices))
