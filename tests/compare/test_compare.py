"""Two sides get the same calls: the first difference, the clock in which it begins, and ends of either side."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from bhemu.chip.coordinates import Kind
from bhemu.compare.calls import CONFIG_READ, INIT, Call, Ended, clock, parse_message, read, write
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.library import LibraryError, LibrarySide
from bhemu.compare.locate import locate
from bhemu.compare.lockstep import Played, RecordedSide, play
from bhemu.compare.places import Windows, aim, free_window
from tests.compare.compare_calls import AT, TILE, memory_calls, sides_with


def played_with(library: Path, calls: list[Call], timeout: float = 60.0) -> Played:
    with LibrarySide(library, timeout) as other:
        return play(calls, ChipSide(), other)


# --- places -----------------------------------------------------------------------------------------------------------


def test_windows_lead_where_the_chip_says() -> None:
    windows = Windows()
    for window, tile, address in ((0, TILE, AT), (7, (16, 11), 0xFFB121B0), (9, (17, 12), 0x1234_5678)):
        setup, paddr = aim(window, tile, address)
        for call in setup:
            windows.follow(call)
        place = windows.place(paddr)
        assert place is not None
        assert (place.coordinates, place.address) == (tile, address)
        assert place.is_memory == (address != 0xFFB121B0)
        assert (place.tile is None) == (place.node.kind is Kind.DRAM)
    assert windows.place(0x1_1FC0_0000) is None
    assert windows.place(0x1_0000_0000 + (3 << 21)) is not None  # an entry of zeros is a tile of the corner
    assert free_window([call for window in (200, 199) for call in aim(window, TILE, 0)[0]]) == 198


def test_aim_is_what_the_chip_decodes() -> None:
    ours = ChipSide()
    setup, paddr = aim(5, (16, 11), 0x2_0004)
    for call in (Call(INIT), *setup, write(paddr, 0x12345678)):
        assert ours.call(call) == b""
    index = ours.chip.node((16, 11)).index
    assert ours.chip.tiles[index].l1[0x2_0004:0x2_0008].tobytes() == bytes.fromhex("78563412")


# --- libraries that cannot be used ------------------------------------------------------------------------------------


def test_files_that_are_no_library(tmp_path: Path, memory_library: Path, lacking_library: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("text")
    other = tmp_path / "other.so"
    content = bytearray(memory_library.read_bytes())
    content[18:20] = struct.pack("<H", 243 if content[18] != 243 else 62)
    other.write_bytes(content)
    program = tmp_path / "program.so"
    content = bytearray(memory_library.read_bytes())
    content[16:18] = struct.pack("<H", 2)
    program.write_bytes(content)
    cut = tmp_path / "cut.so"
    cut.write_bytes(memory_library.read_bytes()[:300])
    for path, message in (
        (tmp_path / "missing.so", "no such file"),
        (tmp_path, "is a directory"),
        (text, "is not a shared object"),
        (other, "is built for"),
        (program, "is not a 64-bit little-endian shared object"),
        (cut, "cannot be used"),
        (lacking_library, "it has no function libttsim_pci_config_rd32"),
    ):
        with pytest.raises(LibraryError) as raised:
            LibrarySide(path)
        assert message in raised.value.message
        assert raised.value.remedy


# --- answers ----------------------------------------------------------------------------------------------------------


def test_the_same(memory_library: Path) -> None:
    calls = [*memory_calls(1000, 1, 7, look_each_time=True), Call(CONFIG_READ, 0, 0)]
    played = played_with(memory_library, calls)
    assert played.difference is None
    assert played.agreed_end is None
    assert (len(played.calls), played.compared, played.bytes, played.clocks) == (len(calls), 4, 3 * 64 + 4, 1008)


def test_more_calls_than_may_be_under_way(memory_library: Path) -> None:
    calls = memory_calls(*[1] * 3000, look_each_time=True)
    played = played_with(memory_library, calls)
    assert (played.difference, len(played.calls), played.clocks) == (None, len(calls), 3000)


@pytest.mark.parametrize("moment", [1, 2, 137, 999, 1000, 1001, 70_001])
@pytest.mark.parametrize("parts", [(1000, 100_000), (1, 1, 135, 500, 363, 1, 70_000)])
def test_the_clock_is_found_in_which_memory_begins_to_differ(
    monkeypatch: pytest.MonkeyPatch, memory_library: Path, moment: int, parts: tuple[int, ...]
) -> None:
    monkeypatch.setenv("FAULT", "flip")
    monkeypatch.setenv("FAULT_CLOCK", str(moment))
    monkeypatch.setenv("FAULT_WORD", str(AT + 22))
    calls = memory_calls(*parts)
    difference = played_with(memory_library, calls).difference
    assert difference is not None
    assert (difference.index, difference.offset, difference.count) == (len(calls) - 1, 22, 1)
    assert difference.place is not None
    assert (difference.place.coordinates, difference.place.address) == (TILE, AT + 22)
    found = locate(calls, difference, sides_with(memory_library))
    assert found is not None
    assert found.clock == moment
    assert (found.place.address, found.before) == (AT + 20, 0x17161514)
    assert (found.ours, found.theirs) == (0x17161514, 0x17061514)
    first = sum(part for part in parts[: found.index - 5])
    assert first < moment <= first + parts[found.index - 5]


def test_memory_that_differs_from_the_beginning(monkeypatch: pytest.MonkeyPatch, memory_library: Path) -> None:
    monkeypatch.setenv("FAULT", "flip")
    monkeypatch.setenv("FAULT_WORD", str(AT + 64))
    calls = memory_calls(1000, size=68)
    difference = played_with(memory_library, calls).difference
    assert difference is not None
    assert difference.offset == 64
    found = locate(calls, difference, sides_with(memory_library))
    assert found is not None
    assert (found.clock, found.index, found.before, found.ours, found.theirs) == (0, 0, None, 0, 0x10)


def test_registers_are_not_looked_at_again(memory_library: Path) -> None:
    setup, paddr = aim(0, TILE, 0xFFB121B0)
    calls = [Call(INIT), *setup, clock(10), read(paddr)]
    difference = played_with(memory_library, calls).difference
    assert difference is not None
    assert (difference.ours, difference.theirs) == (b"\x00\x78\x04\x00", b"ZZZZ")
    assert difference.clock == 10
    assert locate(calls, difference, sides_with(memory_library)) is None


def test_configuration_space_is_compared(memory_library: Path) -> None:
    difference = played_with(memory_library, [Call(INIT), Call(CONFIG_READ, 0, 0x10)]).difference
    assert difference is not None
    assert (difference.index, difference.theirs) == (1, b"\xff\xff\xff\xff")


# --- ends -------------------------------------------------------------------------------------------------------------


def ends(monkeypatch: pytest.MonkeyPatch, library: Path, fault: str, timeout: float = 60.0) -> Ended:
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("FAULT_CLOCK", "12")
    monkeypatch.setenv("CATEGORY", "UndefinedBehavior")
    calls = memory_calls(10, 5, 3)
    played = played_with(library, calls, timeout)
    difference = played.difference
    assert difference is not None
    assert (difference.index, difference.clock, difference.ours) == (6, 10, b"")
    assert isinstance(difference.theirs, Ended)
    return difference.theirs


def test_a_library_that_refuses(monkeypatch: pytest.MonkeyPatch, memory_library: Path) -> None:
    end = ends(monkeypatch, memory_library, "refuse")
    assert end == Ended("refused", "UndefinedBehavior", "some_function: what it does not like", 12)


def test_a_library_that_hangs(monkeypatch: pytest.MonkeyPatch, memory_library: Path) -> None:
    end = ends(monkeypatch, memory_library, "hang", timeout=2)
    assert (end.how, end.text) == ("silent", "does not answer within 2 s; it was ended")


def test_a_library_that_crashes(monkeypatch: pytest.MonkeyPatch, memory_library: Path) -> None:
    end = ends(monkeypatch, memory_library, "crash")
    assert end.how == "killed"
    assert end.text.startswith("is killed by SIGABRT; its last line: a library that has a memory")


def test_a_library_that_ends_without_a_word(monkeypatch: pytest.MonkeyPatch, memory_library: Path) -> None:
    end = ends(monkeypatch, memory_library, "exit")
    assert end.how == "ended"
    assert "status 3 and no message" in end.text


def test_bhemu_alone_refuses(memory_library: Path) -> None:
    calls = [*memory_calls(3)[:-1], clock(0xFFFF), read(0x1_0000_0000, 0)]
    difference = played_with(memory_library, calls).difference
    assert difference is not None
    assert isinstance(difference.ours, Ended)
    assert (difference.ours.category, difference.ours.clock) == ("UndefinedBehavior", 3 + 0xFFFF)
    assert difference.theirs == b""


@pytest.mark.parametrize(("category", "agrees"), [("UndefinedBehavior", True), ("SystemError", False)])
def test_both_refuse(monkeypatch: pytest.MonkeyPatch, memory_library: Path, category: str, agrees: bool) -> None:
    """The library refuses the first call, `init`; bhemu too, since it has been called twice."""
    monkeypatch.setenv("FAULT", "refuse")
    monkeypatch.setenv("FAULT_CLOCK", "0")
    monkeypatch.setenv("CATEGORY", "ConfigurationError" if agrees else category)
    ours = ChipSide()
    assert ours.call(Call(INIT)) == b""
    with LibrarySide(memory_library) as other:
        played = play([Call(INIT), clock(1)], ours, other)
    assert (played.difference is None) == agrees
    if agrees:
        assert played.agreed_end is not None
        assert [end.category for end in played.agreed_end] == ["ConfigurationError", "ConfigurationError"]
    else:
        assert played.difference is not None
        assert isinstance(played.difference.ours, Ended)
        assert isinstance(played.difference.theirs, Ended)


def test_messages_of_the_interface_are_understood() -> None:
    assert parse_message("hello\nbye\n") is None
    text = "hello\n[1234] ERROR: UnsupportedFunctionality: core_step: pc=0x10\n  at: tile 1-2\n"
    assert parse_message(text) == Ended(
        "refused", "UnsupportedFunctionality", "core_step: pc=0x10\n  at: tile 1-2", 1234
    )


def test_a_message_without_text_is_a_refusal_too() -> None:
    text = "[77] ERROR: UnsupportedFunctionality: decode_pacr_setreg\n"
    assert parse_message(text) == Ended("refused", "UnsupportedFunctionality", "decode_pacr_setreg", 77)


def test_calls_before_init_are_refused() -> None:
    outcome = ChipSide().call(clock(1))
    assert isinstance(outcome, Ended)
    assert outcome.category == "ConfigurationError"


# --- recorded answers -------------------------------------------------------------------------------------------------


def recorded(calls: list[Call]) -> list[Call]:
    """The calls with bhemu's answers."""
    seen: list[Call] = []
    play(calls, ChipSide(), RecordedSide(), keep=lambda call, out: seen.append(replace(call, answer=out)))
    return [call if call.size else replace(call, answer=None) for call in seen]


def test_recorded_answers_are_compared() -> None:
    calls = recorded(memory_calls(10, 20, look_each_time=True))
    played = play(calls, ChipSide(), RecordedSide())
    assert (played.difference, played.compared, played.bytes) == (None, 2, 128)
    wrong = bytearray(range(64))
    wrong[5] = wrong[9] = 0
    calls[-1] = replace(calls[-1], answer=bytes(wrong))
    difference = play(calls, ChipSide(), RecordedSide()).difference
    assert difference is not None
    assert (difference.index, difference.offset, difference.count, difference.clock) == (len(calls) - 1, 5, 2, 30)


def test_a_recorded_refusal_agrees_with_the_same_refusal() -> None:
    calls = [Call(INIT), replace(read(0x1_0000_0000, 0), answer=Ended("refused", "UndefinedBehavior", "f: x", 0))]
    assert play(calls, ChipSide(), RecordedSide()).agreed_end is not None
    calls[1] = read(0x1_0000_0000, 0)
    difference = play(calls, ChipSide(), RecordedSide()).difference
    assert difference is not None
    assert "says nothing about this call" in str(difference.theirs)


def test_memory_of_the_host_comes_from_the_trace() -> None:
    setup, paddr = aim(0, TILE, AT)
    dma = 0x1_2000_0000
    content = bytes(range(100, 200))
    calls = [
        *(Call(INIT), *setup, write(dma + 0x100, 1), write(dma + 0x11C, 100), write(dma + 0x120, 0x4000)),
        *(write(dma + 0x124, 0), write(dma + 0x128, paddr - 0x1_0000_0000), write(dma + 0x12C, 0)),
        replace(write(dma + 0x104, 1), host=((0x4000, content),)),
        replace(read(paddr, 100), answer=content),
    ]
    played = play(calls, ChipSide(), RecordedSide())
    assert (played.difference, played.compared) == (None, 1)
