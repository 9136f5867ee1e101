"""A debugging session stops where it is told to, shows the state of every agent then, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from bhemu import Machine, Tile
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.errors import BhemuError
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import BY_OPCODE
from bhemu.machine.state import state_field
from bhemu.tile.cores import CODE
from tests.debugger.debug_programs import CALL_NAMES, CALLS, ENTRY, program, session_of

pytestmark = pytest.mark.plain

COUNTER = """
        start:  li t0, 0
                li t2, 0x20000
        loop:   addi t0, t0, 1
                sw t0, 0(t2)
                j loop
"""
ALONE = """
        start:  li t0, 0
        loop:   addi t0, t0, 1
                xor t1, t1, t0
                j loop
"""
FOLLOWER = """
        start:  li t1, 0x20000
                li t3, 300
        poll:   lw t2, 0(t1)
                blt t2, t3, poll
        after:  addi a0, zero, 5
        store:  sw a0, 4(t1)
        end:    j end
"""


OBSERVED = ("l1", "sync.semaphore", "dst", "issued", "gpr", "frontend.fifo_count")


def state_of(session: DebugSession) -> dict[str, object]:
    """What a program can observe, and where every core is."""
    record, runner = session.record, session.runner
    shown = {name: state_field(record, name).tobytes() for name in OBSERVED}
    cores = [(s.pc, s.x.tobytes(), s.retired) for s in (runner.state(core) for core in range(5))]
    return {**shown, "cores": cores, "clock": session.clock}


def push(mnemonic: str) -> str:
    return f".ttinsn {assemble(mnemonic):#x}"


TENSIX = f"""
        start:  li t0, 20
        loop:   {push("SETDMAREG 0, 1, 0, 4")}
                {push("SEMPOST 2")}
                {push("NOP")}
                {push("SEMGET 2")}
                {push("SETADCXX 1, 5, 0")}
                addi t0, t0, -1
                bnez t0, loop
        end:    j end
"""


# --- exactness ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stops", ["breakpoint", "steps", "watch", "mnemonic", "rounds"])
def test_a_debugged_run_ends_as_one_without_a_debugger(stops: str) -> None:
    programs = {"B": COUNTER, "T0": FOLLOWER, "T1": TENSIX, "NC": ALONE}
    reference = session_of(programs)
    reference.until(2100)
    session = session_of(programs)
    if stops == "breakpoint":
        session.break_at(ENTRY["B"] + 12, cores=["B"], condition="$t0 % 50 == 0")
        session.break_at(ENTRY["T0"] + 8)  # in a polling loop
    elif stops == "steps":
        for core in ("T1", "B", "T0", "NC") * 20:
            session.step(core)
    elif stops == "watch":
        session.watch_memory(0x20004)
        session.watch_semaphore(1)
    elif stops == "mnemonic":
        session.break_on("SEMPOST")
        session.break_on("xor")
    else:
        for _ in range(100):
            session.until(1)
    counted = 0
    while session.clock < reference.clock or session.runner._inside is not None:
        stop = session.until(max(1, reference.clock - session.clock))
        counted += stop.reason in ("breakpoint", "watch")
        if counted == 30:
            session.delete()
    if stops in ("breakpoint", "watch", "mnemonic"):
        assert counted > 3
    assert state_of(session) == state_of(reference)


def test_other_cores_stand_where_the_clock_says_when_one_stops() -> None:
    session = session_of({"B": ALONE, "T0": FOLLOWER.replace("300", "0"), "T1": COUNTER})
    session.break_at(ENTRY["T0"] + 4 * 4)
    stop = session.continue_()
    assert stop.reason == "breakpoint"
    assert stop.core == 1
    # Nothing takes more than a clock an instruction here; cores that move before T0 have had their turn.
    rounds = session.runner.next_round(1)
    assert session.runner.state(0).retired == rounds + 1
    assert session.runner.state(1).retired == rounds
    assert session.runner.state(2).retired == rounds


def test_a_session_takes_over_where_a_run_of_the_machine_has_stopped() -> None:
    def machine() -> Machine:
        made = Machine()
        made.load(program(CALLS, ENTRY["T0"], CALL_NAMES), "T0")
        made.load(program(COUNTER, ENTRY["T1"]), "T1")
        made.start()
        return made

    reference = DebugSession(machine())
    while reference.clock < 5000:
        reference.until(5000 - reference.clock)
    stopped = machine()
    stopped.run(until="inner", max_clocks=4000)
    session = DebugSession(stopped)
    assert session.where("T0").endswith("inner")
    session.step("T0")
    assert session.runner.state(1).pc == stopped.address_of("inner") + 4
    while session.clock < 5000:
        session.until(5000 - session.clock)
    assert state_of(session) == state_of(reference)


def test_other_tiles_of_the_process_do_not_stop() -> None:
    session = session_of({"T0": ALONE})
    session.break_at(ENTRY["T0"] + 4)
    session.break_on("xor")
    session.continue_()
    assert CODE[0].breakpoint_count == 0
    assert not CODE[0].breakpoint_number.any()
    machine = Machine()
    machine.load(program(ALONE, ENTRY["T0"]), "T0")
    machine.start()
    assert machine.tile.cores.advance(10) is None
    assert machine.tile.cores["T0"].retired == 10


# --- stepping -----------------------------------------------------------------------------------------------------


def test_a_step_is_one_instruction_and_moves_the_others_on() -> None:
    session = session_of({"B": COUNTER, "T0": ALONE})
    before = session.runner.state(0).retired
    for executed in range(1, 20):
        stop = session.step("T0")
        assert stop.reason == "step"
        assert session.runner.state(1).retired == executed + 1  # one in the clock of B's jump
    assert session.runner.state(0).retired - before == 19


def test_steps_of_several_instructions() -> None:
    session = session_of({"T1": ALONE})
    session.step("T1", 1000)
    assert session.runner.state(2).retired == 1000


def test_a_polling_core_is_stepped_through_its_loop() -> None:
    session = session_of({"T0": FOLLOWER})
    session.until(5000)
    assert session.tile.cores.record.core_state[1] == 3  # asleep
    first = session.runner.state(1).pc
    pcs = []
    for _ in range(4):
        session.step("T0")
        pcs.append(session.runner.state(1).pc)
    assert pcs[1] == pcs[3] == first
    assert {pcs[0], first} == {ENTRY["T0"] + 8, ENTRY["T0"] + 12}


def test_looking_at_a_polling_core_does_not_wake_it() -> None:
    session = session_of({"T0": FOLLOWER})
    session.until(5000)
    before = session.tile.snapshot()
    assert session.runner.state(1).retired == 5000
    session.where("T0")
    session.backtrace("T0")
    assert session.tile.snapshot() == before


def test_step_of_a_blocked_core_says_what_it_waits_for() -> None:
    session = session_of({"T0": "start: li t0, 0xffec0000\n lw t1, 0(t0)\n ebreak"})  # the mailbox of B
    session.step("T0")
    stop = session.step("T0", clocks=1000)
    assert stop.reason == "idle"
    assert "T0 has made no progress" in stop.text
    assert "mailbox from B" in stop.text


@pytest.mark.parametrize(("make", "text"), [("halt", "has halted: ebreak"), ("reset", "is in reset")])
def test_a_core_that_cannot_execute_is_not_stepped(make: str, text: str) -> None:
    session = session_of({"T0": "ebreak"})
    if make == "halt":
        assert session.continue_().reason == "halt"
    with pytest.raises(DebugError, match=text):
        session.step("T0" if make == "halt" else "T1")


def test_next_runs_a_call_to_its_end() -> None:
    session = session_of({"T0": CALLS}, functions=CALL_NAMES)
    session.step("T0", 2)
    stop = session.next("T0")
    assert stop.reason == "step"
    assert session.runner.state(1).pc == ENTRY["T0"] + 12
    assert int(session.runner.state(1).x[10]) == 9


def test_next_stops_at_a_breakpoint_in_the_call() -> None:
    session = session_of({"T0": CALLS}, functions=CALL_NAMES)
    session.step("T0", 2)
    session.break_at("inner")
    assert session.next("T0").reason == "breakpoint"
    assert session.where("T0").endswith("inner")


def test_finish_and_guessed_stack() -> None:
    session = session_of({"T0": CALLS}, functions=CALL_NAMES)
    session.break_at("inner")
    session.continue_()
    frames = session.backtrace("T0")
    names = [session.describe(1, frame.pc).split()[1] for frame in frames]
    assert names == ["inner", "outer+0x14", "start+0xc"]
    assert [frame.is_guess for frame in frames] == [False, True, True]
    session.finish("T0")
    assert session.where("T0").split()[1] == "outer+0x14"
    session.finish("T0")
    assert session.where("T0").split()[1] == "start+0xc"
    with pytest.raises(DebugError, match="outermost"):
        session.finish("T0")


# --- breakpoints --------------------------------------------------------------------------------------------------


def test_a_breakpoint_of_one_core_does_not_stop_another_at_the_same_address() -> None:
    session = session_of({"T0": ALONE, "T1": ALONE})
    session.runner.set_pc(2, ENTRY["T0"])  # both run the same code
    session.break_at(ENTRY["T0"] + 4, cores=["T1"])
    for hits in range(1, 4):
        stop = session.continue_()
        assert (stop.reason, stop.core) == ("breakpoint", 2)
        assert stop.breakpoint is not None
        assert stop.breakpoint.hits == hits
    assert int(session.runner.state(1).x[5]) > 1


def test_all_cores_stop_at_a_breakpoint_one_after_the_other() -> None:
    session = session_of({"T0": ALONE, "T1": ALONE, "T2": ALONE})
    for core in (2, 3):
        session.runner.set_pc(core, ENTRY["T0"])
    session.break_at(ENTRY["T0"] + 8)
    assert [session.continue_().core for _ in range(6)] == [1, 2, 3, 1, 2, 3]


def test_conditions_ignore_counts_and_temporary_breakpoints() -> None:
    session = session_of({"T0": ALONE})
    item = session.break_at(ENTRY["T0"] + 8, condition="$t0 == 400")
    session.continue_()
    assert int(session.runner.state(1).x[5]) == 400
    session.set_condition(item, None)
    item.ignore = 9
    session.continue_()
    assert int(session.runner.state(1).x[5]) == 410
    item.enabled = False
    session.break_at(ENTRY["T0"] + 4, temporary=True)
    session.continue_()
    assert session.points() == [item]
    assert session.continue_(1000).reason == "limit"


def test_a_condition_sees_memory_as_it_is_in_that_round() -> None:
    session = session_of({"B": COUNTER, "T0": ALONE})
    session.break_at(ENTRY["T0"] + 4, cores=["T0"], condition="*0x20000 == 77")
    session.continue_()
    assert session.tile.record.l1_u32[0x8000] == 77


def test_a_breakpoint_in_a_polling_loop_is_reached() -> None:
    session = session_of({"T0": FOLLOWER})
    session.until(3000)
    session.break_at(ENTRY["T0"] + 8)
    stop = session.continue_()
    assert (stop.reason, stop.pc) == ("breakpoint", ENTRY["T0"] + 8)
    assert stop.clock <= 3002


def test_a_breakpoint_among_adjacent_tensix_words_stops_before_the_group() -> None:
    session = session_of({"T1": f"start: nop\n{push('NOP')}\n{push('NOP')}\n{push('SEMPOST 2')}\nend: j end"})
    session.break_at(ENTRY["T1"] + 12)
    stop = session.continue_()
    assert stop.pc == ENTRY["T1"] + 4
    assert "pushed in one round with this one" in stop.text
    assert session.continue_().reason == "idle"


def test_breakpoints_on_riscv_instructions() -> None:
    session = session_of({"T0": CALLS, "T1": ALONE}, functions=CALL_NAMES)
    session.break_on("slli")
    stop = session.continue_()
    assert (stop.core, session.where("T0").split()[1]) == (1, "inner")
    session.break_on("XOR", cores=["T1"])
    assert session.continue_().core == 2
    session.delete()
    session.break_on(".ttinsn")
    assert session.continue_(500).reason in ("limit", "halt")


def test_breakpoints_on_tensix_instructions() -> None:
    session = session_of({"T1": TENSIX})
    item = session.break_on("sempost", threads=[1])
    for times in (1, 2, 3):
        stop = session.continue_()
        assert stop.breakpoint is item
        assert "thread 1 (math) has executed SEMPOST" in stop.text
        assert "pushed by T1 at 0x14008" in stop.text
        assert session.record.sync.semaphore[1] == 1
        assert item.hits == times
    item.ignore = 5
    before = session.record.issued.copy()
    session.continue_()
    assert (session.record.issued - before)[1, item.opcode] == 6


def test_more_breakpoints_than_places_are_refused() -> None:
    session = session_of({"T0": ALONE})
    session.record.l1_u32[0x10000:0x10100] = 0x13  # words of zeros are Tensix words
    for at in range(65):
        session.break_at(0x40000 + 4 * at)
    with pytest.raises(DebugError, match="65 addresses"):
        session.continue_()


# --- watchpoints --------------------------------------------------------------------------------------------------

CHANGES = f"""
        start:  li t0, 0x20000
                li t1, 0xffb00000
                nop
        store:  sb t0, 1(t0)
                li a0, 9
                sb a0, 2(t0)
        ram:    sw a0, 4(t1)
        load:   lhu a1, 2(t0)
                {push("SEMINIT 3, 2, 1")}
                {push("SETC16 5, 77")}
                {push("SETDMAREG 0, 5, 0, 0")}
                {push("WRCFG 0, 0, 1")}
        end:    j end
"""


def watched(make: Callable[[DebugSession], object], program: str = CHANGES) -> tuple[str, int, DebugSession]:
    session = session_of({"T1": program})
    make(session)
    stop = session.continue_()
    assert stop.reason == "watch", stop
    assert stop.watch is not None
    return stop.text, session.runner.state(2).pc - ENTRY["T1"], session


def test_watch_on_memory_names_the_bytes_that_changed() -> None:
    text, at, session = watched(lambda s: s.watch_memory(0x20002, 1))
    assert "0x20002: 0x00 -> 0x09" in text
    assert at == 4 * 6
    assert session.clock == 6


def test_watch_on_local_ram() -> None:
    text, at, _ = watched(lambda s: s.watch_memory(0xFFB00004, 4, "T1"))
    assert "0x00000000 -> 0x00000009" in text
    assert at == 4 * 7


def test_watch_on_a_register() -> None:
    text, at, _ = watched(lambda s: s.watch_register("a0", "T1"))
    assert "0 -> 9" in text
    assert at == 4 * 5


def test_read_and_access_watches() -> None:
    text, at, _ = watched(lambda s: s.watch_memory(0x20003, 1, kind="read"))
    assert "load of 2 bytes at 0x20002 by core T1" in text
    assert at == 4 * 8
    text, at, _ = watched(lambda s: s.watch_memory(0x20001, 1, kind="access"))
    assert "store of 1 bytes at 0x20001" in text
    assert at == 4 * 4


def test_watch_on_a_semaphore() -> None:
    text, _, session = watched(lambda s: s.watch_semaphore(0), CHANGES)
    assert "0 -> 2" in text
    assert session.record.sync.semaphore[0] == 2


def test_watch_on_a_thread_config_field() -> None:
    from bhemu.isa.registers import THREAD_FIELDS

    name = next(f.name for f in THREAD_FIELDS.values() if f.word == 5)
    _, _, session = watched(lambda s: s.watch_config(name, 1))
    assert session.tile.config.for_thread(1)[name] == 77 & ((1 << THREAD_FIELDS[name].width) - 1)


def test_watch_on_dst() -> None:
    text, _, _ = watched(lambda s: s.watch_file("dst"), f"start: {push('ZEROACC 3, 0, 0, 1, 0')}\nend: j end")
    assert "Dst" in text


def test_watch_on_a_python_function_says_the_clock() -> None:
    session = session_of({"B": COUNTER})
    session.watch(lambda s: int(s.record.l1_u32[0x8000]) // 100, "hundreds")
    stop = session.continue_()
    assert "0 -> 1" in stop.text
    assert stop.clock == 2 + 1 + 3 * 99 + 2


# --- other ends ---------------------------------------------------------------------------------------------------


def test_halts_idle_limits_and_interrupts() -> None:
    session = session_of({"T0": "start: nop\n ebreak", "T1": "start: j start"})
    stop = session.continue_()
    assert (stop.reason, stop.core, stop.clock) == ("halt", 1, 2)
    assert session.continue_().reason == "idle"
    before = session.clock
    stop = session.until(1234)
    assert (stop.reason, session.clock) == ("limit", before + 1234)
    running = session_of({"B": COUNTER})
    asked = iter([False] * 3 + [True] * 100)
    running.poll = lambda: next(asked)
    assert running.continue_().reason == "interrupted"


def test_a_refused_instruction_stops_in_its_clock_and_the_tile_lives_on() -> None:
    session = session_of({"B": COUNTER, "T0": "start: li t0, 3000\nl: addi t0, t0, -1\n bnez t0, l\n .word 0xffffffff"})
    stop = session.continue_()
    assert stop.reason == "fault"
    assert stop.core == 1
    assert stop.clock == 2 + 6000
    assert "0xffffffff would be" in stop.text
    assert session.until(10).reason == "limit"


def test_a_refused_tensix_instruction_stops() -> None:
    unknown = next(opcode for opcode in range(0xC0) if BY_OPCODE[opcode] is None)
    session = session_of({"B": COUNTER, "T1": f"start: nop\n{push('NOP')}\n.ttinsn {unknown << 24:#x}\nend: j end"})
    stop = session.continue_()
    assert stop.reason == "fault"
    assert "pushed by core T1" in stop.text
    assert session.until(10).reason == "limit"


def test_semihosting_is_served() -> None:
    from bhemu.api.semihosting import Semihosting

    written: list[bytes] = []
    text = """
        start:  li a7, 64
                li a0, 1
                la a1, text
                li a2, 3
                ecall
                li a7, 93
                li a0, 4
                ecall
        text:   .byte 0x61, 0x62, 0x63
    """
    session = session_of({"B": text})
    session.runner.semihosting = Semihosting(lambda _, content: written.append(content))
    stop = session.continue_()
    assert (stop.reason, written) == ("exit", [b"abc"])
    assert "exit(4)" in stop.text


# --- names and memory ---------------------------------------------------------------------------------------------


def test_missing_symbols_name_near_ones() -> None:
    session = session_of({"T0": CALLS}, functions=CALL_NAMES)
    with pytest.raises(DebugError) as error:
        session.break_at("iner")
    assert "did you mean inner" in str(error.value)
    with pytest.raises(DebugError, match="'FROB'") as error:
        session.break_on("FROB")
    with pytest.raises(DebugError) as error:
        session.break_on("sempst")
    assert "SEMPOST" in str(error.value)
    with pytest.raises(BhemuError, match="not an instruction in L1"):
        session.break_at(0x10002)
    with pytest.raises(BhemuError):
        session.break_at("inner", cores=["T7"])
    with pytest.raises(DebugError, match="line 12"):
        session.break_at("kernel.c:12")


def test_expressions_see_registers_symbols_and_memory() -> None:
    text = "start: li t0, 0x20\n j start\nvalue: .word 1234"
    session = session_of({"T0": text}, functions=("start",), objects=("value",))
    session.step("T0")
    assert session.value("$t0 + 1") == 0x21
    assert session.value("start") == ENTRY["T0"]
    assert session.value("value") == 1234
    assert session.value("*&value") == 1234
    assert session.value("$pc") == ENTRY["T0"] + 4
    with pytest.raises(DebugError, match="no register"):
        session.value("$q0")


def test_memory_is_read_without_a_trace() -> None:
    session = session_of({"T0": ALONE})
    session.tile.l1[0x300:0x304] = (1, 2, 3, 4)
    session.tile.cores["T0"].local_ram[:2] = (5, 6)
    before = session.tile.snapshot()
    assert session.read_memory(0x301, 2) == b"\2\3"
    assert session.read_memory(0xFFB00000, 2, "T0") == b"\5\6"
    assert session.read_memory(0xFFB121B0, 4, "T0") == int(session.record.soft_reset).to_bytes(4, "little")
    assert len(session.read_memory(0xFFE80020, 8, "T0")) == 8
    for address in (0xFFEC0000, 0xFFE80000, 0xFFE80004):
        with pytest.raises(DebugError, match="takes a word"):
            session.read_memory(address, 4, "T0")
    for address, size in ((0x17FFFE, 4), (0xFFB01000, 4), (0x200000, 4), (0xFFFFFFFE, 4), (-1, 1)):
        with pytest.raises(DebugError):
            session.read_memory(address, size, "T0")
    assert session.tile.snapshot() == before


def test_memory_and_registers_are_written() -> None:
    session = session_of({"T0": FOLLOWER})
    session.write_memory(0x20000, (400).to_bytes(4, "little"))
    session.until(100)
    assert session.record.l1_u32[0x8001] == 5
    session.write_memory(0xFFB00010, b"abc", "T0")
    assert bytes(session.tile.cores["T0"].local_ram[16:19]) == b"abc"
    with pytest.raises(DebugError, match="cannot be written"):
        session.write_memory(0xFFE80021, b"a", "T0")
    session.runner.set_pc(1, ENTRY["T0"])
    session.runner.set_register(1, 0, 7)
    session.runner.set_register(1, 10, 7)
    now = session.runner.state(1)
    assert (now.pc, int(now.x[0]), int(now.x[10])) == (ENTRY["T0"], 0, 7)


def test_a_register_that_a_debugger_writes_ends_a_polling_loop() -> None:
    session = session_of({"T0": FOLLOWER})
    session.until(3000)
    session.runner.set_register(1, 28, 0)  # t3: the number that is waited for
    session.until(20)
    assert session.record.l1_u32[0x8001] == 5


def test_a_tile_without_programs() -> None:
    session = DebugSession(Tile())
    assert session.core == 0
    assert np.all(session.runner.state(0).x == 0)
    assert session.until(5).reason == "limit"
    with pytest.raises(DebugError, match="in reset"):
        session.step()


@pytest.mark.parametrize("asked", [1, 2, 5, 11])
def test_a_keyboard_interrupt_leaves_a_tile_that_goes_on_exactly(asked: int) -> None:
    programs = {"B": COUNTER, "T0": FOLLOWER, "T1": TENSIX}
    reference = session_of(programs)
    reference.until(1500)
    session = session_of(programs)
    left = asked

    def interrupt(_: DebugSession) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt
        return 0

    item = session.watch(interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.until(1500)
    session.delete(item.number)
    assert CODE[0].breakpoint_count == 0
    while session.clock < reference.clock:
        session.until(reference.clock - session.clock)
    assert state_of(session) == state_of(reference)
