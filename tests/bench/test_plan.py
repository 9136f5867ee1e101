"""Plans for the replayer: what the host's memory holds when, and which waits they make of a client's polls."""

from __future__ import annotations

import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.bench.calls import FIGURES, microbench
from bhemu.bench.plan import Kind, Plan, host_puts, make_plan
from bhemu.compare.calls import CLOCK, EXIT, INIT, READ, Call, Ended, clock
from tests.bench.client_streams import AIM, DONE, RESULT, answered, poll, polling_stream, waiting_stream

pytestmark = pytest.mark.plain

MEMORY = 512
ACTS = st.one_of(
    st.tuples(st.just("host"), st.integers(0, MEMORY - 1), st.binary(min_size=1, max_size=150)),
    st.tuples(st.just("read"), st.integers(0, MEMORY - 1), st.integers(1, 150)),
    st.tuples(st.just("write"), st.integers(0, MEMORY - 1), st.binary(min_size=1, max_size=150)),
)


@given(st.lists(ACTS, max_size=30))
def test_puts_give_the_chip_what_it_read_when_it_was_recorded(acts: list[tuple[str, int, bytes | int]]) -> None:
    """Host, chip and replay each have a memory of their own; a call holds one access of the chip."""
    memory, calls = bytearray(MEMORY + 150), [Call(INIT)]
    for who, address, what in acts:
        if who == "read":
            assert isinstance(what, int)
            calls.append(Call(CLOCK, 1, host=((address, bytes(memory[address : address + what])),)))
            continue
        assert isinstance(what, bytes)
        memory[address : address + len(what)] = what
        if who == "write":
            calls.append(Call(CLOCK, 1, host_writes=((address, what),)))
    puts, image = host_puts(calls), bytearray(MEMORY + 150)
    for number, call in enumerate(calls):
        for address, content in puts.get(number, ()):
            image[address : address + len(content)] = content
        for address, content in call.host:
            assert image[address : address + len(content)] == content
        for address, content in call.host_writes:
            image[address : address + len(content)] = content


def test_the_hosts_memory_is_filled_as_early_as_the_recording_allows() -> None:
    first, second = bytes(64), b"\1" * 64
    read_first, read_second = (Call(CLOCK, 1, host=((0x1000, content),)) for content in (first, second))
    calls = [Call(INIT), clock(1), read_first, clock(1), clock(1), read_second]
    assert host_puts(calls) == {0: [(0x1000, first)], 3: [(0x1000, second)]}


def kinds(plan: Plan) -> Counter[Kind]:
    """How many operations of each kind a plan has."""
    packed = plan.packed()
    _, count, at, _, _, _ = struct.unpack_from("<8sQQQQQ", packed)
    return Counter(Kind(struct.unpack_from("<I", packed, at + 32 * i)[0]) for i in range(count))


def test_an_exact_plan_has_the_recorded_calls() -> None:
    calls = polling_stream()
    found = kinds(make_plan(calls, exact=True))
    assert found[Kind.READ] == sum(call.name == READ for call in calls)
    assert found[Kind.CLOCK] == sum(call.name == CLOCK for call in calls)
    assert found[Kind.POLL] == 0


def test_polls_become_one_step_that_is_repeated() -> None:
    found = kinds(make_plan(polling_stream(pieces=1)))
    assert found[Kind.READ] == 3  # the card's word, the engine's count, the result
    assert found[Kind.POLL] == 3


def test_a_client_that_waits_for_its_own_memory_becomes_a_wait() -> None:
    found = kinds(make_plan(waiting_stream(pieces=2)))
    assert found[Kind.AWAIT] == 2 + 1  # the last one is behind the last call
    assert found[Kind.CLOCK] == 2 + 1  # behind each write to the host's memory, and behind the last read


def test_clocks_of_a_value_that_does_not_change_are_kept() -> None:
    calls = [Call(INIT), *30 * poll(0), Call(EXIT)]
    assert kinds(make_plan(calls))[Kind.CLOCK] == 30


def test_several_polled_places_are_each_waited_for_once_in_the_order_of_their_last_reads() -> None:
    calls = [Call(INIT), *AIM]
    for done, result in ((0, 0), (0, 1), (1, 1)):
        calls += [answered(DONE, done), clock(1), answered(RESULT, result), clock(1)]
    calls += [answered(DONE, 1), clock(1)]
    # the window is aimed once, before the first read alone
    plan = make_plan(calls)
    found = kinds(plan)
    assert (found[Kind.POLL], found[Kind.READ]) == (2, 2)
    last_result, last_done = len(calls) - 4, len(calls) - 2
    assert plan.origin[-6:] == [last_result] * 2 + [last_result + 1] + [last_done] * 2 + [last_done + 1]
    assert found[Kind.WRITE] == len(AIM)  # by the first step, which is left out


def test_calls_from_a_refusal_on_are_left_out() -> None:
    calls = [
        Call(INIT),
        clock(1),
        Call(READ, 1, size=4, answer=Ended("refused", "UndefinedBehavior", "no", 1)),
        clock(1),
    ]
    assert make_plan(calls).calls == 2


def test_the_microbench_has_a_section_for_each_figure() -> None:
    found = kinds(microbench())
    assert (found[Kind.SECTION], found[Kind.REPEAT]) == (2 * len(FIGURES), len(FIGURES))
