"""A program as code of the three T cores, one taking up where another has ended, and as writes through PCI windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import NODES, SIMULATOR, Kind, translation
from bhemu.compare.calls import Call
from bhemu.compare.places import aim
from bhemu.fuzz.machine import PAGE, Array, Program
from bhemu.isa.memory_map import region
from bhemu.isa.riscv import RISCV_BY_NAME
from bhemu.isa.riscv_words import PARKED, riscv_word, set_register
from bhemu.isa.tile_registers import address_of
from bhemu.loader.boot import ALL_HELD, SOFT_RESET, start_stores
from bhemu.machine.agents import T0
from bhemu.machine.state import L1_SIZE

CODE: Final = (0x4000, 0xC000, 0x14000)
"""Where the code of each T core is."""
CODE_END: Final = 0x1C000
TURN: Final = 0x5F000
"""The word that says whose turn it is."""
GPRS: Final = 0x60000
"""Where each core leaves the GPRs of its thread."""
OWN_PAGES: Final = frozenset({TURN // PAGE, GPRS // PAGE, *range(CODE[0] // PAGE, CODE_END // PAGE)})
"""Pages that the code of the cores uses: what a program writes there is not compared."""
RISCV_CLOCKS: Final = 400
"""For what the cores do besides feeding their threads."""
_IDLE: Final = address_of("sync", "COPROCESSOR_DONE")
_GPR_WINDOW: Final = region("gpr").base
_GPR_COUNT: Final = 64
_T0, _T1, _T2, _A0, _A1 = 5, 6, 7, 10, 11
_REGISTERS: Final = SOFT_RESET & ~0x1F_FFFF
_MEMORY_WINDOW, _REGISTER_WINDOW = 1, 2


def turns(items: Array) -> list[tuple[int, int, int]]:
    """Words of one thread that follow each other: the thread, and where they begin and end."""
    if len(items) == 0:
        return []
    threads = items >> 32
    cuts = [0, *(np.flatnonzero(np.diff(threads)) + 1).tolist(), len(items)]
    return [
        (thread, low, high) for thread, (low, high) in zip(threads[cuts[:-1]].tolist(), pairwise(cuts), strict=True)
    ]


def _bytes(lines: list[int]) -> bytes:
    return b"".join(line.to_bytes(4, "little") for line in lines)


@cache
def _before(turn: int) -> bytes:
    """Wait until it is the core's turn."""
    return _bytes([*set_register(_T1, turn), riscv_word("lw", _T2, _T0), riscv_word("bne", rs1=_T2, rs2=_T1, imm=-4)])


@cache
def _behind(thread: int, *, last: bool) -> bytes:
    """Wait until the thread is idle, after its last words show its GPRs, and let the next core take its turn."""
    lines = [*set_register(_A0, _IDLE), riscv_word("lw", _T2, _A0), RISCV_BY_NAME["fence"].match | 0x0FF00000]
    if last:
        lines += [*set_register(_A0, _GPR_WINDOW), *set_register(_A1, GPRS + 4 * _GPR_COUNT * thread)]
        for gpr in range(_GPR_COUNT):
            lines += [riscv_word("lw", _T2, _A0, imm=4 * gpr), riscv_word("sw", rs1=_A1, rs2=_T2, imm=4 * gpr)]
    return _bytes([*lines, riscv_word("addi", _T1, _T1, imm=1), riscv_word("sw", rs1=_T0, rs2=_T1)])


@lru_cache(maxsize=256)
def code(program: Program) -> tuple[list[tuple[int, bytes]], int]:
    """Code of the cores by address, and the value of the word at `TURN` when all have ended."""
    order = turns(program.items)
    last = {thread: number for number, (thread, _, _) in enumerate(order)}
    found = {thread: [_bytes(set_register(_T0, TURN))] for thread in last}
    words = program.items & 0xFFFFFFFF
    ttinsn = (words << 2 & 0xFFFFFFFF | words >> 30).astype("<u4").tobytes()  # as `to_ttinsn`
    for number, (thread, low, high) in enumerate(order):
        found[thread] += [_before(number), ttinsn[4 * low : 4 * high], _behind(thread, last=last[thread] == number)]
    return [(CODE[thread], b"".join([*parts, _bytes([PARKED])])) for thread, parts in found.items()], len(order)


def entries(program: Program) -> dict[int, int]:
    """Where the cores start that have code, by their numbers."""
    return {T0 + CODE.index(address): address for address, _ in code(program)[0]}


def fits(program: Program) -> bool:
    """The code of no core runs into the next one's."""
    return all(len(content) <= CODE[1] - CODE[0] for _, content in code(program)[0])


def image(program: Program) -> tuple[tuple[int, bytes], ...]:
    """All that L1 holds at the start."""
    return (*program.data, *code(program)[0])


def memory(pieces: Iterable[tuple[int, bytes]]) -> Array:
    """uint8 [1572864]: L1 that holds these (address, bytes), and zeros."""
    content = np.zeros(L1_SIZE, np.uint8)
    for address, piece in pieces:
        content[address : address + len(piece)] = np.frombuffer(piece, np.uint8)
    return content


TILES: Final = [place for place, node in sorted(translation(SIMULATOR).items()) if NODES[node].kind is Kind.TENSIX]
"""Tiles on which cases can run, one after the other, without a reset between them."""


def _writes(calls: list[Call]) -> list[tuple[int, bytes]]:
    return [(call.a, call.content) for call in calls]


def case(program: Program, tile: int, clocks: int, pieces: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """The arguments of `pack_case` for a program on one of the tiles."""
    setup, memory = aim(_MEMORY_WINDOW, TILES[tile], 0)
    more, registers = aim(_REGISTER_WINDOW, TILES[tile], _REGISTERS)
    parts, end = code(program)
    starts = start_stores(entries(program))
    writes = _writes(setup + more)
    writes += [(memory + address, content) for address, content in (*program.data, *parts)]
    writes += [(registers + address - _REGISTERS, value.to_bytes(4, "little")) for address, value in starts]
    return {
        "writes": writes,
        "mark": (memory + TURN, end),
        "clocks": clocks + RISCV_CLOCKS + 40 * end,
        "look": memory,
        "pieces": pieces,
        "after": (registers + SOFT_RESET - _REGISTERS, ALL_HELD.to_bytes(4, "little")),
    }
