"""Going back in time: every state is the one that the run forward had shown."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bhemu import Machine
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.chip_session import ChipDebug
from bhemu.debugger.history import LEAST
from bhemu.debugger.runner import digest
from bhemu.debugger.session import DebugSession
from tests.debugger.debug_programs import CALL_NAMES, CALLS, session_of
from tests.debugger.rsp_client import serving
from tests.debugger.test_chip_session import PLACES, started

pytestmark = pytest.mark.plain

COUNTER = """
        start:  li a1, 0x30000
                li a0, 0
        loop:   addi a0, a0, 1
                sw a0, 0(a1)
                slli a2, a0, 2
                add a2, a2, a1
                sw a0, 256(a2)
                li a3, 60
                blt a0, a3, loop
        done:   ebreak
"""
POLLER = """
        start:  li a1, 0x30000
                li a3, 40
        wait:   lw a0, 0(a1)
                blt a0, a3, wait
                sw a0, 64(a1)
        done:   ebreak
"""
COUNTED, ANSWER = 0x30000, 0x30040
TENSIX = """
        start:  li a0, 0xFFE40000
                li a1, 0x45123456
                li a4, 20
        loop:   .ttinsn 0x45000118
                .ttinsn 0x45000218
                addi a4, a4, -1
                bnez a4, loop
        done:   ebreak
"""


def two_cores() -> DebugSession:
    """Core T1 counts in L1, core T2 polls for 40."""
    return session_of({"T1": COUNTER, "T2": POLLER}, functions=("start", "loop", "wait", "done"))


def run_to(session: DebugSession, clock: int) -> None:
    """Let a machine run to a clock, halts or not."""
    while session.clock < clock:
        session.until(clock - session.clock)


def clocks_and_digests(session: DebugSession, clocks: list[int]) -> dict[int, bytes]:
    """Digests of a machine that has run to each of these clocks."""
    found = {}
    for clock in clocks:
        run_to(session, clock)
        found[clock] = digest(session.runner)
    return found


def test_states_of_a_tile_at_random_clocks_are_those_of_the_run_forward() -> None:
    session, random_ = two_cores(), random.Random(5)
    session.runner.interval = 50
    clocks = sorted(random_.sample(range(1, 500), 25))
    forward = clocks_and_digests(session, clocks)
    run_to(session, 500)
    for clock in random_.sample(clocks, len(clocks)):
        session.go_to(clock)
        assert (session.clock, digest(session.runner)) == (clock, forward[clock])
        run_to(session, 500)


def test_reverse_step_goes_through_the_states_of_the_steps_forward() -> None:
    session = two_cores()
    core = session.number_of_core("T1")
    states = [digest(session.runner)]
    for _ in range(60):
        session.step(core)
        states.append(digest(session.runner))
    for expected in reversed(states[:-1]):
        stop = session.reverse_step(core)
        assert stop.reason == "step"
        assert digest(session.runner) == expected
    assert session.reverse_step(core).reason == "beginning"


def test_reverse_step_of_several_instructions_is_several_steps() -> None:
    one, other = two_cores(), two_cores()
    for session in (one, other):
        session.step("T1", 100)
    for _ in range(7):
        one.reverse_step("T1")
    other.reverse_step("T1", 7)
    assert digest(one.runner) == digest(other.runner)
    assert one.clock == other.clock


def test_reverse_continue_visits_the_stops_of_the_run_forward_in_reverse() -> None:
    session = two_cores()
    session.runner.interval = 40
    session.break_at("loop", cores=["T1"])
    session.watch_memory(ANSWER)
    stops, states = [], []
    while (stop := session.continue_()).reason != "idle":
        if stop.reason != "halt":
            stops.append((stop.reason, stop.clock, stop.pc))
            states.append(digest(session.runner))
    assert len(stops) == 61
    for expected, state in zip(reversed(stops), reversed(states), strict=True):
        stop = session.reverse_continue()
        assert (stop.reason, stop.clock, stop.pc) == expected
        assert digest(session.runner) == state
    stop = session.reverse_continue()
    assert (stop.reason, stop.clock) == ("beginning", 0)


def test_run_that_went_back_comes_to_the_same_end() -> None:
    session = two_cores()
    while session.continue_().reason == "halt":
        pass
    end = digest(session.runner)
    session.reverse_step("T1", 50)
    while session.continue_().reason == "halt":
        pass
    assert digest(session.runner) == end


def test_hit_counts_and_temporary_breakpoints_survive_the_way_back() -> None:
    session = two_cores()
    item = session.break_at("loop", cores=["T1"])
    once = session.break_at("done", cores=["T1"], temporary=True)
    item.ignore = 3
    session.until(40)
    hits = item.hits
    session.reverse_step("T1", 2)
    assert (item.hits, item.ignore) == (hits, 0)
    assert once in session.points()


def test_what_the_user_writes_is_a_border_that_can_be_crossed() -> None:
    session = two_cores()
    session.step("T1", 20)
    before = digest(session.runner)
    session.write_memory(COUNTED + 4, (7).to_bytes(4, "little"))
    session.runner.set_register(session.number_of_core("T1"), 10, 50)
    written = digest(session.runner)
    session.step("T1", 5)
    assert session.reverse_step("T1", 5).reason == "step"
    assert digest(session.runner) == written
    assert session.reverse_step("T1").reason == "step"
    session.step("T1")
    assert digest(session.runner) == before  # without what was written


def test_what_other_code_writes_is_noticed_and_refused() -> None:
    session = two_cores()
    session.step("T1", 20)
    session.record.l1_u32[0x40000 >> 2] = 9
    session.step("T1", 20)
    session.break_at("loop", cores=["T1"])
    with pytest.raises(DebugError, match="outside of the session"):
        session.reverse_continue()
    assert session.record.l1_u32[0x40000 >> 2] == 9
    with pytest.raises(DebugError, match="nothing has run"):
        session.reverse_step("T1")


def test_snapshots_stay_within_their_limit_and_thin_out_with_age() -> None:
    session = two_cores()
    history = session.runner.history
    session.runner.interval = 4
    history.limit = 12 * session.record.nbytes
    session.until(600)
    assert LEAST < len(history.checkpoints) <= 12
    assert history.size <= history.limit
    clocks = [item.clock for item in history.checkpoints]
    assert clocks[0] == 0
    assert clocks[-1] - clocks[-2] < clocks[2] - clocks[0]
    session.go_to(77)
    forward = two_cores()
    forward.until(77)
    assert digest(session.runner) == digest(forward.runner)


def test_last_write_names_the_store_and_its_place() -> None:
    session = two_cores()
    session.continue_()
    now = digest(session.runner)
    stop = session.last_write(session.watch_memory(ANSWER))
    assert stop is not None
    assert "0x00000000 -> 0x00000028" in stop.text
    assert "core T2 at " in stop.text
    assert "sw a0, 64(a1)" in stop.text
    assert digest(session.runner) == now


def test_last_write_sees_a_change_in_which_the_session_has_stopped() -> None:
    session = two_cores()
    watch = session.watch_memory(ANSWER)
    assert session.continue_().reason == "watch"
    stop = session.last_write(watch)
    assert stop is not None
    assert "sw a0, 64(a1)" in stop.text


def test_last_write_sees_a_store_of_the_same_value() -> None:
    session = session_of({"T1": "li a1, 0x30000\nsw zero, 8(a1)\nnop\nebreak"})
    session.continue_()
    stop = session.last_write(session.watch_memory(COUNTED + 8))
    assert stop is not None
    assert "the same value, by core T1" in stop.text


def test_last_write_of_a_register_and_of_what_was_never_written() -> None:
    session = two_cores()
    session.continue_()
    stop = session.last_write(session.watch_register("$a3", "T1"))
    assert stop is not None
    assert "addi a3, zero, 60" in stop.text
    assert session.last_write(session.watch_memory(0x50000)) is None


def test_last_write_of_a_general_purpose_register_file_row_names_the_thread() -> None:
    session = session_of({"T1": TENSIX})
    session.continue_()
    stop = session.last_write(session.watch(lambda s: s.record.gpr[1].tobytes().hex(), "gprs"))
    assert stop is not None
    assert "thread 1 (math): SETDMAREG" in stop.text


def test_history_that_is_off_refuses_to_go_back() -> None:
    session = two_cores()
    session.runner.history.enabled = False
    session.step("T1", 5)
    with pytest.raises(DebugError, match="history of this session is off"):
        session.reverse_step("T1")


def test_refused_way_back_leaves_the_session_where_it_is() -> None:
    session = two_cores()
    session.until(100)
    now = digest(session.runner)
    session.poll = lambda: True
    session.break_at("done")
    with pytest.raises(DebugError, match="interrupted"):
        session.reverse_continue()
    session.poll = None
    assert digest(session.runner) == now
    assert session.clock == 100


def chip_digests(debug: ChipDebug) -> bytes:
    return debug.fingerprint()


def test_states_of_a_chip_at_random_clocks_are_those_of_the_run_forward(tmp_path: Path) -> None:
    debug, random_ = ChipDebug(started(tmp_path), PLACES), random.Random(6)
    debug.interval = 10
    session = debug[2, 2]
    clocks = sorted(random_.sample(range(1, 60), 12))
    forward = {}
    for clock in clocks:
        run_to(session, clock)
        forward[clock] = chip_digests(debug)
    run_to(session, 80)
    for clock in random_.sample(clocks, len(clocks)):
        session.go_to(clock)
        assert (debug.clock, chip_digests(debug)) == (clock, forward[clock])
        run_to(session, 80)


def test_chip_goes_back_to_breakpoints_of_both_tiles(tmp_path: Path) -> None:
    debug = ChipDebug(started(tmp_path), PLACES)
    debug.interval = 16
    for place in PLACES:
        debug[place].break_on("sw")
        debug[place].break_on("lw")
    stops, states = [], []
    place = (1, 2)
    while (stop := debug[place].continue_()).reason == "breakpoint" and len(stops) < 12:
        assert stop.place is not None
        place = stop.place
        stops.append((stop.place, stop.clock, stop.pc))
        states.append(chip_digests(debug))
    assert {place for place, _, _ in stops} == set(PLACES)
    for expected, state in list(zip(reversed(stops), reversed(states), strict=True)):
        stop = debug[1, 2].reverse_continue()
        assert (stop.place, stop.clock, stop.pc) == expected
        assert chip_digests(debug) == state


def test_chip_steps_back_through_the_states_of_its_steps(tmp_path: Path) -> None:
    debug = ChipDebug(started(tmp_path), PLACES)
    session = debug[1, 2]
    states = [chip_digests(debug)]
    for _ in range(8):
        session.step()
        states.append(chip_digests(debug))
    for expected in reversed(states[:-1]):
        session.reverse_step()
        assert chip_digests(debug) == expected


def test_last_write_of_what_another_tile_has_sent(tmp_path: Path) -> None:
    from tests.cli.test_chip import TARGET

    debug = ChipDebug(started(tmp_path), PLACES)
    debug[2, 2].continue_()
    stop = debug[2, 2].last_write(debug[2, 2].watch_memory(TARGET))
    assert stop is not None
    assert stop.place == (2, 2)
    assert "0x00001234, by no core or thread of this tile: a NoC request" in stop.text


def test_gdb_goes_back_by_packets() -> None:
    session = session_of({"B": CALLS}, functions=CALL_NAMES)
    with serving(session) as gdb:
        assert "ReverseStep+;ReverseContinue+" in gdb.ask("qSupported:multiprocess+")
        gdb.ask("Hg1")
        assert gdb.ask(f"Z0,{session.address_of('inner'):x},4") == "OK"
        assert "swbreak" in gdb.ask("c")
        at_inner = gdb.registers()
        assert gdb.ask("s").startswith("T05")
        assert gdb.registers()[32] == at_inner[32] + 4
        assert gdb.ask("bs").startswith("T05")
        assert gdb.registers() == at_inner
        gdb.ask("c")
        assert "swbreak" in gdb.ask("bc")
        assert gdb.registers() == at_inner
        assert "replaylog:begin" in gdb.ask("bc")
        assert gdb.ask("bx") == "E01"


def test_timeline_begins_with_the_first_run() -> None:
    machine = Machine()
    session = DebugSession(machine)
    with pytest.raises(DebugError, match="nothing has run in this session yet"):
        session.reverse_continue()
