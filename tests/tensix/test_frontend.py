"""Front end and wait gate: expansion, replay, latched waits, back-pressure (math Y1 to Y11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.api.tile import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.isa.names import Block, Condition, WhileSemaphore
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT

pytestmark = pytest.mark.plain

NOP = encode("NOP")


def mark(value: int) -> int:
    """An instruction that can be told apart: it writes `value` to 16-bit register 2 * `value`."""
    return encode("SETDMAREG", value=value, RegIndex16b=2 * value)


@pytest.fixture(scope="module")
def tile() -> Tile:
    return Tile()


@pytest.fixture(autouse=True)
def _fresh(tile: Tile) -> None:
    tile.reset()


def issued(tile: Tile, mnemonic: str, thread: int = 1) -> int:
    return int(tile.record.issued[thread, INSTRUCTIONS[mnemonic].opcode])


def run_mop(tile: Tile, words: list[int], mop: int, zmask_high: int = 0) -> None:
    tile.record.frontend.mop_config[1] = words
    tile.execute(1, [encode("MOP_CFG", zmask_hi16=zmask_high), mop])


@pytest.mark.rule("math Y8")
@settings(max_examples=60)
@given(
    outer=st.integers(0, 12),
    inner=st.integers(0, 12),
    with_loop1=st.booleans(),
    with_start=st.booleans(),
    with_end0=st.booleans(),
    with_end1=st.booleans(),
)
def test_a_double_loop_has_the_length_of_the_rule(
    tile: Tile, outer: int, inner: int, with_loop1: bool, with_start: bool, with_end0: bool, with_end1: bool
) -> None:
    tile.reset()
    words = [
        outer,
        inner,
        mark(1) if with_start else NOP,
        mark(2) if with_end0 else NOP,
        mark(3) if with_end1 else NOP,
        mark(4),
        mark(5) if with_loop1 else NOP,
        mark(6),
        mark(7),
    ]
    run_mop(tile, words, encode("MOP", mop_type=1))
    # Y8: end1 is sent only after end0; one outer pass without start and body but with end0 runs 129 times.
    passes = 129 if outer == 1 and inner == 0 and not with_start and with_end0 else outer
    each = with_start + inner * (2 if with_loop1 else 1) + with_end0 + (with_end0 and with_end1)
    assert issued(tile, "SETDMAREG") == passes * each


@pytest.mark.rule("math Y8")
def test_the_last_body_instruction_is_replaced_by_word_7_in_the_last_pass_and_word_8_in_others(tile: Tile) -> None:
    add = [encode("INCRWC", rwc_d=n) for n in range(4)]
    run_mop(tile, [3, 2, NOP, NOP, NOP, add[1], NOP, encode("INCRWC", rwc_d=15), add[2]], encode("MOP", mop_type=1))
    assert tile.record.rwc[1, 4] == 3 * 1 + 2 * 2 + 15


@pytest.mark.rule("math Y7")
@settings(max_examples=60)
@given(mask=st.integers(0, 2**32 - 1), count=st.integers(1, 40), flags=st.integers(0, 3))
def test_a_masked_loop_skips_where_the_mask_says(tile: Tile, mask: int, count: int, flags: int) -> None:
    tile.reset()
    a0, a1, a2, a3 = (encode("SETDMAREG", value=n, RegIndex16b=n) for n in range(4))
    b, skip_a0, skip_b = encode("INCRWC", rwc_d=1), encode("INCRWC", rwc_a=1), encode("INCRWC", rwc_b=1)
    words = [0, flags, b, a0, a1, a2, a3, skip_a0, skip_b]
    mop = encode("MOP", loop_count=count - 1, zmask_lo16_or_loop_count=mask & 0xFFFF)
    run_mop(tile, words, mop, mask >> 16)
    skipped = bin(mask & ((1 << min(count, 32)) - 1)).count("1")
    kept = count - skipped
    has_b, has_a123 = flags & 1, flags >> 1
    assert issued(tile, "SETDMAREG") == kept * (4 if has_a123 else 1)
    assert issued(tile, "INCRWC") == skipped + count * has_b
    assert tile.record.rwc[1, 0] == skipped % 64
    assert tile.record.rwc[1, 2] == skipped * has_b % 64


@pytest.mark.rule("math Y9")
@settings(max_examples=40)
@given(start=st.integers(0, 31), length=st.integers(1, 32), execute=st.booleans())
def test_replay_is_a_ring_of_32_words(tile: Tile, start: int, length: int, execute: bool) -> None:
    tile.reset()
    load = encode("REPLAY", start_idx=start, len=length, execute_while_loading=int(execute), load_mode=1)
    tile.execute(1, [load, *(encode("SETDMAREG", value=n + 1, RegIndex16b=n) for n in range(length))])
    assert issued(tile, "SETDMAREG") == (length if execute else 0)
    for n in range(length):
        assert tile.record.frontend.replay_buffer[1, (start + n) % 32] == encode(
            "SETDMAREG", value=n + 1, RegIndex16b=n
        )
    tile.execute(1, encode("REPLAY", start_idx=start, len=length))
    halves = tile.gpr[1].view(np.uint16)
    np.testing.assert_array_equal(halves[:length], np.arange(1, length + 1))


@pytest.mark.rule("math Y9")
def test_a_replay_word_inside_a_recording_is_stored_not_obeyed(tile: Tile) -> None:
    inner = encode("REPLAY", start_idx=3, len=1)
    tile.execute(1, [encode("REPLAY", start_idx=0, len=2, load_mode=1), inner, mark(1)])
    assert tile.record.frontend.replay_buffer[1, 0] == inner
    assert issued(tile, "SETDMAREG") == 0


@pytest.mark.rule("math Y9")
def test_a_replay_word_played_back_is_refused(tile: Tile) -> None:
    tile.execute(1, [encode("REPLAY", start_idx=0, len=1, load_mode=1), encode("REPLAY", start_idx=3, len=1)])
    with pytest.raises(UndefinedBehavior, match="REPLAY"):
        tile.execute(1, encode("REPLAY", start_idx=0, len=1))


@pytest.mark.rule("math Y3")
def test_the_fifo_takes_words_up_to_its_push_limit(tile: Tile) -> None:
    coprocessor = tile.coprocessor
    pushed = 0
    while coprocessor.push(1, mark(1)):
        pushed += 1
    assert pushed == FIFO_PUSH_LIMIT + 1
    assert coprocessor.drain(1)
    assert issued(tile, "SETDMAREG") == pushed


@pytest.mark.rule("math Y10")
@pytest.mark.parametrize(("block", "held"), [(Block.SYNC, True), (Block.MATH, False), (Block.TDMA, False)])
def test_a_latched_wait_holds_only_its_classes(tile: Tile, block: Block, held: bool) -> None:
    wait = encode("SEMWAIT", stall_res=block, sem_sel=2, wait_sem_cond=WhileSemaphore.ZERO)
    post = encode("SEMPOST", sem_sel=1)
    for word in (wait, post):
        tile.coprocessor.push(1, word)
    assert tile.coprocessor.drain(1) is not held
    assert issued(tile, "SEMPOST") == int(not held)


@pytest.mark.rule("math Y10")
def test_a_second_wait_waits_for_the_first(tile: Tile) -> None:
    first = encode("SEMWAIT", stall_res=Block.MATH, sem_sel=2, wait_sem_cond=WhileSemaphore.ZERO)
    second = encode("SEMWAIT", stall_res=Block.MATH, sem_sel=4, wait_sem_cond=WhileSemaphore.ZERO)
    for word in (first, second):
        tile.coprocessor.push(1, word)
    assert not tile.coprocessor.drain(1)
    assert tile.record.frontend.wait_word[1] == first
    tile.record.sync.semaphore[1] = 1
    assert tile.coprocessor.drain(1)
    assert tile.record.frontend.wait_word[1] == second


@pytest.mark.rule("math Y4")
def test_a_nop_is_held_only_by_a_wait_that_blocks_all_nine_classes(tile: Tile) -> None:
    for block, passes in ((0x1FF, False), (0x0FF, True)):
        tile.reset()
        tile.coprocessor.push(1, encode("SEMWAIT", stall_res=block, sem_sel=2, wait_sem_cond=WhileSemaphore.ZERO))
        tile.coprocessor.push(1, NOP)
        assert tile.coprocessor.drain(1) is passes


@pytest.mark.rule("math Y10")
@pytest.mark.parametrize(
    ("condition", "file", "unit", "owner_that_waits"),
    [
        (Condition.SRCA_CLEARED, 0, "unpack", 1),
        (Condition.SRCB_CLEARED, 1, "unpack", 1),
        (Condition.SRCA_VALID, 0, "matrix", 0),
        (Condition.SRCB_VALID, 1, "matrix", 0),
    ],
)
def test_stallwait_waits_for_the_owner_of_the_current_source_bank(
    tile: Tile, condition: Condition, file: int, unit: str, owner_that_waits: int
) -> None:
    for bank in (0, 1):
        for owner in (0, 1):
            tile.reset()
            tile.record[unit]["bank"][file] = bank
            tile.record.src_owner[file] = 1 - owner  # the other bank does not matter
            tile.record.src_owner[file, bank] = owner
            tile.coprocessor.push(1, encode("STALLWAIT", stall_res=Block.SYNC, wait_res=condition))
            tile.coprocessor.push(1, encode("SEMPOST", sem_sel=1))
            assert tile.coprocessor.drain(1) is (owner != owner_that_waits)


@pytest.mark.rule("math Y11a")
def test_semaphores_stop_at_zero_and_fifteen(tile: Tile) -> None:
    tile.execute(1, encode("SEMGET", sem_sel=1))
    assert tile.semaphores[0] == 0
    tile.execute(1, [encode("SEMPOST", sem_sel=1)] * 20)
    assert tile.semaphores[0] == 15


@pytest.mark.rule("math Y11a")
def test_sem_sel_selects_several_semaphores(tile: Tile) -> None:
    tile.execute(1, encode("SEMINIT", max_value=9, init_value=3, sem_sel=0b10100001))
    np.testing.assert_array_equal(tile.semaphores, [3, 0, 0, 0, 0, 3, 0, 3])


@pytest.mark.parametrize(
    "word",
    [
        encode("SEMINIT", max_value=1, init_value=2, sem_sel=1),
        encode("SEMPOST", sem_sel=0),
        encode("SEMWAIT", stall_res=1, sem_sel=1, wait_sem_cond=0),
        encode("ATGETM", mutex_index=1),
        0x0A7 << 24 | 1 << 2,
    ],
)
def test_words_without_a_meaning_are_refused_and_the_machine_lives_on(tile: Tile, word: int) -> None:
    before: Any = tile.semaphores.copy()
    with pytest.raises(UndefinedBehavior):
        tile.execute(1, word)
    np.testing.assert_array_equal(tile.semaphores, before)
    tile.execute(1, encode("SEMPOST", sem_sel=1))
    assert tile.semaphores[0] == 1


@pytest.mark.rule("math Y11b")
def test_a_mutex_is_taken_waited_for_and_released(tile: Tile) -> None:
    tile.execute(0, encode("ATGETM", mutex_index=2))
    tile.coprocessor.push(1, encode("ATGETM", mutex_index=2))
    assert not tile.coprocessor.drain(1)
    tile.execute(0, encode("ATRELM", mutex_index=2))
    assert tile.coprocessor.drain(1)
    assert tile.record.sync.mutex_owner[2] == 2


@pytest.mark.rule("math Y11b")
def test_after_thread_i_releases_a_mutex_thread_i_plus_1_is_served_first(tile: Tile) -> None:
    take, release = encode("ATGETM", mutex_index=0), encode("ATRELM", mutex_index=0)
    for releasing in range(3):
        tile.reset()
        first, second = (releasing + 1) % 3, (releasing + 2) % 3
        tile.execute(releasing, take)
        for thread in (first, second):
            tile.coprocessor.push(thread, take)
        tile.coprocessor.run(10)
        tile.coprocessor.push(releasing, release)
        tile.coprocessor.run(10)
        assert tile.record.sync.mutex_owner[0] == first + 1


@pytest.mark.rule("math Y11c")
def test_streamwait_waits_for_phase_or_messages(tile: Tile) -> None:
    tile.record.thread_config[1, 59] = 7  # selector 0 means stream 7
    word = encode("STREAMWAIT", stall_res=Block.SYNC, target_value=3, target_sel=1, wait_stream_sel=0)
    tile.coprocessor.push(1, word)
    tile.coprocessor.push(1, encode("SEMPOST", sem_sel=1))
    assert not tile.coprocessor.drain(1)
    tile.record.stream_messages[7] = 3
    assert tile.coprocessor.drain(1)


def test_a_cycle_in_which_a_handler_is_missing_counts_once_and_in_order() -> None:
    """Cycles and results do not depend on which handlers are compiled already."""
    from bhemu.tensix import coprocessor

    words = [(0, "SETDMAREG"), (1, "ADDDMAREG"), (2, "MULDMAREG"), (0, "SUBDMAREG"), (1, "SETDMAREG")]
    clocks = []
    for missing in ((), ("ADDDMAREG", "SUBDMAREG"), ("MULDMAREG",)):
        tile = Tile()
        for name in missing:
            opcode = INSTRUCTIONS[name].opcode
            coprocessor._handlers[opcode] = None
            coprocessor._addresses[opcode] = 0
            coprocessor._functions[opcode] = None
        for thread, name in words:
            tile.coprocessor.push(thread, encode(name))
        tile.coprocessor.run(100)
        clocks.append(int(tile.record.clock))
    assert clocks == [clocks[0]] * 3


@pytest.mark.rule("tile E43")
def test_an_empty_queue_after_the_expanders_begins_anew(tile: Tile) -> None:
    """Else a tile would touch all of the queue's memory in time."""
    tile.record.simulator_order = 1
    for count in (1, 7, 40):
        tile.execute(1, [mark(value) for value in range(count)])
        assert issued(tile, "SETDMAREG") > 0
        assert tile.record.frontend.ready_count[1] == 0
        assert tile.record.frontend.ready_head[1] == 0
    assert issued(tile, "SETDMAREG") == 1 + 7 + 40
