"""Firmware sets and layouts without the wheel."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from bhemu.api.firmware import FirmwareMachine, load_firmware
from bhemu.errors import CycleLimit, Deadlock, MemoryError_, ProgramError
from bhemu.loader.firmware_layout import read_layouts
from tests.loader.boot_programs import program, write_elf
from tests.loader.elf_files import Load, attributes_section, make_elf, with_symbols
from tests.loader.firmware_set import BRISC, IDLE, KERNEL, KNOWN, RESULT, write_set
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain


@pytest.fixture
def system(tmp_path: Path) -> FirmwareMachine:
    return FirmwareMachine(load_firmware(write_set(tmp_path / "set")))


# --- boot and launch -----------------------------------------------------------------------------


def test_firmware_boots_and_runs_a_raw_kernel(system: FirmwareMachine) -> None:
    boot = system.boot()
    assert 0 < boot.released <= boot.done < 100
    assert system.launch({"B": assemble(KERNEL)}) < 100
    assert system.machine.tile.record.l1_u32[RESULT // 4] == 0x77


def test_kernel_file_is_entered_at_its_own_address_and_named_in_messages(system: FirmwareMachine) -> None:
    system.boot()
    system.launch({"B": program(KERNEL, 0x21000)})
    assert system.machine.tile.record.l1_u32[RESULT // 4] == 0x77
    assert system.machine.describe(0, 0x21004) == "0x21004 _start+0x4"
    assert system.machine.describe(0, KNOWN.entry["B"] + 8) == f"{KNOWN.entry['B'] + 8:#07x} _start+0x8"


@pytest.mark.rule("tile B27")
def test_launch_message_is_the_one_of_a_host(system: FirmwareMachine) -> None:
    """Mode 1, first remote buffer = number of buffers, enables by B, NC, T0, T1, T2; T cores start together."""
    system.boot()
    system.launch({"B": assemble(KERNEL), "T1": assemble(KERNEL)})
    message, fields = KNOWN.launch_messages, KNOWN.launch
    l1, words = system.machine.tile.l1, system.machine.tile.record.l1_u32
    assert words[(message + fields.config_base) // 4] == 0x20000
    assert l1[message + fields.mode] == 1
    assert l1[message + fields.first_remote_buffer] == 64
    assert l1[message + fields.enables] == 0b11101
    at = (message + fields.kernel_text_offset) // 4
    assert words[at : at + 5].tolist() == [0, 0, 0x200, 0x300, 0x400]
    assert fields.kernel_text_size is not None
    at = (message + fields.kernel_text_size) // 4
    assert words[at : at + 5].tolist() == [20, 0, 8, 20, 8]


@pytest.mark.rule("tile B5")
def test_local_data_go_to_the_image_and_not_to_local_ram(tmp_path: Path) -> None:
    data = (Load(0xFFB00000, b"\x2a\0\0\0", size=64, flags=6),)
    system = FirmwareMachine(load_firmware(write_set(tmp_path / "set", data=data)))
    system.boot()
    assert system.machine.tile.l1[KNOWN.image["B"]] == 42
    assert not system.machine.tile.cores["B"].local_ram[0]


def test_host_writes_the_coordinate_map_and_the_mark_of_a_worker(system: FirmwareMachine) -> None:
    system.boot()
    assert KNOWN.coordinate_map is not None
    assert KNOWN.core_info is not None
    at = KNOWN.coordinate_map[0]
    l1 = system.machine.tile.l1
    assert l1[at : at + 20].tolist() == [*range(1, 8), *range(10, 17), 0, 0, 0, 0, 0, 0]
    assert l1[at + 20 : at + 32].tolist() == [*range(2, 12), 0, 0]
    offset, mark = KNOWN.core_magic
    assert system.machine.tile.record.l1_u32[(KNOWN.core_info + offset) // 4] == mark == 0x50EC09A3


def test_kernel_that_never_returns_is_a_clock_limit(system: FirmwareMachine) -> None:
    system.boot()
    with pytest.raises(CycleLimit, match="the firmware's signal is 0x80"):
        system.launch({"B": assemble("loop: addi t0, t0, 1\nj loop")}, max_clocks=2000)


def test_kernel_that_halts_its_core_is_a_deadlock(system: FirmwareMachine) -> None:
    system.boot()
    with pytest.raises(Deadlock, match="core B at 0x20000: halted by ebreak"):
        system.launch({"B": assemble("ebreak")}, max_clocks=2000)


def test_firmware_that_never_gets_ready_says_where_its_cores_stand(tmp_path: Path) -> None:
    system = FirmwareMachine(load_firmware(write_set(tmp_path / "set", "loop: addi t0, t0, 1\nj loop")))
    with pytest.raises(CycleLimit, match="core B at 0x03ae"):
        system.boot(max_clocks=2000)


# --- refusals ------------------------------------------------------------------------------------


def test_launch_before_boot_is_refused(system: FirmwareMachine) -> None:
    with pytest.raises(ProgramError, match="not ready"):
        system.launch({})


def test_kernel_in_the_firmwares_memory_is_refused(system: FirmwareMachine) -> None:
    system.boot()
    with pytest.raises(MemoryError_, match=r"at 0x5000 lies where the firmware is \(up to 0x138a0\)"):
        system.launch({"B": program(KERNEL, 0x5000)})
    with pytest.raises(MemoryError_, match="the firmware has L1 up to 0x138a0"):
        system.launch({}, config_base=0x10000)
    with pytest.raises(MemoryError_, match="lies before the configuration buffer"):
        system.launch({"B": program(KERNEL, 0x18000)})


def test_kernel_with_data_for_local_ram_alone_is_refused(system: FirmwareMachine) -> None:
    system.boot()
    data = (Load(0xFFB01000, b"\1\0\0\0", flags=6),)
    with pytest.raises(MemoryError_, match="data for the local RAM of core B, which runs"):
        system.launch({"B": program(KERNEL, 0x20000, more=data)})


def test_raw_kernel_must_be_whole_instructions_of_limited_length(system: FirmwareMachine) -> None:
    system.boot()
    with pytest.raises(ProgramError, match="has 3 bytes"):
        system.launch({"B": b"abc"})
    with pytest.raises(MemoryError_, match="256 at most"):
        system.launch({"B": bytes(260)})


def test_unknown_build_is_refused_with_the_known_entries(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no layout is known for firmware with B's entry 0x4000") as refusal:
        load_firmware(write_set(tmp_path / "set", entry=0x4000))
    assert "0x3ae0" in refusal.value.message
    assert "--layout" in (refusal.value.remedy or "")


def test_wormhole_set_is_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    file = make_elf((Load(0x6000),), with_symbols([], attributes_section(b"rv32i2p0_xtttensixwh1p0")), entry=0x6000)
    (folder / "trisc1" / "trisc1.elf").write_bytes(file)
    with pytest.raises(ProgramError, match="is a set for Wormhole"):
        load_firmware(folder)


def test_files_of_two_builds_are_refused(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    write_elf(folder / "ncrisc" / "ncrisc.elf", IDLE, 0x5440)
    with pytest.raises(ProgramError, match=r"ncrisc\.elf: the entry is 0x5440, and 0x5ce0 in the build"):
        load_firmware(folder)


# --- layouts -------------------------------------------------------------------------------------


def known_text() -> str:
    return resources.files("bhemu.loader").joinpath("data/firmware_layouts.toml").read_text()


def test_another_build_is_described_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "layout.toml"
    path.write_text(known_text().replace("B = 0x3AE0", "B = 0x4000"))
    folder = write_set(tmp_path / "set", BRISC.replace("0x3ae0", "0x4000"), entry=0x4000)
    system = FirmwareMachine(load_firmware(folder, layout_file=path))
    system.boot()
    system.launch({"B": assemble(KERNEL)})
    assert system.machine.tile.record.l1_u32[RESULT // 4] == 0x77


@pytest.mark.rule("tile B1", "tile B3")
def test_both_known_builds_are_those_of_the_rules() -> None:
    new, old = read_layouts()
    assert [old.entry[core] for core in ("B", "NC", "T0", "T1", "T2")] == [0x3840, 0x5440, 0x5A40, 0x6040, 0x6640]
    assert (new.go_messages + new.go_signal, old.go_messages + old.go_signal) == (0x4F3, 0x373)
    assert (new.launch_size, old.launch_size) == (144, 96)
    assert (new.remote_buffers, old.remote_buffers) == (64, 32)
    assert (new.host_sets_reset_pcs, old.host_sets_reset_pcs) == (False, True)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (known_text(), "x = 1", "has no [[layout]]"),
        ("go_index = 0x520", "", "layout has no entry 'go_index'"),
        ("go_index = 0x520", "go_index = 0x520\ncolour = 3", "layout knows no entry 'colour'"),
        ("mode = 0x30", "", "layout.launch has no entry 'mode'"),
        ("B = 0x3AE0, ", "", "entry must name the cores"),
        ("bank_tables = [0x13080, 0x800]", "bank_tables = 0x13080", "bank_tables must be two numbers"),
        ("go_index = 0x520", "go_index = 0x200000", "go_index = 2097152 is not an address in L1"),
        ("go_index = 0x520", "go_index =", "Invalid value"),
    ],
)
def test_layout_file_with_a_mistake_is_refused(tmp_path: Path, before: str, after: str, words: str) -> None:
    path = tmp_path / "layout.toml"
    path.write_text(known_text().replace(before, after))
    with pytest.raises(ProgramError) as refusal:
        read_layouts(path)
    assert words in refusal.value.message
    assert "layout.toml" in refusal.value.message


def test_missing_layout_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="cannot be read"):
        read_layouts(tmp_path / "none.toml")
