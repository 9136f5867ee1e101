"""Mailboxes between cores (tile K13 to K15, T30, T32; E13, E42)."""

from __future__ import annotations

import itertools
import random

import pytest

from bhemu import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.machine.agents import NC, NOC, TENSIX
from tests.riscv.rv_machine import SCRATCH, START, hold, machine, release, words

pytestmark = pytest.mark.plain

CORES = ("B", "T0", "T1", "T2")


def mailbox(j: int) -> int:
    return 0xFFEC0000 + 0x1000 * j


@pytest.mark.rule("tile K13", "tile K14")
def test_sixteen_mailboxes_each_between_one_writer_and_one_reader() -> None:
    tile = Tile()
    for writer in range(4):  # one word in each of a writer's four mailboxes: all 16 hold one (E42: not one a reader)
        for reader in range(4):
            tile.cores.store(mailbox(reader), 100 * writer + reader, writer)
    pairs = list(itertools.product(range(4), repeat=2))
    random.Random(1).shuffle(pairs)
    for writer, reader in pairs:
        assert tile.cores.load(mailbox(writer) + 4, reader) == 1
        assert tile.cores.load(mailbox(writer), reader) == 100 * writer + reader
        assert tile.cores.load(mailbox(writer) + 4, reader) == 0


@pytest.mark.rule("tile K14")
def test_the_mailboxes_that_one_core_writes_hold_four_words_together() -> None:
    tile = Tile()
    for reader, value in ((1, 10), (1, 11), (3, 12), (0, 13)):
        tile.cores.store(mailbox(reader), value, 2)
    for reader in range(4):
        with pytest.raises(UndefinedBehavior, match="would block"):
            tile.cores.store(mailbox(reader), 99, 2)
    tile.cores.store(mailbox(1), 50, 3)  # another writer has four words of its own
    assert tile.cores.load(mailbox(2), 1) == 10
    tile.cores.store(mailbox(3), 14, 2)
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.store(mailbox(3), 99, 2)
    assert [tile.cores.load(mailbox(2), 3) for _ in range(2)] == [12, 14]
    assert [tile.cores.load(mailbox(2), r) for r in (1, 0)] == [11, 13]
    assert tile.cores.load(mailbox(3), 1) == 50
    for reader in range(4):
        assert tile.cores.load(mailbox(2) + 4, reader) == 0


@pytest.mark.rule("tile K14")
def test_bit_2_of_the_address_alone_decides() -> None:
    tile = Tile()
    for offset in (0x8, 0x10, 0xFF8, 0xFFC):
        tile.cores.store(mailbox(0) + offset, offset, 1)
    assert tile.cores.load(mailbox(1) + 0xFF4, 0) == 1
    assert [tile.cores.load(mailbox(1) + offset, 0) for offset in (0xFF8, 0x10, 0, 0x8)] == [0x8, 0x10, 0xFF8, 0xFFC]
    assert tile.cores.load(mailbox(1) + 0xC, 0) == 0


@pytest.mark.rule("tile K15")
def test_a_pop_waits_and_words_keep_their_order() -> None:
    """T1 sends 20 words to T2 as fast as it can, T2 takes them slowly: neither loses one (T32)."""
    send = f"""
        li a0, {mailbox(3):#x}
        li t0, 0
        li t1, 20
    again: sw t0, 0(a0)
        addi t0, t0, 1
        bne t0, t1, again
    end: j end
    """
    take = f"""
        li a0, {mailbox(2):#x}
        li a1, {SCRATCH:#x}
        li t1, 20
    again: lw t0, 0(a0)
        sw t0, 0(a1)
        addi a1, a1, 4
        addi t1, t1, -1
        li t2, 9
    slow: addi t2, t2, -1
        bnez t2, slow
        bnez t1, again
    end: j end
    """
    tile = machine({"T1": send, "T2": take}, 60)
    assert tile.cores["T1"].state == "blocked"
    tile.clock(800)
    assert words(tile, 20) == list(range(20))
    assert tile.cores["T1"].state == "polling"
    lone = machine({"T2": take}, 100)
    assert lone.cores["T2"].state == "blocked"
    assert lone.cores["T2"].retired == lone.cores["T2"].pc - START["T2"] >> 2  # it is at its first load
    lone.cores.store(mailbox(3), 77, 2)
    lone.clock(20)
    assert words(lone, 2) == [77, 0]


@pytest.mark.rule("tile K15")
def test_a_core_waits_for_a_status_word_without_stopping() -> None:
    poll = f"""
        li a0, {mailbox(0):#x}
        li t1, 0
    again: addi t1, t1, 1
        lw t0, 4(a0)
        beqz t0, again
        lw t2, 0(a0)
        li a1, {SCRATCH:#x}
        sw t2, 0(a1)
    end: j end
    """
    tile = machine({"T0": poll}, 300)
    assert tile.cores["T0"].x[6] > 90
    tile.cores.store(mailbox(1), 1234, 0)
    tile.clock(20)
    assert words(tile, 1) == [1234]


@pytest.mark.rule("tile K13", "tile E13")
@pytest.mark.parametrize("agent", [NC, NOC, TENSIX])
def test_nc_the_noc_and_the_coprocessor_have_no_mailbox(agent: int) -> None:
    tile = Tile()
    before = tile.record.mailbox_count.tobytes()
    for j in range(4):
        with pytest.raises(UndefinedBehavior, match=r"unmapped|below"):
            tile.cores.load(mailbox(j), agent)
        with pytest.raises(UndefinedBehavior, match=r"unmapped|below"):
            tile.cores.store(mailbox(j), 1, agent)
    assert tile.record.mailbox_count.tobytes() == before


@pytest.mark.rule("tile T16")
@pytest.mark.parametrize("core", CORES)
def test_entering_reset_empties_the_mailboxes_that_a_core_writes(core: str) -> None:
    tile = Tile()
    release(tile, *CORES)
    for writer, reader in itertools.product(range(4), repeat=2):
        tile.cores.store(mailbox(reader), 7, writer)
    hold(tile, core)
    for writer, reader in itertools.product(range(4), repeat=2):
        expected = 0 if writer == CORES.index(core) else 1
        assert tile.cores.load(mailbox(writer) + 4, reader) == expected
