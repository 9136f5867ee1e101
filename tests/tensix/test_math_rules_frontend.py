"""Front end, rule by rule (math Y3 to Y9): FIFO depth, idle words, and expansions word by word against generators.

A recording takes the words of an expansion in, so that the replay buffer shows them in their order (Y9).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.api.tile import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.isa.names import WhileSemaphore

pytestmark = pytest.mark.plain

NOP = encode("NOP")
NOP_WITH_PAYLOAD = NOP | 0x1234
THREAD = 1


@pytest.fixture(scope="module")
def tile() -> Tile:
    return Tile()


@pytest.fixture(autouse=True)
def _fresh(tile: Tile) -> None:
    tile.reset()


def mark(value: int) -> int:
    """A word that can be told from all others."""
    return encode("SETDMAREG", value=value, RegIndex16b=0)


def issued(tile: Tile, mnemonic: str) -> int:
    return int(tile.record.issued[THREAD, INSTRUCTIONS[mnemonic].opcode])


def expansion(tile: Tile, template: list[int], *words: int) -> list[int]:
    """The words that reach the replay expander, at most 32 of them, with their order."""
    tile.reset()
    tile.record.frontend.mop_config[THREAD] = template
    filler = [mark(0xFFFF)] * 32
    tile.execute(THREAD, [encode("REPLAY", start_idx=0, len=0, load_mode=1), *words, *filler])
    recorded = [int(w) for w in tile.record.frontend.replay_buffer[THREAD]]
    return recorded[: recorded.index(mark(0xFFFF))] if mark(0xFFFF) in recorded else recorded


# --- Y3, Y4 -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math Y3")
def test_a_push_needs_an_occupancy_of_28_or_less(tile: Tile) -> None:
    """29 words fit one by one; then every word that leaves makes room for one."""
    coprocessor = tile.coprocessor
    wait = encode("SEMWAIT", stall_res=0x1FF, sem_sel=1, wait_sem_cond=WhileSemaphore.ZERO)
    pushes = 0
    while coprocessor.push(THREAD, mark(pushes)):
        pushes += 1
    assert pushes == 29
    assert tile.record.frontend.fifo_count[THREAD] == 29
    for thread in (0, 2):  # each thread has its own
        assert coprocessor.push(thread, NOP)
    coprocessor.run(1)
    assert tile.record.frontend.fifo_count[THREAD] == 28
    assert coprocessor.push(THREAD, wait)
    assert not coprocessor.push(THREAD, NOP)
    assert coprocessor.drain(THREAD)
    assert issued(tile, "SETDMAREG") == 29
    # After the latched wait one word is at the gate and 29 are in the FIFO.
    held = 0
    while coprocessor.push(THREAD, mark(held)):
        held += 1
        coprocessor.run(1)
    assert held == 30
    assert issued(tile, "SETDMAREG") == 29


@pytest.mark.rule("math Y3")
def test_an_expansion_needs_no_room_in_the_fifo(tile: Tile) -> None:
    tile.record.frontend.mop_config[THREAD] = [100, 100, NOP, NOP, NOP, mark(1), NOP, mark(2), mark(3)]
    tile.execute(THREAD, encode("MOP", mop_type=1))
    assert issued(tile, "SETDMAREG") == 100 * 100
    assert tile.record.frontend.fifo_count[THREAD] == 0


CLASSES = {"NOP": None, "DMANOP": {0, 5}, "SFPNOP": {8}}


@pytest.mark.rule("math Y4")
@pytest.mark.parametrize(("mnemonic", "classes"), CLASSES.items())
@pytest.mark.parametrize("bit", range(9))
def test_idle_words_are_held_by_their_blocks_alone(
    tile: Tile, mnemonic: str, classes: set[int] | None, bit: int
) -> None:
    """DMANOP obeys B0 and B5, SFPNOP B8, and NOP no single block."""
    wait = encode("SEMWAIT", stall_res=1 << bit, sem_sel=1, wait_sem_cond=WhileSemaphore.ZERO)
    tile.coprocessor.push(THREAD, wait)
    tile.coprocessor.push(THREAD, encode(mnemonic))
    assert tile.coprocessor.drain(THREAD) is (bit not in (classes or set()))


@pytest.mark.rule("math Y4")
@pytest.mark.parametrize("mnemonic", ["NOP", "DMANOP", "SFPNOP", "RESOURCEDECL"])
def test_idle_words_take_an_issue_slot_and_change_nothing(tile: Tile, mnemonic: str) -> None:
    before = tile.record.copy()
    clock = int(before["clock"])
    tile.execute(THREAD, [encode(mnemonic)] * 3)
    assert issued(tile, mnemonic) == 3
    assert int(tile.record.clock) - clock == 3
    for name in ("dst", "dst_valid", "srca", "srcb", "lregs", "gpr", "config", "thread_config", "rwc", "sync"):
        assert (tile.record[name] == before[name]).all(), name


@pytest.mark.rule("math Y4")
def test_a_nop_with_a_payload_is_refused_at_the_back_end(tile: Tile) -> None:
    with pytest.raises(UndefinedBehavior, match="belong to no operand"):
        tile.execute(THREAD, NOP_WITH_PAYLOAD)


# --- Y5 to Y8 ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math Y5")
def test_the_upper_mask_half_is_0_at_reset_and_kept_until_rewritten(tile: Tile) -> None:
    template = [0, 0, NOP, mark(1), NOP, NOP, NOP, mark(2), NOP]
    long_mop = encode("MOP", loop_count=23)  # passes 16..23 look at the upper half

    def kept(mask: int) -> list[int]:
        return [mark(2) if mask >> i & 1 else mark(1) for i in range(24)]

    assert expansion(tile, template, long_mop) == kept(0)
    set_high = encode("MOP_CFG", zmask_hi16=0xA5)
    assert expansion(tile, template, set_high, long_mop) == kept(0xA50000)
    for low in (0, 0xF00F):
        tile.reset()
        tile.record.frontend.mop_config[THREAD] = template
        tile.execute(THREAD, [set_high, long_mop, mark(0)])  # an expansion and other words do not touch it
        tile.execute(THREAD, [encode("REPLAY", len=24, load_mode=1), long_mop | low])
        assert tile.record.frontend.replay_buffer[THREAD, :24].tolist() == kept(0xA50000 | low)
    tile.execute(0, encode("MOP_CFG", zmask_hi16=0xFFFF))  # another thread's
    assert tile.record.frontend.mop_zmask_hi.tolist() == [0xFFFF, 0xA5, 0]


def template0(words: list[int], count: int, mask: int) -> Iterator[int]:
    """Y7 with the words of Y6."""
    _, flags, b, a0, a1, a2, a3, skip_a0, skip_b = words
    for i in range(count):
        if i > 31 or not mask >> i & 1:
            yield a0
            if flags & 2:
                yield from (a1, a2, a3)
            if flags & 1:
                yield b
        else:
            yield skip_a0
            if flags & 1:
                yield skip_b


def template1(words: list[int]) -> Iterator[int]:
    """Y8 with the words of Y6."""
    outer, inner, start, end0, end1, loop, loop1, last, last_of_others = words
    body = [loop] * inner if loop1 >> 24 == 2 else [loop, loop1] * inner
    for left in range(outer, 0, -1):
        if start >> 24 != 2:
            yield start
        if body:
            yield from body[:-1]
            yield last if left == 1 else last_of_others
        if end0 >> 24 != 2:
            yield end0
            if end1 >> 24 != 2:
                yield end1


@pytest.mark.rule("math Y6", "math Y7")
@settings(max_examples=80)
@given(flags=st.integers(0, 3), count=st.integers(1, 40), mask=st.integers(0, 2**32 - 1), nops=st.integers(0, 127))
def test_a_masked_loop_expands_to_the_words_of_the_rule(
    tile: Tile, flags: int, count: int, mask: int, nops: int
) -> None:
    """Passes beyond bit 31 have mask 0, and NOPs are emitted like other words (Y8); the first 32 words."""
    words = [99, flags, *(NOP if nops >> k & 1 else mark(k) for k in range(7))]
    mop = encode("MOP", loop_count=count - 1, zmask_lo16_or_loop_count=mask & 0xFFFF)
    got = expansion(tile, words, encode("MOP_CFG", zmask_hi16=mask >> 16), mop)
    assert got == list(template0(words, count, mask))[:32]


@pytest.mark.rule("math Y7")
def test_passes_beyond_bit_31_of_the_mask_are_not_skipped(tile: Tile) -> None:
    words = [0, 0, NOP, encode("INCRWC", rwc_a=1), NOP, NOP, NOP, encode("INCRWC", rwc_b=1), NOP]
    tile.record.frontend.mop_config[THREAD] = words
    mop = encode("MOP", loop_count=39, zmask_lo16_or_loop_count=0xFFFF)
    tile.execute(THREAD, [encode("MOP_CFG", zmask_hi16=0xFFFF), mop])
    assert tile.record.rwc[THREAD, [0, 2]].tolist() == [8, 32]


@pytest.mark.rule("math Y6", "math Y8")
@settings(max_examples=120)
@given(outer=st.integers(0, 6), inner=st.integers(0, 6), nops=st.integers(0, 127), payload=st.booleans())
def test_a_double_loop_expands_to_the_words_of_the_rule(
    tile: Tile, outer: int, inner: int, nops: int, payload: bool
) -> None:
    """Opcode 0x02 counts as a NOP whatever its payload, in the four words that may be left out."""
    left_out = {0, 1, 2, 4} if payload else set()  # start, end0, end1, loop1
    nop = [NOP_WITH_PAYLOAD if k in left_out else NOP for k in range(7)]
    words = [outer, inner, *(nop[k] if nops >> k & 1 else mark(k) for k in range(7))]
    if outer == 1 and inner == 0 and nops & 3 == 1:
        outer = 129  # the hardware bug: no start, no body, but an end
    model = [outer, *words[1:]]
    expected = list(template1(model))
    assert expansion(tile, words, encode("MOP", mop_type=1)) == expected[:32]


@pytest.mark.rule("math Y8")
def test_loop_lengths_have_ten_bits(tile: Tile) -> None:
    tile.record.frontend.mop_config[THREAD] = [0x400 | 3, 0xFC00 | 2, NOP, NOP, NOP, mark(1), NOP, mark(2), mark(3)]
    tile.execute(THREAD, encode("MOP", mop_type=1))
    assert issued(tile, "SETDMAREG") == 3 * 2


# --- Y9 ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("math Y9")
def test_length_0_means_32_and_start_and_length_have_five_bits(tile: Tile) -> None:
    words = [mark(n) for n in range(32)]
    tile.execute(THREAD, [encode("REPLAY", start_idx=32 + 5, len=0, load_mode=1), *words])
    assert np.roll(tile.record.frontend.replay_buffer[THREAD], -5).tolist() == words
    assert issued(tile, "SETDMAREG") == 0
    tile.execute(THREAD, encode("REPLAY", start_idx=7, len=32))
    assert issued(tile, "SETDMAREG") == 32
    tile.execute(THREAD, encode("REPLAY", start_idx=7, len=32 + 4))
    assert issued(tile, "SETDMAREG") == 36


@pytest.mark.rule("math Y9")
def test_playback_goes_before_what_is_upstream_and_wraps(tile: Tile) -> None:
    order: list[Any] = []
    body = [encode("SETDMAREG", value=n, RegIndex16b=0) for n in (1, 2, 3)]
    tile.execute(THREAD, [encode("REPLAY", start_idx=30, len=3, load_mode=1), *body])
    for word in (encode("REPLAY", start_idx=30, len=3), encode("SETDMAREG", value=9, RegIndex16b=0)):
        tile.coprocessor.push(THREAD, word)
    for _ in range(4):
        tile.coprocessor.run(1)
        order.append(int(tile.gpr[THREAD, 0]) & 0xFFFF)
    assert order == [1, 2, 3, 9]


@pytest.mark.rule("math Y9")
def test_an_expansion_may_hold_replay_words_and_fill_a_recording(tile: Tile) -> None:
    add = encode("INCRWC", rwc_d=1)
    replay = encode("REPLAY", start_idx=0, len=2)
    tile.execute(THREAD, [encode("REPLAY", start_idx=0, len=2, load_mode=1), add, add])
    tile.record.frontend.mop_config[THREAD] = [2, 3, NOP, NOP, NOP, replay, NOP, add, replay]
    tile.execute(THREAD, encode("MOP", mop_type=1))
    assert tile.record.rwc[THREAD, 4] == 5 * 2 + 1
    # Played words are not expanded again: a MOP out of the buffer is an error.
    tile.record.frontend.replay_buffer[THREAD, 0] = encode("MOP", mop_type=1)
    with pytest.raises(UndefinedBehavior, match="replay buffer"):
        tile.execute(THREAD, replay)


@pytest.mark.rule("math Y9")
def test_recording_takes_words_behind_the_first_expander_alone(tile: Tile) -> None:
    """MOP_CFG and MOP are consumed before they can be recorded; all else is, NOP included."""
    words = [0, 0, NOP, mark(4), NOP, NOP, NOP, NOP, NOP]
    stored = expansion(tile, words, encode("MOP_CFG"), NOP, encode("MOP", loop_count=1), encode("SFPNOP"))
    assert stored == [NOP, mark(4), mark(4), encode("SFPNOP")]
