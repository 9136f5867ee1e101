"""The machine's record as the flat arrays of the conformance vectors, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.conformance.vector_file import State
from bhemu.machine.state import ALL_CONFIG_DIRTY, L1_SIZE, reset, state_field

ALL_LANES = np.uint32(0xFFFFFFFF)

# Arrays that both sides hold with the same meaning: vector name -> record field.
_SAME = {
    "dst": "dst",
    "dst_valid": "dst_valid",
    "srca": "srca",
    "srcb": "srcb",
    "prng": "prng",
    "gpr": "gpr",
    "cfg": "config",
    "tcfg": "thread_config",
    "adc": "adc",
    "rwc": "rwc",
    "replay": "frontend.replay_buffer",
}


def load(tiles: np.ndarray[Any, Any], state: State, l1_base: int) -> None:
    """Put tile 0 into `state`, and reset what the state does not hold. L1 outside the window must be zero already."""
    reset(tiles, 0)
    tile = tiles[0]
    for name, place in _SAME.items():
        target = state_field(tile, place)
        target[...] = state[name].reshape(target.shape)
    tile["lregs"][:16] = state["lregs"].reshape(16, 32)
    src = state["src"].reshape(2, 6)
    tile["src_owner"][...] = src[:, 0:2]
    tile["unpack"]["bank"][...] = src[:, 2]
    tile["matrix"]["bank"][...] = src[:, 3]
    tile["src_format"][...] = src[:, 4:6]
    sfpu = state["sfpu"]
    vector = tile["vector"]
    vector["lane_flags"], use, depth, vector["lane_config"] = sfpu[:4]
    vector["use_flags"] = ALL_LANES * use  # a vector has one use bit and one depth for all lanes
    vector["flag_stack_held"][...] = np.where(np.arange(8) < depth, ALL_LANES, 0)
    vector["flag_stack"][...] = sfpu[4:12]
    vector["use_stack"][...] = sfpu[12:20] * ALL_LANES
    sync = state["sync"]
    tile["sync"]["semaphore"][...] = sync[0:8]
    tile["sync"]["semaphore_max"][...] = sync[8:16]
    tile["sync"]["mutex_owner"][:5] = sync[16:21]
    macro = state["macro"]
    tile["macro"]["template"][...] = macro[0:4]
    tile["macro"]["sequence"][...] = macro[4:8]
    tile["macro"]["misc"] = macro[8]
    mop = state["mop"]
    tile["frontend"]["mop_config"][...] = mop[:27].reshape(3, 9)
    tile["frontend"]["mop_zmask_hi"][...] = mop[27:]
    tile["config_dirty"] = ALL_CONFIG_DIRTY
    tile["l1"][l1_base : l1_base + len(state["l1"])] = state["l1"]


def store(tiles: np.ndarray[Any, Any], l1_base: int, l1_size: int) -> State:
    """The architectural state of tile 0 as flat arrays (the informative ones are left out)."""
    tile = tiles[0]
    state = {name: state_field(tile, place).reshape(-1) for name, place in _SAME.items() if name != "replay"}
    state["lregs"] = tile["lregs"][:16].reshape(-1)
    state["src"] = np.concatenate(
        [
            [*tile["src_owner"][f], tile["unpack"]["bank"][f], tile["matrix"]["bank"][f], *tile["src_format"][f]]
            for f in range(2)
        ]
    ).astype(np.uint32)
    vector, held = tile["vector"], tile["sync"]
    stack = vector["flag_stack_held"] & 1 != 0  # entries above the depth do not matter
    state["sfpu"] = np.concatenate(
        [
            [vector["lane_flags"], vector["use_flags"] & 1, stack.sum(), vector["lane_config"]],
            np.where(stack, vector["flag_stack"], 0),
            np.where(stack, vector["use_stack"] & 1, 0),
        ]
    ).astype(np.uint32)
    state["sync"] = np.concatenate([held["semaphore"], held["semaphore_max"], held["mutex_owner"][:5]]).astype(
        np.uint32
    )
    state["l1"] = tile["l1"][l1_base : l1_base + l1_size]
    return state


def wrote_outside(tiles: np.ndarray[Any, Any], l1_base: int, l1_size: int) -> bool:
    """True when L1 outside the window is no longer zero."""
    words = tiles[0]["l1"].view(np.uint64)
    first, last = l1_base // 8, (l1_base + l1_size) // 8
    return bool(words[:first].any() or words[last:].any())


def clear_l1(tiles: np.ndarray[Any, Any]) -> None:
    """Zero the whole of L1."""
    tiles[0]["l1"][:L1_SIZE] = 0
