"""Settings that each lane has of its own: macro templates, sequences, Misc, LaneConfig (math V5, V6, V.7).

As a rule all lanes hold the same and the settings are scalars of the state record. A row is kept lane by lane only
where lanes differ; its bit of `settings_mixed` says so. The scalar `lane_config` then holds every bit that some lane
has set, so that code which finds a bit clear there need not look further.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import load32, mask32, mask_bits, splat32, store32, where
from bhemu.machine.types import Int, Lanes, TileRecord

TEMPLATE: Final = 0
SEQUENCE: Final = 4
MISC: Final = 8
LANE_CONFIG: Final = 9

LANES: Final = 32
ALL_LANES: Final = 0xFFFFFFFF


@kernel
def _scalar(t: TileRecord, row: Int) -> Int:
    if row < SEQUENCE:
        return np.int64(t.macro.template[row])
    if row < MISC:
        return np.int64(t.macro.sequence[row - SEQUENCE])
    return np.int64(t.macro.misc) if row == MISC else np.int64(t.vector.lane_config)


@kernel
def setting(t: TileRecord, row: Int) -> Lanes:
    """A setting of all lanes."""
    if (np.int64(t.vector.settings_mixed) >> row) & 1:
        return load32(t.macro.settings, row)
    return splat32(_scalar(t, row))


@kernel
def write_setting(t: TileRecord, row: Int, value: Lanes, bits: Int) -> None:
    """Give the lanes `bits` of `value` to a setting."""
    value = where(mask32(bits), value, setting(t, row))
    store32(t.macro.settings, row, value)
    first = np.int64(t.macro.settings[row, 0])
    if mask_bits(value == splat32(first)) == ALL_LANES:
        t.vector.settings_mixed = np.uint32(np.int64(t.vector.settings_mixed) & ~(1 << row))
    else:
        t.vector.settings_mixed = np.uint32(np.int64(t.vector.settings_mixed) | (1 << row))
    if row < SEQUENCE:
        t.macro.template[row] = np.uint32(first)
    elif row < MISC:
        t.macro.sequence[row - SEQUENCE] = np.uint32(first)
    elif row == MISC:
        t.macro.misc = np.uint32(first)
    else:
        union = np.int64(0)
        for lane in range(LANES):
            union |= np.int64(t.macro.settings[row, lane])
        t.vector.lane_config = np.uint32(union)


@kernel
def lanes_with(t: TileRecord, bit: Int) -> Int:
    """Lanes, as bits, in which a bit of LaneConfig (given as its value) is set."""
    if not np.int64(t.vector.lane_config) & bit:
        return np.int64(0)
    if not (np.int64(t.vector.settings_mixed) >> LANE_CONFIG) & 1:
        return np.int64(ALL_LANES)
    return mask_bits((load32(t.macro.settings, LANE_CONFIG) & bit) != 0)
