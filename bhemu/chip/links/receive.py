"""Frames arrive: their bytes go into L1, or a word into a register, between two clocks (ethernet 2.2)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import tile_of, touch
from bhemu.chip.coordinates import NODES, TENSIX_TILES, X_LSB, Kind
from bhemu.chip.links.send import FRAME_BYTES, frame_at
from bhemu.chip.pcie.bars import access_tile
from bhemu.ethernet.failures import happen
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import release
from bhemu.machine.types import ChipRecord, Int

NEVER: Final = 1 << 62
_ETHERNET: Final = sorted((node for node in NODES.values() if node.kind is Kind.ETHERNET), key=lambda node: node.index)
_PLACE: Final = np.array([node.place[0] << X_LSB | node.place[1] for node in _ETHERNET], np.int64)
CHANNELS: Final = len(_ETHERNET)


@kernel
def _next_arrival(chip: ChipRecord) -> Int:
    """Clock before which the next frame is there; NEVER when none is on its way."""
    first = np.int64(NEVER)
    for channel in range(CHANNELS):
        if chip.frame_first[channel] != 0:
            arrival = np.int64(frame_at(chip.frame_first[channel]).arrival)
            first = min(first, max(arrival, np.int64(chip.fault.until[channel])))
    return first


@kernel(seldom=True)
def _take_frames(chip: ChipRecord, channel: Int) -> Any:
    """Status of taking the frames that have arrived at a tile; the first that is not DONE stays."""
    while chip.frame_first[channel] != 0:
        address = np.int64(chip.frame_first[channel])
        frame = frame_at(address)
        if max(np.int64(frame.arrival), np.int64(chip.fault.until[channel])) > chip.time:
            return np.int64(DONE)
        if frame.sent < chip.fault.cut[channel]:
            chip.fault.lost[channel] += 1
            chip.frame_first[channel] = frame.after
            release(address)
            continue
        status = access_tile(chip, _PLACE[channel], frame.target, address + FRAME_BYTES, frame.byte_count, 1)
        if status != DONE:
            return status
        chip.frame_first[channel] = frame.after
        release(address)
    return np.int64(DONE)


@kernel(seldom=True)
def begin_span(chip: ChipRecord) -> Any:
    """Let links fail, take what has arrived, and set the end of the clocks that can pass before the next such event.

    Returns:
        DONE, or the status of the access that a frame makes: tile `noc_end` needs something, or has refused it.
    """
    while chip.fault.count != 0 and chip.fault.event[0].clock <= chip.time:
        index = TENSIX_TILES + np.int64(chip.fault.event[0].channel)
        touch(chip, index, chip.time)
        happen(chip.fault, tile_of(chip, index))
    for channel in range(CHANNELS):
        if chip.frame_first[channel] != 0:
            status = _take_frames(chip, channel)
            if status != DONE:
                return status
    chip.end = min(np.int64(chip.goal), max(_next_arrival(chip), chip.time + 1))
    if chip.fault.count != 0:
        chip.end = min(np.int64(chip.end), np.int64(chip.fault.event[0].clock))
    return np.int64(DONE)
