"""`Chip.record`: any tiles, any time; the others run by the plain clock, and nothing computes otherwise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu import Chip
from bhemu.analysis import hazards
from bhemu.chip.coordinates import tensix_index
from bhemu.errors import BhemuError, ConfigurationError, UndefinedBehavior
from bhemu.recording.chip_recording import STEP, ChipRecording
from bhemu.recording.parts import Reader, Writer
from tests.chip.noc_programs import B_RUNS, SOFT_RESET, WRITE, at, request
from tests.chip.test_run_ahead import count_down
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

SENDER, RECEIVER, THIRD = (1, 2), (3, 4), (5, 6)
PAGE, FLAG = 0x20000, 0x20040
SENDS = (
    count_down(20, "busy")
    + request(target=PAGE, target_hi=at(*SENDER), back=FLAG, back_hi=at(*RECEIVER), ctrl=WRITE, length=16)
    + "\nend: j end\n"
)
WAITS = f"li a0, {FLAG:#x}\nwait: lw a1, 0(a0)\nbeqz a1, wait\nli a2, 5\nsw a2, 16(a0)\nend: j end\n"


def running(**options: object) -> Chip:
    """A chip in which one tile signals another one."""
    chip = Chip(**options)  # type: ignore[arg-type]
    for place, text in ((SENDER, SENDS), (RECEIVER, WAITS), (THIRD, count_down(40, "busy") + "end: j end\n")):
        chip[place].write(0, assemble(text, 0))
    chip[SENDER].write_word(PAGE, 7)
    for place in (SENDER, RECEIVER, THIRD):
        chip[place].write_word(SOFT_RESET, B_RUNS)
    return chip


def state(chip: Chip) -> list[bytes]:
    return [chip.device.tiles[tensix_index(place)].tobytes() for place in (SENDER, RECEIVER, THIRD)]


def test_only_the_named_tiles_are_recorded() -> None:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER])
    observed = chip.device.record.observer
    assert np.flatnonzero(observed).tolist() == sorted(map(tensix_index, (SENDER, RECEIVER)))
    chip.clock(300)
    recording.stop()
    assert recording.places == [SENDER, RECEIVER]
    assert not chip.device.record.observer.any()
    (log,) = recording.logs(RECEIVER)
    assert log.retired(0) > 0
    assert log.clocks == 300


@pytest.mark.parametrize("quantum", [1, 1024])
def test_a_recorded_chip_computes_the_same_bits(quantum: int) -> None:
    plain, watched = running(quantum=quantum), running(quantum=quantum)
    watched.record(tiles=[SENDER, RECEIVER], watch=[FLAG], states=True)
    for chip in (plain, watched):
        for clocks in (STEP, 700 - STEP):  # as the recording lets them pass
            chip.clock(clocks)
        for place in (SENDER, RECEIVER, THIRD):
            chip.device.touch(tensix_index(place)).settle()
    assert state(plain) == state(watched)


def test_a_recording_begins_and_ends_where_it_is_told_to() -> None:
    chip = running()
    recording = chip.record(tiles=SENDER, start=20, stop=50)
    chip.clock(300)
    assert recording.is_over
    (part,) = recording.parts
    assert (part.begin, part.end, part.log.clocks) == (20, 50, 30)
    assert not chip.device.record.observer.any()
    later = chip.record(tiles=SENDER)
    chip.clock(10)
    later.stop()
    assert later.parts[0].begin == 300


def test_two_recordings_of_different_tiles_go_on_side_by_side() -> None:
    chip = running()
    one, other = chip.record(tiles=SENDER, stop=30), chip.record(tiles=THIRD, start=10, stop=90)
    chip.clock(100)
    assert [(part.begin, part.end) for part in one.parts + other.parts] == [(0, 30), (10, 90)]


def test_a_watched_word_that_the_noc_writes_and_a_core_writes() -> None:
    chip = running()
    recording = chip.record(tiles=RECEIVER, watch=[FLAG, FLAG + 16])
    chip.clock(300)
    recording.stop()
    first, second = recording.logs(RECEIVER)[0].changes
    assert (first.by, first.address, first.after) == ("the NoC or the host", FLAG, 7)
    assert (second.by, second.address, second.after) == ("B", FLAG + 16, 5)


def test_a_recording_is_saved_and_read(tmp_path: Path) -> None:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER])
    chip.clock(300)
    recording.save(tmp_path / "out")
    chip.clock(100)
    recording.stop()
    read = list(Reader(tmp_path / "out").parts())
    assert [part.place for part in read] == [SENDER, RECEIVER]
    assert np.array_equal(read[1].log.rows, recording.parts[1].log.rows)
    assert all(hazards(part.log.tensix) == [] for part in read)


def test_what_cannot_be_recorded_is_refused_by_name() -> None:
    chip = running()
    with pytest.raises(UndefinedBehavior, match="8-2 is not a Tensix tile"):
        chip.record(tiles=[(8, 2)])
    with pytest.raises(ConfigurationError, match="no tile"):
        chip.record(tiles=[])
    chip.clock(10)
    with pytest.raises(ConfigurationError, match="from clock 5"):
        chip.record(tiles=SENDER, start=5)
    chip.record(tiles=SENDER)
    with pytest.raises(ConfigurationError, match="1-2 is recorded already"):
        chip.record(tiles=[SENDER, THIRD])
    assert not chip.device.record.observer[tensix_index(THIRD)]


class FullDisk:
    """A writer whose disk is full."""

    reduced = False
    path = Path("out/chip.parts")

    def add_later(self, make: object) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        pass


def test_a_full_disk_ends_the_recording_with_one_message_and_the_chip_goes_on() -> None:
    chip, said = running(), []
    tiles = {place: chip[place].node.index for place in (SENDER, RECEIVER)}
    recording = ChipRecording(chip.device, tiles, writer=FullDisk(), report=said.append)  # type: ignore[arg-type]
    recording.clock(200)
    recording.flush()
    recording.clock(200)
    recording.stop()
    assert said == ["the recording ends in clock 200: out/chip.parts: No space left on device"]
    assert chip.time == 400
    assert chip[RECEIVER].read_word(FLAG + 16) == 5


def test_a_recording_that_goes_to_a_file_is_not_saved_again(tmp_path: Path) -> None:
    chip = running()
    recording = ChipRecording(chip.device, {SENDER: 0}, writer=FullDisk(), report=print)  # type: ignore[arg-type]
    with pytest.raises(BhemuError, match=r"is in out/chip\.parts"):
        recording.save(tmp_path)


@pytest.mark.parametrize("quantum", [1, 1024])
def test_counters_of_tiles_are_those_of_the_profile(quantum: int) -> None:
    plain, full, counted = running(quantum=quantum), running(quantum=quantum), running(quantum=quantum)
    profile = full.record(tiles=[SENDER, RECEIVER], instructions=False)
    counters = counted.record(tiles=[SENDER, RECEIVER], counters=True)
    for chip in (plain, full, counted):
        for clocks in (STEP, 700 - STEP):
            chip.clock(clocks)
        for place in (SENDER, RECEIVER, THIRD):
            chip.device.touch(tensix_index(place)).settle()
    assert state(plain) == state(counted)
    profile.stop()
    counters.stop()
    for place in (SENDER, RECEIVER):
        (expected,), (found,) = profile.logs(place), counters.logs(place)
        assert np.array_equal(found.counts[:, :3], expected.counts[:, :3])
        assert (found.waits, found.polls) == (expected.waits, expected.polls)
        assert (found.rounds, found.clocks) == (expected.rounds, expected.clocks)
    assert [part.code for part in counters.parts] == [part.code for part in profile.parts]
    assert [part.pcs for part in counters.parts] == [part.pcs for part in profile.parts]


def test_parts_that_are_written_are_those_that_are_kept(tmp_path: Path) -> None:
    found = []
    for writer in (None, Writer(tmp_path / "a.parts", {"elf": []}, 1 << 30, behind=True)):
        chip = running()
        tiles = {place: chip[place].node.index for place in (SENDER, RECEIVER)}
        recording = ChipRecording(chip.device, tiles, writer=writer)
        for _ in range(5):
            recording.clock(60)
            recording.flush()
        recording.stop()
        parts = recording.parts if writer is None else list(Reader(tmp_path).parts())
        found.append(parts)
    assert len(found[0]) == 10
    for kept, written in zip(*found, strict=True):
        for name in ("place", "begin", "end", "code"):
            assert getattr(kept, name) == getattr(written, name)
        for name in ("waits", "polls", "segments", "clocks"):
            assert getattr(kept.log, name) == getattr(written.log, name)
        assert np.array_equal(kept.log.rows, written.log.rows)
        assert np.array_equal(kept.log.counts, written.log.counts)
        assert np.array_equal(kept.log.tensix.rows, written.log.tensix.rows)
        assert kept.log.tensix.pushes == written.log.tensix.pushes


def test_names_are_those_of_what_runs_when_they_are_asked_for() -> None:
    chip, asked = running(), []
    recording = ChipRecording(
        chip.device, {RECEIVER: chip[RECEIVER].node.index}, names={RECEIVER: lambda core, pc: asked.append(pc)}
    )
    for _ in range(2):
        recording.clock(60)
        recording.flush()
        recording.parts[-1].log.names.place(0, 4)
    assert asked == [4, 4]


def test_counters_are_read_as_they_were_written(tmp_path: Path) -> None:
    chip = running()
    writer = Writer(tmp_path / "a.parts", {"chip": "x"}, 1 << 20)
    indices = {place: tensix_index(place) for place in (SENDER, RECEIVER)}
    recording = ChipRecording(chip.device, indices, counters=True, writer=writer)
    recording.clock(700)
    recording.stop()
    twin = running()
    kept = twin.record(tiles=[SENDER, RECEIVER], counters=True)
    twin.clock(700)
    kept.stop()
    kept.save(tmp_path / "saved")
    for directory in (tmp_path, tmp_path / "saved"):
        parts = list(Reader(directory).parts())
        assert [(part.place, part.begin, part.end, part.code) for part in parts] == [
            (part.place, part.begin, part.end, part.code) for part in kept.parts
        ]
        for part, expected in zip(parts, kept.parts, strict=True):
            assert np.array_equal(part.log.counts, expected.log.counts)
            assert np.array_equal(part.log.issued, expected.log.issued)  # type: ignore[arg-type]
            assert (part.log.waits, part.log.polls) == (expected.log.waits, expected.log.polls)


@pytest.mark.parametrize("wanted", [{"watch": [FLAG]}, {"states": True}])
def test_counters_and_more_than_counters_are_refused(wanted: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="only counts"):
        running().record(tiles=SENDER, counters=True, **wanted)  # type: ignore[arg-type]
