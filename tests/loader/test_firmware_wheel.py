"""All firmware sets of the ttnn wheel: the 36 for Blackhole boot and run kernels, the 28 for Wormhole are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.api.chip import Chip
from bhemu.api.firmware import FirmwareMachine, load_firmware
from bhemu.errors import ProgramError
from bhemu.loader.firmware_layout import CORE_ORDER
from tests.loader.firmware_wheel import NoWheel, firmware_sets
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.firmware

BLACKHOLE, WORMHOLE = 0x3AE0, 0x3A20
"""Entry of core B (tile B5)."""
MARKS = 0x30000
SETTLED = 1000
"""Clocks after which the firmware polls its mailboxes and does nothing else."""


def entry(folder: Path) -> int:
    return int.from_bytes((folder / "brisc" / "brisc.elf").read_bytes()[24:28], "little")


@pytest.fixture(scope="session")
def sets() -> list[Path]:
    try:
        return firmware_sets()
    except NoWheel as reason:
        pytest.skip(f"pip cannot fetch the ttnn wheel, so tt-metal firmware is NOT tested: {reason}")


def mark(place: int) -> bytes:
    """Five words: store a mark, return 0."""
    return assemble(f"lui t0, {MARKS >> 12:#x}\nli t1, {0x40 + place:#x}\nsw t1, {4 * place}(t0)\nli a0, 0\nret")


def test_wheel_has_36_sets_for_blackhole_and_28_for_wormhole(sets: list[Path]) -> None:
    entries = [entry(folder) for folder in sets]
    assert entries.count(BLACKHOLE) == 36
    assert entries.count(WORMHOLE) == 28


def test_every_blackhole_set_boots_and_runs_kernels_in_the_clocks_of_the_reference(sets: list[Path]) -> None:
    """Clocks: tile B27, the reference's own. Kernels are launched when the firmware has settled, as there."""
    booted = 0
    for folder in sets:
        if entry(folder) != BLACKHOLE:
            continue
        system = FirmwareMachine(load_firmware(folder))
        boot = system.boot()
        record = system.machine.tile.record
        assert record.soft_reset == 0
        assert system.signal == 0
        assert 2500 <= boot.released <= 5500, folder.name
        assert 5000 <= boot.done <= 6000, folder.name
        system.machine.tile.clock(SETTLED)
        assert system.subordinate_sync == 0
        assert system.launch({}) < 400, folder.name
        system.machine.tile.clock(SETTLED)
        kernels = {core: mark(place) for place, core in enumerate(CORE_ORDER)}
        assert all(len(kernel) == 20 for kernel in kernels.values())
        assert system.launch(kernels) < 300, folder.name
        assert record.l1_u32[MARKS // 4 : MARKS // 4 + 5].tolist() == [0x40, 0x41, 0x42, 0x43, 0x44], folder.name
        booted += 1
    assert booted == 36


def test_core_that_gets_no_kernel_leaves_no_mark(sets: list[Path]) -> None:
    system = FirmwareMachine(load_firmware(next(folder for folder in sets if entry(folder) == BLACKHOLE)))
    system.boot()
    system.launch({"NC": mark(1), "T2": mark(4)})
    assert system.machine.tile.record.l1_u32[MARKS // 4 : MARKS // 4 + 5].tolist() == [0, 0x41, 0, 0, 0x44]


def test_wormhole_sets_are_refused_with_the_reason(sets: list[Path]) -> None:
    for folder in sets:
        if entry(folder) == WORMHOLE:
            with pytest.raises(ProgramError, match="is a set for Wormhole") as refusal:
                load_firmware(folder)
            assert folder.name in str(refusal.value)
            assert "0x3ae0" in (refusal.value.remedy or "")


def test_messages_name_the_firmwares_functions_and_lines(sets: list[Path]) -> None:
    system = FirmwareMachine(load_firmware(next(folder for folder in sets if entry(folder) == BLACKHOLE)))
    system.boot()
    text = system.machine.explain()
    for core, file in (("B", "brisc.cc"), ("NC", "ncrisc.cc"), ("T1", "trisc.cc")):
        line = next(line for line in text.splitlines() if line.startswith(f"  core {core} "))
        assert "main+0x" in line
        assert file in line or ".h:" in line


def test_set_boots_and_runs_kernels_on_every_tile_of_a_chip(sets: list[Path]) -> None:
    """With tables of as many DRAM banks as each product has; core B copies them to its local RAM (tile B7, B12)."""
    booted = []
    for board in ("p150", "p100"):
        chip = Chip(board)
        for folder in sets:
            if entry(folder) != BLACKHOLE:
                continue
            firmware = load_firmware(folder)
            if firmware.table_banks("dram_bank_to_noc_xy") == len(chip.dram):
                break
        system = chip.boot_firmware(firmware)
        assert len(system.tiles) == len(chip.tensix)
        assert 5000 <= system.boot_clocks <= 6000
        chip.clock(SETTLED)
        kernels = {core: mark(place) for place, core in enumerate(CORE_ORDER)}
        assert system.launch(kernels) < 400
        table = next(s for s in firmware.executables["B"].symbols if s.name == "dram_bank_to_noc_xy")
        for tile in chip.tensix:
            assert tile.state.l1_u32[MARKS // 4 : MARKS // 4 + 5].tolist() == [0x40, 0x41, 0x42, 0x43, 0x44]
            at = table.address - 0xFFB00000
            banks = tile.state.core_ram[0, at : at + 2 * len(chip.dram)].view("<u2").tolist()
            assert [chip.device.node((word & 63, word >> 6)).index for word in banks] == [
                bank.node.index for bank in chip.dram
            ]
        booted.append(board)
    assert booted == ["p150", "p100"]
