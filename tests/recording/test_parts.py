"""Recordings on disk: what is written is read, up to the last whole frame."""

from __future__ import annotations

import errno
import json
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import ProgramError
from bhemu.machine.agents import CORES
from bhemu.recording import CoreRecorder
from bhemu.recording.parts import Part, Reader, Writer
from bhemu.recording.states import state_of
from tests.recording.core_runs import WAITS, programs
from tests.riscv.rv_machine import START, put, release

pytestmark = pytest.mark.plain

FRAME: Final = struct.Struct("<4sIII")
"""Magic, lengths of the description and of the content, checksum."""


@pytest.fixture(scope="module")
def part() -> Part:
    tile, recorder = Tile(), CoreRecorder(watch=[0x20000])
    recorder.attach(tile)
    for core, executable in programs(WAITS).items():
        put(tile, START[core], executable.segments[0].content)
    release(tile, *WAITS)
    tile.cores.advance(1500)
    log = recorder.cut()
    initiators = np.arange(112, dtype=np.uint32).reshape(2, 4, 14)
    code = [(0, b"code"), (0x100, b"more")]
    return Part((1, 2), 0, 1500, 1, 20, log, (0, 0, 0), code, initiators, state_of(tile.record))


def test_a_part_is_read_as_it_was_written(part: Part, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.parts", {"chip": "test"}, 1 << 30)
    writer.add(part)
    writer.close()
    reader = Reader(tmp_path)
    assert [told["chip"] for told in reader.about] == ["test"]
    (read,) = reader.parts()
    assert (read.place, read.begin, read.end, read.launch, read.started) == ((1, 2), 0, 1500, 1, 20)
    assert read.code == part.code
    for name in ("rows", "executed", "cycles", "mix", "modelled", "polled", "ran", "first", "last"):
        assert np.array_equal(getattr(read.log, name), getattr(part.log, name)), name
    assert np.array_equal(read.log.tensix.rows, part.log.tensix.rows)
    assert read.log.tensix.pushes == part.log.tensix.pushes
    assert read.log.tensix.notes == part.log.tensix.notes
    assert (read.log.waits, read.log.polls, read.log.changes) == (part.log.waits, part.log.polls, part.log.changes)
    assert np.array_equal(read.log.clock_of(np.arange(50)), part.log.clock_of(np.arange(50)))
    assert read.state.keys() == part.state.keys()
    assert all(np.array_equal(read.state[name], array) for name, array in part.state.items())


@pytest.mark.parametrize("lost", [1, 7, 1000])
def test_a_frame_that_was_not_written_whole_is_left_out(part: Part, tmp_path: Path, lost: int) -> None:
    path = tmp_path / "a.parts"
    writer = Writer(path, {}, 1 << 30)
    writer.add(part)
    writer.add(part)
    writer.close()
    path.write_bytes(path.read_bytes()[:-lost])
    assert len(list(Reader(tmp_path).parts())) == 1


def test_a_damaged_frame_ends_the_recording(part: Part, tmp_path: Path) -> None:
    path = tmp_path / "a.parts"
    writer = Writer(path, {}, 1 << 30)
    writer.add(part)
    size = path.stat().st_size
    writer.add(part)
    writer.close()
    content = bytearray(path.read_bytes())
    content[size + 100] ^= 1
    path.write_bytes(content)
    assert len(list(Reader(tmp_path).parts())) == 1


def frames_of(path: Path) -> list[tuple[dict[str, Any], bytes]]:
    """Description and content of each frame."""
    found, content, at = [], path.read_bytes(), 0
    while at < len(content):
        _, text, size, _ = FRAME.unpack_from(content, at)
        at += FRAME.size
        found.append((json.loads(content[at : at + text]), content[at + text : at + text + size]))
        at += text + size
    return found


def write_frames(path: Path, frames: list[tuple[dict[str, Any], bytes]]) -> None:
    """Frames whose checksums are right, whatever is in them."""
    whole = b""
    for told, content in frames:
        text = json.dumps(told).encode()
        whole += FRAME.pack(b"BHR2", len(text), len(content), zlib.crc32(content, zlib.crc32(text))) + text + content
    path.write_bytes(whole)


def changed(told: dict[str, Any], place: Sequence[Any], value: Any) -> dict[str, Any]:
    result = json.loads(json.dumps(told))
    inner = result
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return dict(result)


HOSTILE: Final = [
    (("coded", "rows"), 3),
    (("coded", "rows"), -1),
    (("coded", "rows"), 1 << 40),
    (("coded", "tensix"), 0),
    (("coded", "rows"), "many"),
    (("arrays", "rows", 1, 0), 1 << 40),
    (("arrays", "rows", 1, 0), -5),
    (("arrays", "counts", 1, 0), 1),
    (("arrays", "mix", 1), [1 << 40]),
    (("arrays", "mix", 1), [-1, 2]),
    (("arrays", "mix", 0), "O"),
    (("arrays",), None),
    (("words",), [0, 1]),
    (("words",), [-4, 1 << 62]),
    (("waits",), [[1]]),
    (("segments",), [[1, 2]]),
    (("kind",), None),
    (("place",), []),
    (("first_push",), [0]),
    (("code",), [[0, "unknown"]]),
]


@pytest.mark.parametrize(("place", "value"), HOSTILE)
def test_a_frame_with_other_lengths_is_refused(part: Part, tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    path = tmp_path / "a.parts"
    writer = Writer(path, {}, 1 << 30)
    writer.add(part)
    writer.close()
    frames = frames_of(path)
    write_frames(path, frames)
    assert len(list(Reader(tmp_path).parts())) == 1
    write_frames(path, [*frames[:-1], (changed(frames[-1][0], place, value), frames[-1][1])])
    with pytest.raises(ProgramError, match="is damaged") as refused:
        list(Reader(tmp_path).parts())
    assert refused.value.remedy is not None
    assert str(path) in refused.value.message


def test_code_without_a_name_is_refused(part: Part, tmp_path: Path) -> None:
    path = tmp_path / "a.parts"
    writer = Writer(path, {}, 1 << 30)
    writer.add(part)
    writer.close()
    about, (told, content), *others = frames_of(path)
    assert told.pop("digest")
    write_frames(path, [about, (told, content), *others])
    with pytest.raises(ProgramError, match="is damaged"):
        list(Reader(tmp_path).parts())


def test_rows_that_were_changed_are_read_within_their_bytes_or_refused(part: Part, tmp_path: Path) -> None:
    path = tmp_path / "a.parts"
    writer = Writer(path, {}, 1 << 30)
    writer.add(part)
    writer.close()
    *others, (told, content) = frames_of(path)
    chance, refused = random.Random(4), 0
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(2):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        write_frames(path, [*others, (told, bytes(damaged))])
        try:
            (read,) = Reader(tmp_path).parts()
            assert read.log.executed.shape[0] == CORES
        except ProgramError:
            refused += 1
    assert refused > 50


def test_beyond_the_limit_counts_go_on_without_rows(part: Part, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.parts", {}, 100)
    writer.add(part)
    writer.add(part)
    assert writer.reduced
    first, second = Reader(tmp_path).parts()
    for read in (first, second)[not first.log.dropped :]:
        assert (len(read.log.rows), read.log.dropped) == (0, len(part.log.rows))
        assert np.array_equal(read.log.executed, part.log.executed)
        assert read.log.waits == part.log.waits


def test_a_directory_without_a_recording_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="holds no recording"):
        Reader(tmp_path)
    with pytest.raises(ProgramError, match="nowhere holds no recording"):
        Reader(tmp_path / "nowhere")


class FullDisk:
    """A file on a disk that is full."""

    def write(self, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        pass


def test_a_full_disk_is_an_error_of_the_writer(part: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path / "a.parts", {}, 1 << 30)
    monkeypatch.setattr(writer, "_file", FullDisk())
    with pytest.raises(OSError, match="No space left"):
        writer.add(part)
    assert list(Reader(tmp_path).parts()) == []


class FillingDisk(FullDisk):
    """A file for which a disk has room once more."""

    def __init__(self, file: Any, writes: int) -> None:
        self._file, self._left = file, writes

    def write(self, content: bytes) -> int:
        self._left -= 1
        if self._left < 0:
            return super().write(content)
        written: int = self._file.write(content[:100] if self._left == 0 else content)
        return written


def test_parts_are_written_in_their_order_behind(part: Part, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.parts", {}, 1 << 30, behind=True)
    for place in range(300):
        writer.add_later(lambda place=place: None if place % 100 else replace(part, place=(place, 2)))  # type: ignore[misc]
    writer.finish()
    assert [read.place for read in Reader(tmp_path).parts()] == [(0, 2), (100, 2), (200, 2)]
    writer.close()


def test_what_fails_behind_is_raised_later_and_nothing_follows(part: Part, tmp_path: Path) -> None:
    writer = Writer(tmp_path / "a.parts", {}, 1 << 30, behind=True)
    writer.add(part)
    writer.finish()
    writer._file = FillingDisk(writer._file, 1)  # type: ignore[assignment]
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012  # which call says it depends on the thread
        writer.add(part)
        writer.add(part)
        writer.finish()
    assert len(list(Reader(tmp_path).parts())) == 1
    writer.close()
