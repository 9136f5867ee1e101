"""`bhemu bench --silicon`: estimates held against figures that were measured on cards.

The figures are files in a folder, each of a known form (docs/time.md); a file that is missing is left out. What can be
run is run in timed mode; what a model estimates is named so. No figure of the folder influences an estimate.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bhemu.bench.silicon_micro import NotReproduced, measure, slope
from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import figure

Row = dict[str, str]

EXECUTED: Final = "executed in timed mode"
MODEL: Final = "analytical model"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure and its estimate.

    Attributes:
        group: of figures that are judged together.
        name: which one.
        measured: on a card.
        predicted: the estimate; NaN when there is none.
        why_not: why there is none.
    """

    group: str
    name: str
    measured: float
    predicted: float = math.nan
    why_not: str = ""

    @property
    def error(self) -> float:
        """|predicted / measured - 1|"""
        return abs(self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are judged together.

    Attributes:
        name: of the group.
        how: how its estimates are made.
        median, worst: what the median and the 90th percentile of the errors shall not exceed; NaN no goal.
    """

    name: str
    how: str
    median: float = math.nan
    worst: float = math.nan


@dataclass
class Outcome:
    """Errors of a group.

    Attributes:
        group: which.
        figures: all of it.
    """

    group: Group
    figures: list[Figure] = field(default_factory=list)

    @property
    def compared(self) -> list[Figure]:
        """Those with an estimate."""
        return [one for one in self.figures if not one.why_not]

    @property
    def median(self) -> float:
        """Of the errors."""
        return float(np.median([one.error for one in self.compared])) if self.compared else math.nan

    @property
    def worst(self) -> float:
        """90th percentile of the errors."""
        return float(np.percentile([one.error for one in self.compared], 90)) if self.compared else math.nan

    @property
    def why_not(self) -> Counter[str]:
        """Reasons for which figures have no estimate."""
        return Counter(one.why_not for one in self.figures if one.why_not)

    @property
    def holds(self) -> bool:
        """The goals are met. A group without any estimate meets none."""
        goals = ((self.median, self.group.median), (self.worst, self.group.worst))
        return all(math.isnan(goal) or value <= goal for value, goal in goals)


def read(folder: Path, name: str) -> list[Row]:
    """Rows of a file, as text by column; none when the folder does not have it."""
    path = folder / name
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- core_microbench_blackhole.csv ------------------------------------------------------------------------------------

MICRO: Final = Group("core and Tensix micro-benchmarks", EXECUTED, 0.03, 0.15)
MATMUL_TILES: Final = Group("matmul_tiles", MODEL, 0.03, 0.15)
_PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
_FLAT: Final = 0.25
"""A slope below it, in cycles, says that nothing depends on the count: there is nothing to compare."""


def _points(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pairs = [pair.split(":") for pair in text.split()]
    return tuple(int(n) for n, _ in pairs), tuple(int(c) for _, c in pairs)


def _micro(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "core_microbench_blackhole.csv"):
        name = f"{row['phase']} {row['variant']} {row['probe']} x{row['unroll']}, {row['dataset']}"
        measured = float(row["slope_cycles_per_block"])
        if row["phase"] == "B":
            phases = _PHASES[row["variant"]]
            call = figure("llk.matmul_tiles.call").value + phases * figure("llk.matmul_tiles.phase").value
            yield MATMUL_TILES, Figure(MATMUL_TILES.name, name, measured, call)
            continue
        if measured < _FLAT:
            yield MICRO, Figure(MICRO.name, name, measured, why_not="the measured time does not depend on the count")
            continue
        progress(f"{row['phase']} {row['probe']}")
        counts, _ = _points(row["points(n:cycles)"])
        numbers = (int(row["unroll"]), int(row["active_threads"]), int(row["thread"]))
        try:
            cycles = measure(row["phase"], row["probe"], *numbers, counts)
        except NotReproduced as error:
            yield MICRO, Figure(MICRO.name, name, measured, why_not=str(error))
            continue
        yield MICRO, Figure(MICRO.name, name, measured, slope(counts, cycles))


_SOURCES: Final = (_micro,)
GROUPS: Final = (MICRO, MATMUL_TILES)


def compare(folder: Path, only: list[str], progress: Callable[[str], object] = lambda text: None) -> list[Outcome]:
    """Estimate every figure of a folder.

    Args:
        folder: with files of the forms that docs/time.md describes.
        only: beginnings of names of groups; empty: all.
        progress: called now and then with what is being estimated.

    Returns:
        A group each that has figures, in the order of `GROUPS`.

    Raises:
        ConfigurationError: the folder has no such file.
    """
    if not folder.is_dir() or not any(folder.glob("*_blackhole.csv")):
        raise ConfigurationError(
            f"{folder} holds no figures of silicon", remedy="name a folder with files such as noc_latency_blackhole.csv"
        )
    outcomes = {group.name: Outcome(group) for group in GROUPS}
    for source in _SOURCES:
        for group, one in source(folder, progress):
            if not only or any(group.name.startswith(name) for name in only):
                outcomes[group.name].figures.append(one)
    return [outcome for outcome in outcomes.values() if outcome.figures]
