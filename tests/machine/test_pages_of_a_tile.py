"""Which pages of a tile's record are touched (machine/state.py)."""

from __future__ import annotations

import numpy as np

from bhemu.api.tile import Tile
from bhemu.isa.assembler import assemble as tensix
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.state import FIRMWARE_PAGES, PAGE, TILE, offset_of, reset
from bhemu.tensix.overlay_words import SPACE_SLOT, slot_of
from tests.riscv.rv_machine import machine

L1 = offset_of(TILE, "l1") // PAGE


def _pages(record: np.ndarray) -> set[int]:
    """Those that are not zero, without what says where the process has its functions."""
    content = record.reshape(1).view(np.ndarray).view(np.uint8).copy()  # also what lies between fields
    handlers = offset_of(TILE, "handlers")
    content[handlers : handlers + 8] = 0
    return {int(page) for page in np.unique(np.nonzero(content)[0] // PAGE)}


def test_reset_sets_bytes_of_one_page() -> None:
    tiles = np.zeros(1, TILE)
    reset(tiles)
    assert len(_pages(tiles)) == 1


def test_what_firmware_touches_when_it_starts_lies_in_few_pages() -> None:
    """Each core stores to its stack, streams and a NIU; T0 uses the coprocessor; all poll in the end."""
    coprocessor = f"li a2, 0xffe00000\nsw a1, 16(a2)\n.ttinsn {tensix('SETDMAREG 0, 7, 0, 4'):#x}\n"
    programs = {}
    for core in CORE_NAMES:
        text = "li sp, 0xffb00ff0\nsw sp, 0(sp)\nsw sp, -512(sp)\nli a0, 0xffb40028\nli a1, 3\nsw a1, 0(a0)\n"
        text += "li a0, 0xffb7f028\nsw a1, 0(a0)\nli a0, 0xffb20000\nsw a1, 0(a0)\n"
        text += coprocessor if core == "T0" else ""
        programs[core] = text + "li a0, 0x100\nwait: lw a1, 0(a0)\nbeqz a1, wait\n"
    tile = Tile()
    tile.record.simulator_order = 1  # as clients of the C library have it
    machine(programs, clocks=300, tile=tile)
    assert {int(tile.record.poll_length[core]) for core in range(5)} == {2}
    touched = {page for page in _pages(tile.record) if page < L1}
    expected = {page for page in FIRMWARE_PAGES if page < L1}
    assert touched <= expected
    assert len(touched) > len(expected) / 2
    assert len(expected) < 16


def test_what_a_program_uses_first_lies_in_few_pages() -> None:
    """A tile of Dst, a bank of Src, what both unpackers have decoded, and words of streams that firmware uses."""

    def pages(name: str, count: int) -> set[int]:
        first = offset_of(TILE, name)
        return {first // PAGE, (first + count - 1) // PAGE}

    row = TILE["dst"].base.itemsize * TILE["dst"].shape[-1]
    assert len(pages("dst", 32 * 2 * row)) == 1
    bank = TILE["srca"].itemsize // 2
    assert len(pages("srca", bank)) == len(pages("srcb", bank)) == 1
    decoded = TILE["unpack"].fields["decoded"]
    slot = decoded[0].base.itemsize
    assert len(pages("unpack", decoded[1] + 2 * 2 * slot)) == 1
    streams = TILE["stream_word"].shape[1] * TILE["stream_word"].base.itemsize
    used = 1 + max(SPACE_SLOT, *map(slot_of, ("REMOTE_DEST_BUF_START", "REMOTE_DEST_WR_PTR", "REMOTE_DEST_BUF_SIZE")))
    assert len(pages("issued", TILE["issued"].itemsize) | pages("stream_word", used * streams)) == 2
