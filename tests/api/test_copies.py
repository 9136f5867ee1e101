"""Copies of tiles, machines and chips: snapshots in other processes, `copy.deepcopy`, `pickle`, `multiprocessing`."""

from __future__ import annotations

import copy
import hashlib
import multiprocessing
import pickle
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bhemu
from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import BhemuError, ConfigurationError, ProgramError
from tests.loader.boot_programs import program

COUNT = "li a0, 0x20000\nloop: addi a1, a1, 1\nsw a1, 0(a0)\nj loop"
FLAG, LOOP = 0x20000, 4
Copy = Callable[[Any], Any]

COPIES: list[Copy] = [copy.deepcopy, copy.copy, lambda original: pickle.loads(pickle.dumps(original))]


@pytest.fixture(params=COPIES, ids=["deepcopy", "copy", "pickle"])
def copied(request: pytest.FixtureRequest) -> Copy:
    return request.param  # type: ignore[no-any-return]


def machine() -> bhemu.Machine:
    made = bhemu.Machine()
    made.load(program(COUNT), "B")
    made.start()
    made.tile.clock(100)
    return made


@pytest.fixture(scope="module")
def chip() -> bhemu.Chip:
    made = bhemu.Chip("p100", threads=2, quantum=7)
    made.load(program(COUNT), tiles=(1, 2))
    made.start()
    made.clock(200)
    return made


# --- tiles ---------------------------------------------------------------------------------------


def test_a_copy_of_a_tile_has_its_state_and_a_life_of_its_own(copied: Copy) -> None:
    tile = bhemu.Tile(allow_open=True)
    tile.execute(0, "SETDMAREG 0x1234, 6")
    other = copied(tile)
    assert other.snapshot() == tile.snapshot()
    assert other.record.allow_open
    other.execute(0, "SETDMAREG 0x4321, 6")
    assert (tile.gpr[0, 3], other.gpr[0, 3]) == (0x1234, 0x4321)


def test_a_snapshot_holds_no_address_of_this_process() -> None:
    tile = bhemu.Tile()
    assert int(tile.record.handlers)
    other = bhemu.Tile()
    other.record.handlers = 12345
    assert other.snapshot() == tile.snapshot()


RESTORE = """
import pickle, sys
import bhemu
tile = bhemu.Tile()
tile.restore(pickle.load(sys.stdin.buffer))
tile.execute(0, "SETDMAREG 5, 8")
print(hex(tile.gpr[0, 3]), tile.gpr[0, 4])
"""


def test_a_snapshot_goes_on_in_another_process() -> None:
    tile = bhemu.Tile()
    tile.execute(0, "SETDMAREG 0x1234, 6")
    told = pickle.dumps(tile.snapshot())
    done = subprocess.run([sys.executable, "-c", RESTORE], input=told, capture_output=True, check=True)
    assert done.stdout.decode().split() == ["0x1234", "5"]


@pytest.mark.parametrize("own", [False, True])
def test_a_restored_tile_keeps_its_own_allow_open(own: bool) -> None:
    tile = bhemu.Tile(allow_open=own)
    tile.restore(bhemu.Tile(allow_open=not own).snapshot())
    assert bool(tile.record.allow_open) == own
    tile.execute(0, "SETDMAREG 0x1234, 6")


def test_a_snapshot_of_another_version_is_refused() -> None:
    tile = bhemu.Tile()
    snapshot = tile.snapshot()
    snapshot._layout = "older"
    with pytest.raises(ConfigurationError, match="version of bhemu"):
        tile.restore(snapshot)


# --- machines ------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [COPIES[0], COPIES[2]], ids=["deepcopy", "pickle"])
def test_a_copy_of_a_machine_goes_on_like_the_machine(copied: Copy) -> None:
    made = machine()
    other = copied(made)
    assert other.tile is not made.tile
    assert list(other.programs) == ["B"]
    assert other.describe(0, 4) == made.describe(0, 4)
    other.run(until=LOOP)
    assert other.tile.cores["B"].pc == LOOP


def run_machine(made: bhemu.Machine) -> tuple[int, int, str]:
    made.tile.clock(500)
    return made.clocks, int.from_bytes(made.tile.l1[FLAG : FLAG + 4].tobytes(), "little"), str(made.tile.cores["B"])


def run_chip(made: bhemu.Chip) -> tuple[bhemu.Chip, int]:
    made.clock(500)
    return made, made[1, 2].read_word(FLAG)


def test_machines_and_chips_go_to_processes_of_a_pool_and_back(chip: bhemu.Chip) -> None:
    made = machine()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        there = pool.map(run_machine, [made, made])
        chip_there, count = pool.apply(run_chip, (chip,))
    here = run_machine(made)
    assert there == [here, here]
    same, count_here = run_chip(copy.deepcopy(chip))
    assert count == count_here > 0
    assert chip_there.snapshot() == same.snapshot()


# --- chips ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [COPIES[0], COPIES[2]], ids=["deepcopy", "pickle"])
def test_a_copy_of_a_chip_has_its_state_programs_and_settings(chip: bhemu.Chip, copied: Copy) -> None:
    other = copied(chip)
    assert other.snapshot() == chip.snapshot()
    assert other.time == chip.time
    assert len(other.tensix) == len(chip.tensix)
    assert (other.device.clocks.threads, int(other.device.record.quantum)) == (chip.device.clocks.threads, 7)
    assert list(other[1, 2].programs.programs) == ["B"]
    before = chip[1, 2].read_word(FLAG)
    other.clock(100)
    assert other[1, 2].read_word(FLAG) > chip[1, 2].read_word(FLAG) == before


def test_functions_of_a_chips_host_memory_are_copied_with_it() -> None:
    written = []
    chip = bhemu.Chip(host=HostMemory(write=lambda address, content: written.append((address, content))))
    copy.deepcopy(chip).device.host.write(4, b"x")
    assert written == [(4, b"x")]


def test_a_tile_of_a_chip_is_not_copied_by_itself(chip: bhemu.Chip) -> None:
    with pytest.raises(TypeError, match="copy the chip"):
        copy.deepcopy(chip[1, 2])


def test_programs_that_were_loaded_after_a_snapshot_are_forgotten_when_it_is_restored() -> None:
    chip = bhemu.Chip("p100")
    chip.load(program(COUNT), "B", tiles=(1, 2))
    before = chip.snapshot()
    chip.load(program("ebreak", 0x8000), "NC", tiles=(1, 2))
    chip.load(program(COUNT), "B", tiles=(2, 2))
    chip.restore(before)
    assert {tile.place: list(tile.programs.programs) for tile in chip.tensix if tile.has_programs} == {(1, 2): ["B"]}
    chip.start()
    chip.clock(100)
    assert chip[1, 2].read_word(FLAG)
    with pytest.raises(ProgramError, match="NC has no program"):
        chip.start("NC", tiles=(1, 2))


def test_programs_go_through_the_file_of_a_snapshot(chip: bhemu.Chip, tmp_path: Path) -> None:
    chip.snapshot().save(tmp_path / "copy")
    other = bhemu.Chip("p100")
    other.restore(ChipSnapshot.load(tmp_path / "copy"))
    assert other.snapshot() == chip.snapshot()
    assert other[1, 2].programs.describe(0, 4) == chip[1, 2].programs.describe(0, 4)
    other.clock(100)


def test_a_restored_chip_keeps_its_own_allow_open(chip: bhemu.Chip) -> None:
    other = bhemu.Chip("p100", allow_open=True)
    other.restore(chip.snapshot())
    assert other.device.tiles["allow_open"].all()


def test_a_snapshot_of_a_chip_with_another_order_of_words_is_refused(chip: bhemu.Chip) -> None:
    with pytest.raises(ConfigurationError, match="simulator_order=False"):
        bhemu.Chip("p100", simulator_order=True).restore(chip.snapshot())


def test_every_damage_of_a_snapshots_file_is_refused(chip: bhemu.Chip, tmp_path: Path) -> None:
    file = tmp_path / "copy"
    chip.snapshot().save(file)
    whole = file.read_bytes()
    choose = random.Random(5)
    for _ in range(100):
        damaged = bytearray(whole)
        if choose.random() < 0.5:
            damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
        else:
            del damaged[choose.randrange(len(damaged)) :]
        file.write_bytes(damaged)
        with pytest.raises(ProgramError, match=r"is damaged|is not a copy"):
            ChipSnapshot.load(file)


def test_a_snapshots_file_with_a_text_for_the_type_of_an_array_is_refused(chip: bhemu.Chip, tmp_path: Path) -> None:
    """Its digest is right: somebody else than bhemu has written it."""
    file = tmp_path / "copy"
    chip.snapshot().save(file)
    whole = file.read_bytes()
    magic, size = whole[: whole.index(b"\n") + 1], 32
    rest = re.sub(rb'"\|u1"|"<u\d"', b'"<u,"', whole[len(magic) + size :], count=1)
    file.write_bytes(magic + hashlib.blake2b(rest, digest_size=size).digest() + rest)
    with pytest.raises(ProgramError, match="is damaged: '<u,' is not the type of an array"):
        ChipSnapshot.load(file)


def test_a_snapshot_that_was_a_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"bhemu chip 1\n" + pickle.dumps(None))
    with pytest.raises(ProgramError, match="an earlier version of bhemu"):
        ChipSnapshot.load(tmp_path / "old")


def test_a_snapshot_that_cannot_be_written_leaves_nothing(chip: bhemu.Chip, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with pytest.raises(BhemuError, match="cannot be written"):
        chip.snapshot().save(tmp_path / "copy")
    with pytest.raises(BhemuError, match="cannot be written"):
        chip.snapshot().save(tmp_path / "nowhere" / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["copy"]
