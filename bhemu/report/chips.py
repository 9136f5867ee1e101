"""All chips of a recording side by side: what each has done, and the operations that several of them have executed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bhemu.chip.coordinates import Place
from bhemu.machine.agents import CORES

NOT_RECORDED: Final = "not recorded"


@dataclass(frozen=True)
class ChipOperation:
    """An operation of a chip.

    Attributes:
        name: by tt-metal's logs, or by its kernels.
        begin, end: clocks.
        tiles: on which it ran.
    """

    name: str
    begin: int
    end: int
    tiles: int


@dataclass(frozen=True)
class ChipFigures:
    """What a chip has done, as far as its tiles were recorded.

    Attributes:
        number: of the chip.
        tiles: what their cores have done, and what they have moved, by translated coordinates: `rounds`, `running`,
            `blocked`, `polling`, `words`, `read` and `written`.
        operations: in the order in which they began.
        has_requests: NoC requests were recorded; otherwise `read` and `written` say nothing.
    """

    number: int
    tiles: Mapping[Place, Mapping[str, int]]
    operations: tuple[ChipOperation, ...]
    has_requests: bool = True

    def total(self, what: str) -> int:
        """A figure of all tiles together."""
        return sum(figures[what] for figures in self.tiles.values())


def shared_operations(chips: Iterable[ChipFigures]) -> list[dict[int, ChipOperation]]:
    """Operations by chip: the first one of a name is the same on all chips, and so on; in the order of their begins."""
    found: dict[tuple[str, int], dict[int, ChipOperation]] = defaultdict(dict)
    for chip in chips:
        known: Counter[str] = Counter()
        for operation in chip.operations:
            found[operation.name, known[operation.name]][chip.number] = operation
            known[operation.name] += 1
    return sorted(found.values(), key=lambda one: min(operation.begin for operation in one.values()))


def chip_lines(chips: Iterable[ChipFigures], number: int) -> list[str]:
    """A line for each chip, and for the longest operations how long they took on which; none for a chip alone.

    Shares are of the rounds of all cores of the recorded tiles.
    """
    told = list(chips)
    if len(told) < 2:
        return []
    lines = [
        f"{'chip':<6}{'tiles':>6}{'core rounds':>15}{'blocked':>9}{'polling':>9}{'NoC read':>14}{'written':>14}"
        "  operations"
    ]
    for chip in told:
        executed = chip.total("running") + chip.total("blocked")
        room = max(CORES * chip.total("rounds"), 1)  # what cores that sleep poll is not among what they executed
        shares = "".join(f"{chip.total(what) / room:>9.0%}" for what in ("blocked", "polling"))
        moved = "".join(
            f"{chip.total(what):>14,}" if chip.has_requests else f"{NOT_RECORDED:>14}" for what in ("read", "written")
        )
        lines.append(f"{chip.number:<6}{len(chip.tiles):>6}{executed:>15,}{shares}{moved}  {len(chip.operations)}")
    shared = shared_operations(told)
    if not shared:
        return lines
    lines += ["", f"{'operation':<24}{'begin':>14}{'chips':>7}  clocks"]
    longest = sorted(shared, key=lambda one: -max(_clocks(operation) for operation in one.values()))[:number]
    for one in (row for row in shared if row in longest):
        by_time = sorted(one, key=lambda chip: (_clocks(one[chip]), chip))
        texts = [f"{_clocks(one[chip]):,} on chip {chip}" for chip in dict.fromkeys((by_time[0], by_time[-1]))]
        begin = min(operation.begin for operation in one.values())
        lines.append(f"{next(iter(one.values())).name:<24.24}{begin:>14,}{len(one):>7}  {' to '.join(texts)}")
    left = len(shared) - len(longest)
    return [*lines, f"({left} more)"] if left else lines


def _clocks(operation: ChipOperation) -> int:
    return operation.end - operation.begin


def chips_as_json(chips: Iterable[ChipFigures]) -> list[dict[str, Any]]:
    """The same as plain data, tile by tile."""
    return [
        {
            "chip": chip.number,
            "noc_recorded": chip.has_requests,
            "tiles": [{"x": x, "y": y, **figures} for (x, y), figures in sorted(chip.tiles.items())],
            "operations": [vars(operation) for operation in chip.operations],
        }
        for chip in chips
    ]


def chips_on_page(chips: Iterable[ChipFigures]) -> list[dict[str, Any]]:
    """For the page: what each chip has done in all, and its operations."""
    counted = ("rounds", "running", "blocked", "polling", "words", "read", "written")
    return [
        {
            "chip": chip.number,
            "tiles": len(chip.tiles),
            **{what: chip.total(what) for what in counted},
            **({} if chip.has_requests else dict.fromkeys(("read", "written"), NOT_RECORDED)),
            "operations": [[one.name, one.begin, one.end] for one in chip.operations],
        }
        for chip in chips
    ]


def shared_on_page(chips: Iterable[ChipFigures]) -> list[dict[str, Any]]:
    """For the page: operations with [chip, clocks] of the chips that executed them, the fastest first."""
    return [
        {
            "name": next(iter(one.values())).name,
            "begin": min(operation.begin for operation in one.values()),
            "clocks": sorted(
                ([chip, _clocks(operation)] for chip, operation in one.items()), key=lambda row: row[::-1]
            ),
        }
        for one in shared_operations(chips)
    ]
