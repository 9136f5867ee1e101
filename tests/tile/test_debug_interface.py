"""Pausing, stepping and watching cores through the control block (tile K42, T9, E18)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.machine.agents import T0
from tests.riscv.rv_machine import SCRATCH, START, hold, machine, release, word
from tests.tile.debug_client import (
    ADDRESS_0,
    ARGUMENT_0,
    ARGUMENT_1,
    CLEAR,
    CNTL_0,
    CNTL_1,
    COMMAND,
    CONTINUE,
    CONTROL,
    DEBUG_MODE,
    EBREAK_HIT,
    FLUSH,
    HALT,
    HALTED,
    MEMORY_HIT,
    MODES,
    PC_HIT,
    READ_MEMORY,
    RESULT,
    STATUS,
    STATUS_0,
    STEP,
    WRITE_MEMORY,
    DebugClient,
)

CORES = ("B", "T0", "T1", "T2")
COUNTER = """
        li a0, 0x20000
    loop: addi a1, a1, 1
        sw a1, 0(a0)
        j loop
"""
LOOP_AT = 4


def counting(core: str = "B", clocks: int = 20) -> tuple[Tile, DebugClient]:
    """A core that counts in a1 and in L1."""
    tile = machine({core: COUNTER}, clocks)
    return tile, DebugClient(tile, core)


# --- pausing ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K42")
@pytest.mark.plain
@pytest.mark.parametrize("core", CORES)
def test_a_halted_core_stands_still_and_the_others_go_on(core: str) -> None:
    other = "B" if core != "B" else "T2"
    elsewhere = COUNTER.replace("0x20000", "0x20010")
    tile = machine({core: COUNTER, other: elsewhere}, 20)
    client = DebugClient(tile, core)
    assert client.status == 0
    client.halt()
    assert client.status == HALTED
    assert tile.cores[core].halt_reason == "debugger"
    mine, others = word(tile), word(tile, SCRATCH + 0x10)
    tile.clock(30)
    assert word(tile) == mine
    assert word(tile, SCRATCH + 0x10) > others
    client.go_on()
    assert client.status == 0
    tile.clock(30)
    assert word(tile) == mine + 10


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_halting_twice_changes_nothing() -> None:
    tile, client = counting()
    client.halt()
    client.halt()
    assert client.status == HALTED
    client.go_on()
    tile.clock(3)
    assert client.status == 0


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_polling_core_is_woken_where_it_stands() -> None:
    """A sleeping core's registers are those of the instruction that it would execute now."""
    text = """
        li a0, 0x20000
        li a2, 0x1000
    loop: lw a1, 0(a0)
        nop
        beqz a1, loop
        sw a2, 4(a0)
    end: j end
    """
    tile = machine(text, 500)
    assert tile.cores["B"].state == "polling"
    client = DebugClient(tile, "B")
    client.halt()
    pc = client.gpr(32)
    assert 8 <= pc <= 16
    reference = machine(text, 500)
    assert reference.cores["B"].pc == pc
    client.store(SCRATCH, 1)
    tile.clock(20)
    assert word(tile, SCRATCH + 4) == 0
    client.go_on()
    tile.clock(20)
    assert word(tile, SCRATCH + 4) == 0x1000


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_core_that_waits_is_halted_and_waits_again() -> None:
    text = f"""
        li a0, 0xffec1000
        lw a1, 0(a0)
        li a2, {SCRATCH}
        sw a1, 0(a2)
    end: j end
    """
    tile = machine(text, 20)
    assert tile.cores["B"].state == "blocked"
    client = DebugClient(tile, "B")
    client.halt()
    assert client.status == HALTED
    tile.cores.store(0xFFEC0000, 77, T0)
    tile.clock(10)
    assert word(tile) == 0
    client.go_on()
    tile.clock(10)
    assert word(tile) == 77


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_core_may_pause_itself_and_goes_on_behind_the_store() -> None:
    text = f"""
        li a0, {CONTROL}
        li a1, {DEBUG_MODE | HALT}
        sw a1, 0x84(a0)
        li a1, {0x80010000 + COMMAND}
        sw a1, 0x80(a0)
        li a2, {SCRATCH}
        sw a1, 0(a2)
    end: j end
    """
    tile = machine(text, 40)
    assert tile.cores["B"].halt_reason == "debugger"
    assert word(tile) == 0
    tile.cores.store(CNTL_0, 0)
    client = DebugClient(tile, "B")
    pc = client.gpr(32)
    assert int(tile.record.l1_u32[pc // 4 - 1]) & 0x7F == 0x23  # the store is behind it
    client.go_on()
    tile.clock(10)
    assert word(tile) == 0x80010000 + COMMAND
    assert tile.cores["B"].state != "halted"


# --- ebreak -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile T9", "tile K42")
@pytest.mark.plain
@pytest.mark.parametrize("cause", ["ebreak", "ecall"])
def test_ebreak_pauses_behind_itself_until_a_debugger_continues(cause: str) -> None:
    tile = machine(f"{cause}\n{COUNTER}", 20)
    client = DebugClient(tile, "B")
    assert client.status == HALTED | EBREAK_HIT
    assert client.gpr(32) == 4
    tile.clock(20)
    assert word(tile) == 0
    # Drivers set pc to where it is, to be rid of the ebreak, and continue.
    client.write(ARGUMENT_1, 4)
    client.command(FLUSH)
    assert client.status == HALTED
    client.go_on()
    tile.clock(20)
    assert word(tile) > 3
    client.halt()
    assert client.status == HALTED


# --- stepping ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_two_step_commands_execute_one_instruction() -> None:
    tile, client = counting(clocks=0)
    client.halt()
    assert client.gpr(32) == 0
    pcs, counts = [], []
    for _ in range(10):
        client.step()
        tile.clock(5)
        assert client.status == HALTED
        pcs.append(client.gpr(32))
        counts.append(word(tile))
    assert pcs == [4, 8, 12, 4, 8, 12, 4, 8, 12, 4]
    assert counts == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    retired = tile.cores["B"].retired
    client.command(STEP)
    tile.clock(5)
    assert tile.cores["B"].retired == retired
    client.go_on()
    tile.clock(30)
    assert tile.cores["B"].retired == retired + 30


@pytest.mark.rule("tile K42", "tile T11")
@pytest.mark.plain
def test_stepping_executes_one_of_adjacent_pushes() -> None:
    """Fused they would be four."""
    tile = machine({"T0": ".ttinsn 0x02000000\n" * 6 + "end: j end"})
    client = DebugClient(tile, "T0")
    client.halt()
    for i in range(1, 4):
        client.step()
        tile.clock(2)
        assert client.gpr(32) == START["T0"] + 4 * i


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_step_waits_with_its_access() -> None:
    tile = machine("li a0, 0xffec1000\nlw a1, 0(a0)\nend: j end")
    client = DebugClient(tile, "B")
    client.halt()
    client.step()
    tile.clock(2)
    assert client.gpr(32) == 4
    client.step()
    tile.clock(10)
    assert client.status == 0
    tile.cores.store(0xFFEC0000, 5, T0)
    tile.clock(2)
    assert client.status == HALTED
    assert (client.gpr(32), client.gpr(11)) == (8, 5)


# --- registers and pc -------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_registers_are_read_and_written() -> None:
    tile, client = counting()
    client.halt()
    assert client.gpr(10) == SCRATCH
    for register in range(32):
        client.set_gpr(register, 0x1000 + register)
    assert [client.gpr(i) for i in range(32)] == [0, *range(0x1001, 0x1020)]
    client.command(CLEAR)
    assert [client.gpr(i) for i in range(32)] == [0] * 32
    assert tile.cores["B"].x.tolist() == [0] * 32


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_flush_sets_pc_from_argument_1_or_as_a_reset_does() -> None:
    tile, client = counting("T1")
    client.halt()
    client.write(ARGUMENT_1, START["T1"] + LOOP_AT)
    client.command(FLUSH)
    assert client.gpr(32) == START["T1"] + LOOP_AT
    client.write(COMMAND, FLUSH)  # without debug mode
    assert client.gpr(32) == START["T1"]
    client.write(ARGUMENT_1, START["T1"] + LOOP_AT)
    client.command(FLUSH | CONTINUE)
    assert client.status == 0
    tile.clock(1)
    assert tile.cores["T1"].pc == START["T1"] + LOOP_AT + 4


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_write_of_register_32_is_an_open_choice() -> None:
    tile, client = counting()
    client.halt()
    with pytest.raises(MissingSpecification, match="register 32"):
        client.set_gpr(32, 0)
    tile.record.allow_open = 1
    tile.cores.store(CNTL_0, 0)
    client.set_gpr(32, 4)
    assert client.gpr(32) == 4


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_status_0_echoes_the_access() -> None:
    tile, client = counting("T1")
    tile.cores.store(CNTL_0, 0x80010000 + (2 << 17) + ADDRESS_0)
    assert tile.cores.load(STATUS_0) == 1 << 31 | 1 << 15 | ADDRESS_0
    tile.cores.store(CNTL_0, 0)
    assert tile.cores.load(STATUS_0) == 0
    assert client.read(ADDRESS_0) == tile.cores.load(CNTL_1)
    # Nothing happens while the trigger stays: the same word again is not a new access.
    tile.cores.store(CNTL_1, 1)
    tile.cores.store(CNTL_0, 0x80000000 + (2 << 17) + STATUS)
    tile.cores.store(CNTL_0, 0x80010000 + (2 << 17) + COMMAND)
    assert client.status == 0


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K42")
@pytest.mark.plain
@pytest.mark.parametrize("core", CORES)
def test_memory_is_read_and_written_as_that_core(core: str) -> None:
    tile = machine(dict.fromkeys(CORES, "end: j end"), 5)
    client = DebugClient(tile, core)
    client.halt()
    client.store(0x30000, 0x12345678)
    assert word(tile, 0x30000) == 0x12345678 == client.load(0x30000)
    client.store(0xFFB00010, 0xABCD)  # local RAM
    assert tile.cores[core].local_ram[0x10:0x14].tolist() == [0xCD, 0xAB, 0, 0]
    assert client.load(0xFFB00010) == 0xABCD
    for other in set(CORES) - {core}:
        assert not tile.cores[other].local_ram.any()
    client.store(0xFFE00000 + 4, 99)  # GPR 1: its own thread's, thread 0's for B
    assert tile.gpr[max(CORES.index(core) - 1, 0), 1] == 99
    assert client.load(0xFFB121B0) == tile.cores.load(0xFFB121B0)
    assert client.status == HALTED


@pytest.mark.rule("tile K42", "tile K45")
@pytest.mark.plain
def test_dst_is_read_through_a_t_core() -> None:
    tile = machine({"T0": "end: j end"}, 5)
    client = DebugClient(tile, "T0")
    client.halt()
    client.store(0xFFBD8000 + 4 * 33, 0x40490FDB)
    assert tile.dst.bits32[2, 1] == 0x40490FDB
    assert client.load(0xFFBD8000 + 4 * 33) == 0x40490FDB


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_debuggers_store_wakes_who_polls() -> None:
    poll = f"li a0, {SCRATCH}\nloop: lw a1, 0(a0)\nbeqz a1, loop\nsw a1, 4(a0)\nend: j end"
    tile = machine({"B": "end: j end", "T0": poll}, 300)
    assert tile.cores["T0"].state == "polling"
    client = DebugClient(tile, "B")
    client.halt()
    client.store(SCRATCH, 6)
    tile.clock(10)
    assert word(tile, SCRATCH + 4) == 6


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_undefined_accesses_of_a_debugger_are_refused() -> None:
    tile, client = counting()
    with pytest.raises(UndefinedBehavior, match="not paused"):
        client.load(0)
    tile.cores.store(CNTL_0, 0)
    client.halt()
    with pytest.raises(NonContractualBehavior, match="misaligned"):
        client.load(2)
    tile.cores.store(CNTL_0, 0)
    with pytest.raises(UndefinedBehavior, match="core B accesses 0x180000"):
        client.load(0x180000)
    tile.cores.store(CNTL_0, 0)
    with pytest.raises(UndefinedBehavior, match="debug interface itself"):
        client.store(CNTL_0, 0)
    tile.cores.store(CNTL_0, 0)
    with pytest.raises(UndefinedBehavior, match="combines"):
        client.command(READ_MEMORY | WRITE_MEMORY)
    tile.cores.store(CNTL_0, 0)
    with pytest.raises(UndefinedBehavior, match="debug register 7"):
        client.read(7)
    tile.cores.store(CNTL_0, 0)
    with pytest.raises(UndefinedBehavior, match="register 33"):
        client.gpr(33)
    tile.cores.store(CNTL_0, 0)
    assert client.status == HALTED  # and nothing else has happened


# --- watchpoints ------------------------------------------------------------------------------------------------------

ACCESSES = f"""
        li a0, {SCRATCH}
        li a1, 0x55
        sw a1, 0(a0)
        lw a2, 4(a0)
        sh a1, 8(a0)
        lbu a2, 14(a0)
        amoadd.w a2, a1, (a0)
    end: j end
"""
STORE, LOAD, HALF, BYTE, ATOMIC, END = 8, 12, 16, 20, 24, 28


def watched(address: int, mode: int, *, index: int = 0, text: str = ACCESSES) -> tuple[Tile, DebugClient]:
    """A program that runs with one watchpoint."""
    tile = machine(text)
    client = DebugClient(tile, "B")
    client.watch(index, address, mode)
    tile.clock(30)
    return tile, client


@pytest.mark.rule("tile K42")
@pytest.mark.plain
@pytest.mark.parametrize(
    ("address", "mode", "behind"),
    [
        (SCRATCH, 10, STORE),
        (SCRATCH + 4, 9, LOAD),
        (SCRATCH + 4, 11, LOAD),
        (SCRATCH, 11, STORE),
        (SCRATCH, 9, ATOMIC),
        (SCRATCH + 9, 10, HALF),
        (SCRATCH + 14, 9, BYTE),
    ],
)
def test_memory_watchpoints_pause_behind_the_access(address: int, mode: int, behind: int) -> None:
    for index in (0, 7):
        tile, client = watched(address, mode, index=index)
        assert client.status == HALTED | MEMORY_HIT | 1 << 8 + index
        assert client.gpr(32) == behind + 4
        assert word(tile) == (0xAA if behind == ATOMIC else 0x55)  # the access itself has been made
        client.go_on()
        assert client.status == 0


@pytest.mark.rule("tile K42")
@pytest.mark.plain
@pytest.mark.parametrize(
    ("address", "mode"),
    [
        (SCRATCH + 4, 10),
        (SCRATCH + 8, 9),
        (SCRATCH + 12, 11),
        (SCRATCH + 10, 10),
        (SCRATCH, 8),
        (SCRATCH, 12),
        (SCRATCH, 3),
    ],
)
def test_other_accesses_and_modes_do_not_pause(address: int, mode: int) -> None:
    tile, client = watched(address, mode)
    assert client.status == 0
    assert tile.cores["B"].pc == END


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_breakpoints_pause_behind_the_instruction() -> None:
    tile, client = watched(STORE, 8, index=3)
    assert client.status == HALTED | PC_HIT | 1 << 11
    assert client.gpr(32) == STORE + 4
    assert word(tile) == 0x55
    client.watch(3, END, 8)
    client.go_on()
    tile.clock(30)
    assert client.status == HALTED | PC_HIT | 1 << 11
    assert client.gpr(32) == END
    client.watch(3, END, 0)
    client.go_on()
    tile.clock(30)
    assert client.status == 0


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_the_host_may_resume_what_a_watchpoint_has_paused() -> None:
    tile, client = watched(STORE, 8, text=ACCESSES.replace("lw a2, 4(a0)", "ebreak"))
    assert client.status == HALTED | PC_HIT | 1 << 8
    tile.cores["B"].resume()
    tile.clock(10)
    assert client.status == HALTED | EBREAK_HIT
    client.watch(1, LOAD, 8)  # a watchpoint on the ebreak itself
    client.write(ARGUMENT_1, LOAD)
    client.command(FLUSH | CONTINUE)
    tile.clock(10)
    assert client.status == HALTED | EBREAK_HIT | PC_HIT | 1 << 9


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_all_eight_watchpoints_are_told_apart() -> None:
    tile = machine(ACCESSES)
    client = DebugClient(tile, "B")
    places = [4, STORE, LOAD, HALF, BYTE, ATOMIC]
    for index, place in enumerate(places):
        client.watch(index, place, 8)
    client.watch(6, SCRATCH + 4, 9)
    client.watch(7, SCRATCH + 4, 10)
    assert client.read(MODES) == 0xA9888888
    assert [client.read(ADDRESS_0 + i) for i in range(8)] == [*places, SCRATCH + 4, SCRATCH + 4]
    for index in range(len(places)):
        tile.clock(30)
        both = MEMORY_HIT | 1 << 14 if places[index] == LOAD else 0
        assert client.status == HALTED | PC_HIT | 1 << 8 + index | both
        assert client.gpr(32) == places[index] + 4
        client.go_on()
    tile.clock(30)
    assert client.status == 0


@pytest.mark.rule("tile K42", "tile T10")
@pytest.mark.plain
def test_a_push_is_a_store_to_the_instruction_window() -> None:
    tile = machine({"T0": "nop\n.ttinsn 0x02000000\n.ttinsn 0x02000000\nend: j end"})
    client = DebugClient(tile, "T0")
    client.watch(0, 0xFFE40000, 10)
    for i in (2, 3):
        tile.clock(10)
        assert client.status == HALTED | MEMORY_HIT | 1 << 8
        assert client.gpr(32) == START["T0"] + 4 * i
        client.go_on()


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_a_watched_loop_runs_as_fast_as_an_unwatched_one() -> None:
    plain, _ = counting("T2", 200)
    tile = machine({"T2": COUNTER})
    DebugClient(tile, "T2").watch(0, 0x100, 8)
    tile.clock(200)
    assert word(tile) == word(plain) > 50
    assert tile.cores["T2"].retired == plain.cores["T2"].retired


@pytest.mark.rule("tile K42")
def test_a_watchpoint_set_in_the_midst_of_a_recorded_poll_pauses() -> None:
    """Whatever has been noted of the loop is forgotten: no wrong sleep."""
    text = f"li a0, {SCRATCH}\nloop: lw a1, 0(a0)\nbeqz a1, loop\nsw a1, 4(a0)\nend: j end"
    for clocks in range(30, 60):
        tile = machine(text, clocks)
        client = DebugClient(tile, "B")
        client.watch(0, SCRATCH + 4, 10)
        tile.clock(20)
        tile.cores.store(SCRATCH, 3)
        tile.clock(20)
        assert client.status == HALTED | MEMORY_HIT | 1 << 8
        assert word(tile, SCRATCH + 4) == 3


# --- reset ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile T16", "tile K42")
@pytest.mark.plain
def test_entering_reset_forgets_debug_registers_unless_disabled() -> None:
    for keeps in (0, 1):
        tile, client = counting("T0")
        tile.cores.store(CONTROL + 0x224, keeps << 1)
        client.watch(2, START["T0"] + LOOP_AT, 8)
        client.write(ARGUMENT_0, 5)
        hold(tile, "T0")
        assert client.status == 0
        assert client.read(ARGUMENT_0) == (5 if keeps else 0)
        assert client.read(MODES) == (0x800 if keeps else 0)
        client.write(ARGUMENT_0, 6)  # discarded in reset
        assert client.read(ARGUMENT_0) == (6 if keeps else 0)
        release(tile, "T0")
        tile.clock(30)
        assert client.status == (HALTED | PC_HIT | 1 << 10 if keeps else 0)


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_drivers_reach_private_memory_of_a_core_in_reset() -> None:
    """A loop is put where the core starts, the core is released, halted, read, and put back into reset."""
    tile = Tile()
    tile.l1[START["T1"] : START["T1"] + 4] = [0x6F, 0, 0, 0]
    tile.cores.store(CONTROL + 0x224, 0x3FF)
    tile.cores["T1"].local_ram[4:8] = [1, 2, 3, 4]
    release(tile, "T1")
    client = DebugClient(tile, "T1")
    client.halt()
    assert client.status == HALTED
    assert client.load(0xFFB00004) == 0x04030201
    hold(tile, "T1")
    assert tile.cores["T1"].state == "in reset"


@pytest.mark.rule("tile K42")
@pytest.mark.plain
def test_results_and_status_cannot_be_written() -> None:
    tile, client = counting()
    client.halt()
    client.write(STATUS, 0)
    client.write(RESULT, 123)
    assert client.status == HALTED
    assert client.read(RESULT) == 0
    assert client.read(COMMAND) == DEBUG_MODE | HALT
    assert tile.cores["B"].state == "halted"


EVERYBODY_TALKS = {
    "B": """
        li a0, 0xffec1000
        li a2, 0x20000
    loop: addi a1, a1, 3
        sw a1, 0(a0)
        lw a3, 0(a2)
        beqz a3, loop
    end: j end
    """,
    "T0": """
        li t0, 0x40000
        csrrs zero, 0x7c0, t0
        li a0, 0xffec0000
        li a2, 0x20000
    loop: lw a1, 0(a0)
        .ttinsn 0x02000000
        .ttinsn 0x02000000
        li a3, 90
        bltu a1, a3, loop
        sw a1, 4(a2)
        sw a1, 0(a2)
    end: j end
    """,
    "T2": """
        li a2, 0x20000
    poll: lw a1, 0(a2)
        beqz a1, poll
        li a4, 0xffb121f0
        lw a5, 0(a4)
        sw a5, 8(a2)
    end: j end
    """,
}


@pytest.mark.rule("tile K42", "tile T34")
@pytest.mark.parametrize("clocks", [1, 7, 60, 400, 1000])
def test_watching_changes_nothing_of_what_cores_do(clocks: int) -> None:
    """Mailboxes that block, polls that sleep and pushes happen in the same rounds, watched or not."""
    tiles = []
    for watches in (False, True):
        tile = machine(EVERYBODY_TALKS)
        if watches:
            for core in EVERYBODY_TALKS:
                DebugClient(tile, core).watch(0, 0x100, 11)
        tile.clock(clocks)
        assert watches or clocks < 400 or tile.cores["T2"].state == "polling"
        tiles.append(tile)
    plain, watched_tile = tiles
    for core in EVERYBODY_TALKS:
        assert plain.cores[core].pc == watched_tile.cores[core].pc
        assert plain.cores[core].x.tolist() == watched_tile.cores[core].x.tolist()
        assert plain.cores[core].retired == watched_tile.cores[core].retired
    assert (plain.l1 == watched_tile.l1).all()
    assert plain.record.clock == watched_tile.record.clock
    assert plain.record.mailbox_count.tolist() == watched_tile.record.mailbox_count.tolist()
    assert word(plain, SCRATCH + 8) == word(watched_tile, SCRATCH + 8)
    assert (word(plain) != 0) == (clocks >= 400)
