"""Debugging tiles of a chip: breakpoints, steps, watchpoints and stops of several tiles."""

from __future__ import annotations

from pathlib import Path

import pytest

import bhemu
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.chip_session import ChipDebug
from tests.cli.test_chip import FLAG, RECEIVER, RESULT, SENDER, SOURCE, TARGET
from tests.loader.boot_programs import write_elf
from tests.loader.elf_files import Name

pytestmark = pytest.mark.plain

LOOP = 0x8
"""The receiver's load of the flag."""
BEHIND_LOOP = 0x10
PLACES = [(1, 2), (2, 2)]


def started(tmp_path: Path, quantum: int = 1) -> bhemu.Chip:
    """A chip whose tile 1-2 sends a word to tile 2-2, which waits for it."""
    chip = bhemu.Chip(quantum=quantum)
    chip.load(write_elf(tmp_path / "sender.elf", SENDER), "B", tiles=(1, 2))
    names = (Name("result", RESULT, 4, kind=1),)
    chip.load(write_elf(tmp_path / "receiver.elf", RECEIVER, names=names), "B", tiles=(2, 2))
    chip[1, 2].write_word(SOURCE, 0x1234)
    chip.start(tiles=PLACES)
    return chip


@pytest.fixture
def debug(tmp_path: Path) -> ChipDebug:
    return ChipDebug(started(tmp_path), PLACES)


def test_breakpoint_stops_before_the_instruction_of_its_own_tile_only(debug: ChipDebug) -> None:
    """Both tiles have code at the address; tile 1-2 is asked and does not stop there."""
    debug[2, 2].break_at(BEHIND_LOOP)
    stop = debug[1, 2].continue_()
    assert (stop.reason, stop.place, stop.pc) == ("breakpoint", (2, 2), BEHIND_LOOP)
    assert debug.chip[2, 2].state["l1_u32"][FLAG >> 2] == 1
    assert debug.chip[2, 2].state["l1_u32"][RESULT >> 2] == 0


def test_run_goes_on_behind_a_breakpoint_and_ends_as_without_a_debugger(debug: ChipDebug, tmp_path: Path) -> None:
    session = debug[2, 2]
    session.break_at(BEHIND_LOOP)
    assert session.continue_().reason == "breakpoint"
    assert session.continue_().reason == "halt"
    plain = started(tmp_path, quantum=1)
    plain.run()
    assert debug.chip[2, 2].read_word(RESULT) == plain[2, 2].read_word(RESULT) == 0x1234
    debugged, free = debug.chip[2, 2].state, plain[2, 2].state
    assert debugged.core_retired[0] == free.core_retired[0]
    assert debugged.core_round[0] == free.core_round[0]


def test_breakpoint_in_a_loop_that_polls_stops_each_time_around(debug: ChipDebug) -> None:
    session = debug[2, 2]
    session.until(25)  # the core sleeps in its loop
    session.break_at(LOOP)
    first, second = session.continue_(), session.continue_()
    assert (first.reason, first.pc, second.pc) == ("breakpoint", LOOP, LOOP)
    assert second.clock > first.clock


def test_step_executes_an_instruction_while_the_other_tile_moves(debug: ChipDebug) -> None:
    session = debug[2, 2]
    before = debug[1, 2].runner.state(0).retired
    assert session.step().reason == "step"
    assert session.runner.state(0).retired == 1
    assert debug[1, 2].runner.state(0).retired == before + 1


def test_watchpoint_sees_what_another_tile_writes(debug: ChipDebug) -> None:
    session = debug[2, 2]
    session.watch_memory(TARGET, 4)
    stop = session.continue_()
    assert (stop.reason, stop.place) == ("watch", (2, 2))
    assert "0x00001234" in stop.text


def test_refusal_names_its_tile(tmp_path: Path) -> None:
    chip = bhemu.Chip()
    chip.load(write_elf(tmp_path / "bad.elf", "li a0, 0xFFE50000\nsw zero, 0(a0)\nebreak"), "T1", tiles=(3, 4))
    chip.start(tiles=(3, 4))
    debug = ChipDebug(chip, [(3, 4)])
    stop = debug[3, 4].continue_()
    assert (stop.reason, stop.place, stop.core) == ("fault", (3, 4), 2)
    assert stop.error is not None


def test_tiles_that_wait_for_ever_end_the_run(tmp_path: Path) -> None:
    chip = bhemu.Chip()
    chip.load(write_elf(tmp_path / "receiver.elf", RECEIVER), "B", tiles=(2, 2))
    chip.start(tiles=(2, 2))
    assert ChipDebug(chip, [(2, 2)])[2, 2].continue_().reason == "idle"


def test_tile_that_is_not_debugged_is_refused(debug: ChipDebug) -> None:
    with pytest.raises(DebugError, match="tile 3,3 is not debugged"):
        debug[3, 3]
