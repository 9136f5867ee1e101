"""From a recording to reports: of one of its chips, or of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from bhemu.analysis.hazard import KINDS
from bhemu.analysis.suppressions import Suppressions
from bhemu.recording.parts import Reader
from bhemu.report.figures import Report
from bhemu.report.links import read_links
from bhemu.report.maker import Maker
from bhemu.report.operations import read_timed_run


def make_report(
    directory: Path,
    *,
    elf: Iterable[Path] = (),
    kinds: tuple[str, ...] | None = None,
    suppressions: Suppressions | None = None,
    progress: Callable[[int], Any] = lambda _: None,
    chip: int | None = None,
) -> Report:
    """The report of a recording.

    Args:
        directory: with the recording.
        elf: files and directories with the programs that ran, besides those that the recording names.
        kinds: of hazards that are looked for; None: those that the recording was made for, or all.
        suppressions: hazards to leave out; None: those of the file that the recording names, if it does.
        progress: called now and then with a number that grows.
        chip: number of the chip, of several; None: the first that was recorded.

    Raises:
        ProgramError: there is no recording, or not of that chip, or a file of `elf` is not there.
    """
    reader = Reader(directory, chip)
    return _make(directory, reader.chips or [None], {reader.chip}, list(elf), kinds, suppressions, progress)[
        reader.chip
    ]


def make_reports(
    directory: Path,
    *,
    elf: Iterable[Path] = (),
    kinds: tuple[str, ...] | None = None,
    suppressions: Suppressions | None = None,
    progress: Callable[[int], Any] = lambda _: None,
    chip: int | None = None,
) -> list[Report]:
    """The reports of all chips of a recording, by number; their timelines share the room of one.

    Args:
        directory, elf, kinds, suppressions, progress: see `make_report`.
        chip: one that has to be among them.

    Raises:
        ProgramError: there is no recording, or not of that chip, or a file of `elf` is not there.
    """
    chips: list[int | None] = [*Reader(directory, chip).chips] or [None]
    return list(_make(directory, chips, set(chips), list(elf), kinds, suppressions, progress).values())


def _make(
    directory: Path,
    chips: Sequence[int | None],
    whole: set[int | None],
    elf: list[Path],
    kinds: tuple[str, ...] | None,
    suppressions: Suppressions | None,
    progress: Callable[[int], Any],
) -> dict[int | None, Report]:
    """Reports of chips that are wanted as a whole; each has figures of all."""
    made: dict[int | None, Report] = {}
    for chip in chips:
        reader = Reader(directory, chip)
        told = next(iter(reader.about), {})
        hidden = deepcopy(suppressions)  # what fits nothing is said of each chip
        if hidden is None:
            hidden = Suppressions.read(Path(told["suppressions"])) if told.get("suppressions") else Suppressions()
        looked_for = tuple(told.get("check", KINDS)) if kinds is None else kinds
        is_brief = chip not in whole
        made[chip] = Maker(reader, elf, looked_for, hidden, progress, is_brief=is_brief, sharing=len(whole)).make()
    links = read_links(Reader(directory))
    for chip in whole:
        report = made[chip]
        report.links = links
        if any(one.get("timed") for one in report.about):
            report.timed = read_timed_run(directory, elf=elf).operations
        if len(chips) > 1:
            report.chips = [one.of_chip() for one in made.values()]
            known = ", ".join(map(str, chips))
            where = "choose with --chip, or on the page"
            report.notes.insert(0, f"this is chip {chip} of chips {known}, which were recorded: {where}")
    return {chip: report for chip, report in made.items() if chip in whole}
