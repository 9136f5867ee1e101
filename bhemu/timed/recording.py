"""Programs that run on a timed chip: how long each one took on each tile, and how long what was busy.

A recording in timed mode has no instructions. For each program of tt-metal's firmware that ends on a tile it has the
cycles of its units and cores, and the kernels; the cycles of links, network interfaces and DRAM banks whenever one
begins or ends; and the buffers of the device profiler.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import Place
from bhemu.chip.device import Device
from bhemu.counting.launches import Launches
from bhemu.loader.firmware_layout import CORE_ORDER, FirmwareLayout
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.state import L1_SIZE
from bhemu.recording.parts import Writer
from bhemu.recording.zones import ProfilerBuffers
from bhemu.timed import layout as at
from bhemu.timed import net_layout
from bhemu.timed.chip import ChipTime

Array = np.ndarray[Any, Any]

LAUNCH: Final = "launch"
BUSY: Final = "busy"
ZONES: Final = "zones"
"""Kinds of frames."""
STEP: Final = 32
"""Cycles between two looks at the mailboxes of the firmware: beginnings and ends are as exact."""
_LARGEST_KERNEL: Final = 1 << 14
_UNIT_PLACES: Final = at.UNIT_CYCLES + np.arange(len(at.UNIT_NAMES))
_CORE_PLACES: Final = np.array([at.CORE_BLOCKS + n * at.CORE_BLOCK + at.CORE_BUSY for n in range(len(CORE_NAMES))])
_GUESSED_PLACES: Final = np.array([at.GUESSED_CYCLES, at.CORE_GUESSED])
_PLACES: Final = np.concatenate([_UNIT_PLACES, _CORE_PLACES, _GUESSED_PLACES])


@dataclass
class _Begun:
    """A program that runs on a tile.

    Attributes:
        cycle: in which it was seen first.
        host_id: what the host calls it; 0: not known.
        kernels: (core, address, content) of each; empty without a firmware that is known.
        before: what the tile's buffer had counted.
    """

    cycle: int
    host_id: int
    kernels: list[tuple[str, int, bytes]]
    before: Array


def _kernels(words: Array, content: Array, layout: FirmwareLayout, message: int) -> list[tuple[str, int, bytes]]:
    """(core, address, content) of the kernels that a launch message starts."""
    fields = layout.launch

    def word(offset: int) -> int:
        return int(words[message + offset >> 2])

    base, enables = word(fields.config_base), word(fields.enables)
    found = []
    for number, core in enumerate(CORE_ORDER):
        if not enables >> number & 1:
            continue
        address = base + word(fields.kernel_text_offset + 4 * number)
        size = _LARGEST_KERNEL
        if fields.kernel_text_size is not None:
            size = min(word(fields.kernel_text_size + 4 * number), size)
        if 0 < address < L1_SIZE and size:
            found.append((core, address, content[address : min(address + size, L1_SIZE) & ~3].tobytes()))
    return found


class TimedRecording:
    """Writes down how long programs take on a timed chip.

    Args:
        device: the chip.
        time: its timed mode.
        tiles: indices of its Tensix tiles by translated coordinates.
        writer: gets the frames.
        report: gets a sentence when they cannot be written.
    """

    def __init__(
        self,
        device: Device,
        time: ChipTime,
        tiles: Mapping[Place, int],
        writer: Writer,
        report: Callable[[str], Any] = print,
    ) -> None:
        self._device = device
        self._time = time
        self._writer: Writer | None = writer
        self._report = report
        self._places = {index: place for place, index in tiles.items()}
        self._launches = Launches(device.tiles, list(self._places))
        self._profiler = ProfilerBuffers(device.tiles, self._places)
        self._next = device.time + STEP
        self._begun: dict[int, _Begun] = {}
        self._ended: dict[int, int] = {}

    def clock(self, clocks: int) -> None:
        """Let clocks of the chip pass, and see which programs begin and end.

        Raises:
            BhemuError: an instruction was refused.
        """
        while clocks > 0:
            step = max(min(clocks, self._next - self._device.time), 1) if self._writer is not None else clocks
            self._device.clock(step)
            clocks -= step
            if self._writer is not None and self._device.time >= self._next:
                self._look()
                self._next = self._device.time + STEP

    def stop(self) -> None:
        """End the recording."""
        if self._writer is None:
            return
        self._look()
        if self._writer is None:  # the disk was full
            return
        with contextlib.suppress(OSError):
            for place, words in self._profiler.rest(self._launches.layout):
                self._zones(place, words, complete=False)
        self._writer.close()
        self._writer = None

    def _zones(self, place: Place, words: Array, *, complete: bool) -> None:
        assert self._writer is not None
        self._writer.frame({"kind": ZONES, "place": list(place), "complete": complete}, {"words": words})

    def _look(self) -> None:
        assert self._writer is not None
        begun, ended = self._launches.look()
        layout = self._launches.layout
        try:
            for place, words in self._profiler.look(layout):
                self._zones(place, words, complete=True)
            if begun or ended:
                self._writer.frame({"kind": BUSY, "cycle": self._device.time}, {"busy": self._time.busy()})
            for index in ended:
                self._end(index)
        except OSError as error:
            self._report(f"the recording ends in cycle {self._device.time:,}: {self._writer.path}: {error.strerror}")
            self._writer.close()
            self._writer = None
            return
        for index in begun:
            self._begin(index, layout)

    def _begin(self, index: int, layout: FirmwareLayout | None) -> None:
        if layout is None:  # released from reset: which kernels these are, is not known
            self._begun[index] = _Begun(self._device.time, 0, [], self._counts(index))
            return
        words, content = self._device.tiles["l1_u32"][index], self._device.tiles["l1"][index]
        message = layout.launch_message(int(words[layout.launch_read_pointer >> 2]))
        host_id = 0 if layout.launch.host_id is None else int(words[message + layout.launch.host_id >> 2])
        kernels = _kernels(words, content, layout, message)
        if kernels:  # else a go without a kernel
            self._begun[index] = _Begun(self._device.time, host_id, kernels, self._counts(index))

    def _end(self, index: int) -> None:
        self._ended[index] = self._ended.get(index, 0) + 1
        run = self._begun.pop(index, None)
        if run is None:
            return
        self._profiler.expect(index)
        assert self._writer is not None
        counts = self._counts(index) - run.before
        units, cores = len(_UNIT_PLACES), len(_CORE_PLACES)
        told = {
            "kind": LAUNCH,
            "place": list(self._places[index]),
            "number": self._ended[index],
            "begin": run.cycle,
            "end": self._device.time,
            "host_id": run.host_id,
            "kernels": [[core, address, self._writer.code(content)] for core, address, content in run.kernels],
        }
        busy = {
            "units": counts[:units],
            "cores": counts[units : units + cores],
            "guessed": counts[units + cores :],
        }
        self._writer.frame(told, busy)

    def _counts(self, index: int) -> Array:
        """int64: cycles of units, of cores, and of what is guessed of both, so far."""
        return np.asarray(self._time.tile_buffer(index)[_PLACES])


@dataclass(frozen=True)
class TimedLaunch:
    """A program on a tile.

    Attributes:
        place: translated coordinates of the tile.
        number: of the program on the tile.
        begin, end: cycles of the chip in which it was seen to begin and end.
        host_id: what the host calls it; 0: not known.
        kernels: (core, address, content) of each.
        units: cycles for which units of the coprocessor were busy, by name.
        cores: cycles in which cores issued, by name.
        guessed: cycles of units and cores whose figures are guesses.
    """

    place: Place
    number: int
    begin: int
    end: int
    host_id: int
    kernels: tuple[tuple[str, int, bytes], ...]
    units: dict[str, int]
    cores: dict[str, int]
    guessed: int


def read_launch(told: Mapping[str, Any], arrays: Mapping[str, Array], code: Mapping[str, bytes]) -> TimedLaunch:
    """The program that a frame describes."""
    return TimedLaunch(
        place=(told["place"][0], told["place"][1]),
        number=told["number"],
        begin=told["begin"],
        end=told["end"],
        host_id=told["host_id"],
        kernels=tuple((core, address, code[digest]) for core, address, digest in told["kernels"]),
        units=dict(zip(at.UNIT_NAMES, arrays["units"].tolist(), strict=True)),
        cores=dict(zip(CORE_NAMES, arrays["cores"].tolist(), strict=True)),
        guessed=int(arrays["guessed"].sum()),
    )


@dataclass(frozen=True)
class Traffic:
    """For how many cycles the busiest of each kind was busy."""

    link: float
    interface: float
    bank: float


def traffic(busy: Array) -> Traffic:
    """Of differences of what `ChipTime.busy` gives."""
    links, interfaces = net_layout.OUT - net_layout.LINK, net_layout.BANK_FREE - net_layout.OUT
    link, interface, bank = np.split(busy / net_layout.PART, [links, links + interfaces])
    return Traffic(float(link.max()), float(interface.max()), float(bank.max()))
