"""BHEMU_TIME=silicon: the C library's clock is that of a timed chip (bhemu/timed)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bhemu
from bhemu.isa.tile_registers import address_of
from bhemu.recording.parts import Reader
from tests.capi.library_client import Ended, run_client

CLOCK = address_of("control", "WALL_CLOCK_0")
# Twelve divisions of a full register between two loads of the wall clock; the difference goes to L1.
PROGRAM = (
    *(CLOCK & 0xFFFFF000 | 0x2B7, (CLOCK & 0xFFF) << 20 | 0x2A503),  # lui t0; lw a0, (t0)
    *(0xFFF00613, 0x00300693),  # addi a2, zero, -1; addi a3, zero, 3
    *(0x02D65733,) * 12,  # divu a4, a2, a3
    *((CLOCK & 0xFFF) << 20 | 0x2A583, 0x40A585B3, 0x10B02023, 0x00100073),
)
ELAPSED = 0x100  # sw a1, 0x100(zero): L1
CLIENT = f"""
init()
release_b({PROGRAM}, at=0)
clock(2000)
print("took", struct.unpack("<I", peek(1, 2, {ELAPSED}))[0])
exit_()
"""


def took(ended: Ended) -> int:
    assert ended.status == 0, ended.out + ended.errors
    return int(re.findall(r"^took (\d+)$", ended.out, re.MULTILINE)[0])


def on_a_timed_chip() -> int:
    chip = bhemu.Chip(timed=True)
    tile = chip[1, 2]
    tile.record.l1_u32[0 : len(PROGRAM)] = PROGRAM
    tile.cores.store(address_of("control", "SOFT_RESET_0"), 0x47000)
    chip.clock(2000)
    return int(tile.record.l1_u32[ELAPSED // 4])


def test_the_wall_clock_shows_estimated_cycles_in_a_client(library: Path) -> None:
    rounds, silicon = (took(run_client(library, CLIENT, BHEMU_TIME=time)) for time in ("rounds", "silicon"))
    assert rounds == 15
    assert silicon > 12 * 30
    assert silicon == on_a_timed_chip()


@pytest.mark.parametrize("variable", [("BHEMU_THREADS", "2"), ("BHEMU_PROCESS", "own"), ("BHEMU_ORDER", "hardware")])
def test_clocks_are_the_same_on_threads_and_under_python(library: Path, variable: tuple[str, str]) -> None:
    settings = {"BHEMU_TIME": "silicon"}
    assert took(run_client(library, CLIENT, **settings, **dict([variable]))) == took(
        run_client(library, CLIENT, **settings)
    )


def test_every_chip_of_a_client_begins_at_time_zero(library: Path) -> None:
    ended = run_client(library, CLIENT + CLIENT, BHEMU_TIME="silicon")
    first, second = re.findall(r"^took (\d+)$", ended.out, re.MULTILINE)
    assert first == second


@pytest.mark.parametrize("process", ["client", "own"])
def test_the_end_of_a_client_says_how_much_of_its_clocks_is_guessed(library: Path, process: str) -> None:
    found = []
    # li a1, 100; again: csrr a0, mcycle; addi a1, a1, -1; bnez a1, again; ebreak: the time of csrr is a guess
    reads_csr = "init(); release_b((0x06400593, 0xB0002573, 0xFFF58593, 0xFE059CE3, 0x00100073)); clock(2000); exit_()"
    for client in (CLIENT, reads_csr):
        ended = run_client(library, client, BHEMU_TIME="silicon", BHEMU_PROCESS=process)
        assert ended.status == 0, ended.out + ended.errors
        (share,) = re.findall(
            r"^\[2000\] bhemu: clocks are estimates of cycles of silicon; ([\d.]+)% of what they are made of is guess",
            ended.out,
            re.MULTILINE,
        )
        found.append(float(share))
    assert found[0] < 1
    assert 20 < found[1] < 50
    assert "of silicon" not in run_client(library, CLIENT, BHEMU_PROCESS=process).out


def test_another_value_is_refused(library: Path) -> None:
    ended = run_client(library, "init()", BHEMU_TIME="true")
    assert ended.status == 1
    assert "ConfigurationError: libttsim_init: BHEMU_TIME is 'true'" in ended.out
    assert "remedy: set it to silicon or rounds, or not at all" in ended.out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("BHEMU_ORDER", "simulator"),
        ("BHEMU_QUANTUM", "8"),
        ("BHEMU_TRANSLATE", "1"),
        ("BHEMU_DEBUG", "socket"),
        ("TT_METAL_PROFILER_SYNC", "1"),
    ],
)
@pytest.mark.parametrize("process", ["client", "own"])
def test_what_has_no_time_or_would_mislead_is_refused(library: Path, name: str, value: str, process: str) -> None:
    ended = run_client(library, "init()", BHEMU_TIME="silicon", BHEMU_PROCESS=process, **{name: value})
    assert ended.status == 1
    assert f"ConfigurationError: libttsim_init: BHEMU_TIME is 'silicon', and {name} is '{value}': " in ended.out
    assert "remedy: unset one of them" in ended.out


def test_a_recording_in_timed_mode_takes_programs_and_nothing_else(library: Path, tmp_path: Path) -> None:
    ended = run_client(library, CLIENT, BHEMU_TIME="silicon", BHEMU_RECORD=str(tmp_path))
    assert took(ended) == took(run_client(library, CLIENT, BHEMU_TIME="silicon"))
    assert [told["timed"] for told in Reader(tmp_path).about] == [True]


@pytest.mark.parametrize(
    "name",
    ["BHEMU_TILES", "BHEMU_DETAIL", "BHEMU_START", "BHEMU_STOP", "BHEMU_STATES", "BHEMU_STATES_EVERY", "BHEMU_CHECK"],
)
def test_what_chooses_single_instructions_is_refused_in_timed_mode(library: Path, tmp_path: Path, name: str) -> None:
    settings = {"BHEMU_TIME": "silicon", "BHEMU_RECORD": str(tmp_path), name: "1"}
    ended = run_client(library, "init()", **settings)
    assert ended.status == 1
    assert f"{name} is set, and a recording in timed mode has programs, not their instructions" in ended.out
    assert not list(tmp_path.iterdir())


def test_a_refusal_names_the_instruction_in_timed_mode_too(library: Path) -> None:
    ended = run_client(library, "init(); release_b((0x00000013, 0xFFFFFFFF)); clock(100)", BHEMU_TIME="silicon")
    plain = run_client(library, "init(); release_b((0x00000013, 0xFFFFFFFF)); clock(100)", BHEMU_ORDER="hardware")
    assert ended.status == plain.status == 1
    assert re.sub(r"^\[\d+\]", "", ended.out) == re.sub(r"^\[\d+\]", "", plain.out)
