"""Cores that poll a counter of a NoC interface which nothing can change are a deadlock, and are named."""

from __future__ import annotations

from pathlib import Path

import pytest

import bhemu
from bhemu.api.polling import polled_words
from bhemu.errors import Deadlock
from tests.chip.noc_programs import WRITE, at, request
from tests.loader.boot_programs import START, write_elf

pytestmark = pytest.mark.plain

ACKS = 0xFFB20204
POLLS_COUNTER = f"""
    li a1, {ACKS:#x}
    lw a2, 0(a1)
wait: lw a3, 0(a1)
    sub a4, a3, a2
    beqz a4, wait
    ebreak
"""
COUNTS = """
    li a1, 1500
loop: addi a1, a1, -1
    bnez a1, loop
    ebreak
"""
READS_CLOCK = """
    li a1, 0xFFB121F0
    li a3, 1500
loop: lw a2, 0(a1)
    bltu a2, a3, loop
    ebreak
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs ask after 512 clocks, then 1,024, and so on."""
    for module in ("machine", "chip_run"):
        monkeypatch.setattr(f"bhemu.api.{module}.PATIENCE", 512)
        monkeypatch.setattr(f"bhemu.api.{module}.CHUNK", 256)


def machine(tmp_path: Path, **programs: str) -> bhemu.Machine:
    found = bhemu.Machine()
    for core, text in programs.items():
        found.load(
            write_elf(tmp_path / f"{core}.elf", text, address=0x1000 * (1 + len(core) + ord(core[-1]) % 8)), core
        )
    found.start()
    return found


def test_core_that_polls_a_counter_of_a_tile_alone_is_a_deadlock(tmp_path: Path) -> None:
    with pytest.raises(Deadlock) as refusal:
        machine(tmp_path, B=POLLS_COUNTER).run()
    assert "nothing can move after 512 clocks" in str(refusal.value)
    assert "polls 0xffb20204 WR_ACK_RECEIVED of NoC 0, which holds 0x0" in str(refusal.value)
    assert "start the request" in (refusal.value.remedy or "")


@pytest.mark.parametrize("busy", [COUNTS, READS_CLOCK])
def test_run_goes_on_while_another_core_may_get_somewhere(tmp_path: Path, busy: str) -> None:
    with pytest.raises(Deadlock) as refusal:
        machine(tmp_path, B=POLLS_COUNTER, NC=busy).run()
    clocks = int(str(refusal.value).split("after ")[1].split(" clocks")[0].replace(",", ""))
    assert clocks > 1_500
    assert "core NC at" in str(refusal.value)
    assert "halted by ebreak" in str(refusal.value)


def test_condition_of_the_host_ends_the_run_instead(tmp_path: Path) -> None:
    found = machine(tmp_path, B=POLLS_COUNTER)
    assert found.run(until=lambda: found.clocks >= 500).reason == "until"


def test_tile_whose_core_counts_does_not_only_poll(tmp_path: Path) -> None:
    found = machine(tmp_path, B=COUNTS)
    found.tile.clock(100)
    assert polled_words(found.tile.snapshot()) is None


def test_looking_changes_nothing(tmp_path: Path) -> None:
    found = machine(tmp_path, B=POLLS_COUNTER)
    found.tile.clock(100)
    before = found.tile.snapshot()
    assert polled_words(before) == {0: {ACKS: 0}}
    assert found.tile.snapshot() == before


def test_chip_names_the_tiles_that_poll_a_counter(tmp_path: Path) -> None:
    chip = bhemu.Chip()
    chip.load(write_elf(tmp_path / "poll.elf", POLLS_COUNTER), "B", tiles=[(1, 2), (5, 6)])
    chip.start(tiles=[(1, 2), (5, 6)])
    with pytest.raises(Deadlock) as refusal:
        chip.run(tiles=[(1, 2), (5, 6)])
    text = str(refusal.value)
    assert "nothing on the chip can move" in text
    assert "tile 1-2\n    core B at" in text
    assert "polls 0xffb20204 WR_ACK_RECEIVED of NoC 0" in text
    assert "1 more tile the same: 5-6" in text


def test_counter_that_a_core_of_the_same_tile_moves_late_is_waited_for(tmp_path: Path) -> None:
    """Core NC counts for 1,500 clocks, and then starts the write whose acknowledgement core B waits for."""
    late = (
        COUNTS.replace(
            "ebreak", request(ctrl=WRITE, target=0x40000, target_hi=at(1, 2), back=0x40000, back_hi=at(3, 4), length=16)
        )
        + "\nebreak"
    )
    chip = bhemu.Chip()
    chip.load(
        {
            "B": write_elf(tmp_path / "poll.elf", POLLS_COUNTER),
            "NC": write_elf(tmp_path / "late.elf", late, START["NC"]),
        },
        tiles=(1, 2),
    )
    chip.start(tiles=(1, 2))
    assert chip.run(tiles=(1, 2)).reason == "done"
