"""What waits in the queues of a thread, as the debugger shows it (machine/frontend_state.py)."""

from __future__ import annotations

import pytest

from bhemu.api.tile import Tile
from bhemu.isa.assembler import assemble as tensix
from bhemu.machine.frontend_state import queued
from bhemu.machine.origin import line_of_pc
from tests.riscv.rv_machine import START, machine


@pytest.mark.parametrize(("simulator_order", "queue"), [(0, "fifo"), (1, "ready")])
def test_a_queue_shows_words_and_where_they_were_pushed(simulator_order: int, queue: str) -> None:
    """MVMUL waits at the gate for SrcA, which is never filled, and what follows behind it."""
    words = ["STALLWAIT 64, 128", "MVMUL 0, 0, 0, 0", "SETDMAREG 0, 9, 0, 6", "SETDMAREG 0, 8, 0, 8"]
    text = "\n".join(f".ttinsn {tensix(word):#x}" for word in words) + "\nend: j end"
    tile = Tile()
    tile.record.simulator_order = simulator_order
    machine({"T1": text}, clocks=100, tile=tile)
    frontend = tile.record.frontend
    head, count = int(frontend[f"{queue}_head"][1]), int(frontend[f"{queue}_count"][1])
    assert count >= 2
    last = queued(frontend, queue, 1, head + count - 1)
    assert last == (tensix(words[-1]), line_of_pc(START["T1"] + 4 * (len(words) - 1)))
    assert queued(frontend, queue, 1, head + count - 2)[0] == tensix(words[-2])
