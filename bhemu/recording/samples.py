"""Registers and tiles in L1 of recorded tiles, every so many clocks: pictures of what happens within a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import Place
from bhemu.recording.states import check_state, state_of

Array = np.ndarray[Any, Any]

_NOT_SHOWN: Final = ("config", "src_owner")
"""What only says how the rest is looked at: a change of it alone makes no sample."""


@dataclass(frozen=True)
class Sample:
    """A tile after a clock.

    Attributes:
        place: translated coordinates of the tile.
        clock: of the chip.
        state: arrays by name, as `state_of` (recording/states.py) has them.
    """

    place: Place
    clock: int
    state: Mapping[str, Array]


class Sampler:
    """Looks at tiles every so many clocks.

    Args:
        every: clocks between two looks.
    """

    def __init__(self, every: int) -> None:
        self._every = every
        self._next = 0
        self._last: dict[Place, dict[str, Array]] = {}

    def clocks_left(self, now: int) -> int:
        """Clocks until the next look."""
        return max(self._next - now, 1)

    def take(self, now: int, tiles: Iterable[tuple[Place, Any]]) -> list[Sample]:
        """Those of tiles that have changed since the last look, where it is time for one.

        Arrays that are as they were are the same objects as before.

        Args:
            now: clock of the chip.
            tiles: translated coordinates and record of each.
        """
        if now < self._next:
            return []
        self._next = now + self._every
        found = []
        for place, record in tiles:
            before = self._last.get(place, {})
            state = {
                name: before[name] if name in before and np.array_equal(before[name], array) else array
                for name, array in state_of(record).items()
            }
            changed = {name for name, array in state.items() if before.get(name) is not array} - {*_NOT_SHOWN}
            if changed or before.keys() != state.keys():
                self._last[place] = state
                found.append(Sample(place, now, state))
        return found


class Series:
    """Samples as a file has them: of a tile each array once, until it changes."""

    def __init__(self) -> None:
        self._last: dict[Place, Mapping[str, Array]] = {}

    def described(self, sample: Sample) -> tuple[dict[str, Any], dict[str, Array]]:
        """Description and arrays of a frame, which follows those of the samples before."""
        before = self._last.get(sample.place, {})
        self._last[sample.place] = sample.state
        same = [name for name, array in sample.state.items() if before.get(name) is array]
        arrays = {name: array for name, array in sample.state.items() if name not in same}
        return {"place": list(sample.place), "clock": sample.clock, "same": same}, arrays

    def undescribed(self, told: Mapping[str, Any], arrays: Mapping[str, Array]) -> Sample:
        """The sample of a frame.

        Raises:
            LookupError, TypeError, ValueError: this is not one.
        """
        x, y = told["place"]
        place, clock = (int(x), int(y)), int(told["clock"])
        before = self._last.get(place, {})
        sample = Sample(place, clock, {**{name: before[name] for name in told["same"]}, **arrays})
        check_state(sample.state)
        self._last[place] = sample.state
        return sample
