"""Snapshots of a whole chip, memory that it takes, and processes that fork with one."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bhemu.api.chip import Chip
from bhemu.api.chip_snapshot import ChipSnapshot
from bhemu.chip.coordinates import ARC, NODES, PCIE, Kind
from bhemu.chip.pcie.dma import COUNT, HOST_LOW
from bhemu.chip.pcie.iatu import TARGET_LOW
from bhemu.chip.pcie.pci import BAR0, BAR2
from bhemu.chip.pcie.windows import WINDOW_CONFIG
from bhemu.errors import BhemuError, ConfigurationError, ProgramError
from tests.chip.noc_programs import ATOMIC, DATA, INCREMENT, READ, WRITE, at, request
from tests.loader.boot_programs import program

FLAG, BACK, NOTES = DATA + 0x100, DATA + 0x200, DATA + 0x1000
RING = ((1, 2), (7, 9), (16, 11), (10, 2))
ROUNDS = 12
WALL_CLOCK = 0xFFB121F0
BUSY, LONELY, STUCK = (3, 3), (4, 8), (5, 8)


def ring(place: int) -> str:
    """Wait for the flag, note the time, write to DRAM and back, raise the next tile's flag; and so on."""
    me, to = RING[place], RING[(place + 1) % len(RING)]
    text = ""
    for turn in range(1, ROUNDS + 1):
        if place or turn > 1:
            wanted = turn if place else turn - 1
            text += f"li a1, {FLAG:#x}\nli a2, {wanted}\nwait{turn}: lw a3, 0(a1)\nbne a3, a2, wait{turn}\n"
        text += f"li a1, {WALL_CLOCK:#x}\nlw a2, 0(a1)\nli a1, {NOTES + 64 * turn:#x}\nsw a2, 0(a1)\n"
        bank, there = at(17, 12), 0x10000 * turn + 0x1000 * place
        note = NOTES + 64 * turn
        text += request(ctrl=WRITE, target=note, target_hi=at(*me), back=there, back_hi=bank, length=64)
        text += request(ctrl=READ, target=there, target_hi=bank, back=note + 0x2000, back_hi=at(*me), length=64)
        ends = {"target": FLAG, "target_hi": at(*to), "back": BACK, "back_hi": at(*me)}
        text += request(noc=turn % 2, ctrl=ATOMIC, **ends, length=INCREMENT, data=1)
    return text + "ebreak"


def busy_chip() -> Chip:
    """Tiles that talk to each other, one that counts forever, one alone, one that waits for what never comes."""
    chip = Chip()
    for place, tile in enumerate(RING):
        chip.load(program(ring(place)), tiles=tile)
    chip.load(program(f"li a0, {DATA:#x}\nloop: addi a1, a1, 1\nsw a1, 0(a0)\nj loop"), tiles=BUSY)
    chip.load(program("li a1, 0xffec1000\nlw a2, 0(a1)"), tiles=STUCK)
    chip.start()
    return chip


@pytest.mark.parametrize("clocks", [1, 40, 333, 1501, 2500])
def test_restored_chip_goes_on_as_one_that_was_never_interrupted(clocks: int) -> None:
    whole, chip = busy_chip(), busy_chip()
    for one in (whole, chip):
        one.clock(clocks)
    between = chip.snapshot()
    chip.run(tiles=RING[-1])
    chip.clock(777)
    other = chip.snapshot()
    whole.run(tiles=RING[-1])
    whole.clock(777)
    assert whole.snapshot() == other
    assert len({chip[p].read_word(FLAG) for p in RING}) == 1
    chip.dram[0].write(0x7000_0000, b"not in the copy")
    chip[LONELY].write(0x40000, b"nor this")
    chip.restore(between)
    assert chip.snapshot() == between
    assert chip.time == clocks
    assert chip.dram[0].read(0x7000_0000, 15) == bytes(15)
    assert chip[LONELY].read(0x40000, 8) == bytes(8)
    chip.run(tiles=RING[-1])
    chip.clock(777)
    assert chip.snapshot() == other


def test_snapshot_goes_to_another_chip_and_through_a_file(tmp_path: Path) -> None:
    chip = busy_chip()
    chip.clock(500)
    copy = chip.snapshot()
    copy.save(tmp_path / "copy")
    assert ChipSnapshot.load(tmp_path / "copy") == copy == pickle.loads(pickle.dumps(copy))
    other = Chip()
    other.restore(ChipSnapshot.load(tmp_path / "copy"))
    for one in (chip, other):
        one.run(tiles=RING)
    assert other.snapshot() == chip.snapshot() != copy
    assert other.time == chip.time


@pytest.mark.plain
def test_everything_around_the_tiles_is_part_of_a_snapshot() -> None:
    chip = Chip()
    device = chip.device
    ethernet = next(node for node in NODES.values() if node.kind is Kind.ETHERNET)

    def read(address: int, size: int = 4) -> bytes:
        return device.read(address, size)

    looks: dict[str, Callable[[], bytes | int]] = {
        "window": lambda: read(WINDOW_CONFIG + 5 * 12 + 4),
        "what a window shows": lambda: read(BAR0 + (5 << 21), 8),
        "DMA": lambda: read(BAR2 + HOST_LOW),
        "DMA count": lambda: read(BAR2 + COUNT),
        "iATU": lambda: read(BAR2 + 0x1000 + TARGET_LOW),
        "PCI": lambda: device.read_config(0, 0x3C),
        "ARC scratch": lambda: device.read_node(NODES[ARC], 0x80030060, 4),
        "ARC memory": lambda: device.read_node(NODES[ARC], 0x10004000, 4),
        "Ethernet L1": lambda: device.read_node(ethernet, 0x1000, 4),
        "PCIe": lambda: device.read_node(NODES[PCIE[0]], (62 << 58) + 0x78, 4),
        "DRAM": lambda: chip.dram[3].read(0x123456, 4),
        "L1": lambda: chip[9 + 3, 7].read(0x17FFFC, 4),
        "register": lambda: chip[9 + 3, 7].read(0xFFB12228, 4),
        "coprocessor": lambda: int(chip[1, 3].gpr[2, 5]),
        "time": lambda: chip.time,
    }

    def change(value: int) -> None:
        word = value.to_bytes(4, "little")
        device.write(WINDOW_CONFIG + 5 * 12 + 4, ((1 + value) << 11 | 2 << 17).to_bytes(4, "little"))
        chip[1 + value, 2].write(0, b"window %d" % value)
        device.write(BAR2 + HOST_LOW, word)
        device.write(BAR2 + COUNT, word)
        device.write(BAR2 + 0x1000 + TARGET_LOW, word)
        device.write_config(0, 0x3C, value)
        device.write_node(NODES[ARC], 0x80030060, word)
        device.write_node(NODES[ARC], 0x10004000, word)
        device.write_node(ethernet, 0x1000, word)
        device.write_node(NODES[PCIE[0]], (62 << 58) + 0x78, word)
        chip.dram[3].write(0x123456, word)
        chip[12, 7].write(0x17FFFC, word)
        chip[12, 7].write(0xFFB12228, word)
        chip[1, 3].gpr[2, 5] = value
        chip.clock(value)

    change(1)
    first = {name: look() for name, look in looks.items()}
    copy = chip.snapshot()
    change(2)
    second = {name: look() for name, look in looks.items()}
    assert [name for name in looks if first[name] == second[name]] == []
    chip.restore(copy)
    assert {name: look() for name, look in looks.items()} == first
    fresh = Chip()
    chip.restore(fresh.snapshot())
    assert chip.snapshot() == fresh.snapshot()


def test_snapshot_is_as_large_as_what_was_touched() -> None:
    chip = Chip()
    small = len(pickle.dumps(chip.snapshot()))
    assert small < 10 << 20
    chip.dram[0].write(5 << 16, b"x" * 100)
    chip[8 + 2, 5].write(0x40000, b"y" * 5000)
    chip.dram[0].write(9 << 16, bytes(100))
    assert 0 < len(pickle.dumps(chip.snapshot())) - small < (64 + 3 * 4 + 1) << 10


@pytest.mark.plain
def test_snapshot_of_another_product_or_version_is_refused(tmp_path: Path) -> None:
    chip = Chip()
    copy = Chip("p100").snapshot()
    before = chip.snapshot()
    with pytest.raises(ConfigurationError, match="a chip with Harvesting"):
        chip.restore(copy)
    old = ChipSnapshot(dataclasses.replace(before.state, layout="older"))
    with pytest.raises(ConfigurationError, match="version of bhemu"):
        chip.restore(old)
    assert chip.snapshot() == before
    (tmp_path / "no copy").write_bytes(b"something else")
    with pytest.raises(ProgramError, match="is not a copy of a chip"):
        ChipSnapshot.load(tmp_path / "no copy")
    before.save(tmp_path / "cut")
    with (tmp_path / "cut").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(ProgramError, match="is damaged"):
        ChipSnapshot.load(tmp_path / "cut")


def test_snapshot_after_a_refusal_goes_on_like_the_chip() -> None:
    chip = busy_chip()
    chip.load(program("li a0, 0x300000\nli s0, 100\nspin: addi s0, s0, -1\nbnez s0, spin\nlw a1, 0(a0)"), tiles=LONELY)
    chip.start(tiles=LONELY)
    with pytest.raises(BhemuError, match="Tensix tile 4-8"):
        chip.clock(1000)
    copy = chip.snapshot()
    ends = []
    for _ in range(2):
        chip.run(tiles=RING)
        ends.append(chip.snapshot())
        chip.restore(copy)
    assert ends[0] == ends[1]


@pytest.mark.parametrize("quantum", [1, 1024])
def test_snapshot_does_not_depend_on_threads(quantum: int) -> None:
    """Restored into a chip with threads, it goes on as without."""
    ends = []
    for threads in (1, 2, 3):
        chip = Chip(threads=threads, quantum=quantum)
        if not ends:
            chip.restore(busy_chip().snapshot())
            count = program(f"li a0, {DATA:#x}\nloop: addi a1, a1, 1\nsw a1, 0(a0)\nj loop")
            chip.load(count, tiles=chip.tensix[60:90])
            chip.start(tiles=chip.tensix[60:90])
            chip.clock(100)
            copy = chip.snapshot()
        else:
            chip.restore(copy)
        chip.clock(3000)
        ends.append(chip.snapshot())
    assert ends[0] == ends[1] == ends[2]


# --- memory and processes ------------------------------------------------------------------------

# Without what the kernel maps of files in huge pages, used or not: where the page cache happens to hold LLVM's library
# in such, one fault maps two megabytes of it, which every other process shares.
RESIDENT = """
import bhemu
def resident():
    with open("/proc/self/smaps_rollup") as file:
        sizes = {name: int(size) for name, size, _ in (line.split() for line in file.readlines()[1:])}
    return (sizes["Rss:"] - sizes["FilePmdMapped:"]) / 1e3
chip = bhemu.Chip()
fresh = resident()
copy = chip.snapshot()
chip.restore(copy)
print(fresh, resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_chip_that_nobody_has_touched_takes_less_than_200_mb() -> None:
    for _ in range(2):  # the first one fills caches, should they lack something
        done = subprocess.run([sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True)
    fresh, copied = map(float, done.stdout.split())
    assert fresh < 200
    assert copied < 220


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_process_that_holds_a_chip_can_fork() -> None:
    """The child's clocks are its own."""
    chip, same = busy_chip(), busy_chip()
    chip.clock(300)
    same.clock(300)
    before = chip.snapshot()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            chip.run(tiles=RING)
            chip.dram[1].write(0, b"child")
            os.write(writing, b"%d" % chip.time)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        time = int(file.read() or b"-1")
    assert os.waitpid(child, 0)[1] == 0
    assert chip.snapshot() == before
    chip.run(tiles=RING)
    assert chip.time == time
    assert chip.dram[1].read(0, 5) == bytes(5)
    same.run(tiles=RING)
    assert np.array_equal(same[RING[0]].l1, chip[RING[0]].l1)
