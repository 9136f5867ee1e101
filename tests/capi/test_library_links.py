"""The C library with several chips: links that fail, and what a client is told that waits for one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bhemu.capi import build
from tests.capi.library_client import run_client

SYSTEM = """
name: weak
latency: 64
chips:
  - {board_id: [0x440, 1], asic_location: 0}
  - {board_id: [0x440, 1], asic_location: 1}
links:
  - 0:2 - 1:9
  - 0:3 - 1:8
failures:
  - {link: 0:2 - 1:9, at: 1000, down: true}
  - {link: 0:3 - 1:8, lose: 1}
"""
ENDS = """
STRIDE = 0x10_0000_0000
def tile(chip, channel, address):
    "PCI address of a word of an Ethernet tile."
    put(CONFIG + STRIDE * chip, (address >> 21 | (20 + channel) << 43 | 25 << 49) & 0xFFFFFFFF)
    put(CONFIG + STRIDE * chip + 4, (address >> 21 | (20 + channel) << 43 | 25 << 49) >> 32)
    put(CONFIG + STRIDE * chip + 8, 0)
    return BAR0 + STRIDE * chip + address % (1 << 21)
def send(channel, value):
    "A word from chip 0 to 0x30000 of the tile at the other end."
    for offset, content in ((0x1C, 0x30000), (0x44, value), (0x04, 4)):
        put(tile(0, channel, 0xFFB90000 + offset), content)
init()
"""
STATES = """
print("before", word(tile(0, 2, 0x7CC04)), word(tile(1, 9, 0x7CC04)))
for channel in (2, 3):
    send(channel, 5)
clock(100)
print("arrived", word(tile(1, 9, 0x30000)), word(tile(1, 8, 0x30000)))
clock(1000)
send(2, 6)
send(3, 7)
clock(100)
print("later", word(tile(1, 9, 0x30000)), word(tile(1, 8, 0x30000)))
print("after", word(tile(0, 2, 0x7CC04)), word(tile(1, 9, 0x7CC04)), word(tile(1, 8, 0x7CC04)))
exit_()
"""
WAITS = """
import os, tempfile, time
# core ERISC1 of chip 1: lui a0, 0x30; again: lw a1, 0(a0); addi a2, a2, 1; beqz a1, again; j .
for n, instruction in enumerate((0x00030537, 0x00052583, 0x00160613, 0xFE058CE3, 0x0000006F)):
    put(tile(1, 9, 0x1000 + 4 * n), instruction)
put(tile(1, 9, 0xFFB14008), 0x1000)
put(tile(1, 9, 0xFFB121B0), 0)
clock(2000)
send(2, 1)
at = tile(1, 9, 0x30000)
end = time.monotonic() + 4
while time.monotonic() < end:
    clock(10)
    assert word(at) == 0
exit_()
"""


@pytest.fixture(scope="module")
def weak(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with two chips whose links fail."""
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("THE C LIBRARY IS NOT TESTED: there is no C compiler")
    work = tmp_path_factory.mktemp("weak")
    (work / "weak.yaml").write_text(SYSTEM)
    return build(work, chips=str(work / "weak.yaml"))


@pytest.mark.rule("ethernet 6.1")
@pytest.mark.parametrize("threads", ["1", "2"])
def test_links_of_a_library_fail_as_its_file_says(weak: Path, threads: str) -> None:
    ended = run_client(weak, ENDS + STATES, BHEMU_THREADS=threads)
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.splitlines()[:4] == ["before 1 1", "arrived 5 0", "later 5 7", "after 2 2 1"]


@pytest.mark.rule("ethernet 6.1")
def test_a_client_that_waits_for_what_a_link_has_lost_is_told_once(weak: Path) -> None:
    """A core goes on all the time, so that it is the link which makes it worth saying."""
    ended = run_client(weak, ENDS + WAITS, BHEMU_PATIENCE="1")
    assert ended.status == 0, ended.out + ended.errors
    assert ended.out.count("bhemu: link 0:2 - 1:9: down since clock 1000, frames that were lost: 1") == 1
    assert "bhemu: chip 1:" in ended.out
    assert "a link has failed, and the host only polls" in ended.out
    assert "core ERISC1 at 0x0100" in ended.out
