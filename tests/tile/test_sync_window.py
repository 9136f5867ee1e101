"""PCBufs, manual TTSync, semaphores (tile K16 to K21, T32; E14, E15)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.machine.agents import NC, NOC, T0, TENSIX, B
from bhemu.machine.core_state import BLOCKED
from bhemu.machine.state import state_field
from tests.riscv.rv_machine import SCRATCH, hold, machine, release, word, words

pytestmark = pytest.mark.plain

WINDOW = 0xFFE80000
COPROCESSOR_DONE, MOP_DONE, SEMAPHORES = WINDOW + 4, WINDOW + 8, WINDOW + 0x20
OVERRIDE = 0x090 // 4
END = "\nend: j end"
POST0, GET0 = encode("SEMPOST", sem_sel=1), encode("SEMGET", sem_sel=1)
WAIT0 = encode("SEMWAIT", stall_res=0x1FF, wait_sem_cond=1, sem_sel=1)
NO_FUSING = 1 << 18


def ready(*, fusing: bool = False) -> Tile:
    """A tile whose semaphores count up to 15; its T cores push one `.ttinsn` a round unless told otherwise (T11)."""
    tile = Tile()
    tile.record.sync.semaphore_max[:] = 15
    if not fusing:
        tile.record.core_cfg0[:] |= NO_FUSING
    return tile


@pytest.mark.rule("tile K16")
@pytest.mark.parametrize("thread", range(3))
def test_b_pushes_16_words_anywhere_and_the_t_core_pops_them(thread: int) -> None:
    tile = Tile()
    base = WINDOW + 0x10000 * thread
    for i in range(16):
        tile.cores.store(base + (0x1004 * i & 0xFFFC), 1000 + i, B)
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.store(base, 1, B)
    assert [tile.cores.load(WINDOW, T0 + thread) for _ in range(7)] == list(range(1000, 1007))
    for i in range(16, 23):
        tile.cores.store(base + 0xFFFC, 1000 + i, B)
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.store(base, 1, B)
    assert [tile.cores.load(WINDOW, T0 + thread) for _ in range(16)] == list(range(1007, 1023))
    for other in range(3):
        with pytest.raises(UndefinedBehavior, match="would block"):
            tile.cores.load(WINDOW, T0 + other)


@pytest.mark.rule("tile K16")
def test_a_pop_waits_for_a_word() -> None:
    take = f"li a0, {WINDOW:#x}\n li a1, {SCRATCH:#x}\n lw t0, 0(a0)\n sw t0, 0(a1)\n lw t0, 0(a0)\n sw t0, 4(a1)" + END
    wait = "li t0, 100\nturn: addi t0, t0, -1\n bnez t0, turn\n"
    give = f"li a0, {WINDOW + 0x20000:#x}\n {wait} li t1, 5\n sw t1, 0(a0)\n li t1, 6\n sw t1, 0x7f8(a0)" + END
    tile = machine({"T2": take, "B": give}, 150)
    assert tile.cores["T2"].state == "blocked"
    tile.clock(150)
    assert words(tile, 2) == [5, 6]


@pytest.mark.rule("tile K16")
def test_b_waits_until_the_t_core_waits_and_its_thread_is_done() -> None:
    """All three: the FIFO is empty, T0 waits in a pop, its thread has nothing in flight."""
    b = f"""
        li a0, {WINDOW:#x}
        li a1, {SCRATCH:#x}
        li t0, 11
        sw t0, 0(a0)
        lw t1, 0x40(a0)
        sw a0, 0(a1)
    end: j end
    """
    t0 = f"""
        li a0, {WINDOW:#x}
        li a1, {SCRATCH:#x}
        lw t0, 0(a0)
        sw t0, 4(a1)
        .ttinsn {WAIT0:#x}
        .ttinsn {GET0:#x}
        li t2, 50
    turn: addi t2, t2, -1
        bnez t2, turn
        lw t0, 0(a0)
        sw t0, 8(a1)
    end: j end
    """
    assert machine({"B": b}, 50).cores["B"].state == "blocked"  # T0 is in reset and does not pop
    tile = machine({"B": b, "T0": t0}, 400, tile=ready())
    assert word(tile, SCRATCH + 4) == 11
    assert tile.cores["T0"].state == tile.cores["B"].state == "blocked"  # the thread waits for semaphore 0
    tile.record.sync.semaphore[0] = 1
    tile.clock(20)
    assert word(tile) == WINDOW
    assert tile.cores["T0"].state == "blocked"
    assert word(tile, SCRATCH + 8) == 0


@pytest.mark.rule("tile K16")
def test_b_goes_on_when_the_t_core_begins_to_wait() -> None:
    """That T0 begins to wait is not a store of any agent, and B must still see it."""
    b = f"li a0, {WINDOW:#x}\n lw t1, 0(a0)\n li a1, {SCRATCH:#x}\n sw a0, 0(a1)" + END
    t0 = f"li a0, {WINDOW:#x}\n li t2, 50\nturn: addi t2, t2, -1\n bnez t2, turn\n lw t0, 0(a0)" + END
    tile = machine({"B": b, "T0": t0}, 95)
    assert tile.cores["B"].state == "blocked"
    tile.clock(30)
    assert word(tile) == WINDOW
    assert tile.cores["T0"].state == "blocked"


@pytest.mark.rule("tile K16")
def test_a_t_core_in_reset_waits_for_nothing() -> None:
    t0 = f"li a0, {WINDOW:#x}\n lw t0, 0(a0)" + END
    tile = machine({"T0": t0}, 20)
    assert tile.cores.load(WINDOW, B) == 0
    hold(tile, "T0")
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.load(WINDOW, B)


@pytest.mark.rule("tile T16")
def test_leaving_reset_empties_the_pcbuf() -> None:
    tile = Tile()
    for thread in range(3):
        tile.cores.store(WINDOW + 0x10000 * thread, 5, B)
    release(tile, "T1")
    assert list(tile.record.pcbuf_count) == [1, 0, 1]


@pytest.mark.rule("tile K16")
def test_the_stores_of_a_t_core_are_discarded() -> None:
    tile = Tile()
    tile.cores.store(WINDOW, 5, B)
    shared = (
        "pcbuf_word",
        "pcbuf_head",
        "pcbuf_count",
        "sync.semaphore",
        "frontend.fifo_count",
        "frontend.side_count",
        "mailbox_count",
    )
    before = {name: state_field(tile.record, name).tobytes() for name in shared}
    for address in (WINDOW, COPROCESSOR_DONE, MOP_DONE):
        tile.cores.store(address, 0xFFFFFFFF, T0)
    assert before == {name: state_field(tile.record, name).tobytes() for name in shared}


@pytest.mark.rule("tile K16")
@pytest.mark.parametrize("thread", range(3))
def test_the_override_gives_a_value_to_a_pop_of_an_empty_fifo(thread: int) -> None:
    tile = Tile()
    tile.record.control_word[OVERRIDE] = (0xA5 << 2 | 1) << 10 * thread
    assert tile.cores.load(WINDOW, T0 + thread) == 0xA5
    tile.cores.store(WINDOW + 0x10000 * thread, 7, B)
    assert [tile.cores.load(WINDOW, T0 + thread) for _ in range(2)] == [7, 0xA5]
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.load(WINDOW + 0x10000 * thread, B)  # the T core never waits now
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.load(WINDOW, T0 + (thread + 1) % 3)


@pytest.mark.rule("tile K16")
@pytest.mark.parametrize("thread", range(3))
def test_enable_and_busy_let_b_and_ttsync_pass(thread: int) -> None:
    tile = Tile()
    tile.coprocessor.push(thread, WAIT0)
    tile.coprocessor.push(thread, encode("MOP"))
    for bits, passes in ((1, False), (2, False), (3, True)):
        tile.record.control_word[OVERRIDE] = bits << 10 * thread
        for address, agent in (
            (WINDOW + 0x10000 * thread, B),
            (COPROCESSOR_DONE, T0 + thread),
            (MOP_DONE, T0 + thread),
        ):
            if passes:
                assert tile.cores.load(address, agent) == 0
            else:
                with pytest.raises(UndefinedBehavior, match="would block"):
                    tile.cores.load(address, agent)


# --- manual TTSync ----------------------------------------------------------------------------------------------------


def sync_program(words_pushed: list[int], address: int) -> str:
    pushes = "\n".join(f".ttinsn {w:#x}" for w in words_pushed)
    return f"""
        li a0, {address:#x}
        li a1, {SCRATCH:#x}
        {pushes}
        sw zero, 0(a0)
        lw t1, 0(a0)
        andi t1, t1, 0
        sw a0, 0(a1)
    end: j end
    """


@pytest.mark.rule("tile K18")
@pytest.mark.parametrize("core", ["T0", "T1", "T2"])
def test_a_load_waits_until_the_thread_has_nothing_in_flight(core: str) -> None:
    tile = machine({core: sync_program([WAIT0, GET0, *[encode("NOP")] * 20], COPROCESSOR_DONE)}, 100, tile=ready())
    assert tile.cores[core].state == "blocked"
    assert word(tile) == 0
    tile.record.sync.semaphore[0] = 1
    tile.clock(10)
    assert word(tile) == COPROCESSOR_DONE
    assert tile.record.issued[:, encode("NOP") >> 24].sum() == 20


@pytest.mark.rule("tile K18")
def test_a_latched_wait_with_nothing_behind_it_is_in_flight_until_its_condition_holds() -> None:
    tile = machine({"T1": sync_program([WAIT0], COPROCESSOR_DONE)}, 100, tile=ready())
    assert tile.cores["T1"].state == "blocked"
    tile.cores.store(SEMAPHORES, 0, T0)
    tile.clock(10)
    assert word(tile) == COPROCESSOR_DONE


@pytest.mark.rule("tile K18")
@pytest.mark.parametrize(
    "behind",
    [
        [encode("MOP_CFG", zmask_hi16=3)],
        [encode("MOP_CFG", zmask_hi16=3)] * 20,
        [encode("MOP", mop_type=1)],
        [encode("REPLAY", start_idx=0, len=2, load_mode=1), encode("NOP"), encode("NOP")],
    ],
)
def test_words_that_only_expanders_take_end_a_wait_too(behind: list[int]) -> None:
    """The last words only leave the queue and execute nothing; T0 must see it in the same call."""
    t1 = f"li a0, {SEMAPHORES:#x}\n li t2, 50\nturn: addi t2, t2, -1\n bnez t2, turn\n sw zero, 0(a0)" + END
    t0 = sync_program([WAIT0, encode("NOP"), *behind], COPROCESSOR_DONE)
    tile = machine({"T0": t0, "T1": t1}, 90, tile=ready())
    assert (tile.record.core_state[T0], word(tile)) == (BLOCKED, 0)
    tile = machine({"T0": t0, "T1": t1}, 200, tile=ready())
    assert word(tile) == COPROCESSOR_DONE


@pytest.mark.rule("tile K18")
def test_what_sfploadmacro_has_scheduled_is_in_flight() -> None:
    tile = Tile()
    tile.record.macro.pending = 1
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.load(COPROCESSOR_DONE, T0)


@pytest.mark.rule("tile K18")
def test_the_mop_check_does_not_wait_for_what_a_mop_became() -> None:
    """It waits for MOPs queued or being expanded; words behind it, and other threads, do not matter."""
    template = [0] * 9
    for i, value in {0: 2, 1: 1, 2: GET0, 3: POST0, 4: POST0, 5: GET0, 6: GET0, 7: GET0, 8: GET0}.items():
        template[i] = value
    tile = ready()
    tile.record.frontend.mop_config[0, :] = template
    tile.cores.load(MOP_DONE, T0)
    tile.coprocessor.push(0, WAIT0)
    tile.coprocessor.push(0, GET0)
    assert tile.cores.load(MOP_DONE, T0) == 0
    tile.coprocessor.push(0, encode("MOP", mop_type=1))
    assert tile.cores.load(MOP_DONE, T0 + 1) == 0
    with pytest.raises(UndefinedBehavior, match="would block"):  # queued
        tile.cores.load(MOP_DONE, T0)
    tile.record.sync.semaphore[0] = 1
    tile.coprocessor.run(100)
    assert tile.cores.load(MOP_DONE, T0) == 0


@pytest.mark.rule("tile K18")
def test_the_mop_check_waits_while_a_mop_is_being_expanded() -> None:
    tile = ready()
    tile.record.frontend.mop_config[0, :] = [3, 1, WAIT0, GET0, GET0, GET0, encode("NOP"), GET0, GET0]
    tile.record.frontend.mop_config[0, 6] = encode("NOP")
    tile.coprocessor.push(0, encode("MOP", mop_type=1))
    tile.coprocessor.run(10)
    assert tile.record.frontend.fifo_count[0] == 0
    with pytest.raises(UndefinedBehavior, match="would block"):
        tile.cores.load(MOP_DONE, T0)


# --- semaphores -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K20")
def test_loads_show_values_and_stores_get_or_post() -> None:
    tile = Tile()
    tile.record.sync.semaphore[:] = [0, 1, 2, 3, 12, 13, 14, 15]
    for core in (T0, T0 + 1, T0 + 2):
        assert [tile.cores.load(SEMAPHORES + 4 * s, core) for s in range(8)] == list(tile.record.sync.semaphore)
    for s in range(8):
        tile.cores.store(SEMAPHORES + 4 * s, 0xFFFFFFFE, T0 + s % 3)  # E15: bit 0 alone counts
    assert list(tile.record.sync.semaphore) == [1, 2, 3, 4, 13, 14, 15, 15]  # maximum 0 is not consulted
    for _ in range(2):
        for s in range(8):
            tile.cores.store(SEMAPHORES + 4 * s, 0x80000001, T0 + s % 3)
    assert list(tile.record.sync.semaphore) == [0, 0, 1, 2, 11, 12, 13, 13]


@pytest.mark.rule("tile K20")
def test_a_core_and_a_thread_meet_at_a_semaphore() -> None:
    program = f"""
        li a0, {SEMAPHORES:#x}
        li a1, {SCRATCH:#x}
        .ttinsn {WAIT0:#x}
        .ttinsn {GET0:#x}
        .ttinsn {encode("SEMPOST", sem_sel=4):#x}
        li t2, 30
    turn: addi t2, t2, -1
        bnez t2, turn
        lw t0, 8(a0)
        sw t0, 0(a1)
        sw zero, 0(a0)
    wait: lw t0, 8(a0)
        beqz t0, wait
        sw t0, 4(a1)
    end: j end
    """
    tile = machine({"T2": program}, 300, tile=ready())
    assert words(tile, 2) == [0, 1]
    assert tile.record.sync.semaphore[0] == 0


@pytest.mark.rule("tile K17", "tile T24")
@pytest.mark.parametrize("offset", [0xC, 0x10, 0x1C, 0x40, 0xFFFC, 0x10000, 0x2FFFC])
def test_a_t_core_has_nothing_else_in_its_window(offset: int) -> None:
    tile = Tile()
    for core, name in enumerate(("T0", "T1", "T2"), T0):
        with pytest.raises(UndefinedBehavior, match=f"core {name} accesses {WINDOW + offset:#x}"):
            tile.cores.load(WINDOW + offset, core)
        with pytest.raises(UndefinedBehavior, match=f"core {name} accesses {WINDOW + offset:#x}"):
            tile.cores.store(WINDOW + offset, 0, core)


@pytest.mark.rule("tile K21", "tile T24")
@pytest.mark.parametrize("agent", [NC, NOC, TENSIX])
def test_others_do_not_see_the_window(agent: int) -> None:
    tile = Tile()
    tile.record.sync.semaphore[:] = 5
    for address in (WINDOW, COPROCESSOR_DONE, SEMAPHORES, WINDOW + 0x10000):
        with pytest.raises(UndefinedBehavior, match="unmapped"):
            tile.cores.load(address, agent)
        with pytest.raises(UndefinedBehavior, match="unmapped"):
            tile.cores.store(address, 0, agent)


@pytest.mark.rule("tile K17")
def test_for_b_the_semaphores_are_its_pcbuf() -> None:
    tile = Tile()
    for i in range(3):
        tile.cores.store(SEMAPHORES + 4 * i, i, B)
    assert not tile.record.sync.semaphore.any()
    assert [tile.cores.load(WINDOW, T0) for _ in range(3)] == [0, 1, 2]


@pytest.mark.rule("tile K17")
@pytest.mark.parametrize("address", [COPROCESSOR_DONE, MOP_DONE])
@pytest.mark.parametrize("thread", range(3))
def test_a_store_of_b_to_a_check_is_discarded_as_an_open_choice(address: int, thread: int) -> None:
    place = address + 0x10000 * thread
    with pytest.raises(MissingSpecification, match=f"core B stores 0xdefec8ed to {place:#x}"):
        Tile().cores.store(place, 0xDEFEC8ED, B)
    tile = Tile(allow_open=True)
    tile.cores.store(place, 0xDEFEC8ED, B)
    assert not tile.record.pcbuf_count.any()
