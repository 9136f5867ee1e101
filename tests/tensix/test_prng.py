"""The vector unit's pseudo-random generators (math V4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from bhemu.api.tile import Tile
from bhemu.isa.instructions import encode
from bhemu.tensix import prng

pytestmark = pytest.mark.plain

ALL_ONES = 0xFFFFFFFF


@njit
def next_state(state):  # type: ignore[no-untyped-def]
    """The unit's step, which can be called from compiled code only."""
    return prng.next_state(state)


def step(state: int) -> int:
    """V4, bit by bit."""
    ones = sum((state >> bit) & 1 for bit in (31, 21, 1, 0))
    return state >> 1 | (1 << 31 if ones % 2 == 0 else 0)


def seeded(seed: int) -> list[int]:
    """V4: the lanes' states after seeding."""
    state, lanes = seed, [0] * 32
    for _ in range(32):
        state = step(state)
    for i in range(32):
        state = step(step(state))
        lanes[31 - i] = state
    return lanes


@pytest.mark.rule("math V4")
@given(st.integers(0, ALL_ONES))
def test_the_generator_steps_as_the_rule(state: int) -> None:
    assert next_state(state) == step(state)


@pytest.mark.rule("math V4")
def test_only_the_all_ones_state_stays_where_it_is() -> None:
    assert next_state(ALL_ONES) == ALL_ONES
    assert next_state(0) == 1 << 31
    assert all(next_state(ALL_ONES ^ 1 << bit) != ALL_ONES ^ 1 << bit for bit in range(32))


def times(matrix: list[int], vector: int) -> int:
    """Product over GF(2); matrix[i] is the image of bit i."""
    total = 0
    for i, column in enumerate(matrix):
        total ^= column if vector >> i & 1 else 0
    return total


def power(matrix: list[int], exponent: int) -> list[int]:
    result, square = [1 << i for i in range(32)], matrix
    while exponent:
        if exponent & 1:
            result = [times(square, column) for column in result]
        square = [times(square, column) for column in square]
        exponent >>= 1
    return result


STEP = [ALL_ONES ^ int(next_state(ALL_ONES ^ 1 << i)) for i in range(32)]
"""The step of the inverted state, which is linear, as its columns."""


@pytest.mark.rule("math V4")
@given(st.integers(0, ALL_ONES), st.integers(0, 40))
def test_the_step_of_the_inverted_state_is_linear(state: int, steps: int) -> None:
    after = state
    for _ in range(steps):
        after = int(next_state(after))
    assert after == ALL_ONES ^ times(power(STEP, steps), ALL_ONES ^ state)


def fixed_by(matrix: list[int]) -> int:
    """Number of vectors that a matrix maps to themselves."""
    basis: dict[int, int] = {}
    for i, column in enumerate(matrix):
        rest = column ^ 1 << i
        while rest and rest.bit_length() in basis:
            rest ^= basis[rest.bit_length()]
        if rest:
            basis[rest.bit_length()] = rest
    return 1 << (32 - len(basis))


@pytest.mark.rule("math V4")
def test_of_all_states_only_all_ones_maps_to_itself() -> None:
    assert fixed_by(STEP) == 1


LONG = (1 << 29) - 1
PERIOD = 7 * LONG
"""The characteristic polynomial of V4's taps is the product of two primitive ones, of degrees 3 and 29."""


@pytest.mark.rule("math V4")
def test_states_come_back_after_1_7_or_billions_of_steps() -> None:
    """One state stays, seven lie on a cycle of 7, all others on cycles of 2^29 - 1 or seven times that."""
    assert fixed_by(power(STEP, PERIOD)) == 1 << 32
    assert fixed_by(power(STEP, 7)) == 1 + 7
    assert fixed_by(power(STEP, LONG)) == 1 + LONG
    for prime in (233, 1103, 2089):  # the factors of 2^29 - 1
        assert LONG % prime == 0
        assert fixed_by(power(STEP, LONG // prime)) == 1
        assert fixed_by(power(STEP, PERIOD // prime)) == 1 + 7


@pytest.mark.rule("math V4")
@pytest.mark.parametrize("seed", [0, 1, 0x12345678])
def test_seeded_lanes_are_on_long_cycles(seed: int) -> None:
    short = power(STEP, 7)
    assert all(times(short, ALL_ONES ^ state) != ALL_ONES ^ state for state in seeded(seed))


@pytest.mark.rule("math V4")
@pytest.mark.parametrize("seed", [0, 1, 0x12345678, 0x80000001, ALL_ONES])
def test_a_write_of_prng_seed_seeds_every_lane_and_reads_as_zero(seed: int) -> None:
    tile = Tile()
    tile.record.gpr[1, 4] = seed
    tile.execute(1, [encode("WRCFG", GprAddress=4, CfgReg=186), encode("RDCFG", GprAddress=5, CfgReg=186)])
    assert tile.record.prng.tolist() == seeded(seed)
    assert tile.record.gpr[1, 5] == 0
    assert tile.record.config[0, 186] == 0


@pytest.mark.rule("math V4")
def test_disabled_lanes_keep_their_state() -> None:
    tile = Tile()
    states = np.arange(32, dtype=np.uint32) * 0x9E3779B1
    tile.record.prng[...] = states
    tile.record.vector.lane_flags = 0x0000FFF1
    tile.execute(1, encode("SFPMOV", lreg_c=9, lreg_dest=0, instr_mod1=8))
    after = [step(int(s)) if (0x0000FFF1 >> lane) & 1 else int(s) for lane, s in enumerate(states)]
    assert tile.record.prng.tolist() == after
