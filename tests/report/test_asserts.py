"""Failed asserts and the watcher's findings in the report: read out of L1 by the debug information of the program."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import bhemu
from bhemu.errors import ProgramError
from bhemu.loader.debug_info import DebugInfo, Member
from bhemu.loader.elf import load_elf
from bhemu.report.asserts import Failure, Watcher
from bhemu.report.figures import Report
from bhemu.report.model import make_report
from bhemu.report.text import failure_lines, report_as_json, summary_lines

COMPILER = "riscv64-unknown-elf-gcc"
SOURCE = Path(__file__).with_name("watched.c")
FIRMWARE_ENTRY = 0x3AE0
"""Of core B in the firmware that is known: mailboxes are looked for when the jump at address 0 leads there."""
SCRIPT = f"""
ENTRY(begin)
SECTIONS {{ . = {FIRMWARE_ENTRY:#x}; .text : {{ *(.begin) *(.text*) *(.rodata*) }} }}
"""
TILE = (2, 3)


def line_of(text: str) -> int:
    """Number of the source's only line with a text."""
    (found,) = [number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return found


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program by what fails in it."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"THE WATCHER'S FINDINGS ARE NOT TESTED: there is no {COMPILER}")
    work = tmp_path_factory.mktemp("watched")
    (work / "script.ld").write_text(SCRIPT)
    made = {}
    for number, fail in enumerate(("NOTHING", "ASSERTS", "SANITIZES", "TRAPS")):
        command = [
            COMPILER,
            "-march=rv32im",
            "-mabi=ilp32",
            "-g",
            "-O1",
            "-ffreestanding",
            "-nostdlib",
            "-nostartfiles",
        ]
        command += [f"-DFAIL={number}", "-T", "script.ld", str(SOURCE), "-o", f"{fail.lower()}.elf"]
        subprocess.run(command, cwd=work, check=True)
        made[fail] = work / f"{fail.lower()}.elf"
    return made


def report_of(elf: Path, folder: Path) -> Report:
    """The report of a run on one tile."""
    chip = bhemu.Chip()
    chip.load(str(elf), tiles=TILE)
    recording = chip.record(tiles=TILE)
    chip.start(tiles=TILE)
    chip.clock(1500)
    recording.save(folder)
    return make_report(folder, elf=[elf])


def test_a_failed_assert_has_its_line_and_is_told_once(compiled: dict[str, Path], tmp_path: Path) -> None:
    report = report_of(compiled["ASSERTS"], tmp_path)
    (failure,) = report.failures
    where = f"watched.c:{line_of('ASSERT(fail != ASSERTS)')}"
    assert failure == Failure(TILE, 1, "B", "DebugAssertTripped", where, (where,), "asserts", "", "GO", failure.clock)
    assert f"tile 2-3, core B: DebugAssertTripped at {where} in asserts" in failure_lines(report)[0]
    assert "asserts and watcher:" in summary_lines(report)
    told = json.loads(json.dumps(report_as_json(report)))["failures"][0]
    assert (told["code"], told["line"], told["kernel"], told["core"]) == ("DebugAssertTripped", where, "asserts", "B")


def test_a_request_that_the_watcher_stops_has_the_lines_that_led_to_it(
    compiled: dict[str, Path], tmp_path: Path
) -> None:
    report = report_of(compiled["SANITIZES"], tmp_path)
    (failure,) = report.failures
    assert failure.code == "DebugSanitizeNocAlignment"
    assert failure.detail == "NoC 1: write of 20 bytes, from 0x20000; the other end is 0x10000004 in 3-7"
    calls = [line_of(text) for text in ("report_and_hang(size, Debug", "    write(size);", "work(fail == ")]
    assert [int(call.partition(":")[2]) for call in failure.calls] == calls


def test_an_assert_without_the_watcher_is_an_ebreak_with_its_line(compiled: dict[str, Path], tmp_path: Path) -> None:
    (failure,) = report_of(compiled["TRAPS"], tmp_path).failures
    assert failure.code == "ebreak"
    assert failure.calls[-1] == f"watched.c:{line_of('        lightweight_assert_trap();')}"


def test_a_run_without_failures_has_none(compiled: dict[str, Path], tmp_path: Path) -> None:
    report = report_of(compiled["NOTHING"], tmp_path)
    assert report.failures == []
    assert not any("asserts" in line for line in summary_lines(report))


def test_debug_information_describes_structures_and_enumerations(compiled: dict[str, Path]) -> None:
    info = DebugInfo(load_elf(compiled["NOTHING"]).content)
    assert info.member("mailboxes_t", "launch") == Member(8, 144, 8)
    watcher = info.member("mailboxes_t", "watcher")
    assert watcher is not None
    assert watcher.offset == 8 + 8 * 144 + 0x60
    assert info.member("watcher_msg_t", "assert_status.line_num") == Member(6, 2)
    assert info.member("watcher_msg_t", "debug_waypoint") == Member(8 + 2 * 24, 4, 5)
    assert info.enumerators("debug_assert_type_t")[8] == "DebugAssertOther"
    assert info.member("watcher_msg_t", "nothing") is None
    assert info.member("watcher_msg_t", "enable.more") is None
    assert info.member("no_such_t", "enable") is None
    assert info.enumerators("watcher_msg_t") == {}
    number = Member(2, 2).number(bytes([0, 0, 1, 2, 3, 4]), index=1)
    assert number == 0x0403


def test_calls_of_inlined_code_are_told_innermost_first(compiled: dict[str, Path]) -> None:
    program = load_elf(compiled["TRAPS"])
    info = DebugInfo(program.content)
    (code,) = [segment for segment in program.segments if segment.executable]
    words = re.finditer(re.escape((0x00100073).to_bytes(4, "little")), code.content)
    (at,) = [code.address + found.start() for found in words if found.start() % 4 == 0]
    assert [line.line for line in info.calls(at)] == [line_of("        lightweight_assert_trap();")]
    assert info.calls(0) == []


def test_without_debug_information_nothing_is_known() -> None:
    watcher = Watcher()
    assert not watcher.knows_places
    assert watcher.failed_assert(bytes(4096)) is None
    assert list(watcher.wrong_requests(bytes(4096))) == []
    assert watcher.waypoint(bytes(4096), 0) == ""


def test_damaged_debug_information_is_refused(compiled: dict[str, Path]) -> None:
    content = bytearray(load_elf(compiled["NOTHING"]).content)
    from elftools.elf.elffile import ELFFile

    with compiled["NOTHING"].open("rb") as file:
        section = ELFFile(file).get_section_by_name(".debug_abbrev")
        begin, size = section["sh_offset"], section["sh_size"]
    content[begin : begin + size] = b"\xff" * size
    with pytest.raises(ProgramError, match="debug information is damaged"):
        DebugInfo(bytes(content))
