"""The vector unit's pseudo-random generators (math V4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from bhemu.host.tile import Tile
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


@given(st.integers(0, ALL_ONES))
def test_v4_step(state: int) -> None:
    assert next_state(state) == step(state)


def test_v4_only_the_all_ones_state_stays_where_it_is() -> None:
    assert next_state(ALL_ONES) == ALL_ONES
    assert next_state(0) == 1 << 31


@pytest.mark.parametrize("seed", [0, 1, 0x12345678, 0x80000001, ALL_ONES])
def test_v4_a_write_of_prng_seed_seeds_every_lane_and_reads_as_zero(seed: int) -> None:
    tile = Tile()
    tile.record.gpr[1, 4] = seed
    tile.execute(1, [encode("WRCFG", GprAddress=4, CfgReg=186), encode("RDCFG", GprAddress=5, CfgReg=186)])
    assert tile.record.prng.tolist() == seeded(seed)
    assert tile.record.gpr[1, 5] == 0
    assert tile.record.config[0, 186] == 0


def test_v4_disabled_lanes_keep_their_state() -> None:
    tile = Tile()
    states = np.arange(32, dtype=np.uint32) * 0x9E3779B1
    tile.record.prng[...] = states
    tile.record.lane_flags = 0x0000FFF1
    tile.execute(1, encode("SFPMOV", lreg_c=9, lreg_dest=0, instr_mod1=8))
    after = [step(int(s)) if (0x0000FFF1 >> lane) & 1 else int(s) for lane, s in enumerate(states)]
    assert tile.record.prng.tolist() == after
