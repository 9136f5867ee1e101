"""Fit the analytical models on a random half of the measured figures, and say how far they are from the other half.

    python tools/hold_out.py FOLDER [--seed N] [--rounds N] [--only GROUP] [--part PATTERN]

With --part, figures in whose names the regular expression finds the same text are one part. Each is left out of a fit,
and judged by it: a new size, pattern or shape, not a new figure among known ones.

What is fitted are the figures of kind `fitted` that a group's model uses, each from its value in the table times a
random factor, so that nothing of the other half is left in them. The table itself is not written.
"""

from __future__ import annotations

import argparse
import math
import random
import re
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


def part_of(pattern: str, name: str) -> str:
    """What the expression finds in a name, or its groups."""
    found = re.search(pattern, name)
    return "" if found is None else " ".join(part or "" for part in found.groups()) or found[0]


def leave_parts_out(fit: Fit, pattern: str, seed: int, rounds: int) -> None:
    """Print the errors of each part by the fit of all others, and those of all."""
    names = [one.name for one in fit.outcome().compared]
    parts = [part_of(pattern, name) for name in names]
    inside, outside = [], []
    for part in sorted(set(parts)):
        out = np.array([one == part for one in parts])
        if out.all():
            print(f"all figures are one part, {part!r}")
            return
        fit.begin(random.Random(seed))
        fit.improve(~out, rounds)
        errors = fit.errors()
        inside.append(errors[~out])
        outside.append(errors[out])
        print(f"| {fit.group} without {part} | {out.sum()} | {two(errors[~out])} | {two(errors[out])} |", flush=True)
    print(
        f"| {fit.group} | {len(names)} | {two(np.concatenate(inside))} | {two(np.concatenate(outside))} |", flush=True
    )


def two(errors: np.ndarray) -> str:
    """Median and 90th percentile."""
    return f"{np.median(errors):.1%}, {np.percentile(errors, 90):.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--part")
    given = parser.parse_args()
    if given.part is not None:
        print("| Figures | left out | inside: median, 90th | left out: median, 90th |\n|---|---:|---:|---:|")
        for group in GROUPS:
            if group.how == MODEL and group.name.startswith(tuple(given.only)):
                leave_parts_out(Fit(given.folder, group.name), given.part, given.seed, given.rounds)
        return
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
