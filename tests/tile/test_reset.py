"""Soft reset of the cores (tile T14 to T18, T22; E19, E45, E55)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.isa.instructions import encode
from bhemu.machine.agents import CORE_NAMES, T0, B
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import ALL_HELD, RESET_BIT, SCRATCH, SOFT_RESET, START, hold, machine, put, release, word

pytestmark = pytest.mark.plain

CORES = tuple(CORE_NAMES)
DISABLE_RESET = 0xFFB12224
OVERRIDE = {"T0": 0xFFB12234, "T1": 0xFFB12234, "T2": 0xFFB12234, "NC": 0xFFB1223C}
OVERRIDE_BIT = {"T0": 0, "T1": 1, "T2": 2, "NC": 0}
OVERRIDE_PC = {"T0": 0xFFB12228, "T1": 0xFFB1222C, "T2": 0xFFB12230, "NC": 0xFFB12238}
KEEP_RAM = {"T0": 0, "T1": 2, "T2": 4, "B": 6, "NC": 8}
LOOP = "end: j end"


@pytest.mark.rule("tile T14")
def test_power_on_holds_all_cores() -> None:
    tile = Tile()
    assert tile.cores.load(SOFT_RESET) == ALL_HELD == sum(1 << bit for bit in RESET_BIT.values())
    for name in CORES:
        put(tile, START[name], assemble(f"li a0, {SCRATCH:#x}\n sw a0, 0(a0)\n{LOOP}", START[name]))
    tile.clock(50)
    assert word(tile) == 0
    assert all(tile.cores[name].state == "in reset" and tile.cores[name].retired == 0 for name in CORES)
    tile.cores.store(SCRATCH, 5)  # L1 stays accessible (T15)
    assert tile.cores.load(SCRATCH) == 5


@pytest.mark.rule("tile T14", "tile E55")
@pytest.mark.parametrize("core", CORES)
def test_a_released_core_starts_at_its_address_and_no_other_core_moves(core: str) -> None:
    tile = Tile()
    put(tile, START[core], assemble(LOOP, 0))
    release(tile, core)
    assert tile.cores[core].pc == START[core]
    assert tile.cores.load(SOFT_RESET) == ALL_HELD & ~(1 << RESET_BIT[core])
    for other in CORES:
        assert (tile.cores[other].state == "in reset") == (other != core)


@pytest.mark.rule("tile T14", "tile E19")
@pytest.mark.parametrize("core", OVERRIDE)
def test_the_start_can_be_overridden(core: str) -> None:
    tile = Tile()
    tile.cores.store(OVERRIDE_PC[core], 0x15554)
    assert tile.cores.load(OVERRIDE_PC[core]) == 0x15554
    release(tile, core)
    assert tile.cores[core].pc == START[core]  # not enabled
    hold(tile, core)
    tile.cores.store(OVERRIDE[core], 1 << OVERRIDE_BIT[core])
    assert tile.cores.load(OVERRIDE[core]) == 1 << OVERRIDE_BIT[core]
    release(tile, *CORES)
    for other in CORES:
        assert tile.cores[other].pc == (0x15554 if other == core else START[other])


@pytest.mark.rule("tile T15")
@pytest.mark.parametrize("core", CORES)
def test_the_pc_is_taken_when_the_bit_falls(core: str) -> None:
    tile = machine({core: f"li a0, 1\nnop\nnop\n{LOOP}"}, 3)
    pc = tile.cores[core].pc
    assert pc == START[core] + 12
    running = tile.cores.load(SOFT_RESET)
    tile.cores.store(SOFT_RESET, running)  # the same value again
    assert tile.cores[core].pc == pc
    assert tile.cores[core].x[10] == 1
    if core in OVERRIDE:
        tile.cores.store(OVERRIDE[core], 7)
        assert tile.cores[core].pc == pc
    hold(tile, core)
    tile.clock(20)
    assert tile.cores[core].retired == 3
    tile.cores.store(SOFT_RESET, tile.cores.load(SOFT_RESET))
    assert tile.cores[core].state == "in reset"


@pytest.mark.rule("tile T16", "tile E45")
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("keep", [False, True])
def test_leaving_reset_clears_registers_and_local_ram(core: str, keep: bool) -> None:
    tile = machine({core: LOOP}, 5)
    view = tile.cores[core]
    view.x[1:] = 0x55
    view.f[:] = 0x66
    view.local_ram[:] = 0x77
    for other in CORES:
        if other != core:
            tile.cores[other].local_ram[:] = 0x33
    all_bits = sum(1 << bit for bit in KEEP_RAM.values())
    tile.cores.store(DISABLE_RESET, 1 << KEEP_RAM[core] if keep else all_bits & ~(1 << KEEP_RAM[core]))
    hold(tile, core)
    assert (view.x[1:] == 0x55).all()  # not before the release
    assert (view.local_ram == 0x77).all()
    release(tile, core)
    assert not view.x.any()
    assert not view.f.any()
    assert (view.local_ram == (0x77 if keep else 0)).all()
    for other in CORES:
        if other != core:
            assert (tile.cores[other].local_ram == 0x33).all()


@pytest.mark.rule("tile T16")
@pytest.mark.parametrize("thread", range(3))
def test_entering_reset_drops_the_fifo_and_the_mop_but_nothing_behind_them(thread: int) -> None:
    """What has passed the MOP expander stays: B's words, the word at the gate, a latched wait, a replay."""
    core = f"T{thread}"
    tile = machine({core: LOOP}, 1)
    tile.record.sync.semaphore_max[:] = 15
    wait = encode("SEMWAIT", stall_res=0x1FF, wait_sem_cond=1, sem_sel=1)
    post, get = encode("SEMPOST", sem_sel=4), encode("SEMGET", sem_sel=1)
    tile.record.frontend.mop_config[thread] = [2, 2, *[encode("SEMPOST", sem_sel=2)] * 7]
    for other in range(3):
        for instruction in (wait, get, post, post):
            tile.coprocessor.push(other, instruction)
    tile.clock(5)
    tile.record.frontend.mop_active[thread] = 2
    tile.record.frontend.mop_outer[thread] = 1
    tile.record.frontend.replay_play_left[thread] = 1
    tile.record.frontend.replay_buffer[thread, 0] = post
    tile.cores.store(0xFFE40000 + 0x10000 * thread, post, B)
    hold(tile, core)
    assert [int(n) for n in tile.record.frontend.fifo_count] == [0 if other == thread else 2 for other in range(3)]
    assert tile.record.frontend.mop_active[thread] == 0
    tile.record.sync.semaphore[0] = 3
    tile.clock(60)
    assert tile.record.sync.semaphore[1] == 0  # nothing of the MOP
    assert tile.record.sync.semaphore[0] == 0  # each thread's word at the gate
    assert tile.record.sync.semaphore[2] == 2 * 2 + 2  # both of the others' FIFOs; here the replay's and B's word


@pytest.mark.rule("tile T16")
def test_a_core_that_stood_in_a_wait_starts_afresh() -> None:
    tile = machine({"T1": f"li a0, 0xffec0000\n lw a1, 0(a0)\n{LOOP}"}, 20)
    assert tile.cores["T1"].state == "blocked"
    put(tile, START["T1"], assemble(f"li a0, {SCRATCH:#x}\n sw a0, 0(a0)\n{LOOP}", START["T1"]))
    hold(tile, "T1")
    tile.clock(20)
    assert word(tile) == 0
    release(tile, "T1")
    tile.clock(20)
    assert word(tile) == SCRATCH


@pytest.mark.rule("tile T16")
def test_a_halted_or_polling_core_starts_afresh() -> None:
    tile = machine({"B": "ebreak", "NC": LOOP}, 300)
    assert (tile.cores["B"].state, tile.cores["NC"].state) == ("halted", "polling")
    put(tile, START["B"], assemble(LOOP, START["B"]))
    hold(tile, "B", "NC")
    assert tile.record.sleepers == 0
    release(tile, "B", "NC")
    tile.clock(100)
    assert {tile.cores[core].state for core in ("B", "NC")} <= {"running", "polling"}
    assert tile.cores["B"].halt_reason == ""


@pytest.mark.rule("tile T22")
def test_a_released_core_executes_what_is_in_l1_now() -> None:
    tile = machine({"B": f"li a0, {SCRATCH:#x}\n li a1, 1\n sw a1, 0(a0)\n{LOOP}"}, 20)
    hold(tile, "B")
    machine({"B": f"li a0, {SCRATCH:#x}\n li a1, 2\n sw a1, 0(a0)\n{LOOP}"}, 20, tile=tile)
    assert word(tile) == 2


@pytest.mark.rule("tile T17")
def test_bit_31_is_ignored_and_bits_of_no_core_touch_no_core() -> None:
    tile = machine({"T0": LOOP}, 5)
    held = tile.cores.load(SOFT_RESET)
    tile.cores.store(SOFT_RESET, held | 1 << 31)
    assert tile.cores.load(SOFT_RESET) == held
    retired = tile.cores["T0"].retired
    tile.clock(10)
    assert tile.cores["T0"].retired == retired + 10


@pytest.mark.rule("tile T18")
def test_no_stack_or_global_pointer_is_provided() -> None:
    tile = Tile()
    release(tile, *CORES)
    for core in CORES:
        assert not tile.cores[core].x.any()


@pytest.mark.rule("tile T15")
def test_a_core_releases_and_holds_another_and_itself() -> None:
    """B releases T0, which moves from the round after B's store on; then B holds itself and stays where it is."""
    b = f"""
        li a0, {SOFT_RESET:#x}
        lw t0, 0(a0)
        li t1, 0x1000
        not t1, t1
        and t1, t0, t1
        sw t1, 0(a0)
        nop
        sw t0, 0(a0)
        li t1, 0x47800
        sw t1, 0(a0)
        li a1, {SCRATCH:#x}
        sw a1, 4(a1)
    {LOOP}
    """
    t0 = f"li a1, {SCRATCH:#x}\n sw a1, 0(a1)\n{LOOP}"
    tile = Tile()
    put(tile, START["T0"], assemble(t0, START["T0"]))
    machine({"B": b}, 60, tile=tile)
    assert tile.cores["T0"].retired == 1  # the round of the nop
    assert word(tile) == 0
    assert word(tile, SCRATCH + 4) == 0
    assert {tile.cores[core].state for core in CORES} == {"in reset"}
    assert tile.record.core_round[T0] > 0
