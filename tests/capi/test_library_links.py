"""The C library with several chips: links that fail, and what a client is told that waits for one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.errors import ProgramError
from bhemu.machine.agents import B
from bhemu.recording.parts import Reader
from bhemu.report.model import make_report
from bhemu.report.text import report_as_json, summary_lines
from tests.capi.library_client import PRELUDE, built, run_client
from tests.capi.test_library_timed import on_a_timed_chip, took
from tests.hosts.engine_here import needs_engine
from tests.processes import finished

ROOT = Path(__file__).resolve().parents[2]

SYSTEM = """
name: weak
latency: 64
chips:
  - {board_id: [0x440, 1], asic_location: 0}
  - {board_id: [0x440, 1], asic_location: 1}
links:
  - 0:2 - 1:9
  - 0:3 - 1:8
failures:
  - {link: 0:2 - 1:9, at: 1000, down: true}
  - {link: 0:3 - 1:8, lose: 1}
"""
ENDS = """
STRIDE = 0x10_0000_0000
def at(chip, x, y, address):
    "PCI address of a word of a tile."
    entry = address >> 21 | x << 43 | y << 49
    put(CONFIG + STRIDE * chip, entry & 0xFFFFFFFF)
    put(CONFIG + STRIDE * chip + 4, entry >> 32)
    put(CONFIG + STRIDE * chip + 8, 0)
    return BAR0 + STRIDE * chip + address % (1 << 21)
def tile(chip, channel, address):
    "The same of an Ethernet tile."
    return at(chip, 20 + channel, 25, address)
def send(channel, value):
    "A word from chip 0 to 0x30000 of the tile at the other end."
    for offset, content in ((0x1C, 0x30000), (0x44, value), (0x04, 4)):
        put(tile(0, channel, 0xFFB90000 + offset), content)
init()
"""
STATES = """
print("before", word(tile(0, 2, 0x7CC04)), word(tile(1, 9, 0x7CC04)))
for channel in (2, 3):
    send(channel, 5)
clock(100)
print("arrived", word(tile(1, 9, 0x30000)), word(tile(1, 8, 0x30000)))
clock(1000)
send(2, 6)
send(3, 7)
clock(100)
print("later", word(tile(1, 9, 0x30000)), word(tile(1, 8, 0x30000)))
print("after", word(tile(0, 2, 0x7CC04)), word(tile(1, 9, 0x7CC04)), word(tile(1, 8, 0x7CC04)))
exit_()
"""
WORKS = """
# core B of tile 1-2 of each chip, of chip 1 twice as often: li a0, N; again: addi a0, a0, -1; bnez a0, again; j .
for chip in (0, 1):
    for n, instruction in enumerate((64 << chip + 20 | 0x513, 0xFFF50513, 0xFE051EE3, 0x0000006F)):
        put(at(chip, 1, 2, 4 * n), instruction)
    put(at(chip, 1, 2, 0xFFB121B0), 0x47000)
send(2, 5)
clock(1100)
send(2, 6)
clock(500)
exit_()
"""
REFUSES = """
print(hex(config_read(1 << 3, 0)), hex(config_read(2 << 3, 0)))
put(at(1, 1, 2, 0), 0)  # not an instruction
put(at(1, 1, 2, 0xFFB121B0), 0x47000)
clock(100)
"""
WAITS = """
import os, tempfile, time
# core ERISC1 of chip 1: lui a0, 0x30; again: lw a1, 0(a0); addi a2, a2, 1; beqz a1, again; j .
for n, instruction in enumerate((0x00030537, 0x00052583, 0x00160613, 0xFE058CE3, 0x0000006F)):
    put(tile(1, 9, 0x1000 + 4 * n), instruction)
put(tile(1, 9, 0xFFB14008), 0x1000)
put(tile(1, 9, 0xFFB121B0), 0)
clock(2000)
send(2, 1)
at = tile(1, 9, 0x30000)
end = time.monotonic() + 4
while time.monotonic() < end:
    clock(10)
    assert word(at) == 0
exit_()
"""


HOW = [
    {"BHEMU_PROCESS": "client"},
    {"BHEMU_PROCESS": "own"},
    {"BHEMU_TIME": "silicon"},
    pytest.param({"BHEMU_WORKERS": "2"}, marks=needs_engine),
]


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with two chips whose links fail."""
    return built(tmp_path_factory.mktemp("weak"), SYSTEM)


@pytest.mark.rule("ethernet 6.1")
@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("how", HOW)
def test_links_of_a_library_fail_as_its_file_says(weak: Path, threads: str, how: dict[str, str]) -> None:
    ended = run_client(weak, ENDS + STATES, BHEMU_THREADS=threads, **how)
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.splitlines()[:4] == ["before 1 1", "arrived 5 0", "later 5 7", "after 2 2 1"]


@pytest.mark.parametrize("how", HOW)
def test_a_refusal_names_its_chip(weak: Path, how: dict[str, str]) -> None:
    ended = run_client(weak, ENDS + REFUSES, **how)
    assert ended.status == 1
    assert ended.out.splitlines()[0] == "0xb1401e52 0xffffffff"
    assert "chip 1" in ended.out
    assert "core B" in ended.out


@pytest.mark.rule("ethernet 6.1")
def test_a_recording_has_each_chip_and_the_links(weak: Path, tmp_path: Path) -> None:
    ended = run_client(weak, ENDS + WORKS, BHEMU_RECORD=str(tmp_path), BHEMU_TILES="1-2")
    assert ended.status == 0, ended.out + ended.errors
    first, second = make_report(tmp_path), make_report(tmp_path, chip=1)
    for chip in (0, 1):
        counted = [row for part in Reader(tmp_path, chip).parts() for row in part.log.counted(B)]
        assert sum(count for pc, count, _ in counted if pc == 8) == 64 << chip
    assert any("chip 0 of chips 0, 1" in note for note in first.notes)
    ran = [sum(int(part.log.ran.sum()) for part in Reader(tmp_path, chip).parts()) for chip in (0, 1)]
    assert ran[0] > 128
    assert ran[1] > 256
    for report in (first, second):  # each has all chips
        chips = report_as_json(report)["chips"]
        assert [chip["chip"] for chip in chips] == [0, 1]
        rounds = [[(tile["x"], tile["y"], tile["running"]) for tile in chip["tiles"]] for chip in chips]
        assert rounds == [[(1, 2, ran[0])], [(1, 2, ran[1])]]
        lines = summary_lines(report)
        assert [line.split()[:2] for line in lines[1:3]] == [["0", "1"], ["1", "1"]]
    told = report_as_json(second)["links"]
    assert [(one["from"], one["to"], one["frames"], one["bytes"], one["lost"]) for one in told if one["frames"]] == [
        ("0:2", "1:9", 1, 4, 1)
    ]
    assert "down" in [event["what"] for one in told for event in one["events"]]
    assert any(line.startswith("0:2") for line in summary_lines(second))
    with pytest.raises(ProgramError, match="no recording of chip 2"):
        make_report(tmp_path, chip=2)


def test_tiles_to_record_may_be_those_of_one_chip(weak: Path, tmp_path: Path) -> None:
    ended = run_client(weak, ENDS + WORKS, BHEMU_RECORD=str(tmp_path), BHEMU_TILES="1:1-2")
    assert ended.status == 0, ended.out + ended.errors
    assert list(make_report(tmp_path).tiles) == [(1, 2)]
    with pytest.raises(ProgramError, match="no recording of chip 0"):
        make_report(tmp_path, chip=0)
    ended = run_client(weak, ENDS + WORKS, BHEMU_RECORD=str(tmp_path), BHEMU_TILES="2:1-2")
    assert "tiles of chip 2 are to be recorded, which does not exist" in ended.out


def bhemu(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of bhemu in a process of its own, without variables that say what is recorded."""
    known = {
        name: value for name, value in os.environ.items() if not name.startswith("BHEMU_") or name == "BHEMU_CACHE"
    }
    return finished([sys.executable, "-m", "bhemu", *arguments], cwd=folder, env=known | {"PYTHONPATH": str(ROOT)})


def test_the_command_records_chosen_tiles_of_chosen_chips(weak: Path, tmp_path: Path) -> None:
    library = str(weak.parent)
    client = ("--", sys.executable, "-c", PRELUDE.format(library=str(weak)) + ENDS + WORKS)
    done = bhemu(
        tmp_path,
        "run-client",
        "--library",
        library,
        "--record",
        "out",
        "--tiles",
        "0:1-2,1:1-2,1:3-4",
        "--check",
        *client,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hazards: none" in done.stdout
    for chip, tiles in ((0, {(1, 2)}), (1, {(1, 2), (3, 4)})):
        reader = Reader(tmp_path / "out", chip)
        assert {tuple(place) for about in reader.about for place in about.get("tiles", ())} == tiles
        assert {part.place for part in reader.parts()} <= tiles
        counted = [row for part in reader.parts() if part.place == (1, 2) for row in part.log.counted(B)]
        assert sum(count for pc, count, _ in counted if pc == 8) == 64 << chip
    told = json.loads(bhemu(tmp_path, "report", "out", "--chip", "1", "--json").stdout)
    assert any(one["frames"] for one in told["links"])
    assert {(tile["x"], tile["y"]) for tile in told["tiles"]} == {(1, 2)}
    done = bhemu(tmp_path, "run-client", "--library", library, "--record", "far", "--tiles", "2:1-2", *client)
    assert done.returncode == 1
    assert "tiles of chip 2 are to be recorded, which does not exist" in done.stdout
    done = bhemu(tmp_path, "run-client", "--library", library, "--record", "odd", "--tiles", "one:1-2", *client)
    assert done.returncode == 2
    assert "'one:1-2' is not a tile of a chip" in done.stderr
    assert not (tmp_path / "odd").exists()


DIVIDES = """
# core B of tile 1-2 of chip 1: twelve divisions between two loads of the wall clock; the difference goes to L1
from tests.capi.test_library_timed import PROGRAM
for n, instruction in enumerate(PROGRAM):
    put(at(1, 1, 2, 4 * n), instruction)
put(at(1, 1, 2, 0xFFB121B0), 0x47000)
clock(2000)
print("took", word(at(1, 1, 2, 0x100)))
exit_()
"""


def test_cores_of_every_chip_take_estimated_cycles_in_timed_mode(weak: Path) -> None:
    times = [took(run_client(weak, ENDS + DIVIDES, BHEMU_TIME=time)) for time in ("rounds", "silicon")]
    assert times[0] == 15
    assert times[1] == on_a_timed_chip()


@pytest.mark.parametrize(("setting", "value"), [("BHEMU_RECORD", "somewhere"), ("BHEMU_PROCESS", "own")])
def test_what_needs_python_is_refused_for_several_timed_chips(weak: Path, setting: str, value: str) -> None:
    ended = run_client(weak, ENDS, **{"BHEMU_TIME": "silicon", setting: value})
    assert ended.status == 1
    assert "ConfigurationError: libttsim_init: BHEMU_TIME is 'silicon', and " in ended.out
    assert "times one chip alone" in ended.out
    assert "use a library with one chip" in ended.out


def test_a_debugger_of_several_chips_is_refused(weak: Path, tmp_path: Path) -> None:
    ended = run_client(weak, ENDS, BHEMU_DEBUG=str(tmp_path / "socket"))
    assert "ConfigurationError: libttsim_init: a debugger is to be attached, and weak has 2 chips" in ended.out


@pytest.mark.rule("ethernet 6.1")
@pytest.mark.parametrize("how", [how for how in HOW if how != {"BHEMU_TIME": "silicon"}])
def test_a_client_that_waits_for_what_a_link_has_lost_is_told_once(weak: Path, how: dict[str, str]) -> None:
    """A core goes on all the time, so that it is the link which makes it worth saying."""
    ended = run_client(weak, ENDS + WAITS, BHEMU_PATIENCE="1", **how)
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.count("bhemu: link 0:2 - 1:9: down since clock 1000, frames lost: 1") == 1
    assert "bhemu: chip 1:" in ended.out
    assert "a link has failed, and the host only polls" in ended.out
    assert "core ERISC1 at 0x0100" in ended.out
