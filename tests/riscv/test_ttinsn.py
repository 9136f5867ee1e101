"""`.ttinsn`: Tensix words in a core's program (tile T10, T11, K1, K3)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.isa.assembler import assemble as tensix
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import START, hold, machine, put, release

pytestmark = pytest.mark.plain

NOP = 0x02000000
STALL = tensix("STALLWAIT 0x1ff, 0x80")
"""Holds the thread until SrcA has a valid bank: forever here."""
NO_FUSING = 1 << 18


def _stalled(program: str, core: str = "T1") -> Tile:
    """A tile whose core has its program, and whose threads execute nothing more."""
    tile = machine({core: program})
    for thread in range(3):
        tile.coprocessor.push(thread, STALL)
        tile.coprocessor.drain(thread)
    return tile


def _queued(tile: Tile, thread: int) -> list[int]:
    """Words at the gate and in the FIFO."""
    record = tile.record
    found = [int(record.frontend.gate_word[thread])] if record.frontend.gate_full[thread] else []
    head, count = int(record.frontend.fifo_head[thread]), int(record.frontend.fifo_count[thread])
    return found + [int(record.frontend.fifo_word[thread, (head + i) % 32]) for i in range(count)]


@pytest.mark.parametrize("core", ["T0", "T1", "T2"])
def test_the_word_is_rotated_and_goes_to_the_cores_own_thread(core: str) -> None:
    thread = int(core[1])
    tile = machine({core: f".ttinsn {tensix('SETDMAREG 0xbeef, 6'):#x}\nend: j end"}, 10)
    assert [int(tile.gpr[i, 3]) for i in range(3)] == [0xBEEF if i == thread else 0 for i in range(3)]


@pytest.mark.parametrize("code", [0x02000000, 0x3FFFFFFF, 0x40000001, 0x80000002, 0xBFFFFFFD])
def test_every_bit_of_the_word_arrives(code: int) -> None:
    tile = _stalled(f".ttinsn {NOP}\n.ttinsn {code:#x}\nebreak")
    tile.clock(5)
    assert _queued(tile, 1) == [NOP, code]


def test_it_is_a_store_to_the_instruction_window() -> None:
    tile = _stalled(f"li a0, 0xffe40000\nli a1, {NOP}\nli a2, 0x45000001\nsw a1, 0(a0)\nsw a2, 0x7fc(a0)\nebreak", "T2")
    tile.clock(20)
    assert _queued(tile, 2) == [NOP, 0x45000001]


def test_four_neighbours_go_in_one_round() -> None:
    tile = _stalled("\n".join([f".ttinsn {NOP}"] * 6 + ["ebreak"]))
    view = tile.cores["T1"]
    tile.clock(1)
    assert (view.retired, view.pc) == (4, 0xA000 + 16)
    tile.clock(1)
    assert (view.retired, view.pc) == (6, 0xA000 + 24)
    assert _queued(tile, 1) == [NOP] * 6


def test_fusing_stops_at_other_instructions() -> None:
    tile = _stalled(f".ttinsn {NOP}\n.ttinsn {NOP}\nnop\n.ttinsn {NOP}\nebreak")
    view = tile.cores["T1"]
    retired = []
    for _ in range(4):
        tile.clock(1)
        retired.append(view.retired)
    assert retired == [2, 3, 4, 5]


def test_cfg0_switches_fusing_off() -> None:
    tile = _stalled("\n".join([f"li a0, {NO_FUSING}", "csrrs zero, 0x7c0, a0"] + [f".ttinsn {NOP}"] * 6 + ["ebreak"]))
    view = tile.cores["T1"]
    tile.clock(2)
    for n in range(1, 7):
        tile.clock(1)
        assert view.retired == 2 + n


def test_core_b_does_not_fuse() -> None:
    tile = _stalled("\n".join([f".ttinsn {NOP}"] * 6 + ["ebreak"]), "B")
    tile.clock(1)
    assert tile.cores["B"].retired == 1


@pytest.mark.parametrize("fusing", [False, True])
def test_a_full_fifo_holds_the_core_and_loses_nothing(fusing: bool) -> None:
    prologue = "nop" if fusing else f"li a0, {NO_FUSING}\ncsrrs zero, 0x7c0, a0"
    values = list(range(0x45000000, 0x45000050))
    tile = _stalled("\n".join([prologue, f".ttinsn {NOP}"] + [f".ttinsn {v}" for v in values] + ["ebreak"]))
    tile.clock(200)
    view = tile.cores["T1"]
    assert view.state == "blocked"
    queued = _queued(tile, 1)
    assert 29 <= len(queued) <= 33
    assert queued == [NOP, *values][: len(queued)]
    assert view.pc == 0xA000 + 4 * (len(queued) + (1 if fusing else 2))
    tile.record.src_owner[0] = 1  # SrcA is valid: the wait ends
    tile.clock(400)
    assert view.halt_reason == "ebreak"
    assert int(tile.record.issued[1, 0x45]) == len(values)


def test_core_b_pushes_to_thread_0_behind_the_mop_expander() -> None:
    tile = machine(f".ttinsn {tensix('SETDMAREG 0x77, 8'):#x}\nend: j end", 20)
    assert int(tile.gpr[0, 4]) == 0x77
    with pytest.raises(UndefinedBehavior, match="MOP") as refusal:
        machine("nop\n.ttinsn 0x01000000", 10)
    assert (refusal.value.core, refusal.value.pc) == (0, 4)


def test_core_nc_has_no_way_to_the_coprocessor() -> None:
    with pytest.raises(UndefinedBehavior, match="NC") as refusal:
        machine({"NC": f".ttinsn {NOP}"}, 10)
    assert (refusal.value.core, refusal.value.pc) == (4, 0x12000)


def test_with_open_choices_nc_stands_still_and_the_others_go_on() -> None:
    """It is a store to nowhere, which may block a core forever (T24, T25): until it is reset."""
    programs = {"NC": f"li a0, 1\n.ttinsn {NOP}\nli a0, 2\nebreak", "B": "li a0, 3\nnop\nnop\nnop\nli a0, 4\nebreak"}
    tile = machine(programs, 10, tile=Tile(allow_open=True))
    view = tile.cores["NC"]
    assert (view.state, view.pc, view.x[10]) == ("halted", 0x12004, 1)
    assert tile.cores["B"].x[10] == 4
    assert all(_queued(tile, thread) == [] for thread in range(3))
    hold(tile, "NC")
    put(tile, START["NC"], assemble("li a0, 5\nebreak", START["NC"]))
    release(tile, "NC")
    tile.clock(5)
    assert tile.cores["NC"].x[10] == 5


def test_a_refused_word_names_the_core_and_line_that_pushed_it() -> None:
    with pytest.raises(UndefinedBehavior, match=r"pushed by core T1 at 0x0a004"):
        machine({"T1": f"nop\n.ttinsn {tensix('SFPMULI 1, 0, 4'):#x}\nend: j end"}, 20)
