"""Firmware on tiles of a chip: with the forty instructions of firmware_set.py in tt-metal's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.api.chip import Chip
from bhemu.api.firmware import FOLDERS, load_firmware
from bhemu.errors import CycleLimit, Deadlock, MemoryError_, ProgramError
from bhemu.loader.firmware_files import Grid
from bhemu.machine.compiler import JIT
from tests.loader.boot_programs import elf_bytes, program
from tests.loader.elf_files import Load, Name
from tests.loader.firmware_set import BRISC, KERNEL, KNOWN, RESULT, write_set
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

PLACES = ((1, 2), (16, 11), (10, 5))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_set(tmp_path / "set")


def test_all_tiles_boot_and_run_kernels(folder: Path) -> None:
    chip = Chip()
    tiles = chip.tensix if JIT else chip.tensix[::14]
    system = chip.boot_firmware(folder, tiles=None if JIT else tiles)
    assert list(system.tiles) == [tile.place for tile in tiles]
    assert all(tile.ready for tile in system.tiles.values())
    assert 0 < system.boot_clocks <= 128
    assert system.launch({"B": assemble(KERNEL)}) <= 128
    assert {tile.read_word(RESULT) for tile in tiles} == {0x77}


def test_kernels_run_on_the_named_tiles_alone(folder: Path) -> None:
    chip = Chip("p100")
    system = chip.boot_firmware(str(folder), tiles=[(1, 2), (14, 11), chip[10, 5]])
    assert list(system.tiles) == [(1, 2), (14, 11), (10, 5)]
    assert chip[2, 2].read(0, 0x4000) == bytes(0x4000)
    system.launch({"B": program(KERNEL, 0x21000)}, tiles=(10, 5))
    assert [chip[place].read_word(RESULT) for place in system.tiles] == [0, 0, 0x77]
    assert chip[10, 5].programs.describe(0, 0x21004) == "0x21004 _start+0x4"
    with pytest.raises(ProgramError, match="tile 2-2 has no firmware"):
        system.launch({}, tiles=[(1, 2), (2, 2)])


def test_tile_learns_where_it_is_and_where_the_others_are(folder: Path) -> None:
    """Logical coordinates; a table of the columns that the product has."""
    chip = Chip("p100")
    chip.boot_firmware(folder, tiles=[(1, 2), (12, 9)])
    assert KNOWN.core_info is not None
    assert KNOWN.coordinate_map is not None
    for place, logical in (((1, 2), b"\0\0"), ((12, 9), b"\x09\x07")):
        assert chip[place].read(KNOWN.core_info + KNOWN.core_place, 2) == logical
        table = chip[place].read(KNOWN.coordinate_map[0], 32)
        assert list(table) == [*range(1, 8), *range(10, 15), *[0] * 8, *range(2, 12), 0, 0]


def write_banked_set(folder: Path, dram: int, l1: int) -> Path:
    """A set whose core B has bank tables of these sizes."""
    write_set(folder)
    names = (Name("dram_bank_to_noc_xy", 0xFFB00048, 4 * dram), Name("l1_bank_to_noc_xy", 0xFFB00068, 4 * l1))
    names = tuple(Name(name.name, name.address, name.size, kind=1) for name in names)
    name = FOLDERS["B"]
    (folder / name / f"{name}.elf").write_bytes(elf_bytes(BRISC, KNOWN.entry["B"], names=names))
    return folder


@pytest.mark.rule("tile N2", "tile N7", "tile B12")
def test_bank_tables_say_where_dram_and_l1_are(tmp_path: Path) -> None:
    """uint16 of y << 6 | x for each NoC."""
    chip = Chip()
    chip.boot_firmware(write_banked_set(tmp_path / "set", 8, 140), tiles=(3, 3))
    content = chip[3, 3].read(KNOWN.bank_tables[0], 2 * 2 * 148)
    words = [int.from_bytes(content[i : i + 2], "little") for i in range(0, len(content), 2)]
    banks = [chip.device.node((word & 63, word >> 6)) for word in words]
    assert [node.index for node in banks[:16]] == 2 * [bank.node.index for bank in chip.dram]
    assert banks[16:156] == banks[156:] == [tile.node for tile in chip.tensix]


def test_set_for_more_banks_than_the_chip_has_is_refused(tmp_path: Path) -> None:
    folder = write_banked_set(tmp_path / "set", 8, 120)
    with pytest.raises(ProgramError, match="is for a chip with 8 DRAM banks, and this one has 7"):
        Chip("p100").boot_firmware(folder)
    assert len(load_firmware(folder).image(Grid(banks=8))) > 10


def test_firmware_that_does_not_answer_says_on_which_tiles(folder: Path) -> None:
    chip = Chip()
    system = chip.boot_firmware(folder, tiles=PLACES)
    chip[16, 11].write(KNOWN.entry["B"], b"\x6f\0\0\0" * 64)  # j .
    with pytest.raises(CycleLimit, match="not done after 2,000 clocks") as refusal:
        system.launch({"B": assemble("loop: addi t0, t0, 1\nj loop")}, max_clocks=2000, tiles=PLACES[:2])
    assert "the firmware of 2 of 2 tiles has not answered; signals and sync words: 1-2 0x80, 0x00000000" in str(
        refusal.value
    )
    with pytest.raises(ProgramError, match="not ready"):
        system.launch({})
    assert system.launch({"B": assemble(KERNEL)}, tiles=PLACES[2]) <= 128


def test_kernel_that_halts_its_core_is_a_deadlock(folder: Path) -> None:
    chip = Chip()
    system = chip.boot_firmware(folder, tiles=PLACES)
    with pytest.raises(Deadlock, match="halted by ebreak"):
        system.launch({"B": assemble("ebreak")}, max_clocks=20000)


def test_kernel_that_does_not_fit_is_refused(folder: Path) -> None:
    system = Chip().boot_firmware(folder, tiles=(1, 2))
    with pytest.raises(MemoryError_, match="lies where the firmware is"):
        system.launch({"B": program(KERNEL, 0x5000)})


def test_files_of_firmware_are_read_once(folder: Path) -> None:
    firmware = load_firmware(folder)
    assert Chip().boot_firmware(firmware, tiles=(1, 2)).firmware is firmware


@pytest.mark.rule("tile B5")
def test_data_of_core_b_go_to_the_image(tmp_path: Path) -> None:
    data = (Load(0xFFB00000, b"\x2a\0\0\0", size=64, flags=6),)
    chip = Chip()
    chip.boot_firmware(write_set(tmp_path / "set", data=data), tiles=(1, 2))
    assert chip[1, 2].read(KNOWN.image["B"], 1) == b"\x2a"
