"""Tiles of a chip are recorded through the same clock, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu import Tile
from bhemu.chip.coordinates import tensix_index
from bhemu.recording import CoreRecorder
from bhemu.recording import core_recorder as host
from bhemu.recording.core_log import CoreLog
from bhemu.tile.cores import Cores
from tests.chip.noc_programs import Board
from tests.chip.test_noc_order import FIRST, FLAG, MIDDLE, note_time, ping_pong, signal, wait_for
from tests.chip.test_run_ahead import count_down
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import machine

pytestmark = pytest.mark.plain

CLOCKS = 700
END = "\nend: j end\n"
PUSHES = 5 * ".ttinsn 0x02000000\n"
Place = tuple[int, int]


class TileOf:
    """A tile of a board."""

    def __init__(self, board: Board, place: Place) -> None:
        self._board = board
        self._index = tensix_index(place)

    @property
    def cores(self) -> Cores:
        """Its cores, at the time that it is."""
        return self._board.chip.touch(self._index)


def recorded(board: Board, place: Place) -> CoreRecorder:
    """A recorder that looks at a tile of the board from now on."""
    recorder = CoreRecorder()
    recorder.attach(TileOf(board, place))
    return recorder


def answers() -> dict[Place, str]:
    """Two tiles push words, are busy for different times, and signal each other twice."""
    texts = ping_pong(FIRST, MIDDLE, 2)
    return {place: PUSHES + count_down(20 * n, "busy") + texts[place] for n, place in enumerate(texts, 1)}


def outcome(*looked_at: Place, quantum: int) -> list[bytes]:
    """Every bit of both tiles after a run, and the clock."""
    programs = answers()
    board = Board(programs, quantum=quantum)
    for place in looked_at:
        recorded(board, place)
    board.start(*programs)
    board.chip.clock(CLOCKS)
    return [board.chip.tiles[tensix_index(place)].tobytes() for place in programs] + [bytes([board.chip.time % 251])]


@pytest.mark.parametrize("quantum", [1, 1024])
def test_a_chip_computes_the_same_bits_in_the_same_clocks_whichever_of_its_tiles_are_recorded(quantum: int) -> None:
    plain = outcome(quantum=quantum)
    assert outcome(MIDDLE, quantum=quantum) == plain
    assert outcome(FIRST, MIDDLE, quantum=quantum) == plain


def test_a_buffer_that_fills_up_on_a_chip_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = outcome(quantum=1024)
    monkeypatch.setattr(host.column, "ROWS", 3 * host.column.SPARE)
    assert outcome(FIRST, MIDDLE, quantum=1024) == plain


def lone(text: str, flag_at: int) -> tuple[CoreLog, Tile]:
    """The program on a tile alone; the host sets the flag after so many clocks."""
    tile = Tile()
    recorder = CoreRecorder()
    recorder.attach(tile)
    machine(assemble(text, 0), flag_at, tile=tile)
    tile.record.l1_u32[FLAG // 4] = 1
    tile.clock(CLOCKS - flag_at)
    return recorder.log(), tile


@pytest.mark.parametrize("quantum", [1, 1024])
def test_rows_of_a_tile_of_a_chip_are_those_of_a_tile_alone(quantum: int) -> None:
    text = PUSHES + wait_for(FLAG, 1) + PUSHES + count_down(20, "after") + note_time(FLAG + 4) + END
    board = Board({FIRST: count_down(30, "before") + signal(FIRST, MIDDLE, FLAG)}, quantum=quantum)
    code = np.frombuffer(assemble(text, 0), np.uint8)
    board.l1(MIDDLE)[: len(code)] = code
    recorder = recorded(board, MIDDLE)
    board.start(FIRST, MIDDLE)
    signalled = 0
    while not board.word(MIDDLE, FLAG):
        board.chip.clock(1)
        signalled += 1
    board.chip.clock(CLOCKS - signalled)
    found = recorder.log()
    expected, tile = lone(text, signalled - 1)
    assert board.word(MIDDLE, FLAG + 4) == tile.record.l1_u32[FLAG // 4 + 1] > signalled
    assert len(found.rows) > 60
    assert np.array_equal(found.rows, expected.rows)
    assert np.array_equal(found.tensix.rows, expected.tensix.rows)
    assert np.array_equal(found.executed, expected.executed)
    assert found.polls == expected.polls
    assert found.clocks == CLOCKS == expected.clocks
    rounds = np.unique(found.rows[:, 0])
    assert np.array_equal(found.clock_of(rounds), expected.clock_of(rounds))
