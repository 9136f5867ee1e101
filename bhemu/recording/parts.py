"""A recording on disk: parts of what tiles executed, one after the other in a file that is readable at any time.

A file is a stream of frames: `BHR2`, the lengths of the two things that follow, their checksum; a description as JSON;
and the arrays that it names: rows as row_code.py writes them, those of cores as they were recorded, which run ahead of
each other; then the others, compressed. A frame that was not written whole, because the process ended or the disk was
full, is the last one, and is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from bhemu.chip.coordinates import Place
from bhemu.errors import ProgramError
from bhemu.files import array_type
from bhemu.machine.agents import CORES
from bhemu.machine.state import THREADS
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.circular_buffers import CircularBuffer
from bhemu.recording.core_log import Change, CoreLog, Names, Segment, rows_in_order
from bhemu.recording.counted import KIND as COUNTED
from bhemu.recording.counted import Counted, counted_log, described, undescribed
from bhemu.recording.log import Log, Note, Pushes, runs_of
from bhemu.recording.row_code import FORMS, decoded, encoded
from bhemu.recording.samples import Sample, Series
from bhemu.recording.states import check_state

Array = np.ndarray[Any, Any]

SUFFIX: Final = ".parts"
INSTRUCTIONS: Final = "instructions"
PROFILE: Final = "profile"
COUNTERS: Final = "counters"
"""What was recorded, as the description of a file says: `detail`."""
_MAGIC: Final = b"BHR2"
_FRAME: Final = struct.Struct("<4sIII")
_FAST: Final = 1
"""Level of zlib."""
_LITTLE: Final = 1 << 15
_MOST_WAITING: Final = 128
"""Parts that wait for the thread that writes them."""
SAMPLE: Final = "sample"
"""Kind of the frames with samples."""
_LOG_ARRAYS: Final = ("rows", "counts", "mix", "modelled", "polled", "ran", "first", "last")


@dataclass
class Part:
    """What a tile executed in a span of time.

    Attributes:
        place: translated coordinates of the tile.
        begin, end: clocks of the chip.
        launch: number of the launch of the tile that ended with this part, from 1 on; 0: no launch ended.
        started: clock in which the launch was seen first; None without one.
        log: of the span.
        first_push: for each thread, how many pushes of the recording precede those of the log.
        code: (address, bytes of L1) where instructions were executed.
        initiators: uint32 [2, 4, 14]: registers of the network interfaces at its begin.
        state: arrays of the tile at its end: `dst`, `srca`, `srcb`, `config`, `l1 ADDRESS`; empty unless asked for.
        buffers: circular buffers of the program.
        firmware_end: bytes of L1 below are those of a firmware that is known; 0: there is none.
        pcs: by core, where it was at the end.
        halted: cores that `ebreak` had halted by then.
        mailboxes: uint8, of tt-metal's firmware at the end, from its launch messages on; empty without that firmware.
    """

    place: Place
    begin: int
    end: int
    launch: int
    started: int | None
    log: CoreLog
    first_push: tuple[int, ...]
    code: list[tuple[int, bytes]]
    initiators: Array
    state: dict[str, Array] = field(default_factory=dict)
    buffers: list[CircularBuffer] = field(default_factory=list)
    firmware_end: int = 0
    pcs: tuple[int, ...] = ()
    halted: tuple[int, ...] = ()
    mailboxes: Array = field(default_factory=lambda: np.zeros(0, np.uint8))


class Writer:
    """Writes parts into a file.

    Args:
        path: of the file, which is made; its directory, too.
        about: what the recording is of, for `Reader.about`.
        limit: bytes. When the file is larger, rows of instructions are left out of further parts.
        behind: write in a thread of its own, while the chip goes on. What fails there is raised by a later call.

    Attributes:
        reduced: rows are left out.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], limit: int, *, behind: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.reduced = False
        self._limit = limit
        self._known: set[str] = set()
        self._samples = Series()
        self._size = 0
        self._thread = ThreadPoolExecutor(1) if behind else None
        self._waiting: deque[Future[None]] = deque()
        self._failed = False
        self._file: IO[bytes] = path.open("xb", buffering=0)
        self.frame({"kind": "about", **about}, {})

    def add(self, part: Part) -> None:
        """Write a part.

        Raises:
            OSError: the disk is full, or the file cannot be written any more.
        """
        self._write(partial(self._add, part))

    def add_later(self, make: Callable[[], Part | None]) -> None:
        """Write the part that a function makes, if it makes one; see `add`."""
        self._write(partial(self._add_made, make))

    def add_counted(self, parts: Sequence[Counted]) -> None:
        """Write parts of a recording that only counts; see `add`."""
        if parts:
            self._write(partial(self._add_counted, parts))

    def add_sample(self, sample: Sample) -> None:
        """Write a sample, unless the file has reached its limit; see `add`."""
        self._write(partial(self._add_sample, sample))

    def finish(self) -> None:
        """Wait until everything is written; see `add`."""
        self._wait(0)

    def close(self) -> None:
        """Nothing more comes."""
        with contextlib.suppress(OSError):
            self.finish()
        if self._thread is not None:
            self._thread.shutdown()
        with contextlib.suppress(OSError):
            self._file.close()

    def _write(self, write: Callable[[], None]) -> None:
        if self._thread is None:
            write()
            return
        self._wait(_MOST_WAITING)
        self._waiting.append(self._thread.submit(self._write_behind, write))

    def _wait(self, left: int) -> None:
        """Wait until no more than so many calls are left in the thread."""
        while self._waiting and (len(self._waiting) > left or self._waiting[0].done()):
            self._waiting.popleft().result()

    def _write_behind(self, write: Callable[[], None]) -> None:
        if not self._failed:  # nothing is readable behind half a frame
            self._failed = True
            write()
            self._failed = False

    def _add_made(self, make: Callable[[], Part | None]) -> None:
        if (part := make()) is not None:
            self._add(part)

    def _add(self, part: Part) -> None:
        self.reduced = self.reduced or self._size > self._limit
        code = [[address, self.code(content)] for address, content in part.code]
        self.frame(*_described(part, code, rows=not self.reduced))

    def _add_counted(self, parts: Sequence[Counted]) -> None:
        code = [[[address, self.code(content)] for address, content in part.code] for part in parts]
        self.frame(*described(parts, code))

    def _add_sample(self, sample: Sample) -> None:
        self.reduced = self.reduced or self._size > self._limit
        if not self.reduced:
            told, arrays = self._samples.described(sample)
            self.frame({"kind": SAMPLE, **told}, arrays)

    def code(self, content: bytes) -> str:
        """The name under which a piece of code is in the file; written when it is not there yet."""
        digest = hashlib.sha1(content).hexdigest()
        if digest not in self._known:
            self.frame({"kind": "code", "digest": digest}, {"code": np.frombuffer(content, np.uint8)})
            self._known.add(digest)
        return digest

    def frame(self, description: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Write a frame.

        Raises:
            OSError: the disk is full, or the file cannot be written any more.
        """
        kinds = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        coded = {name: encoded(FORMS[name], array) for name, array in arrays.items() if name in FORMS}
        told = {**description, "arrays": kinds, "coded": {name: len(code) for name, code in coded.items()}}
        text = json.dumps(told).encode()
        others = b"".join(_columns(array) for name, array in arrays.items() if name not in FORMS)
        content = b"".join([*(code.tobytes() for code in coded.values()), _compressed(others)])
        check = zlib.crc32(content, zlib.crc32(text))
        frame = _FRAME.pack(_MAGIC, len(text), len(content), check) + text + content
        written = 0
        while written < len(frame):
            written += self._file.write(frame[written:])
        self._size += written


def _compressed(content: bytes) -> bytes:
    """By zlib; with little memory where there is little to compress, as it clears that first."""
    if len(content) > _LITTLE:
        return zlib.compress(content, _FAST)
    small = zlib.compressobj(_FAST, zlib.DEFLATED, 12, 5)
    return small.compress(content) + small.flush()


def _columns(array: Array) -> bytes:
    """Bytes of an array, columns of a matrix one after the other: they compress better so."""
    return np.asfortranarray(array).tobytes("F") if array.ndim == 2 else array.tobytes()


def _described(part: Part, code: list[Any], *, rows: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    """Description and arrays of a part."""
    log = part.log
    arrays: dict[str, Array] = {name: getattr(log, name) for name in _LOG_ARRAYS}
    arrays |= {"tensix": log.tensix.rows, "initiators": part.initiators, "mailboxes": part.mailboxes}
    arrays |= {f"pushes{thread}": runs_of(pushes) for thread, pushes in enumerate(log.tensix.pushes)}
    arrays |= {} if log.issued is None else {"issued": log.issued}
    arrays |= {f"state {name}": array for name, array in part.state.items()}
    notes = [
        [note.row, note.push, note.thread, note.kind, list(note.values), note.line, note.ready]
        for note in log.tensix.notes
    ]
    if not rows:
        arrays |= {"rows": log.rows[:0], "tensix": log.tensix.rows[:0]}
        arrays |= {f"pushes{thread}": np.zeros((0, 3), np.int64) for thread in range(len(part.first_push))}
        notes = []
    description = {
        "kind": "part",
        "place": list(part.place),
        "begin": part.begin,
        "end": part.end,
        "launch": part.launch,
        "started": part.started,
        "first_push": list(part.first_push),
        "code": code,
        "dropped": log.dropped + (0 if rows else len(log.rows)),
        "tensix_dropped": log.tensix_dropped + (0 if rows else len(log.tensix)),
        "words": [log.words.start, log.words.stop],
        "waits": [[*key, rounds] for key, rounds in log.waits.items()],
        "polls": [[*key, rounds] for key, rounds in log.polls.items()],
        "rounds": list(log.rounds),
        "clocks": log.clocks,
        "segments": [[segment.first, segment.end, segment.free] for segment in log.segments],
        "changes": [vars(change) for change in log.changes],
        "notes": notes,
        "firmware_end": part.firmware_end,
        "pcs": part.pcs,
        "halted": part.halted,
        "buffers": [vars(buffer) for buffer in part.buffers],
    }
    return description, arrays


_DAMAGE: Final = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, zlib.error)
"""What reading something else than `Writer` writes ends with."""


def _damaged(path: Path, error: Exception) -> ProgramError:
    return ProgramError(
        f"{path} is damaged, or of another version of bhemu: {error}", remedy="record again, or copy the file again"
    )


def _check_numbers(told: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Refuse numbers of cores, threads and words that there are not: what reads them has tables of these.

    Raises:
        ValueError: there are such.
    """
    words = range(*told["words"])
    if words.start < 0 or words.stop > column.WORDS:
        raise ValueError(f"it counts words {words.start} to {words.stop} of {column.WORDS}")
    for name, columns in (
        ("rows", column.COLUMNS),
        ("counts", column.COUNT_COLUMNS),
        ("tensix", tensix_column.COLUMNS),
    ):
        if arrays[name].dtype != np.int64 or arrays[name].shape[1:] != (columns,):
            raise ValueError(f"{name} are not int64 [n, {columns}]")
    numbers = {
        "core": (arrays["rows"][:, column.WHO] & 7, range(CORES)),
        "counted core": (arrays["counts"][:, 0], range(CORES)),
        "counted word": (arrays["counts"][:, 1], words),
        "thread": (arrays["tensix"][:, tensix_column.THREAD], range(THREADS)),
    }
    for what, (found, known) in numbers.items():
        if len(found) and not (found.min() >= known.start and found.max() < known.stop):
            raise ValueError(f"it has a {what} outside of {known.start} to {known.stop - 1}")
    if "issued" in arrays and arrays["issued"].shape != (THREADS, 256):
        raise ValueError(f"words of the coprocessor are not counted for {THREADS} threads")
    for name in ("mix", "modelled", "polled", "ran", "first", "last"):
        if arrays[name].shape[:1] != (CORES,):
            raise ValueError(f"{name} is not that of {CORES} cores")


def _part(told: dict[str, Any], arrays: dict[str, Array], code: Mapping[str, bytes]) -> Part:
    """The part that a frame describes."""
    _check_numbers(told, arrays)
    pushes = [Pushes(arrays[f"pushes{thread}"]) for thread in range(len(told["first_push"]))]
    notes = [
        Note(row, push, thread, kind, tuple(values), line, ready)
        for row, push, thread, kind, values, line, ready in told["notes"]
    ]
    log = CoreLog(
        **{name: arrays[name] for name in _LOG_ARRAYS} | {"rows": rows_in_order(arrays["rows"])},
        dropped=told["dropped"],
        tensix=Log(arrays["tensix"], (pushes[0], pushes[1], pushes[2]), notes),
        tensix_dropped=told["tensix_dropped"],
        words=range(*told["words"]),
        waits=Counter({(core, pc, what): rounds for core, pc, what, rounds in told["waits"]}),
        polls=Counter({(core, pc, what): rounds for core, pc, what, rounds in told["polls"]}),
        rounds=(told["rounds"][0], told["rounds"][1]),
        clocks=told["clocks"],
        names=Names(),
        segments=[Segment(*segment) for segment in told["segments"]],
        changes=[Change(**change) for change in told["changes"]],
        issued=arrays.get("issued"),
    )
    state = {name.removeprefix("state "): array for name, array in arrays.items() if name.startswith("state ")}
    if state:
        check_state(state)
    return Part(
        place=(told["place"][0], told["place"][1]),
        begin=told["begin"],
        end=told["end"],
        launch=told["launch"],
        started=told["started"],
        log=log,
        first_push=tuple(told["first_push"]),
        code=[(address, code[digest]) for address, digest in told["code"]],
        initiators=arrays["initiators"],
        state=state,
        firmware_end=told.get("firmware_end", 0),
        pcs=tuple(told.get("pcs", ())),
        halted=tuple(told.get("halted", ())),
        mailboxes=arrays.get("mailboxes", np.zeros(0, np.uint8)),
        buffers=[CircularBuffer(**buffer) for buffer in told.get("buffers", [])],
    )


def part_of_counted(one: Counted) -> Part:
    """A part of a recording that only counts.

    Raises:
        ValueError: these are not counts.
    """
    return Part(
        place=one.place,
        begin=one.begin,
        end=one.end,
        launch=one.launch,
        started=one.started,
        log=counted_log(one.numbers),
        first_push=(0,) * THREADS,
        code=one.code,
        initiators=np.zeros((2, 4, 14), np.uint32),
        firmware_end=one.firmware_end,
        pcs=one.pcs,
        halted=one.halted,
        mailboxes=one.mailboxes,
    )


def _frames(path: Path, only: str | None = None) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
    """The whole frames of a file; of one kind, or of all.

    Raises:
        ProgramError: one is whole, and nothing that `Writer` writes.
    """
    with path.open("rb") as file:
        while True:
            head = file.read(_FRAME.size)
            if len(head) < _FRAME.size:
                return
            magic, text_size, size, check = _FRAME.unpack(head)
            text, content = file.read(text_size), file.read(size)
            if magic != _MAGIC or len(content) < size or zlib.crc32(content, zlib.crc32(text)) != check:
                return
            try:
                told = json.loads(text)
                if only not in (None, told["kind"]):
                    continue
                arrays = _arrays(told.pop("arrays"), told.pop("coded"), content)
                if not isinstance(told["kind"], str):
                    raise ValueError(f"{told['kind']!r} is not a kind of frame")
            except _DAMAGE as error:
                raise _damaged(path, error) from None
            yield told, arrays


def _arrays(kinds: Mapping[str, Any], coded: Mapping[str, int], content: bytes) -> dict[str, Array]:
    found, at = {}, 0
    for name, size in coded.items():
        if not 0 <= size <= len(content) - at:  # NumPy takes all there is for -1
            raise ValueError(f"{name} have {size} bytes")
        found[name] = decoded(FORMS[name], np.frombuffer(content, np.uint8, size, at), kinds[name][1][0])
        at += size
    content, at = zlib.decompress(memoryview(content)[at:]), 0
    for name, (kind, shape) in kinds.items():
        if name in coded:
            continue
        dtype = array_type(kind)
        count = int(np.prod(shape))
        flat = np.frombuffer(content, dtype, count, at)
        at += count * dtype.itemsize
        found[name] = np.ascontiguousarray(flat.reshape(shape, order="F" if len(shape) == 2 else "C"))
    return found


def directory_files(directory: Path) -> list[Path]:
    """The files of recordings in a directory, the oldest first."""
    return sorted(directory.glob(f"*{SUFFIX}"), key=lambda path: (path.stat().st_mtime, path.name))


class Reader:
    """A recording that `Writer` has written, or is writing.

    Args:
        directory: with one file or several: a client may have several processes, and a system several chips.
        chip: number of the chip, of several; None: the first that was recorded.

    Attributes:
        files: the recordings of the chip in it.
        about: what they are of.
        chips: numbers of the chips that were recorded; none: one that is alone.
        chip: the one of these whose recordings they are; None where it is alone.
        links: files with what went over the links of a system (recording/link_recording.py).

    Raises:
        ProgramError: there is no recording, or none of that chip.
    """

    def __init__(self, directory: Path, chip: int | None = None) -> None:
        found = directory_files(directory) if directory.is_dir() else []
        told = {path: next((told for told, _ in _frames(path)), None) for path in found}
        known = {path: about for path, about in told.items() if about is not None}
        self.links = [path for path, about in known.items() if "links" in about]
        self.chips = sorted({about["chip_number"] for about in known.values() if "chip_number" in about})
        if chip is not None and chip not in self.chips:
            raise ProgramError(
                f"{directory} holds no recording of chip {chip}",
                remedy=f"it has chips {', '.join(map(str, self.chips))}"
                if self.chips
                else "it is not of several chips",
            )
        self.chip = self.chips[0] if chip is None and self.chips else chip
        self.files = [path for path in found if known.get(path, {}).get("chip_number", self.chip) == self.chip]
        self.about = [known[path] for path in self.files if path in known]
        if not self.about:
            raise ProgramError(
                f"{directory} holds no recording",
                remedy="record with `bhemu run-client --record DIR -- COMMAND`, or with `chip.record(...).save(DIR)`",
            )

    def parts(self, file: Path | None = None) -> Iterator[Part]:
        """What was recorded, in the order of writing; in one of `files`, or in all.

        Raises:
            ProgramError: a file is damaged.
        """
        for path in self.files if file is None else [file]:
            for told, arrays, code in self.frames(path):
                try:
                    if told["kind"] == "part":
                        found = [_part(told, arrays, code)]
                    elif told["kind"] == COUNTED:
                        found = [part_of_counted(one) for one in undescribed(told, arrays, code)]
                    else:
                        continue
                except _DAMAGE as error:
                    raise _damaged(path, error) from None
                yield from found

    def samples(self) -> Iterator[Sample]:
        """What registers and tiles in L1 held between the ends of parts; see `parts`."""
        for path in self.files:
            series = Series()
            for told, arrays in _frames(path, SAMPLE):
                try:
                    sample = series.undescribed(told, arrays)
                except _DAMAGE as error:
                    raise _damaged(path, error) from None
                yield sample

    def frames(
        self, file: Path | None = None
    ) -> Iterator[tuple[dict[str, Any], dict[str, Array], Mapping[str, bytes]]]:
        """(description, arrays, pieces of code by their names so far) of frames of one of `files`, or of all."""
        for path in self.files if file is None else [file]:
            code: dict[str, bytes] = {}
            for told, arrays in _frames(path):
                if told["kind"] == "code":
                    try:
                        code[told["digest"]] = arrays["code"].tobytes()
                    except _DAMAGE as error:
                        raise _damaged(path, error) from None
                yield told, arrays, code

    @property
    def size(self) -> int:
        """Bytes of all its files."""
        return sum(os.path.getsize(path) for path in self.files)
