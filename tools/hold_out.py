"""Fit the analytical models on a random half of the measured figures, and say how far they are from the other half.

    python tools/hold_out.py FOLDER [--seed N] [--rounds N]

What is fitted are the figures of kind `fitted` that a group's model uses, each from its value in the table times a
random factor, so that nothing of the other half is left in them. The table itself is not written.
"""

from __future__ import annotations

import argparse
import math
import random
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

import bhemu.isa.silicon as table
from bhemu.bench.silicon import GROUPS, MATMUL_TILES, MODEL, Outcome, compare

SPREAD = 1.3
"""Each figure begins up to this factor away from its value in the table."""


class Fit:
    """Figures of one group's model, and how far they are from halves of the measured ones."""

    def __init__(self, folder: Path, group: str) -> None:
        self.folder, self.group = folder, group
        self.values: dict[str, float] = {}
        self.used: set[str] = set()

    def outcome(self) -> Outcome:
        """The group's estimates with the values of now."""
        known = {name: replace(one, value=self.values.get(name, one.value)) for name, one in self.original.items()}
        used = self.used

        class Watched(dict[str, table.SiliconFigure]):
            def __getitem__(self, name: str) -> table.SiliconFigure:
                used.add(name)
                return super().__getitem__(name)

        table.FIGURES = Watched(known)  # type: ignore[misc]
        try:
            return compare(self.folder, [self.group])[0]
        finally:
            table.FIGURES = self.original  # type: ignore[misc]

    original = MappingProxyType(dict(table.FIGURES))

    def errors(self) -> np.ndarray:
        return np.array([one.error for one in self.outcome().compared])

    def begin(self, chance: random.Random) -> int:
        """Every fitted figure that the model uses, some way off; returns how many measured ones there are."""
        count = len(self.outcome().compared)
        for name in sorted(self.used):
            one = self.original[name]
            if one.kind == table.FITTED:
                self.values[name] = one.value * SPREAD ** chance.uniform(-1, 1)
        return count

    def improve(self, half: np.ndarray, rounds: int) -> None:
        """Move one figure after the other as long as the mean error of the half falls."""
        best = float(np.mean(self.errors()[half]))
        step = 1.2
        for _ in range(rounds):
            found = False
            for name in self.values:
                for factor in (step, 1 / step):
                    before = self.values[name]
                    self.values[name] = before * factor
                    error = float(np.mean(self.errors()[half]))
                    if error < best:
                        best, found = error, True
                        break
                    self.values[name] = before
            if not found:
                step = math.sqrt(step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", action="append", default=[])
    given = parser.parse_args()
    print("| Figures | fitted values | half that is fitted: figures, median | held out: figures, median |")
    print("|---|---:|---:|---:|")
    for group in GROUPS:
        if group.how != MODEL or group == MATMUL_TILES or (given.only and not group.name.startswith(tuple(given.only))):
            continue
        chance = random.Random(given.seed)
        fit = Fit(given.folder, group.name)
        try:
            count = fit.begin(chance)
        except IndexError:
            continue  # the folder has none
        chosen = set(chance.sample(range(count), count // 2))
        half = np.array([i in chosen for i in range(count)])
        fit.improve(half, given.rounds)
        errors = fit.errors()
        inside, outside = float(np.median(errors[half])), float(np.median(errors[~half]))
        columns = (group.name, len(fit.values), f"{half.sum()}, {inside:.1%}", f"{(~half).sum()}, {outside:.1%}")
        print(f"| {' | '.join(str(column) for column in columns)} |", flush=True)


if __name__ == "__main__":
    main()
