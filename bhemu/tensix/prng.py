"""The vector unit's pseudo-random generators: one 32-bit shift register a lane (math V4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, shift_right_logical, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord

LANES: Final = 32
SEED_STEPS: Final = 32
"""Steps from the seed to the state from which the first lane is filled (V4)."""


@kernel
def next_state(state: Int) -> Int:
    """The state after `state` (below 2**32): bit 31 is set when bits 31, 21, 1 and 0 hold an even sum."""
    odd = ((state >> 31) ^ (state >> 21) ^ (state >> 1) ^ state) & 1
    return (state >> 1) | ((odd ^ 1) << 31)


@kernel
def prng_step(t: TileRecord, enabled: Lanes) -> Lanes:
    """Step the generators of the enabled lanes.

    Args:
        enabled: mask of 32 lanes; the others keep their state.

    Returns:
        32 lanes, the states before the step, which is what a reader gets.
    """
    state = load32(t.prng, 0)
    halved = shift_right_logical(state, 1)
    odd = (shift_right_logical(state, 31) ^ shift_right_logical(state, 21) ^ halved ^ state) & 1
    store32(t.prng, 0, where(enabled, halved | ((odd ^ 1) << 31), state))
    return state


@kernel
def seed_prng(t: TileRecord, seed: Int) -> None:
    """Start the generators of all lanes from a 32-bit seed (V4), as a write to Config word PRNG_SEED does."""
    state: Int = np.int64(seed)
    for _ in range(SEED_STEPS):
        state = next_state(state)
    for lane in range(LANES):
        state = next_state(next_state(state))
        t.prng[LANES - 1 - lane] = np.uint32(state)
