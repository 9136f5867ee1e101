"""When an instruction was refused, whatever the calls that let clocks pass."""

from __future__ import annotations

import pytest

from bhemu.errors import BhemuError
from bhemu.isa.assembler import assemble as tensix
from tests.chip.noc_programs import DATA, READ, Board, at, request

PLACE = (1, 2)
WAIT = "li a4, 10\nwait: addi a4, a4, -1\nbnez a4, wait\n"
PUSH = "li a0, 0xffe40000\nli a1, {word:#x}\nsw a1, 0(a0)\n"
PROGRAMS = {
    "core": WAIT + "li a0, 0x180000\nlw a1, 0(a0)\n",
    "noc": WAIT + request(ctrl=READ, target=DATA, target_hi=at(*PLACE), back=DATA + 4, back_hi=at(*PLACE), length=4),
    "noc away": WAIT + request(ctrl=READ, target=DATA, target_hi=at(7, 7), back=DATA + 4, back_hi=at(*PLACE), length=4),
    "word": WAIT + PUSH.format(word=tensix("NOP") | 1),
    "no instruction": WAIT + PUSH.format(word=0xFF000000),
    "command": WAIT + "li a0, 0xffb20040\nli a1, 2\nsw a1, 0(a0)\n",
}


def refused_at(program: str, step: int, quantum: int, *, company: bool) -> int:
    """Time of the chip at the refusal."""
    programs = {PLACE: PROGRAMS[program]}
    if company:
        programs |= {(x, 2): "more: addi t2, t2, 1\nj more\n" for x in (2, 3)}
    board = Board(programs, quantum=quantum)
    board.start(*programs)

    def run() -> None:
        for _ in range(400 // step):
            board.chip.clock(step)

    with pytest.raises(BhemuError):
        run()
    return board.chip.time


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_time_of_a_refusal_is_that_of_its_clock(program: str) -> None:
    times = {
        refused_at(program, step, quantum, company=company)
        for step, quantum, company in (
            (1, 1, False),
            (7, 1, False),
            (400, 1, False),
            (400, 1, True),
            (400, 1024, True),
            (50, 1024, True),
        )
    }
    assert len(times) == 1
    assert 20 < times.pop() < 80
