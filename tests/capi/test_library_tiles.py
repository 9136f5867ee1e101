"""A tile takes memory when something accesses it for the first time (capi/simulator.c, chip/clock/tiles.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.chip.coordinates import NODES
from tests.capi.library_client import run_client
from tests.chip.noc_programs import (
    ATOMIC,
    B_RUNS,
    DATA,
    INCREMENT,
    INLINE,
    MULTICAST,
    READ,
    RESPONSE,
    SOFT_RESET,
    WRITE,
    Board,
    at,
    rectangle,
    request,
)
from tests.riscv.rv_asm import assemble

A, B = (1, 2), (5, 5)
NODE_ID = 0xFFB20044
COUNTERS = 0xFFB20200
"""Of NoC 0, 62 words: what the tile has sent and received."""
CLOCKS = 1200
PROGRAM = DATA + 0x100
"""Where A has a program that it writes to B."""


def test_tiles_that_are_not_used_take_no_memory(library: Path) -> None:
    """The page faults of a process are counted: a tile's record takes at least one."""
    ended = run_client(
        library,
        """
import resource
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
init()
print(faults() - before)
assert peek(5, 5, 0xFFB121B0) == struct.pack("<I", 0x47800)
""",
    )
    assert ended.status == 0, ended.out + ended.errors
    assert int(ended.out.splitlines()[0]) < 140


def to_b(kind: int, **fields: int) -> str:
    return request(ctrl=kind | RESPONSE, target_hi=at(*A), back_hi=at(*B), **fields)


def atomic(kind: int, target: int) -> str:
    return request(
        ctrl=kind | RESPONSE, target_hi=target, target=DATA, data=5, length=INCREMENT, back_hi=at(*A), back=8
    )


START_B = to_b(WRITE, target=PROGRAM, back=0, length=32) + request(
    ctrl=INLINE | RESPONSE, target=SOFT_RESET, target_hi=at(*B), data=B_RUNS
)


@pytest.mark.parametrize(
    "program",
    [
        to_b(WRITE, target=DATA, back=DATA, length=32),
        request(ctrl=READ, target=NODE_ID, target_hi=at(*B), back=DATA + 4, back_hi=at(*A), length=4),
        request(ctrl=READ, target=DATA, target_hi=at(*B), back=DATA, back_hi=at(*A), length=32),
        atomic(ATOMIC, at(*B)),
        atomic(ATOMIC | MULTICAST, rectangle((4, 5), (6, 5))),
        START_B,
    ],
    ids=["write", "read_register", "read", "atomic", "multicast", "start"],
)
def test_another_tile_may_be_the_first_to_access_it(library: Path, program: str) -> None:
    """The client looks at B afterwards: it finds what a chip in Python has, all tiles of which are made at once."""
    count = assemble("loop: addi t0, t0, 1\nsw t0, 0x400(x0)\nj loop\n", 0)
    data = bytes(range(32))
    board = Board({A: program})
    for address, content in ((DATA, data), (PROGRAM, count)):
        board.chip.write_node(NODES[A], address, content)
    board.start(A)
    board.chip.clock(CLOCKS)
    places = [A, B, (4, 5), (6, 5)]
    looked = [(DATA, 64), (0x400, 4), (SOFT_RESET, 4), (NODE_ID, 4), *((COUNTERS + 4 * i, 4) for i in range(62))]
    expected = [board.chip.read_node(NODES[place], *look).hex() for place in places for look in looked]
    code = assemble(program + "\nend: j end\n", 0)
    ended = run_client(
        library,
        f"""
import json
init()
for address, content in {[(0, code), (DATA, data), (PROGRAM, count)]}:
    poke(*{A}, address, content)
poke(*{A}, {SOFT_RESET}, struct.pack("<I", {B_RUNS}))
clock({CLOCKS})
print(json.dumps([peek(*place, *look).hex() for place in {places} for look in {looked}]))
""",
        BHEMU_PACE="exact",
        BHEMU_QUANTUM="1",
    )
    assert ended.status == 0, ended.out + ended.errors
    assert json.loads(ended.out.splitlines()[0]) == expected
