"""Zones of tt-metal's device profiler, and operations in timed mode: from a program in the firmware's place."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bhemu.chip.coordinates import tensix_index
from bhemu.errors import ProgramError
from bhemu.isa.tile_registers import address_of
from bhemu.loader.firmware_layout import read_layouts
from bhemu.recording.parts import Writer
from bhemu.recording.zones import ALL_WORDS, CONTROL_WORDS, read_markers, read_run, zone_number
from bhemu.report.model import make_report
from bhemu.report.operations import read_timed_run, zone_cycles
from bhemu.report.text import report_as_json, summary_lines
from bhemu.report.zones import ZoneNames, count_zones, device_log, operations_csv
from bhemu.timed import ChipTime
from bhemu.timed.recording import TimedRecording
from tests.chip.noc_programs import Board
from tests.riscv.rv_asm import assemble

LAYOUT = read_layouts()[0]
PROFILER = LAYOUT.profiler or 0
CLOCK = address_of("control", "WALL_CLOCK_0")
KERNEL = 0x9000
HOST_ID = 7
RAW, PLACE = (1, 2), (1, 2)
MESSAGES = {
    name: f"{name},kernel.cpp,{line},KERNEL_PROFILER"
    for line, name in enumerate(("BRISC-FW", "BRISC-KERNEL", "DIVIDES", "VALUE"), 1)
}
DIVISIONS = 10


def control(index: int, value: int) -> str:
    return f"li a1, {PROFILER + 4 * index:#x}\nli a2, {value}\nsw a2, 0(a1)\n"


def marker(index: int, name: str, kind: int) -> str:
    """Write a marker with the time into core B's buffer."""
    word = 1 << 31 | kind << 28 | zone_number(MESSAGES[name]) << 12
    address = PROFILER + 4 * (CONTROL_WORDS + index)
    return f"li a1, {CLOCK:#x}\nlw a3, 0(a1)\nli a2, {word:#x}\nli a1, {address:#x}\nsw a2, 0(a1)\nsw a3, 4(a1)\n"


def buffer_word(index: int, value: int) -> str:
    return control(CONTROL_WORDS + index, value)


FIRMWARE = "".join(
    (
        buffer_word(3, HOST_ID),
        marker(4, "BRISC-FW", 0),
        marker(8, "BRISC-KERNEL", 0),
        marker(12, "DIVIDES", 0),
        "li a4, -1\nli a5, 3\n" + "divu a6, a4, a5\n" * DIVISIONS,
        marker(14, "DIVIDES", 1),
        marker(16, "VALUE", 3),
        buffer_word(18, 1) + buffer_word(19, 2),
        marker(10, "BRISC-KERNEL", 1),
        f"li a1, {LAYOUT.go_messages + LAYOUT.go_signal:#x}\nsb x0, 0(a1)\n",
        "li a4, 200\nafter: addi a4, a4, -1\nbnez a4, after\n",
        marker(6, "BRISC-FW", 1),
        control(24, 20),
        control(51, 1),
        control(57, 1),
        "end: j end\n",
    )
)


def record(folder: Path, clocks: int = 3000) -> Path:
    """A recording of a tile on which a program runs."""
    board = Board({RAW: ""})
    l1 = board.l1(RAW)
    words = l1.view(np.uint32)
    words[0] = int.from_bytes(assemble(f"j {LAYOUT.entry['B']}", 0)[:4], "little")
    code = assemble(FIRMWARE, LAYOUT.entry["B"])
    l1[LAYOUT.entry["B"] : LAYOUT.entry["B"] + len(code)] = np.frombuffer(code, np.uint8)
    message = LAYOUT.launch_messages
    for offset, value in (
        (LAYOUT.launch.config_base, KERNEL),
        (LAYOUT.launch.kernel_text_size or 0, 64),
        (LAYOUT.launch.enables, 1),
        (LAYOUT.launch.host_id or 0, HOST_ID),
    ):
        words[message + offset >> 2] = value
    time = ChipTime(board.chip)
    cache = folder / "cache"
    cache.mkdir(parents=True)
    note = "\n".join(f"k.hpp:1: note: '#pragma message: {message}'" for message in MESSAGES.values())
    (cache / "kernel.o.log").write_text(note)
    about = {"timed": True, "environment": {"TT_METAL_CACHE": str(cache)}}
    recording = TimedRecording(
        board.chip, time, {PLACE: tensix_index(RAW)}, Writer(folder / "out" / "1.parts", about, 1 << 30)
    )
    l1[LAYOUT.go_messages + LAYOUT.go_signal] = 0x80
    board.start(RAW)
    recording.clock(clocks)
    recording.stop()
    return folder / "out"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("zones"))


def test_a_kernel_s_zones_have_their_names_and_cycles(recorded: Path) -> None:
    run = read_timed_run(recorded)
    counts = {one.name: one for one in count_zones(run.runs, ZoneNames(run.about))}
    assert list(counts) == ["BRISC-FW", "BRISC-KERNEL", "DIVIDES"]
    assert {one.core for one in counts.values()} == {"B"}
    assert {one.count for one in counts.values()} == {1}
    assert counts["DIVIDES"].total > DIVISIONS * 30
    assert counts["DIVIDES"].total < counts["BRISC-KERNEL"].total < counts["BRISC-FW"].total


def test_data_of_a_marker_are_read_and_are_no_markers_themselves(recorded: Path) -> None:
    (run,) = read_timed_run(recorded).runs
    assert [(one.kind, one.data) for one in run.markers if one.kind == "data"] == [("data", 1 << 32 | 2)]
    assert len(run.markers) == 7
    assert (run.host_id, run.number, run.place) == (HOST_ID, 1, PLACE)


def test_a_program_that_has_not_left_the_firmware_s_zone_is_read_at_the_end(tmp_path: Path) -> None:
    (run,) = read_timed_run(record(tmp_path, clocks=640)).runs
    names = ZoneNames([{"environment": {"TT_METAL_CACHE": str(tmp_path / "cache")}}])
    assert [names.of(zone).name for _, zone, _, _ in zone_cycles(run.markers)] == ["BRISC-KERNEL", "DIVIDES"]


def test_the_device_log_has_a_row_for_each_marker(recorded: Path) -> None:
    run = read_timed_run(recorded)
    first, header, *rows = device_log(run.runs, ZoneNames(run.about)).splitlines()
    assert first.startswith("ARCH: blackhole, CHIP_FREQ[MHz]: 1350")
    found = list(csv.DictReader(io.StringIO("\n".join([header.replace(", ", ","), *rows]))))
    assert [(one["zone name"], one["type"]) for one in found] == [
        ("BRISC-FW", "ZONE_START"),
        ("BRISC-FW", "ZONE_END"),
        ("BRISC-KERNEL", "ZONE_START"),
        ("BRISC-KERNEL", "ZONE_END"),
        ("DIVIDES", "ZONE_START"),
        ("DIVIDES", "ZONE_END"),
        ("VALUE", "TS_DATA"),
    ]
    assert {one["run host ID"] for one in found} == {str(HOST_ID)}
    assert {(one["RISC processor type"], one["source file"]) for one in found} == {("BRISC", "kernel.cpp")}


def test_the_table_of_operations_has_the_kernel_s_nanoseconds(recorded: Path) -> None:
    run = read_timed_run(recorded)
    names = ZoneNames(run.about)
    (row,) = csv.DictReader(io.StringIO(operations_csv(run.operations, names, mhz=500)))
    kernel = next(one for one in count_zones(run.runs, names) if one.name == "BRISC-KERNEL")
    assert row["GLOBAL CALL COUNT"] == str(HOST_ID)
    assert row["DEVICE KERNEL DURATION [ns]"] == row["DEVICE BRISC KERNEL DURATION [ns]"] == str(2 * kernel.total)
    assert row["DEVICE NCRISC KERNEL DURATION [ns]"] == ""


def test_an_operation_says_what_bounds_it(recorded: Path) -> None:
    """Nothing but core B does anything, and its divisions do not overlap."""
    (operation,) = read_timed_run(recorded).operations
    assert operation.bound == "issue of core B"
    assert operation.share > 0.9
    assert operation.busy["NoC link"] == operation.busy["math"] == operation.busy["dispatch"] == 0
    assert 300 < operation.cycles < 1000
    assert (operation.tiles, operation.host_id, operation.name) == (1, HOST_ID, "(no ELF file)")


def test_the_report_has_the_operations(recorded: Path) -> None:
    report = make_report(recorded)
    assert any("issue of core B" in line for line in summary_lines(report))
    (told,) = report_as_json(report)["timed"]
    assert told["bound"] == "issue of core B"


def test_a_core_whose_buffer_is_empty_has_no_markers() -> None:
    fresh = [0, 0, 0, 0] + [1 << 31] * 8 + [0] * 8
    assert read_markers("T0", fresh) == []
    assert read_markers("T0", fresh[:5]) == []


def test_a_sum_has_cycles_and_no_time() -> None:
    words = [0] * 12 + [1 << 31 | 2 << 28 | 0x1234 << 12, 99]
    (found,) = read_markers("T1", words)
    assert (found.kind, found.zone, found.data, found.time) == ("total", 0x1234, 99, 0)


def test_another_number_of_words_is_refused() -> None:
    with pytest.raises(ProgramError, match="words of a profiler"):
        read_run(PLACE, np.zeros(ALL_WORDS - 1, np.uint32))


def test_a_zone_without_a_log_is_called_by_its_number() -> None:
    assert ZoneNames([]).of(77).name == "zone 77"


def test_firmware_without_a_known_place_of_the_profiler_has_none() -> None:
    from bhemu.recording.zones import ProfilerBuffers

    tiles = Board({}).chip.tiles
    buffers = ProfilerBuffers(tiles, {0: PLACE})
    assert list(buffers.look(replace(LAYOUT, profiler=None))) == list(buffers.look(None)) == []
