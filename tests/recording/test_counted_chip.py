"""Counting without Python finds what counting under Python finds: programs that begin and end, parts, joined counts."""

from __future__ import annotations

import numpy as np
import pytest

import bhemu
import bhemu.counting.layout as at
from bhemu.chip.device import Device
from bhemu.counting import chip as counted_chip
from bhemu.counting.chip import counting_chip
from bhemu.counting.launches import Launches, jump_target, jump_word
from bhemu.counting.recorder import CounterRecorder, _joined, counting, sections
from bhemu.loader.firmware_layout import GO, read_layouts
from bhemu.machine.codegen import JIT
from bhemu.machine.state import POWER_ON_RESET

pytestmark = pytest.mark.skipif(not JIT, reason="the C library has compiled functions alone")


def buffer_of(indices: list[int]) -> np.ndarray:
    """The buffer of a chip of which these tiles are followed."""
    buffer = np.zeros(counted_chip.FIRST_TILE + counted_chip.TILE_COLUMNS * len(indices), np.int64)
    layouts = read_layouts()
    buffer[counted_chip.COUNT] = len(indices)
    buffer[[counted_chip.JUMP, counted_chip.LAYOUT]] = -1
    buffer[counted_chip.LAYOUTS] = len(layouts)
    for number, layout in enumerate(layouts):
        first = counted_chip.FIRST_LAYOUT + counted_chip.LAYOUT_COLUMNS * number
        signal = layout.go_messages + layout.go_signal
        buffer[first : first + counted_chip.LAYOUT_COLUMNS] = (
            *(jump_word(layout.entry["B"]), layout.go_index, signal, layout.launch_read_pointer),
        )
    buffer[counted_chip.FIRST_TILE :: counted_chip.TILE_COLUMNS] = indices
    return buffer


def happened(buffer: np.ndarray) -> tuple[list[int], list[int]]:
    """As `Launches.look` returns it."""
    rows = buffer[counted_chip.FIRST_TILE :].reshape(-1, counted_chip.TILE_COLUMNS)
    bits, indices = rows[:, counted_chip.HAPPENED], rows[:, counted_chip.INDEX]
    return indices[bits & counted_chip.BEGUN != 0].tolist(), indices[bits & counted_chip.ENDED != 0].tolist()


def test_a_jump_has_the_word_that_its_target_is_read_from() -> None:
    for layout in read_layouts():
        assert jump_target(jump_word(layout.entry["B"])) == layout.entry["B"]


@pytest.mark.parametrize("seed", range(4))
def test_programs_begin_and_end_as_python_sees_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    device = Device()
    indices = [0, 3, 7]
    launches, buffer = Launches(device.tiles, indices), buffer_of(indices)
    look, *_ = counting_chip()
    layouts = read_layouts()
    l1, words = device.tiles["l1"], device.tiles["l1_u32"]
    seen = 0
    for _ in range(400):
        index, what = indices[int(random.integers(0, 3))], int(random.integers(0, 9))
        layout = layouts[int(random.integers(0, len(layouts)))]
        if what == 0:
            words[0, 0] = (0, 0x6F, *(jump_word(one.entry["B"]) for one in layouts))[int(random.integers(0, 4))]
        elif what < 3:
            device.tiles["soft_reset"][index] = int(random.choice([0, POWER_ON_RESET, POWER_ON_RESET & ~0x800]))
        elif what < 4:
            words[index, layout.go_index >> 2] = int(random.integers(0, 12))
        elif what < 5:
            words[index, layout.launch_read_pointer >> 2] += 1
        else:
            which = int(words[index, layout.go_index >> 2]) & 7
            l1[index, layout.go_messages + layout.go_signal + 4 * which] = GO * int(random.integers(0, 2))
        expected = launches.look()
        count = look.call(device.clocks.target, buffer.ctypes.data, 0)
        assert happened(buffer) == expected
        assert count == len({*expected[0], *expected[1]})
        seen += len(expected[1])
    assert seen > 10


def test_counts_taken_twice_are_joined() -> None:
    (*_, join) = counting_chip()
    random = np.random.default_rng(0)

    def taken() -> np.ndarray:
        counts = random.integers(0, 4, 4)
        columns = (at.RUN_COLUMNS, 2, 2, 2)
        size = at.HEAD + int(sum(count * c for count, c in zip(counts, columns, strict=True)))
        numbers = random.integers(-1, 50, size)
        numbers[: at.BEGIN] = counts
        return numbers

    for _ in range(50):
        one, other = taken(), taken()
        found = np.zeros(len(one) + len(other), np.int64)
        size = join.call(0, one.ctypes.data, other.ctypes.data, found.ctypes.data)
        assert found[:size].tolist() == _joined([one, other]).tolist()


def test_a_cut_is_that_of_the_recorder_under_python() -> None:
    """Two chips count the same program, one of them without Python, and are cut at the same clocks."""

    def chip() -> bhemu.Chip:
        made = bhemu.Chip()
        # addi x5, x5, 1; lw x6, 0x100(x0); bne x6, x5, 0; ebreak
        made[1, 2].record.l1_u32[0:4] = 0x00128293, 0x10002303, 0xFE531CE3, 0x00100073
        made[1, 2].cores.store(0xFFB121B0, 0x47000)
        return made

    _, begin, cut, _ = counting_chip()
    under_python, alone = chip(), chip()
    recorder = CounterRecorder()
    recorder.attach(under_python[1, 2])
    device = alone.device
    index = device.node((1, 2)).index
    log, found = np.zeros(at.SIZE, np.int64), np.zeros(1 << 16, np.int64)
    begin.call(device.tiles[index : index + 1].ctypes.data, log.ctypes.data, 0)
    log[0] = counting()[0].address
    device.record.observer[index] = log.ctypes.data
    for clocks in (5, 1, 300, 40):
        under_python.clock(clocks)
        alone.clock(clocks)
        size = cut.call(device.clocks.target, index, log.ctypes.data, found.ctypes.data)
        assert found[:size].tolist() == recorder.cut().tolist()
    assert len(sections(found[:size])[0]) > 0
