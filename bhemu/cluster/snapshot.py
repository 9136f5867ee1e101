"""A copy of the links of a system: what fails and will fail, and the frames on their way."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.device import Device
from bhemu.chip.links.send import FRAME, drop_frames
from bhemu.chip.snapshot import LAYOUT as CHIP_LAYOUT
from bhemu.chip.state import CHIP
from bhemu.cluster.frames import append, chain
from bhemu.errors import ConfigurationError

LAYOUT: Final = hashlib.sha256(f"{CHIP_LAYOUT} {CHIP['fault']!r} {FRAME!r}".encode()).hexdigest()
"""Of what a copy holds. Copies of another version of bhemu do not fit."""
Frames = dict[int, tuple[bytes, ...]]
"""Frames on their way to a chip, each with its head, by channel."""


@dataclass(frozen=True)
class LinkState:
    """The links of a chip.

    Attributes:
        layout: LAYOUT of the version that made the copy.
        fault: what is wrong with them, as the chip's record has it.
        frames: on their way to the chip.
    """

    layout: str
    fault: bytes
    frames: Frames


def copy_links(devices: Sequence[Device]) -> tuple[LinkState, ...]:
    """The links of all chips."""
    frames: list[Frames] = [
        {channel: tuple(chain(int(first))) for channel, first in enumerate(device.record.frame_first) if first}
        for device in devices
    ]
    for device in devices:  # what its partners do not have yet is on its way to them, after the others
        record: Any = device.record
        for channel, first in enumerate(record.sent_first):
            if first:
                other, place = frames[int(record.peer_number[channel])], int(record.peer_channel[channel])
                other[place] = other.get(place, ()) + tuple(chain(int(first)))
    return tuple(
        LinkState(LAYOUT, np.asarray(device.record["fault"]).tobytes(), known)
        for device, known in zip(devices, frames, strict=True)
    )


def check_links(states: Sequence[LinkState]) -> None:
    """Refuse a copy of another version.

    Raises:
        ConfigurationError: it is one.
    """
    if any(state.layout != LAYOUT for state in states):
        raise ConfigurationError(
            "the copy was made by a version of bhemu that keeps other state", remedy="make it with this version"
        )


def put_links(devices: Sequence[Device], states: Sequence[LinkState]) -> None:
    """Put the links back into the state of a copy.

    Raises:
        MemoryError_: the host has no memory left for the frames.
    """
    for device, state in zip(devices, states, strict=True):
        record: Any = device.record
        drop_frames(record)
        record["fault"] = np.frombuffer(state.fault, CHIP["fault"])[0]
        for channel, frames in state.frames.items():
            append(record, channel, frames)
