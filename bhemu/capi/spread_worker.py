"""A worker of a client's cluster (spread.py): it carries out accesses to its chips, and says what they do."""

from __future__ import annotations

import ctypes
import os
import struct
from typing import Any, Final

import numpy as np

from bhemu.api.chip import Chip
from bhemu.api.chip_report import explain_device
from bhemu.capi.bus import place_of
from bhemu.capi.fault_report import DUMP, fault_place, write_dump
from bhemu.capi.image import give_bars
from bhemu.chip.device import Device
from bhemu.chip.entries import chip_entry
from bhemu.errors import BhemuError
from bhemu.hosts import worker
from bhemu.hosts.commands import Worker
from bhemu.hosts.messages import refusal
from bhemu.isa import niu
from bhemu.machine.codegen import JIT

_POSTED: Final = struct.Struct("<IIQ")
"""In front of the bytes of a posted write: function, size, address (`struct posted` of channel.h)."""
_WRITES: Final = (niu.WRITES_STARTED, niu.POSTED_WRITES_STARTED, niu.ATOMICS_STARTED, niu.POSTED_ATOMICS_SENT)
_MASK: Final = (1 << 62) - 1


class LibraryWorker(Worker):
    """A worker with the chips of a client of the C library."""

    def locate(self, error: BhemuError, number: int, chip: Chip) -> None:
        """Say in a refusal where it was, as one process does (refusals.py)."""
        for line in fault_place(chip.device, error):
            error.add_note(line)
        if os.environ.get(DUMP):
            error.add_note(f"  {write_dump(chip.device, error)}")
        if len(self.part.topology.chips) > 1:
            error.message = f"chip {number}: {error.message}"

    def _device(self, number: int) -> Device:
        return self.part.chips[number].device

    # --- commands ---------------------------------------------------------------------------------------------------

    def begin(self, run_ahead: int) -> None:
        """The chips become devices of the client's host."""
        for number, chip in self.part.chips.items():
            give_bars(chip.device, number)
            chip.device.record.run_ahead = run_ahead

    def clock(self, start: int, end: int, heard: int | None) -> Any:
        """Let clocks pass; returns also how many tiles can proceed, and whether a link fails."""
        passed = super().clock(start, end, heard)
        records = [device.record for device in self.part.devices]
        active = sum(int(record.active_count) for record in records)
        fails = any(_links_fail(record) for record in records if record.links)
        return *passed, active, fails

    def pci_read(self, number: int, paddr: int, size: int) -> bytes:
        """Bytes inside a BAR."""
        content: bytes = self._guarded(number, lambda device: device.read(paddr, size))
        return content

    def pci_write(self, number: int, paddr: int, content: bytes) -> None:
        """Bytes to a BAR."""
        self._guarded(number, lambda device: device.write(paddr, content))

    def config_read(self, number: int, bdf: int, offset: int) -> int:
        """A word of PCI configuration space."""
        word: int = self._guarded(number, lambda device: device.read_config(bdf, offset))
        return word

    def config_write(self, number: int, bdf: int, offset: int, value: int) -> None:
        """Write a word of PCI configuration space."""
        self._guarded(number, lambda device: device.write_config(bdf, offset, value))

    def write_all(self, posted: bytes) -> tuple[tuple[int, bytes], ...]:
        """Carry out writes that a client has posted, as far as they are for chips that are here.

        Returns:
            Where those were that were refused, and the refusals.
        """
        refused = []
        chips, at, end = len(self.part.topology.chips), 0, len(posted)
        find = chip_entry("chip_find").call if JIT else None
        devices = {number: chip.device for number, chip in self.part.chips.items()}
        targets = {number: device.clocks.target for number, device in devices.items()}
        while at < end:
            _, size, paddr = _POSTED.unpack_from(posted, at)
            number, offset = place_of(paddr, chips)
            here, first = at, at + _POSTED.size
            at = first + (size + 7 & ~7)
            if number not in devices:
                continue
            content = posted[first : first + size]
            place = find(targets[number], offset, size, 1) if find is not None and size else 0
            if place:
                ctypes.memmove(place, content, size)
                continue
            try:
                self.pci_write(number, offset, content)
            except BhemuError as error:
                refused.append((here, refusal(error, number)))
        return tuple(refused)

    def after(self, posted: bytes, name: str, *arguments: Any) -> tuple[tuple[tuple[int, bytes], ...], bytes]:
        """Carry out posted writes, and then a command; returns what was refused of the writes, and the answer."""
        refused = self.write_all(posted)
        return refused, self.handle(name, arguments)

    def happened(self) -> int:
        """A number that is another one when something has happened that does not where cores poll (stillness.c)."""
        total = 0
        for device in self.part.devices:
            record: Any = device.record
            on_the_way = np.count_nonzero(record.frame_first) + np.count_nonzero(record.sent_first)
            active = np.flatnonzero(record.active[: len(device.tiles)])
            total += int(on_the_way) * device.time + int(active.sum())
            total += int(device.tiles["niu_counter"][active][:, :, _WRITES].sum(dtype=np.int64))
            total += int(device.tiles["issued"][active].sum(dtype=np.int64))
        return total & _MASK

    def who_waits(self, number: int, moving: bool) -> str:
        """What waits for what on a chip; see `explain_device`."""
        return explain_device(self._device(number), moving=moving)

    def who_polls(self, number: int) -> str | None:
        """What cores of a chip poll; None: one does more."""
        from bhemu.capi.only_polls import explain_polling

        return explain_polling(self._device(number))

    def choices(self) -> tuple[int, ...]:
        """Fault codes of the open cases in which a chip has used the recommended choice."""
        return tuple(code for device in self.part.devices for code in device.open_choices)

    def _guarded(self, number: int, access: Any) -> Any:
        chip = self.part.chips[number]
        try:
            return access(chip.device)
        except BhemuError as error:
            self.locate(error, number, chip)
            raise


def _links_fail(record: Any) -> bool:
    """As `link_fails` of simulator.c, of the ends that a chip has."""
    fault = record.fault
    return bool(np.any(fault.down) or np.any(fault.until > record.time) or np.any(fault.lost))


LibraryWorker.commands = Worker.commands | {
    command.__name__: command
    for command in (
        LibraryWorker.begin,
        LibraryWorker.clock,
        LibraryWorker.pci_read,
        LibraryWorker.pci_write,
        LibraryWorker.config_read,
        LibraryWorker.config_write,
        LibraryWorker.write_all,
        LibraryWorker.after,
        LibraryWorker.happened,
        LibraryWorker.who_waits,
        LibraryWorker.who_polls,
        LibraryWorker.choices,
    )
}


def main() -> None:
    """Serve until the leader ends."""
    worker.main(LibraryWorker)
