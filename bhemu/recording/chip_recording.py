"""Recorders on tiles of a chip: which tiles, from when to when, and where the parts go.

A recording is cut into parts: on each tile where a program of the firmware has ended, and on all of them whenever much
has been recorded since, so that memory is bounded and what was written can be read while the chip goes on. A tile that
is not recorded runs by the plain clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.chip.device import Device
from bhemu.counting.launches import Launches
from bhemu.counting.recorder import CounterRecorder
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.machine.core_state import HALT_EBREAK, HALTED
from bhemu.recording.circular_buffers import CircularBuffer, buffers_of_launch
from bhemu.recording.core_log import CoreLog, Executables, Names
from bhemu.recording.core_recorder import LIMIT, CoreRecorder, Taken
from bhemu.recording.counted import Counted, code_of
from bhemu.recording.parts import COUNTERS, INSTRUCTIONS, PROFILE, SUFFIX, Part, Writer, part_of_counted
from bhemu.recording.samples import Sample, Sampler
from bhemu.recording.states import state_of
from bhemu.tile.cores import Cores

DISK_LIMIT: Final = 1 << 30
"""Bytes of a file from which on rows of instructions are left out."""
STEP: Final = 512
"""Clocks between two looks at the mailboxes of the firmware;"""
CLIENT_STEP: Final = 17
"""and of a client's, whose clocks are few in a call where it starts or awaits a program."""
_FLUSH_CLOCKS: Final = 1 << 14
"""Clocks after which everything recorded goes to disk, or after `_FLUSH_SECONDS`."""
_FLUSH_SECONDS: Final = 2.0
COUNTED_SECONDS: Final = 10.0
"""The same where a recording only counts: it would cut the counts of tiles in which nothing begins or ends."""
FLUSH_SHARE: Final = 20
"""It takes at most such a part of the time."""
_GAP: Final = 64
"""Words that were not executed, between two that were, in one piece of code."""
_MEMORY_ROWS: Final = 1 << 22
"""Rows of each kind that all tiles together keep in memory."""
_FEW: Final = 8
"""So many tiles have buffers of full size."""
_SMALL_BUFFER: Final = 1 << 13

Array = np.ndarray[Any, Any]

Report = Callable[[str], Any]


class _Tile:
    """A tile of a device, for its recorder."""

    def __init__(self, device: Device, index: int) -> None:
        self._device = device
        self._index = index

    @property
    def cores(self) -> Cores:
        """Its cores, at the chip's time."""
        return self._device.touch(self._index)


class _Recorded:
    """A recorder and what is known of its tile."""

    def __init__(
        self, place: Place, index: int, recorder: CoreRecorder | CounterRecorder, executables: Executables | None
    ) -> None:
        self.place = place
        self.executables = executables
        self.index = index
        self.recorder = recorder
        self.begin = 0
        self.launches = 0
        self.started: int | None = None
        self.first_push: tuple[int, ...] = ()
        self.initiators = np.zeros((2, 4, 14), np.uint32)
        self.buffers: list[CircularBuffer] = []


class ChipRecording:
    """What tiles of a chip execute; `bhemu.Chip.record` makes it.

    Args:
        device: the chip.
        tiles: index by translated coordinates.
        start: clock of the chip from which on it records; None: from now on.
        stop: clock in which it ends; None: until `stop` is called.
        instructions: keep a row for each instruction of a core. Without: profiles, waits, words of the coprocessor.
        counters: only count: instructions by place, rounds of waits, words of the coprocessor by opcode. That costs
            least, as cores are not recorded one instruction at a time.
        watch: addresses of words of L1, at most 16, whose changes are noted, with who has made them.
        states: keep Dst, SrcA, SrcB, and the tiles in L1 that were unpacked and packed last, at the end of each part.
        states_every: keep them every so many clocks as well, of tiles where they have changed; None: do not.
        names: what the cores of a tile run, by its translated coordinates.
        buffers: circular buffers of the programs; those of tt-metal's are found in its launch messages.
        writer: gets the parts; None keeps them in memory.
        report: gets a sentence when something goes wrong with the writing.

    Attributes:
        parts, samples: those that are kept in memory.

    Raises:
        ConfigurationError: no tile is named, or one that has an observer, the times or watched words make no sense, or
            words are to be watched, or states kept, where it only counts.
    """

    def __init__(
        self,
        device: Device,
        tiles: Mapping[Place, int],
        *,
        start: int | None = None,
        stop: int | None = None,
        instructions: bool = True,
        counters: bool = False,
        watch: tuple[int, ...] = (),
        states: bool = False,
        states_every: int | None = None,
        names: Mapping[Place, Executables] | None = None,
        buffers: Iterable[CircularBuffer] = (),
        writer: Writer | None = None,
        report: Report = print,
    ) -> None:
        begin = device.time if start is None else start
        if not tiles:
            raise ConfigurationError("no tile is to be recorded", remedy="name at least one")
        if begin < device.time or (stop is not None and stop <= begin):
            raise ConfigurationError(
                f"a recording from clock {begin:,} to {'the end' if stop is None else f'{stop:,}'}, and it is "
                f"{device.time:,} now",
                remedy="start now or later, and stop after that",
            )
        if counters and (watch or states or states_every):
            raise ConfigurationError(
                "words are to be watched, or states kept, by a recording that only counts",
                remedy="record more than counters, or leave `watch` and `states` out",
            )
        self.parts: list[Part] = []
        self.samples: list[Sample] = []
        self._sampler = None if states_every is None else Sampler(states_every)
        self._counters = counters
        self._detail = COUNTERS if counters else INSTRUCTIONS if instructions else PROFILE
        self._counted: list[Counted] = []
        self._device = device
        self._begin, self._end = begin, stop
        self._states = states
        self._names = names or {}
        self._buffers = list(buffers)
        self._writer = writer
        self._report = report
        self._is_recording = False
        self._process = os.getpid()
        limit = max(_MEMORY_ROWS // len(tiles), 1 << 12) if len(tiles) > 1 else LIMIT
        rows = None if len(tiles) <= _FEW else _SMALL_BUFFER
        self._tiles = {
            index: _Recorded(
                place,
                index,
                CounterRecorder()
                if counters
                else CoreRecorder(instructions=instructions, limit=limit, watch=watch, buffer_rows=rows),
                (names or {}).get(place),
            )
            for place, index in tiles.items()
        }
        taken = [place for place, index in tiles.items() if device.clocks.cores(index).observer is not None]
        if taken:
            raise ConfigurationError(
                f"tile {taken[0][0]}-{taken[0][1]} is recorded already", remedy="stop the other recording first"
            )
        self._launches = Launches(device.tiles, list(self._tiles))
        self._flushed = (device.time, time.monotonic())
        self._flush_least = self._flush_after = COUNTED_SECONDS if counters else _FLUSH_SECONDS
        self.arrive()

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """It has ended, and will not begin again."""
        return not self._tiles

    def next_step(self, clocks: int = STEP) -> int:
        """How many of `clocks` may pass before `arrive` must be called."""
        if self.is_over:
            return clocks
        now = self._device.time
        if not self._is_recording:
            return min(clocks, self._begin - now)
        last = now + min(clocks, STEP)
        if self._sampler is not None:
            last = min(last, now + self._sampler.clocks_left(now))
        if self._writer is not None and not self._counters:
            last = min(last, self._flushed[0] + _FLUSH_CLOCKS)
        return (last if self._end is None else min(last, self._end)) - now

    @property
    def launch_words(self) -> Array:
        """int64 [n]: where in memory the 32-bit words are by which `arrive` sees that programs begin and end."""
        return self._launches.words() if self._is_recording else np.zeros(0, np.int64)

    @checked
    def clock(self, clocks: int) -> None:
        """Let clocks of the chip pass, and record them.

        Raises:
            BhemuError: an instruction was refused.
        """
        while clocks > 0:
            step = self.next_step(clocks)
            self._device.clock(step)
            clocks -= step
            self.arrive()

    def arrive(self) -> None:
        """Time has passed: begin or end, see which programs have begun or ended, write what was recorded."""
        if self._process != os.getpid():  # the copy that a fork has made: the file is the parent's
            self._let_go()
        if self.is_over:
            return
        now = self._device.time
        if not self._is_recording:
            if now < self._begin:
                return
            self._attach()
        if self._sampler is not None:
            records = ((recorded.place, self._device.tiles[index]) for index, recorded in self._tiles.items())
            for sample in self._sampler.take(now, records):
                self._add_sample(sample)
        begun, ended = self._launches.look()
        for index in ended:
            recorded = self._tiles[index]
            recorded.launches += 1
            self._cut(recorded, recorded.launches)
        for index in begun:
            recorded = self._tiles[index]
            recorded.started = now
            if self._launches.layout is not None and not self._counters:
                recorded.buffers = buffers_of_launch(self._device.tiles[index], self._launches.layout)
        if self._end is not None and now >= self._end:
            self.stop()
        elif self._writer is not None:
            clocks, seconds = self._flushed
            much = now - clocks >= _FLUSH_CLOCKS and not self._counters  # counts do not grow
            if much or time.monotonic() - seconds > self._flush_after:
                self.flush()

    def _attach(self) -> None:
        self._is_recording = True
        for recorded in self._tiles.values():
            tile = _Tile(self._device, recorded.index)
            if isinstance(recorded.recorder, CounterRecorder):
                recorded.recorder.attach(tile)
            else:
                recorded.recorder.attach(tile, recorded.executables)
            self._begin_part(recorded)

    def _begin_part(self, recorded: _Recorded) -> None:
        recorded.begin = self._device.time
        if isinstance(recorded.recorder, CounterRecorder):
            return
        recorded.first_push = recorded.recorder.first_push
        recorded.initiators = np.array(self._device.tiles["niu_initiator"][recorded.index])

    def flush(self) -> None:
        """Cut the recording on all tiles where something has happened."""
        begin = time.monotonic()
        for recorded in list(self._tiles.values()):
            self._cut(recorded, 0)
        self._write_counted()
        end = time.monotonic()
        self._flushed = (self._device.time, end)
        self._flush_after = max(self._flush_least, FLUSH_SHARE * (end - begin))

    def stop(self) -> None:
        """End the recording; the tiles run by the plain clock again."""
        if self._is_recording:
            for recorded in list(self._tiles.values()):
                self._cut(recorded, 0)
            self._write_counted()
        if self._writer is not None and self._process == os.getpid() and self._tiles:
            self._write(self._writer, Writer.finish)
        self._let_go()
        if self._writer is not None:
            self._writer.close()

    def _let_go(self) -> None:
        """Detach all recorders."""
        for recorded in self._tiles.values():
            if self._is_recording:
                recorded.recorder.detach()
        self._is_recording = False
        self._tiles = {}

    def _cut(self, recorded: _Recorded, launch: int) -> None:
        """End a part of a tile's recording."""
        if not self._tiles:
            return
        now = self._device.time
        if isinstance(recorded.recorder, CounterRecorder):
            self._cut_counters(recorded, recorded.recorder.cut(), launch)
            return
        taken = recorded.recorder.take()
        record: Any = self._device.tiles[recorded.index]
        layout = self._launches.layout
        by_ebreak = (record["core_state"] == HALTED) & (record["core_halt_reason"] == HALT_EBREAK)
        seen = {
            "place": recorded.place,
            "begin": recorded.begin,
            "end": now,
            "launch": launch,
            "started": recorded.started,
            "first_push": recorded.first_push,
            "code": _code(taken, record),
            "initiators": recorded.initiators,
            "state": state_of(record) if self._states else {},
            "buffers": self._buffers + recorded.buffers,
            "firmware_end": 0 if layout is None else layout.first_free,
            "pcs": tuple(record["core_pc"].tolist()),
            "halted": tuple(np.flatnonzero(by_ebreak).tolist()),
            "mailboxes": record["l1"][slice(0) if layout is None else layout.mailboxes].copy(),
        }
        self._add(partial(_part, recorded, taken, self._writer is None, seen))
        if launch:
            recorded.started = None
            recorded.buffers = []
        self._begin_part(recorded)

    def _cut_counters(self, recorded: _Recorded, numbers: Array, launch: int) -> None:
        """End a part of a tile's counts."""
        record: Any = self._device.tiles[recorded.index]
        layout, l1 = self._launches.layout, record["l1"]
        part = Counted(
            place=recorded.place,
            begin=recorded.begin,
            end=self._device.time,
            launch=launch,
            started=recorded.started,
            numbers=numbers,
            code=code_of(numbers, l1),
            firmware_end=0 if layout is None else layout.first_free,
            mailboxes=l1[slice(0) if layout is None else layout.mailboxes].copy(),
        )
        if self._writer is None and not part.is_empty:
            whole = part_of_counted(part)
            whole.log.names = Names(recorded.executables)
            self.parts.append(whole)
        elif not part.is_empty:
            self._counted.append(part)
        if launch:
            recorded.started = None
        self._begin_part(recorded)

    def _write_counted(self) -> None:
        """Write what was counted since this was done last."""
        parts, self._counted = self._counted, []
        if parts and self._writer is not None:
            self._try(self._writer, lambda writer: writer.add_counted(parts))

    def _try(self, writer: Writer, write: Callable[[Writer], Any]) -> bool:
        """Write; False: that failed, and the recording has ended."""
        try:
            write(writer)
        except OSError as error:
            self._report(f"the recording ends in clock {self._device.time:,}: {writer.path}: {error.strerror}")
            self._let_go()
            writer.close()
            return False
        return True

    def _add(self, make: Callable[[], Part | None]) -> None:
        if self._writer is not None:
            self._write(self._writer, lambda writer: writer.add_later(make))
        elif (part := make()) is not None:
            self.parts.append(part)

    def _add_sample(self, sample: Sample) -> None:
        if self._writer is None:
            self.samples.append(sample)
        else:
            self._write(self._writer, lambda writer: writer.add_sample(sample))

    def _write(self, writer: Writer, write: Callable[[Writer], None]) -> None:
        """Write, and say when the file has reached its limit."""
        before = writer.reduced
        if self._try(writer, write) and writer.reduced and not before:
            self._report(
                f"{writer.path} has reached its limit in clock {self._device.time:,}: from here on the recording has "
                "counts and waits, and no single instructions"
            )

    # --- what was recorded ------------------------------------------------------------------------------------------

    @property
    def places(self) -> list[Place]:
        """Translated coordinates of the tiles with something recorded."""
        return list(dict.fromkeys(part.place for part in self.parts))

    @checked
    def logs(self, place: Place) -> list[CoreLog]:
        """What a tile has executed, part by part."""
        return [part.log for part in self.parts if part.place == place]

    @checked
    def save(self, directory: str | Path) -> Path:
        """Write the parts into a directory, for `bhemu report`; returns the file.

        Raises:
            BhemuError: the recording goes to a file anyway.
            OSError: it cannot be written.
        """
        if self._writer is not None:
            raise BhemuError(f"the recording is in {self._writer.path}", remedy="make a report of its directory")
        if not self.is_over:
            self.flush()
        paths = {str(program.path) for names in self._names.values() for program in _files(names)}
        about = {"chip": "bhemu.Chip", "elf": sorted(paths), "detail": self._detail} | about_chip(self._device)
        path = Path(directory) / f"chip{about.get('chip_number', '')}{SUFFIX}"
        path.unlink(missing_ok=True)
        writer = Writer(path, about, DISK_LIMIT)
        for part in self.parts:
            writer.add(part)
        for sample in self.samples:
            writer.add_sample(sample)
        writer.close()
        return path


def about_chip(device: Device) -> dict[str, int]:
    """Which chip of a system it is, for `Reader.about`; nothing of a chip alone."""
    return {"chip_number": device.partners.index(device)} if len(device.partners) > 1 else {}


def _files(names: Executables) -> list[Any]:
    """The executables of a tile."""
    owner = getattr(names, "__self__", None)
    if owner is not None:  # TilePrograms.executable_at
        return [program for _, program in owner.executables]
    return [] if callable(names) else list(names.values())


def _part(recorded: _Recorded, taken: Taken, is_kept: bool, seen: dict[str, Any]) -> Part | None:
    """The part that was taken; None where nothing has happened.

    Args:
        is_kept: it stays in memory; else it is written, without names, and what reads it puts its rows in order.
    """
    assert isinstance(recorded.recorder, CoreRecorder)
    log = recorded.recorder.made(taken, in_order=is_kept)
    if is_kept:
        log.names = Names(recorded.executables)
    has_any = seen["launch"] or len(log.tensix) or len(log.counts) or log.waits or log.changes
    return Part(log=log, **seen) if has_any else None


def _code(log: Taken, record: Any) -> list[tuple[int, bytes]]:
    """Pieces of L1 with the instructions that were executed."""
    if not len(log.counts):
        return []
    executed = np.zeros(len(log.words), bool)
    executed[log.counts[:, 1] - log.words.start] = True
    words = np.flatnonzero(executed) + log.words.start
    breaks = np.flatnonzero(words[1:] - words[:-1] > _GAP)
    first, last = words[[0, *(breaks + 1)]].tolist(), words[[*breaks, -1]].tolist()
    l1 = record["l1"]
    return [(4 * a, l1[4 * a : 4 * b + 4].tobytes()) for a, b in zip(first, last, strict=True)]
