"""The idle and active firmware of tt-metal in the ttnn wheel boots on Ethernet tiles (ethernet 4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.api.chip import Chip
from bhemu.api.ethernet_tile import EthernetTile
from bhemu.loader.elf import load_elf
from tests.loader.firmware_wheel import NoWheel, ethernet_sets

pytestmark = pytest.mark.firmware

LOCAL = 0xFFB00000
MAILBOX, MAILBOX_BYTES = 0x100, 12768
GO_SIGNAL = 0x590 + 3
INIT = 0x40
MODES = 0xFFB14020
ACTIVE_LOCAL = 0xFFB00700
STACK_TOP = 0xFFB02000
IDLE, SUBORDINATE_IDLE, ACTIVE, SUBORDINATE_ACTIVE = 0x3320, 0x9320, 0x3330, 0x9330
IMAGES = {
    "idle_erisc": 0xFDB0,
    "subordinate_idle_erisc": 0x11DB0,
    "active_erisc": 0xF330,
    "subordinate_active_erisc": 0x10C30,
}
"""Where the start-up code of each takes its local data from (dev_mem_map.h: MEM_*ERISC_INIT_LOCAL_L1_BASE_SCRATCH)."""


@pytest.fixture(scope="session")
def sets() -> list[Path]:
    try:
        return ethernet_sets()
    except NoWheel as reason:
        pytest.skip(f"pip cannot fetch the ttnn wheel, so tt-metal firmware is NOT tested: {reason}")


def put(tile: EthernetTile, folder: Path, name: str) -> int:
    """Write a program's text, and its local data where its start-up code copies them from; returns the entry."""
    executable = load_elf(folder / name / f"{name}.elf")
    for segment in executable.segments:
        at = segment.address
        if at >= LOCAL:
            at = IMAGES[name] + at - (ACTIVE_LOCAL if name == "active_erisc" else LOCAL)
        if segment.content:
            tile.write(at, bytes(segment.content))
    return executable.entry


def prepare(tile: EthernetTile) -> None:
    """What a host writes to an Ethernet tile before it starts a core."""
    for mode in range(5):
        tile.write_word(MODES + 4 * mode, 0)
    tile.write(MAILBOX, bytes(MAILBOX_BYTES))
    tile.write(GO_SIGNAL, bytes([INIT]))


def wait(chip: Chip, tiles: list[EthernetTile], clocks: int = 20_000) -> int:
    """Clocks until the firmware of all tiles has answered."""
    start = chip.time
    while any(tile.read(GO_SIGNAL, 1) != b"\0" for tile in tiles):
        assert chip.time - start < clocks, chip.explain()
        chip.clock(100)
    return chip.time - start


def test_the_wheel_has_36_sets_for_ethernet_tiles_of_blackhole(sets: list[Path]) -> None:
    assert len(sets) == 36


@pytest.mark.rule("ethernet 4")
def test_idle_firmware_of_every_set_boots_both_cores(sets: list[Path]) -> None:
    """A set on each of the twelve tiles, at a time."""
    booted = 0
    for first in range(0, len(sets), 12):
        chip = Chip("p150")
        some = list(zip(chip.ethernet, sets[first : first + 12], strict=False))
        for tile, folder in some:
            prepare(tile)
            assert put(tile, folder, "idle_erisc") == IDLE
            assert put(tile, folder, "subordinate_idle_erisc") == SUBORDINATE_IDLE
            tile.start("ERISC0", IDLE)
        tiles = [tile for tile, _ in some]
        assert wait(chip, tiles) <= 10_000
        for tile in tiles:
            assert tile.read_word(0xFFB121B0) == 0
            assert tile.read_word(0xFFB14008) == SUBORDINATE_IDLE
            assert not {"halted", "in reset"} & {tile.cores["ERISC0"].state, tile.cores["ERISC1"].state}
        booted += len(tiles)
    assert booted == 36


@pytest.mark.rule("ethernet 4")
def test_active_firmware_of_every_set_boots_both_cores(sets: list[Path]) -> None:
    """Base firmware, which is not emulated, would call it with a stack. It copies its local RAM to L1, core ERISC1 puts
    core ERISC0 into reset and starts it at another place, and there it finds everything again."""
    for first in range(0, len(sets), 12):
        chip = Chip("p150", allow_open=True)
        some = list(zip(chip.ethernet, sets[first : first + 12], strict=False))
        for tile, folder in some:
            prepare(tile)
            assert put(tile, folder, "active_erisc") == ACTIVE
            assert put(tile, folder, "subordinate_active_erisc") == SUBORDINATE_ACTIVE
            tile.start("ERISC0", ACTIVE)
            tile.cores["ERISC0"].x[2] = STACK_TOP
        wait(chip, [tile for tile, _ in some], 40_000)
        for tile, _ in some:
            assert tile.read_word(0xFFB14000) != ACTIVE
            assert tile.read_word(0xFFB14008) == SUBORDINATE_ACTIVE
            assert not {"halted", "in reset"} & {tile.cores["ERISC0"].state, tile.cores["ERISC1"].state}
