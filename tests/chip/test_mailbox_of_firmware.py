"""The mailbox of an Ethernet tile's base firmware (bhemu/ethernet/mailbox.py)."""

from __future__ import annotations

import struct

import pytest

from bhemu.errors import Unimplemented
from tests.chip.test_links import ends, pair
from tests.riscv.rv_asm import assemble

pytestmark = [pytest.mark.plain, pytest.mark.rule("ethernet 4.3")]

MAILBOX = 0x7D000
RELEASE = 0xCA110002
PROGRAM = "li a0, 0x20000\nsw sp, 0(a0)\nend: j end\n"


@pytest.mark.parametrize("entry", range(4))
def test_the_message_that_releases_core_erisc0_starts_it_at_its_argument(entry: int) -> None:
    cluster = pair()
    tile = ends(cluster)[0]
    tile.write(0x2000, assemble(PROGRAM, 0x2000))
    cluster.clock(10)
    tile.write(MAILBOX + 16 * entry, struct.pack("<4I", RELEASE, 0x2000, 7, 8))
    assert struct.unpack("<4I", tile.read(MAILBOX + 16 * entry, 16)) == (0xD0E50002, 0, 0, 0)
    cluster.clock(10)
    assert tile.read_word(0x20000) == 0xFFB02000


def test_the_message_may_follow_its_arguments() -> None:
    cluster = pair()
    tile = ends(cluster)[0]
    tile.write(0x2000, assemble(PROGRAM, 0x2000))
    tile.write_word(MAILBOX + 4, 0x2000)
    cluster.clock(10)
    assert tile.read_word(0x20000) == 0
    tile.write_word(MAILBOX, RELEASE)
    cluster.clock(10)
    assert tile.read_word(0x20000) == 0xFFB02000


def test_other_messages_are_refused_once() -> None:
    tile = ends(pair())[0]
    with pytest.raises(Unimplemented, match="message 0xca110006 for base firmware in entry 1 of its mailbox"):
        tile.write_word(MAILBOX + 16, 0xCA110006)
    tile.write_word(MAILBOX + 32, 0x12345678)  # not a message
    assert tile.read_word(MAILBOX + 16) == 0


def test_a_tile_without_a_link_has_no_firmware_that_answers() -> None:
    tile = pair()[0].ethernet[5]
    tile.write_word(MAILBOX, RELEASE)
    assert tile.read_word(MAILBOX) == RELEASE
