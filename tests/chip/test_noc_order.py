"""Tiles that talk to each other, and the order in which they move (tile T34, N26)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from types import SimpleNamespace

import numpy as np
import pytest

from bhemu.chip.coordinates import NODES, tensix_index
from bhemu.errors import UndefinedBehavior
from bhemu.isa.assembler import assemble as tensix
from tests.chip.noc_programs import (
    ALL_HELD,
    ATOMIC,
    DATA,
    INCREMENT,
    INLINE,
    MULTICAST,
    READ,
    SOFT_RESET,
    WRITE,
    Board,
    DramChannel,
    at,
    rectangle,
    request,
)
from tests.riscv.rv_asm import assemble
from tests.tile.debug_client import (
    ARGUMENT_0,
    CNTL_0,
    CNTL_1,
    COMMAND,
    DEBUG_MODE,
    READ_MEMORY,
    RESULT,
    WHICH,
    DebugClient,
)

pytestmark = pytest.mark.plain

FLAG, BACK, SUM = DATA + 0x100, DATA + 0x200, DATA + 0x300
WALL_CLOCK = 0xFFB121F0
MAILBOX_OF_B = 0xFFEC0000
"""Where a T core loads what B has sent; B stores at the next window to send to T0."""
FIRST, LAST, MIDDLE = (1, 2), (16, 11), (7, 6)


_labels = itertools.count()


def wait_for(address: int, value: int) -> str:
    """Poll a word of the own L1 until it has a value."""
    label = f"wait{next(_labels)}"
    return f"li a1, {address:#x}\nli a2, {value}\n{label}: lw a3, 0(a1)\nbne a3, a2, {label}\n"


def note_time(address: int) -> str:
    """Write the wall clock to L1."""
    return f"li a1, {WALL_CLOCK:#x}\nlw a2, 0(a1)\nli a1, {address:#x}\nsw a2, 0(a1)\n"


def signal(me: tuple[int, int], other: tuple[int, int], address: int, noc: int = 0) -> str:
    """Add 1 to a word of another tile's L1."""
    code = INCREMENT | (address >> 2 & 3)
    ends = {"target": address, "target_hi": at(*other), "back": BACK, "back_hi": at(*me)}
    return request(noc=noc, ctrl=ATOMIC, **ends, length=code, data=1)


def ping_pong(one: tuple[int, int], other: tuple[int, int], rounds: int) -> dict[tuple[int, int], str]:
    """Programs of two tiles that answer each other; both note when they see each signal."""
    first, second = "", ""
    for n in range(1, rounds + 1):
        first += signal(one, other, FLAG) + wait_for(FLAG, n) + note_time(SUM + 4 * n)
        second += wait_for(FLAG, n) + note_time(SUM + 4 * n) + signal(other, one, FLAG, noc=1)
    return {one: first, other: second}


def states(board: Board, places: Mapping[tuple[int, int], str]) -> list[object]:
    """What tiles hold that a program could tell apart."""
    found: list[object] = []
    for place in places:
        index = tensix_index(place)
        core = board.chip.cores(index)["B"]
        record = board.chip.tiles[index]
        found += [core.pc, core.retired, core.x.tolist(), core.state, int(record.clock)]
        found += [record.niu_counter.tolist(), board.l1(place)[:0x30000].tobytes()]
    return found


def split(board: Board, clocks: int, pieces: str) -> None:
    """Let clocks pass at once, one by one, or in pieces of many sizes."""
    source = random.Random(pieces)
    while clocks:
        n = {"all": clocks, "ones": 1}.get(pieces) or min(clocks, source.choice((1, 2, 3, 7, 30, 100)))
        board.chip.clock(n)
        clocks -= n


def outcome(programs: Mapping[tuple[int, int], str], clocks: int, pieces: str, *, started: int = 2) -> list[object]:
    """States after a run."""
    board = Board(programs)
    board.start(*list(programs)[:started])
    split(board, clocks, pieces)
    return states(board, programs)


@pytest.mark.parametrize("places", [(FIRST, LAST), (LAST, FIRST)])
def test_a_handshake_takes_the_same_clocks_however_they_are_split(places: tuple[tuple[int, int], ...]) -> None:
    programs = ping_pong(*places, rounds=4)
    whole = outcome(programs, 700, "all")
    assert whole[3] == whole[10] == "running" or "polling" in (whole[3], whole[10])
    for pieces in ("ones", "a", "b"):
        assert outcome(programs, 700, pieces) == whole, pieces
    board = Board(programs)
    board.start(*programs)
    board.chip.clock(700)
    for place in programs:
        times = [board.word(place, SUM + 4 * n) for n in range(1, 5)]
        assert 0 < times[0] < times[1] < times[2] < times[3] < 700


@pytest.mark.rule("tile T34")
@pytest.mark.parametrize("pause", ["", "nop"])
@pytest.mark.parametrize(("sender", "late"), [(FIRST, 0), (LAST, 1)])
def test_a_later_tile_sees_a_change_in_the_same_clock_an_earlier_one_in_the_next(
    sender: tuple[int, int], late: int, pause: str
) -> None:
    """The receiver reads a register in every other clock; with one `nop` more, in the clocks between."""
    receiver = LAST if sender == FIRST else FIRST
    send = request(ctrl=INLINE, target=0xFFB40010, target_hi=at(*receiver), data=5)
    begin = f"li a0, 0xffb40010\nli a1, {DATA:#x}\n{pause}\n"
    loads = "".join(f"lw a{2 + n % 6}, 0(a0)\nsw a{2 + n % 6}, {4 * n}(a1)\n" for n in range(60))
    board = Board({sender: send, receiver: begin + loads})
    board.start(sender, receiver)
    index = tensix_index(sender)
    clock = 0
    while board.chip.tiles["niu_counter"][index, 0, 4] == 0:
        board.chip.clock(1)
        clock += 1
    board.chip.clock(200)
    first = len(assemble(begin)) // 4 + 1  # clock of the first load: one instruction a clock, the first is clock 1
    assert first < clock < first + 100
    seen = [bool(board.word(receiver, DATA + 4 * n)) for n in range(60)]
    assert seen == [first + 2 * n >= clock + late for n in range(60)]


def test_the_only_active_tile_stops_running_ahead_when_it_wakes_another() -> None:
    """One tile releases another from reset and later reads what that has counted: neither may be ahead."""
    release = request(ctrl=INLINE, target=0xFFB121B0, target_hi=at(*MIDDLE), data=0x47000)
    read = request(ctrl=READ, target=DATA, target_hi=at(*MIDDLE), back=SUM, back_hi=0, length=4)
    count = f"li t1, {DATA:#x}\nagain: addi t2, t2, 1\nsw t2, 0(t1)\nj again\n"
    for place in (FIRST, LAST):
        reader = read.replace(f"li t0, 0x0\nsw t0, {0x14}(a0)", f"li t0, {at(*place):#x}\nsw t0, {0x14}(a0)")
        pause = "li a4, 30\nhold: addi a4, a4, -1\nbnez a4, hold\n"
        programs = {place: pause + release + reader, MIDDLE: count}
        whole = outcome(programs, 400, "all", started=1)
        assert outcome(programs, 400, "ones", started=1) == whole
        assert outcome(programs, 400, "c", started=1) == whole
        board = Board(programs)
        board.start(place)
        board.chip.clock(400)
        assert 3 < board.word(place, SUM) < 40
        assert board.word(MIDDLE, DATA) > 50


@pytest.mark.parametrize("noc", [0, 1])
def test_increments_of_several_tiles_add_up(noc: int) -> None:
    """Seven tiles count to 10 in the L1 of an eighth, which waits for all of them and then tells them so."""
    collector = MIDDLE
    counters = [(x, y) for x in (2, 3, 10) for y in (3, 4)] + [(16, 11)]
    programs = {place: signal(place, collector, SUM + 4, noc) * 10 + wait_for(FLAG, 1) for place in counters}
    corners = ((16, 11), (1, 2)) if noc else ((1, 2), (16, 11))
    all_done = request(
        noc=noc,
        ctrl=WRITE | MULTICAST,
        target=DATA,
        target_hi=at(*collector),
        back=FLAG,
        back_hi=rectangle(*corners),
        length=4,
    )
    programs[collector] = wait_for(SUM + 4, 70) + f"li a4, 1\nli a5, {DATA:#x}\nsw a4, 0(a5)\n" + all_done
    board = Board(programs)
    board.start(*programs)
    board.chip.clock(600)
    assert board.word(collector, SUM + 4) == 70
    assert [board.word(place, FLAG) for place in counters] == [1] * 7
    old = sorted(board.word(place, BACK) for place in counters)
    assert len(set(old)) == 7
    assert old[-1] == 69
    assert board.counters(collector, noc)[54] == 70
    assert board.counters(collector, noc)[1] == 139


def test_a_poller_sees_what_the_host_and_other_tiles_write() -> None:
    board = Board({FIRST: wait_for(FLAG, 1) + signal(FIRST, LAST, FLAG), LAST: wait_for(FLAG, 1) + note_time(SUM)})
    board.start(FIRST, LAST)
    board.chip.clock(1000)
    assert board.chip.cores(0)["B"].state == board.chip.cores(139)["B"].state == "polling"
    board.chip.clock(100_000)
    board.chip.write_node(NODES[FIRST], FLAG, (1).to_bytes(4, "little"))
    board.chip.clock(200)
    assert 101_000 < board.word(LAST, SUM) < 101_100


def test_a_store_that_must_wait_goes_on_in_the_clock_in_which_it_can() -> None:
    """Through the debug interface of another tile a paused core loads from its mailbox, which is empty at first."""
    command = request(ctrl=INLINE, target=CNTL_0, target_hi=at(*LAST), data=0x80010000 | WHICH["T0"] << 17 | COMMAND)
    board = Board({FIRST: command + note_time(SUM)})
    board.chip.write_node(NODES[LAST], 0x6000, assemble("end: j end\n", 0x6000))
    board.chip.write_node(NODES[LAST], SOFT_RESET, (ALL_HELD & ~(1 << 12)).to_bytes(4, "little"))
    cores = board.chip.cores(tensix_index(LAST))
    debugger = DebugClient(SimpleNamespace(cores=cores), "T0")  # type: ignore[arg-type]
    debugger.halt()
    debugger.write(ARGUMENT_0, MAILBOX_OF_B)
    cores.store(CNTL_1, DEBUG_MODE | READ_MEMORY)
    board.start(FIRST)
    board.chip.clock(120)
    assert board.chip.cores(0)["B"].state == "blocked"
    assert board.counters(FIRST) == {}
    board.chip.clock(30)
    cores.store(MAILBOX_OF_B + 0x1000, 0x1234, agent=0)
    board.chip.clock(50)
    cores.store(CNTL_0, 0)
    assert debugger.read(RESULT) == 0x1234
    assert 150 < board.word(FIRST, SUM) < 160
    assert board.counters(FIRST)[10] == 1


def test_two_tiles_share_a_word_of_dram_under_a_lock() -> None:
    """A lock in the L1 of one tile (compare and swap); each adds to a word of DRAM by read, change, write."""
    place = at(17, 15)

    def program(me: tuple[int, int], turns: int) -> str:
        swap = 0x4000 | 1 << 6  # 0 becomes 1
        ends = {"target": SUM, "target_hi": at(*MIDDLE), "back": BACK, "back_hi": at(*me)}
        lock_word = {"noc": 1, "initiator": 3, "ctrl": ATOMIC, **ends}
        text = ""
        for n in range(turns):
            lock = f"{'f' if me == FIRST else 'l'}{n}"
            text += f"{lock}:\n"
            text += request(**lock_word, length=swap)
            text += f"li a1, {BACK:#x}\nlw a2, 0(a1)\nbnez a2, {lock}\n"
            text += request(ctrl=READ, target=0x40, target_hi=place, back=DATA, back_hi=at(*me), length=16)
            text += f"li a1, {DATA:#x}\nlw a2, 0(a1)\naddi a2, a2, 1\nsw a2, 0(a1)\n"
            text += request(ctrl=WRITE, target=DATA, target_hi=at(*me), back=0x40, back_hi=place, length=16)
            text += request(**lock_word, length=0x7000, data=0)
        return text

    programs = {FIRST: program(FIRST, 6), LAST: program(LAST, 6)}
    board = Board(programs)
    board.start(*programs)
    board.chip.clock(4000)
    node = board.chip.node((17, 15))
    assert DramChannel(board.chip, node.index).read(0x40, 4) == (12).to_bytes(4, "little")
    assert board.word(MIDDLE, SUM) == 0
    whole = outcome(programs, 1500, "all")
    assert outcome(programs, 1500, "d") == whole


def test_each_tile_moves_without_the_others() -> None:
    """Programs that do not talk end as they do alone."""
    count = f"li t1, {DATA:#x}\nmore: addi t2, t2, 3\nsw t2, 0(t1)\nj more\n"
    both = Board({FIRST: count, LAST: count})
    both.start(FIRST, LAST)
    both.chip.clock(123)
    alone = Board({LAST: count})
    alone.start(LAST)
    alone.chip.clock(123)
    assert np.array_equal(both.l1(LAST), alone.l1(LAST))
    assert both.word(FIRST, DATA) == alone.word(LAST, DATA) > 90


def test_others_go_on_after_a_refusal() -> None:
    """The tile at fault stops; no clock of the others is lost or made twice."""
    bad = request(ctrl=WRITE, target=DATA, target_hi=at(*MIDDLE), back=DATA, back_hi=at(*FIRST), length=0)
    count = f"li t1, {DATA:#x}\nmore: addi t2, t2, 1\nsw t2, 0(t1)\nj more\n"
    board = Board({FIRST: count, MIDDLE: bad, LAST: count})
    board.start(FIRST, MIDDLE, LAST)
    with pytest.raises(UndefinedBehavior, match="no bytes") as raised:
        board.chip.clock(300)
    assert raised.value.tile == MIDDLE
    assert 0 < board.chip.time < 300
    board.chip.clock(300 - board.chip.time)
    alone = Board({FIRST: count})
    alone.start(FIRST)
    alone.chip.clock(300)
    assert board.word(FIRST, DATA) == board.word(LAST, DATA) == alone.word(FIRST, DATA)


@pytest.mark.parametrize("places", [(FIRST, LAST), (LAST, FIRST)])
def test_the_coprocessor_starts_a_request(places: tuple[tuple[int, int], ...]) -> None:
    """STOREREG reaches CMD_CTRL; words before it are executed in rounds that take no time."""
    me, other = places
    start = "li t0, 1\nsw t0, 0x40(a0)\n"
    fields = request(ctrl=WRITE, target=FLAG, target_hi=at(*me), back=FLAG, back_hi=at(*other), length=4)
    assert fields.endswith(start)
    words = ["SETDMAREG 1, 24", "SETDMAREG 0, 25", "NOP", "NOP", f"STOREREG 12, {0x20040 >> 2:#x}", "NOP"]
    sender = fields.removesuffix(start) + f"li a1, {FLAG:#x}\nli t0, 7\nsw t0, 0(a1)\n"
    sender += "".join(f".ttinsn {tensix(word):#x}\n" for word in words)
    sender += f"li a1, {DATA:#x}\nmore: addi t2, t2, 1\nsw t2, 0(a1)\nj more\n"
    programs = {me: sender, other: wait_for(FLAG, 7) + note_time(SUM)}
    for started in (1, 2):  # the receiver is in reset, or polls
        whole = outcome(programs, 300, "all", started=started)
        for pieces in ("ones", "a"):
            assert outcome(programs, 300, pieces, started=started) == whole
    board = Board(programs)
    board.start(*places)
    board.chip.clock(300)
    assert board.word(other, FLAG) == 7
    assert 30 < board.word(other, SUM) < 100
    assert board.counters(me)[10] == 1


def test_a_thread_that_waits_for_a_word_of_l1_sees_what_another_tile_writes() -> None:
    """ATCAS waits at the gate; no core of its tile is running."""
    wait = tensix("ATCAS SwapVal=3, CmpVal=1, AddrRegIndex=0")
    push = f"li a0, 0xffe40000\nli a1, {wait:#x}\nsw a1, 0(a0)\nebreak\n"
    send = request(ctrl=WRITE, target=DATA, target_hi=at(*FIRST), back=0, back_hi=at(*LAST), length=16)
    board = Board({FIRST: f"li a0, {DATA:#x}\nli a1, 1\nsw a1, 0(a0)\n" + send, LAST: push})
    board.start(LAST)
    board.chip.clock(100)
    index = tensix_index(LAST)
    assert board.chip.cores(index)["B"].state == "halted"
    board.chip.clock(100)
    assert board.chip.tiles["issued"][index].sum() == 0
    board.start(FIRST)
    board.chip.clock(100)
    assert board.chip.tiles["issued"][index].sum() == 1
    assert board.word(LAST, 0) == 3
