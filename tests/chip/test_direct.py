"""What compiled code finds behind an address of a BAR (chip/pcie/direct.py) is what chip/pcie/bars.py finds there."""

from __future__ import annotations

import ctypes
import random

import pytest

from bhemu.chip.coordinates import NODES
from bhemu.chip.device import Device
from bhemu.chip.entries import chip_entry
from bhemu.chip.pcie.pci import BAR0, BAR4
from bhemu.chip.pcie.windows import ENTRY_BYTES, FIRST_LARGE, LARGE_BITS, SMALL_BITS, WINDOW_CONFIG
from bhemu.errors import BhemuError
from tests.chip.noc_programs import Board, DramChannel

pytestmark = pytest.mark.plain


def find(chip: Device, paddr: int, size: int, writes: int = 0) -> int:
    return int(chip_entry("chip_find").call(chip.clocks.target, paddr, size, writes))


def set_window(chip: Device, number: int, bits: int) -> None:
    for n in range(3):
        chip.write(WINDOW_CONFIG + ENTRY_BYTES * number + 4 * n, (bits >> 32 * n & 0xFFFFFFFF).to_bytes(4, "little"))


def aim(chip: Device, number: int, x: int, y: int, address: int, extra: int = 0) -> int:
    """Point a window; returns the PCI address of `address`. `extra` are the entry's bits behind the base."""
    large = number >= FIRST_LARGE
    size, lsb = (LARGE_BITS, 32) if large else (SMALL_BITS, 43)
    set_window(chip, number, address >> size | (x | y << 6 | extra) << lsb)
    base = BAR4 + (number - FIRST_LARGE << LARGE_BITS) if large else BAR0 + (number << SMALL_BITS)
    return base + address % (1 << size)


def test_random_windows_and_accesses() -> None:
    source = random.Random(5)
    chip = Device()
    for index in range(140):
        chip.tiles["l1"][index, :256] = list(random.Random(index).randbytes(256))
    for channel in (DramChannel(chip, number) for number in range(8)):
        channel.write(0xFF80, random.Random(channel.channel).randbytes(512))
    found = refused = 0
    for _ in range(3000):
        number = source.choice((0, 1, 201, 202, 209))
        x, y = source.choice((source.randrange(64), source.randrange(1, 18))), source.choice((2, 5, 11, 12, 17, 23, 40))
        extra = source.choice((0,) * 12 + (1 << 12, 1 << 24, 1 << 26, 2 << 27, 3 << 27, 1 << 29, 1 << 25))
        address = source.choice((0, 64, 0xFF80, 0x17FFF8, 0x180000, 0xFFFF, 0xFFB20044, 0xFFFFFFF8, 1 << 32))
        paddr = aim(chip, number, x, y, address, extra)
        size = source.choice((1, 4, 32, 100))
        pointer = find(chip, paddr, size)
        try:
            content = chip.read(paddr, size)
        except BhemuError:
            assert pointer == 0
            refused += 1
            continue
        if pointer:
            found += 1
            assert ctypes.string_at(pointer, size) == content
    assert found > 300
    assert refused > 300


def test_window_entries_can_be_written_directly() -> None:
    chip = Device()
    chip.tiles["l1"][0, 0], chip.tiles["l1"][1, 0] = 1, 2
    paddr = aim(chip, 0, 1, 2, 0)
    assert ctypes.string_at(find(chip, paddr, 1), 1) == b"\x01"
    entry = find(chip, WINDOW_CONFIG + 4, 4, 1)
    ctypes.memmove(entry, (2 << 11 | 2 << 17).to_bytes(4, "little"), 4)
    assert chip.read(WINDOW_CONFIG + 4, 4) == (2 << 11 | 2 << 17).to_bytes(4, "little")
    assert ctypes.string_at(find(chip, paddr, 1), 1) == b"\x02"
    assert chip.read(paddr, 1) == b"\x02"
    for wrong in ((WINDOW_CONFIG + 2, 4), (WINDOW_CONFIG, 2), (WINDOW_CONFIG + 210 * ENTRY_BYTES, 4), (paddr, 0)):
        assert find(chip, *wrong) == 0


def test_pages_of_dram_that_nobody_has_written_are_zeros_and_stay_so() -> None:
    chip = Device()
    paddr = aim(chip, 202, 17, 12, 0x50000)
    assert ctypes.string_at(find(chip, paddr, 64), 64) == bytes(64)
    chip.write(paddr, b"\x07")
    assert ctypes.string_at(find(chip, paddr, 2, 1), 2) == b"\x07\x00"
    other = aim(chip, 203, 17, 15, 0x50000)
    assert ctypes.string_at(find(chip, other, 64), 64) == bytes(64)


def test_a_direct_write_wakes_who_polls() -> None:
    wait = "li a0, 0x20000\nagain: lw a1, 0(a0)\nbeqz a1, again\nsw a1, 4(a0)\n"
    board = Board({(1, 2): wait}, quantum=1024)
    board.start((1, 2))
    chip = board.chip
    chip.clock(5000)
    assert chip.cores(0)["B"].state == "polling"
    chip.clock(1)
    paddr = aim(chip, 0, 1, 2, 0x20000)
    ctypes.memmove(find(chip, paddr, 4, 1), (9).to_bytes(4, "little"), 4)
    chip.clock(10)
    assert board.word((1, 2), 0x20004) == 9
    assert NODES[1, 2].index == 0
