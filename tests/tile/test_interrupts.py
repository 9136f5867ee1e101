"""The interrupt controller and interrupts of cores B and NC (tile K22 to K24; E4, E16)."""

from __future__ import annotations

import random

import pytest

from bhemu import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.machine.agents import NC, NOC, T0, TENSIX, B
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import SCRATCH, START, hold, machine, put, release, word, words

pytestmark = pytest.mark.plain

PIC = 0xFFB13000
ENABLE = {"B": PIC, "NC": PIC + 0xC}
NUMBER = {"B": PIC + 8, "NC": PIC + 0x14}
SOFTWARE, HARDWARE = PIC + 0x18, PIC + 0x98
HANDLER = PIC + 0xA8
HANDLER_CODE = 0x4000

# Counts in SCRATCH how often it ran, notes the IRQ numbers from SCRATCH + 0x100 on, clears the IRQ, keeps registers.
# The stack is in the core's local RAM.
NOTING = f"""
    sw t0, 0x7e0(gp)
    sw t1, 0x7e4(gp)
    sw t2, 0x7e8(gp)
    li t0, {SCRATCH:#x}
    lw t1, 0(t0)
    addi t1, t1, 1
    sw t1, 0(t0)
    slli t1, t1, 2
    add t0, t0, t1
    li t1, NUMBER
    lw t1, 0(t1)
    sw t1, 0xfc(t0)
    slli t2, t1, 2
    li t0, {SOFTWARE:#x}
    add t0, t0, t2
    lw t2, 0(t0)
    lw t0, 0x7e0(gp)
    lw t1, 0x7e4(gp)
    lw t2, 0x7e8(gp)
    mret
"""
END = "\nend: j end"
COUNTING = "li gp, 0xffb00000\n li t0, 0\n li t1, 0\nagain: addi t0, t0, 1\n addi t1, t1, 3\n j again"


def with_handler(core: str = "B", program: str = COUNTING, *, clocks: int = 0, handler: str | None = None) -> Tile:
    tile = Tile()
    put(tile, HANDLER_CODE, assemble((handler or NOTING).replace("NUMBER", str(NUMBER[core])), HANDLER_CODE))
    for irq in range(36):
        tile.cores.store(HANDLER + 4 * irq, HANDLER_CODE)
    return machine({core: program}, clocks, tile=tile)


@pytest.mark.rule("tile K22")
@pytest.mark.parametrize("agent", [B, T0, NC, NOC, TENSIX])
def test_interrupt_registers_keep_what_is_stored(agent: int) -> None:
    tile = Tile()
    plain = [PIC, PIC + 0xC, *(HANDLER + 4 * i for i in range(36))]
    for i, address in enumerate(plain):
        tile.cores.store(address, 0xFFFF0000 + i, agent)
    assert [tile.cores.load(address, agent) for address in plain] == [0xFFFF0000 + i for i in range(len(plain))]
    for address in (PIC + 4, PIC + 0x10):
        tile.cores.store(address, 0xFFFFFFF5, agent)
        assert tile.cores.load(address, agent) == 5
    for address in NUMBER.values():
        tile.cores.store(address, 7, agent)  # a harmless store target
        assert tile.cores.load(address, agent) == 0


@pytest.mark.rule("tile K22")
def test_a_software_irq_is_a_slot_that_loads_empty() -> None:
    tile = Tile()
    for i in range(32):
        tile.cores.store(SOFTWARE + 4 * i, 0x80000000 + i)
    tile.cores.store(SOFTWARE + 4 * 3, 0)
    assert tile.cores.load(SOFTWARE + 4 * 3) == 0
    tile.cores.store(SOFTWARE + 4 * 4, 55)  # the latest value
    for i in range(32):
        assert tile.cores.load(SOFTWARE + 4 * i) == {3: 0, 4: 55}.get(i, 0x80000000 + i)
        assert tile.cores.load(SOFTWARE + 4 * i) == 0


@pytest.mark.rule("tile K22", "tile K23")
def test_a_hardware_irq_loads_one_and_clears() -> None:
    tile = Tile()
    tile.record.pic_hardware[3] = 1
    for i in range(4):
        tile.cores.store(HARDWARE + 4 * i, 1)  # no effect
    assert [tile.cores.load(HARDWARE + 4 * i) for i in range(4)] == [0, 0, 0, 1]
    assert tile.cores.load(HARDWARE + 12) == 0


@pytest.mark.rule("tile K24")
@pytest.mark.parametrize("core", ["B", "NC"])
@pytest.mark.parametrize("irq", [0, 1, 17, 31])
def test_an_enabled_irq_interrupts_and_mret_goes_on(core: str, irq: int) -> None:
    tile = with_handler(core, clocks=50)
    tile.cores.store(ENABLE[core], 1 << irq)
    before = tile.cores[core].x[5]
    tile.cores.store(SOFTWARE + 4 * irq, 99)
    tile.clock(200)
    assert words(tile, 1) == [1]
    assert word(tile, SCRATCH + 0x100) == irq
    assert tile.record.pic_software[irq] == 0
    x = tile.cores[core].x
    assert x[5] > before + 40
    assert x[6] in (3 * x[5], 3 * x[5] - 3)  # not an instruction was lost or done twice
    assert tile.cores.load(NUMBER[core]) == irq


@pytest.mark.rule("tile K24")
@pytest.mark.parametrize("core", ["B", "NC"])
def test_irqs_that_are_not_enabled_do_nothing(core: str) -> None:
    tile = with_handler(core, clocks=50)
    other = "NC" if core == "B" else "B"
    tile.cores.store(ENABLE[core], 0xFFFFFFFF & ~(1 << 7))
    tile.cores.store(ENABLE[other], 1 << 7)
    tile.cores.store(SOFTWARE + 4 * 7, 1)
    tile.clock(100)
    assert word(tile) == 0
    tile.cores.store(ENABLE[core], 1 << 7)  # enabling it is enough
    tile.clock(100)
    assert word(tile) == 1


@pytest.mark.rule("tile K24")
def test_t_cores_take_no_interrupts() -> None:
    tile = Tile()
    for address in (PIC, PIC + 0xC):
        tile.cores.store(address, 0xFFFFFFFF)
    machine({"T0": COUNTING.replace("again:", "x:").replace("j again", "j x")}, 20, tile=tile)
    tile.cores.store(SOFTWARE, 1)
    tile.clock(50)
    assert tile.cores["T0"].pc in range(START["T0"], START["T0"] + 64)
    assert tile.record.core_in_handler.sum() == 0


@pytest.mark.rule("tile K24")
def test_interrupts_are_served_round_robin_and_do_not_nest() -> None:
    tile = with_handler(clocks=20)
    tile.cores.store(ENABLE["B"], (1 << 3) | (1 << 10) | (1 << 30))
    for _ in range(2):
        for irq in (30, 3, 10):
            tile.cores.store(SOFTWARE + 4 * irq, 1)
        tile.clock(150)
    assert words(tile, 6, SCRATCH + 0x100) == [3, 10, 30, 3, 10, 30]
    tile.cores.store(SOFTWARE + 4 * 10, 1)
    tile.clock(3)  # inside of the handler
    assert tile.record.core_in_handler[B] == 1
    tile.cores.store(SOFTWARE + 4 * 3, 1)
    tile.cores.store(SOFTWARE + 4 * 30, 1)
    tile.clock(150)
    assert words(tile, 3, SCRATCH + 0x100 + 24) == [10, 30, 3]  # after 10 it is the turn of 30


@pytest.mark.rule("tile K22")
def test_an_irq_that_the_handler_does_not_clear_interrupts_again() -> None:
    handler = "lw t2, 0x7e0(gp)\n addi t2, t2, 1\n sw t2, 0x7e0(gp)\n mret"
    tile = with_handler(handler=handler, clocks=10)
    tile.cores.store(ENABLE["B"], 2)
    tile.cores.store(SOFTWARE + 4, 1)
    tile.clock(100)
    count = tile.cores["B"].local_ram[0x7E0]
    assert 24 <= count <= 25  # four instructions each
    tile.cores.store(SOFTWARE + 4, 0)
    tile.clock(20)
    assert tile.cores["B"].local_ram[0x7E0] in (count, count + 1)


@pytest.mark.rule("tile K24")
def test_one_irq_interrupts_both_cores() -> None:
    """Both handlers run; the one that loads the IRQ's register first sees its value."""
    handler = f"li t0, {SOFTWARE:#x}\n lw t1, 0(t0)\n sw t1, 0(a0)\n addi t2, t2, 1\n sw t2, 4(a0)\n mret"
    program = "li t2, 0\n li a0, %#x" + END
    tile = Tile()
    put(tile, HANDLER_CODE, assemble(handler, HANDLER_CODE))
    tile.cores.store(HANDLER, HANDLER_CODE)
    machine({"B": program % SCRATCH, "NC": program % (SCRATCH + 0x40)}, 100, tile=tile)
    for core in ("B", "NC"):
        tile.cores.store(ENABLE[core], 1)
    tile.cores.store(SOFTWARE, 0x55)
    tile.clock(60)
    assert words(tile, 2) == [0x55, 1]
    assert words(tile, 2, SCRATCH + 0x40) == [0, 1]


@pytest.mark.rule("tile K24")
def test_a_polling_core_wakes_and_polls_on() -> None:
    poll = f"li gp, 0xffb00000\n li a0, {SCRATCH + 0x200:#x}\nagain: lw a1, 0(a0)\n beqz a1, again\n sw a1, 4(a0)" + END
    tile = with_handler("NC", poll, clocks=300)
    tile.cores.store(ENABLE["NC"], 1)
    tile.clock(300)
    assert tile.cores["NC"].state == "polling"
    tile.cores.store(SOFTWARE, 1)
    tile.clock(400)
    assert word(tile) == 1
    assert tile.cores["NC"].state == "polling"
    tile.record.l1_u32[SCRATCH + 0x200 >> 2] = 8
    tile.clock(20)
    assert word(tile, SCRATCH + 0x204) == 8


@pytest.mark.rule("tile K24")
def test_a_core_blocked_in_a_load_is_interrupted_and_loads_again() -> None:
    tile = with_handler(
        "B",
        f"li gp, 0xffb00000\n li a0, 0xffec1000\n lw a1, 0(a0)\n li a2, {SCRATCH + 0x200:#x}\n sw a1, 0(a2)" + END,
        clocks=50,
    )
    assert tile.cores["B"].state == "blocked"
    tile.cores.store(ENABLE["B"], 1)
    tile.cores.store(SOFTWARE, 1)
    tile.clock(100)
    assert word(tile) == 1
    assert tile.cores["B"].state == "blocked"
    tile.cores.store(0xFFEC0000, 0x77, T0)
    tile.clock(20)
    assert word(tile, SCRATCH + 0x200) == 0x77


@pytest.mark.rule("tile K24")
def test_another_core_raises_the_irq_and_the_moment_does_not_depend_on_how_clocks_are_given() -> None:
    """The interrupted core is in a long loop of private instructions, which it would run ahead in."""
    raiser = f"li a0, {SOFTWARE:#x}\n li t0, %d\nturn: addi t0, t0, -1\n bnez t0, turn\n li t1, 1\n sw t1, 20(a0)" + END
    seen = []
    for split in (False, True):
        tile = with_handler("B", COUNTING)
        tile.cores.store(ENABLE["B"], 1 << 5)
        machine({"T2": raiser % 100}, tile=tile)
        rng = random.Random(1)
        left = 400
        while left:
            part = min(left, rng.choice((1, 3, 50))) if split else left
            tile.clock(part)
            left -= part
        assert words(tile, 1) == [1]
        seen.append((int(tile.record.core_interrupted_pc[B]), tile.cores["B"].x.copy().tolist(), tile.cores["B"].pc))
    assert seen[0] == seen[1]
    exact = with_handler("B", COUNTING)
    exact.cores.store(ENABLE["B"], 1 << 5)
    machine({"T2": raiser % 100}, tile=exact)
    while exact.record.pic_software[5] == 0:
        exact.clock(1)
    raised_at = exact.record.clock
    assert exact.record.core_in_handler[B] == 0
    exact.clock(1)  # B's next turn is in the round after the store
    assert exact.record.core_in_handler[B] == 1
    assert exact.cores["B"].retired == raised_at + 1


# --- hardware IRQs of the network interfaces (N24) --------------------------------------------------------------------


def read_request(tile: Tile, noc: int, transaction: int) -> None:
    base = 0xFFB20000 + 0x10000 * noc
    for offset, value in {0: 0x1000, 8: 0x81, 12: 0x2000, 20: 0x81, 24: transaction << 10, 28: 0x2090, 32: 4}.items():
        tile.cores.store(base + offset, value)
    tile.cores.store(base + 0x40, 1)


@pytest.mark.rule("tile N24", "tile K23")
@pytest.mark.parametrize("noc", [0, 1])
def test_a_request_that_returns_to_zero_raises_the_irq_of_its_noc(noc: int) -> None:
    """The handler reads RTZ_NUM, which takes the bit away; both ids are served, one a time."""
    handler = f"""
        li t3, {0xFFB20378 + 0x10000 * noc:#x}
        lw t4, 0(t3)
        li t3, {SCRATCH:#x}
        lw t5, 0(t3)
        addi t5, t5, 1
        sw t5, 0(t3)
        slli t5, t5, 2
        add t3, t3, t5
        sw t4, 0(t3)
        li t3, {NUMBER["B"]:#x}
        lw t4, 0(t3)
        li t3, {SCRATCH + 0x80:#x}
        sw t4, 0(t3)
        mret
    """
    tile = with_handler(handler=handler, clocks=20)
    tile.cores.store(PIC + 4, 0xF)
    read_request(tile, noc, 4)
    tile.clock(50)
    assert word(tile) == 0  # not enabled at the interface
    tile.cores.store(0xFFB2017C + 0x10000 * noc, 0xFFFF)
    tile.cores.store(0xFFB20178 + 0x10000 * noc, 1 << 4 | 1 << 9)
    read_request(tile, noc, 9)
    read_request(tile, noc, 4)
    read_request(tile, noc, 5)
    tile.clock(100)
    assert words(tile, 3) == [2, 4, 9]
    assert word(tile, SCRATCH + 0x80) == 32 + 1 + noc
    assert tile.cores.load(0xFFB2037C + 0x10000 * noc) == 1 << 5


@pytest.mark.rule("tile N24")
def test_the_irq_stays_as_long_as_an_enabled_bit_does() -> None:
    tile = Tile()
    tile.cores.store(0xFFB20178, 1 << 2)
    read_request(tile, 0, 2)
    assert [tile.cores.load(HARDWARE + 4) for _ in range(2)] == [1, 1]
    assert tile.cores.load(HARDWARE + 8) == 0
    tile.cores.store(0xFFB2017C, 1 << 2)
    assert tile.cores.load(HARDWARE + 4) == 0


@pytest.mark.rule("tile K24")
def test_reset_leaves_the_handler() -> None:
    tile = with_handler(clocks=10, handler="end: j end")
    tile.cores.store(ENABLE["B"], 1)
    tile.cores.store(SOFTWARE, 1)
    tile.clock(10)
    assert tile.record.core_in_handler[B] == 1
    hold(tile, "B")
    release(tile, "B")
    assert tile.record.core_in_handler[B] == 0
    tile.clock(5)
    assert tile.record.core_in_handler[B] == 1  # the IRQ is still raised


@pytest.mark.rule("tile E4")
def test_mret_outside_of_a_handler_is_refused() -> None:
    tile = machine("mret" + END)
    with pytest.raises(UndefinedBehavior, match="mret outside"):
        tile.clock(5)
