"""States of recorded tiles every so many clocks: kept where they have changed, and read as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu import Chip
from bhemu.checks import ArgumentError
from bhemu.chip.coordinates import tensix_index
from bhemu.errors import ConfigurationError, ProgramError
from bhemu.recording.chip_recording import ChipRecording
from bhemu.recording.parts import SAMPLE, Reader, Writer, directory_files
from bhemu.recording.samples import Sample, Sampler
from bhemu.recording.states import state_of
from tests.chip.test_chip_recording import RECEIVER, SENDER, THIRD, running

pytestmark = pytest.mark.plain


def fill(chip: Chip, rows: int) -> None:
    """As many rows of the sender's Dst as a program might have written."""
    chip[SENDER].dst.cells[:rows] = 0x3F80


def rows_of(sample: Sample) -> int:
    return int(sample.state["dst"].any(axis=1).sum())


def recorded(**options: object) -> tuple[Chip, list[Sample]]:
    """Samples of a chip in which Dst changes after 10 and after 25 clocks."""
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER], **options)  # type: ignore[arg-type]
    for clocks, rows in ((10, 16), (15, 32), (15, 32)):
        chip.clock(clocks)
        fill(chip, rows)
    recording.stop()
    return chip, recording.samples


def test_a_tile_is_kept_where_it_has_changed() -> None:
    _, samples = recorded(states_every=4)
    found = [(sample.place, sample.clock, rows_of(sample)) for sample in samples]
    assert found == [(SENDER, 0, 0), (RECEIVER, 0, 0), (SENDER, 12, 16), (SENDER, 28, 32)]


def test_every_clock_says_in_which_one_it_has_changed() -> None:
    _, samples = recorded(states_every=1)
    assert [sample.clock for sample in samples if sample.place == SENDER] == [0, 11, 26]


def test_programs_compute_the_same_whether_it_looks_or_not() -> None:
    chips = [recorded(states_every=every)[0] for every in (None, 1)]
    for place in (SENDER, RECEIVER, THIRD):
        one, other = (chip.device.touch(tensix_index(place)).settle() or chip[place].record for chip in chips)
        for name in ("l1", "dst", "core_x", "core_pc", "core_retired", "clock"):
            assert np.array_equal(one[name], other[name]), (place, name)


def test_samples_are_written_once_and_read_as_they_were(tmp_path: Path) -> None:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER], states_every=4)
    for clocks, rows in ((10, 16), (15, 32)):
        chip.clock(clocks)
        fill(chip, rows)
    chip.clock(15)
    path = recording.save(tmp_path / "out")
    reader = Reader(tmp_path / "out")
    read = list(reader.samples())
    assert [(one.place, one.clock) for one in read] == [(one.place, one.clock) for one in recording.samples]
    for one, kept in zip(read, recording.samples, strict=True):
        assert one.state.keys() == kept.state.keys()
        assert all(np.array_equal(one.state[name], array) for name, array in kept.state.items())
    written = [(told["clock"], sorted(arrays)) for told, arrays, _ in reader.frames(path) if told["kind"] == SAMPLE]
    assert [names for clock, names in written if clock > 0] == [["dst"]] * 2
    assert [part.place for part in reader.parts()] == [SENDER, RECEIVER]


def test_a_client_s_recording_has_them_until_it_reaches_its_limit(tmp_path: Path) -> None:
    said: list[str] = []
    for limit in (1 << 20, 100):
        chip = running()
        writer = Writer(tmp_path / str(limit) / "a.parts", {"elf": []}, limit)
        tiles = {place: chip.device.node(place).index for place in (SENDER,)}
        recording = ChipRecording(chip.device, tiles, states_every=4, writer=writer, report=said.append)
        for clocks, rows in ((10, 16), (15, 32), (5, 32)):
            recording.clock(clocks)
            fill(chip, rows)
        recording.stop()
    kept = [len(list(Reader(tmp_path / str(limit)).samples())) for limit in (1 << 20, 100)]
    assert kept[0] == 3 > kept[1]
    assert len(said) == 1
    assert "has reached its limit" in said[0]


def test_what_makes_no_sense_is_refused() -> None:
    chip = running()
    with pytest.raises(ConfigurationError, match="states kept, by a recording that only counts"):
        chip.record(tiles=SENDER, counters=True, states_every=8)
    with pytest.raises(ArgumentError, match="states_every"):
        chip.record(tiles=SENDER, states_every=0)


@pytest.mark.parametrize("damage", ["shape", "name", "clock", "same"])
def test_a_damaged_sample_is_refused(tmp_path: Path, damage: str) -> None:
    chip = running()
    state = state_of(chip.device.tiles[chip.device.node(SENDER).index])
    told = {"kind": SAMPLE, "place": list(SENDER), "clock": 4, "same": []}
    if damage == "shape":
        state["dst"] = state["dst"][:8]
    elif damage == "name":
        state["dsu"] = state["dst"]
    elif damage == "clock":
        told["clock"] = "soon"
    else:
        told["same"] = ["dst"]
        del state["dst"]
    writer = Writer(tmp_path / "a.parts", {"elf": []}, 1 << 20)
    writer.frame(told, state)
    writer.close()
    assert directory_files(tmp_path)
    with pytest.raises(ProgramError, match="damaged"):
        list(Reader(tmp_path).samples())


def test_looks_are_as_far_apart_as_asked() -> None:
    sampler = Sampler(10)
    state = running().device.tiles[0]
    assert len(sampler.take(100, [(SENDER, state)])) == 1
    assert sampler.clocks_left(104) == 6
    state["dst"][:] = 1
    assert sampler.take(109, [(SENDER, state)]) == []
    assert len(sampler.take(110, [(SENDER, state)])) == 1
