"""From recordings to what a report says: operations, kernels, tiles, hazards, NoC traffic, events of the timeline."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.analysis import timing
from bhemu.analysis.access import access
from bhemu.analysis.check_tile import TileCheck
from bhemu.analysis.found import FoundHazard, core_of
from bhemu.analysis.hazard import Place as CodePlace
from bhemu.analysis.joined import join_words
from bhemu.analysis.suppressions import End, Suppressions
from bhemu.chip.coordinates import Place
from bhemu.loader.by_content import CodeIndex, Moved
from bhemu.machine.agents import CORE_NAMES, CORES, T0, T2
from bhemu.machine.origin import pc_of_line
from bhemu.programs.run import instructions_by_unit
from bhemu.recording import log as tensix_column
from bhemu.recording.core_log import CoreLog
from bhemu.recording.noc_requests import Request, requests
from bhemu.recording.parts import Part, Reader
from bhemu.recording.samples import Sample
from bhemu.report.asserts import Failures
from bhemu.report.figures import Kernel, Launch, Operation, Report, TileFigures
from bhemu.report.levels import TileLevels
from bhemu.report.names import FIRMWARE, UNKNOWN, Inspector, PartNames, find_files, kernel_name, operation_of
from bhemu.report.noc import LinkTraffic, end_name
from bhemu.report.timeline import Timeline
from bhemu.report.work import Work, work_of_request, work_of_traffic, work_of_words

MODELLED_WORDS: Final = 200_000
"""Words of the coprocessor, of all tiles, that are timed and checked: beyond, the report says what was left out."""
_COUNTED_UNITS: Final = {"pack": "packer", "unpack": "unpackers"}


class Maker:
    """Makes the report of one chip.

    Args:
        reader: of its recording.
        elf: files and directories with programs.
        kinds: of hazards that are looked for.
        suppressions: hazards to leave out.
        progress: called now and then with a number that grows.
        is_brief: operations and figures of tiles alone.
        sharing: chips that share the room of the timeline.
    """

    def __init__(
        self,
        reader: Reader,
        elf: Iterable[Path],
        kinds: tuple[str, ...],
        suppressions: Suppressions,
        progress: Callable[[int], Any],
        *,
        is_brief: bool = False,
        sharing: int = 1,
    ) -> None:
        self._reader = reader
        self._is_brief = is_brief
        self._kinds = kinds
        self._suppressions = suppressions
        self._checks: dict[Place, TileCheck] = {}
        self._levels: dict[Place, TileLevels] = defaultdict(TileLevels)
        self._open: dict[Place, list[tuple[Part, PartNames]]] = defaultdict(list)
        self._checked = 0
        self._named = list(elf)
        self._progress = progress
        self._index = CodeIndex(find_files(reader.about, self._named))
        self._pieces: dict[bytes, list[Moved]] = {}
        self._inspector = Inspector.read(reader.about)
        self._report = Report(reader.about, reader.chip, timeline=Timeline(sharing))
        self._failures = Failures()
        self._kernels: dict[tuple[str, str, str], Kernel] = {}
        self._spans: dict[Launch, list[int]] = {}
        self._launch_kernels: dict[Launch, dict[str, str]] = defaultdict(dict)
        self._rounds: Counter[tuple[Launch, int]] = Counter()
        self._work: dict[Launch, Work] = defaultdict(Counter)
        self._traffic: dict[Launch, LinkTraffic] = defaultdict(LinkTraffic)
        self._kernel_launches: dict[int, set[Launch]] = defaultdict(set)
        self._completed: Counter[Place] = Counter()
        self._words: dict[Launch, list[Part]] = defaultdict(list)
        self._names: dict[Launch, PartNames] = {}
        self._states: dict[Launch, Sample] = {}
        self._counted = 0
        self._modelled = 0
        self._dropped = [0, 0]

    def make(self) -> Report:
        """The report, but for what is of all chips."""
        for number, part in enumerate(self._reader.parts()):
            self._progress(number)
            self._take(part)
        if self._is_brief:
            self._group()
            return self._report
        for place in list(self._open):
            self._check(place)
        for launch, parts in self._words.items():
            self._model(launch, parts)
        self._group()
        self._finish()
        return self._report

    # --- parts ------------------------------------------------------------------------------------------------------

    def _take(self, part: Part) -> None:
        launch = part.place, self._completed[part.place] + 1
        if part.launch:
            self._completed[part.place] += 1
        names = self._names[launch] = PartNames(part, self._index, self._pieces)
        part.log.names = names.names
        begin = part.started if part.started is not None else part.begin
        span = self._spans.setdefault(launch, [begin, part.end])
        span[1] = max(span[1], part.end)
        if part.started is not None:
            span[0] = part.started
        self._count(part, launch, names)
        found = list(requests(part))
        self._count_requests(launch, names, found)
        if self._is_brief:
            return
        self._failures.take(part, names, launch[1])
        self._dropped[0] += part.log.dropped
        self._dropped[1] += part.log.tensix_dropped
        if len(part.log.tensix):
            self._words[launch].append(part)
        self._open[part.place].append((part, names))
        if part.launch:
            self._check(part.place)
        if part.state:
            self._states[launch] = Sample(part.place, part.end, part.state)
        self._report.timeline.add(part, names, found)
        for change in part.log.changes:
            x, y = part.place
            where = f" at {names.place(change.pc)}" if change.pc is not None else ""
            self._report.changes.append(
                f"tile {x}-{y}, round {change.round:,}: {change.address:#x} {change.before:#x} -> {change.after:#x} "
                f"by {change.by}{where}"
            )

    def _count_requests(self, launch: Launch, names: PartNames, found: Sequence[Request]) -> None:
        """Bytes of NoC requests of a tile."""
        place = launch[0]
        figures = self._report.tiles[place]
        self._report.link_traffic.add(place, found)
        self._traffic[launch].add(place, found)
        kernels: dict[tuple[int, int], Kernel] = {}
        for request in found:
            end = end_name(request.other, request.noc)
            kind = request.kind + (" to several" if request.multicast else "")
            self._report.traffic[f"{place[0]}-{place[1]}", kind, end] += request.size
            if request.kind == "read":
                figures.read += request.size
            else:
                figures.written += request.size
            by = request.core, request.pc
            if by not in kernels:
                kernels[by] = self._kernel(names, *by, launch)
            work = work_of_request(request)
            kernels[by].work.update(work)
            self._work[launch].update(work)

    def _kernel(self, names: PartNames, core: int, pc: int, launch: Launch) -> Kernel:
        piece = names.at(pc)
        path = "" if piece is None else str(piece.path)
        name = UNKNOWN if piece is None else kernel_name(piece.path)
        key = name, CORE_NAMES[core], "" if name == FIRMWARE else path
        kernel = self._kernels.get(key)
        if kernel is None:
            source = "" if piece is None else self._inspector.source_of(piece.path) or ""
            kernel = self._kernels[key] = Kernel(name, CORE_NAMES[core], path, source)
        kernel.tiles.add(launch[0])
        self._kernel_launches[id(kernel)].add(launch)
        if kernel.is_named:
            self._launch_kernels[launch][name] = kernel.source
        return kernel

    def _count(self, part: Part, launch: Launch, names: PartNames) -> None:
        log = part.log
        figures = self._report.tiles.setdefault(part.place, TileFigures())
        figures.rounds += log.rounds[1] - log.rounds[0]
        figures.running += int(log.ran.sum())
        figures.words += len(log.tensix)
        at: dict[tuple[int, int], tuple[Kernel, str]] = {}

        def where(core: int, pc: int) -> tuple[Kernel, str]:
            if (core, pc) not in at:
                at[core, pc] = self._kernel(names, core, pc, launch), names.place(pc)
            return at[core, pc]

        rounds: Counter[int] = Counter()
        for core in range(CORES):
            for pc, count, _ in log.counted(core):
                kernel, line = where(core, pc)
                kernel.instructions += count
                kernel.lines[line] += count
                rounds[id(kernel)] += count
        for (core, pc, what), blocked in log.waits.items():
            kernel, line = where(core, pc)
            kernel.blocked += blocked
            kernel.lines[line] += blocked
            kernel.waits[what] += blocked
            kernel.line_waits[line][what] += blocked
            rounds[id(kernel)] += blocked
            figures.blocked += blocked
            figures.waits[what] += blocked
        for (core, pc, what), polled in log.polls.items():
            kernel, line = where(core, pc)
            text = f"polls {what}"
            kernel.waits[text] += polled
            kernel.line_waits[line][text] += polled
            figures.polling += polled
            if kernel.name != FIRMWARE:
                figures.waits[text] += polled
        for kernel, _ in at.values():
            if id(kernel) in rounds:
                self._rounds[launch, id(kernel)] += rounds.pop(id(kernel))
                kernel.longest = max(kernel.longest, self._rounds[launch, id(kernel)])
        if log.issued is not None:
            figures.words += int(log.issued.sum())
            self._counted += 1
            self._give_words(log, where)
        words = log.tensix.rows
        self._work[launch].update(work_of_words(words))
        for line_number in np.unique(words[:, tensix_column.LINE]).tolist():
            pushed_at = pc_of_line(line_number)
            if pushed_at is None:
                continue
            chosen = words[words[:, tensix_column.LINE] == line_number]
            thread = int(chosen[0, tensix_column.THREAD])
            kernel = where(min(T0 + thread, T2), pushed_at)[0]
            kernel.work.update(work_of_words(chosen))
            for word, count in zip(*np.unique(chosen[:, tensix_column.WORD], return_counts=True), strict=True):
                found = access(int(word))
                kernel.units[found.unit_name] += int(count)

    def _give_words(self, log: CoreLog, where: Callable[[int, int], tuple[Kernel, str]]) -> None:
        """Words of threads that were only counted: to the kernel of which the thread's core has executed most."""
        assert log.issued is not None
        for thread, issued in enumerate(log.issued):
            kernels: dict[int, tuple[int, Kernel]] = {}
            for pc, count, _ in log.counted(T0 + thread):
                kernel, _ = where(T0 + thread, pc)
                kernels[id(kernel)] = kernels.get(id(kernel), (0, kernel))[0] + count, kernel
            named = [one for one in kernels.values() if one[1].is_named] or list(kernels.values())
            if named:
                kernel = max(named, key=lambda one: one[0])[1]
                for unit, words in instructions_by_unit(issued[None]).items():
                    kernel.units[_COUNTED_UNITS.get(unit, unit)] += sum(words.values())

    # --- the coprocessor --------------------------------------------------------------------------------------------

    def _model(self, launch: Launch, parts: list[Part]) -> None:
        """Modelled stalls, and hazards, of one launch on a tile."""
        words = sum(len(part.log.tensix) for part in parts)
        if self._modelled + words > MODELLED_WORDS:
            self._dropped.append(words)
            return
        self._modelled += words
        self._progress(self._modelled)
        names = self._names[launch]
        log = join_words(parts)
        for thread, times in enumerate(timing(log).threads):
            lines = log.rows[log.rows[:, tensix_column.THREAD] == thread][:, tensix_column.LINE]
            pcs = Counter(at for line in lines.tolist() if (at := pc_of_line(line)) is not None)
            if not pcs:
                continue
            kernel = self._kernel(names, T0 + thread, pcs.most_common(1)[0][0], launch)
            kernel.stalls.update(times.stalls)

    def _check(self, place: Place) -> None:
        """Hazards of the program that has run on a tile."""
        taken = self._open.pop(place)
        parts, names = [part for part, _ in taken], [one for _, one in taken]
        words = sum(len(part.log.tensix) for part in parts)
        self._checked += words
        check = self._checks.setdefault(place, TileCheck(self._kinds))
        for hazard in check.program(parts, order=self._checked <= MODELLED_WORDS):
            ends = _end(names, hazard.producer), _end(names, hazard.consumer)
            if self._suppressions.hides(hazard, ends):
                self._report.suppressed += 1
            else:
                self._report.hazards.append(FoundHazard(place, hazard, ends))
        levels = self._levels[place]
        levels.begin(parts)
        for (part, one), pages in zip(taken, check.pages, strict=True):
            self._report.timeline.add_levels(part, levels.part(part, pages, one), levels.most)

    # --- the whole --------------------------------------------------------------------------------------------------

    def _group(self) -> None:
        """Launches that run side by side on different tiles are one operation."""
        groups: list[tuple[list[int], list[Launch]]] = []
        for launch, (begin, end) in sorted(self._spans.items(), key=lambda item: (item[1], item[0])):
            if not self._launch_kernels[launch]:
                continue
            last = groups[-1] if groups else None
            if last is None or begin >= last[0][1] or launch[0] in {place for place, _ in last[1]}:
                groups.append(([begin, end], [launch]))
            else:
                last[0][1] = max(last[0][1], end)
                last[1].append(launch)
        for (begin, end), launches in groups:
            kernels: dict[str, str] = {}
            for launch in launches:
                kernels |= self._launch_kernels[launch]
            told = [name for source in kernels.values() if (name := operation_of(source)) is not None]
            name = Counter(told).most_common(1)[0][0] if told else ", ".join(sorted(kernels))
            operation = Operation(name, begin, end, launches, sorted(kernels))
            traffic = LinkTraffic()
            for launch in launches:
                operation.work.update(self._work[launch])
                traffic.update(self._traffic[launch])
            operation.work.update(work_of_traffic(traffic))
            self._report.operations.append(operation)
        for kernel in self._kernels.values():
            spans = [self._spans[launch] for launch in self._kernel_launches[id(kernel)]]
            kernel.clocks = sum(end - begin for begin, end in spans)

    def _finish(self) -> None:
        report = self._report
        report.failures = self._failures.found
        report.kernels = sorted(
            self._kernels.values(), key=lambda kernel: (not kernel.is_named, -kernel.longest, kernel.name, kernel.core)
        )
        from bhemu.report.pictures import pictures_of

        report.pictures, note = pictures_of(self._reader, self._states.values())
        report.notes += [note] if note else []
        used = {str(path) for path in self._index.used}
        for path in self._named:
            if not any(file == str(path) or file.startswith(f"{path}/") for file in used):
                report.notes.append(f"{path} does not match anything that was executed")
        if any(kernel.name == UNKNOWN for kernel in report.kernels):
            report.notes.append(f"for some code no ELF file was found among {len(self._index)}: name it with --elf")
        if self._dropped[0] or self._dropped[1]:
            report.notes.append(
                f"left out by the limits of the recording: {self._dropped[0]:,} rows of the cores, "
                f"{self._dropped[1]:,} words of the coprocessor; counts and waits are complete"
            )
        if self._counted:
            report.notes.append(
                "what was only counted has no timeline, no NoC requests, and is not checked for hazards; words of a "
                "thread are counted for the kernel of which its core has executed most"
            )
        if len(self._dropped) > 2:
            report.notes.append(
                f"{sum(self._dropped[2:]):,} words of the coprocessor are neither timed nor checked: a report does so "
                f"with up to {MODELLED_WORDS:,}"
            )
        report.notes += [f"this suppression fits nothing: {text}" for text in self._suppressions.unused()]
        if report.timeline.left_out:
            report.notes.append(
                f"the timeline leaves out {report.timeline.left_out:,} single instructions and words of the "
                "coprocessor: record fewer tiles or less time for all"
            )


def _end(names: list[PartNames], place: CodePlace) -> End:
    """Function and source line of an instruction, by the names of the parts of a program."""
    pc = place.code
    if pc is None:
        return End()
    one = next((one for one in names if one.at(pc) is not None), names[-1])
    function = one.names.function(core_of(place), pc)[0]
    return End("" if function == "?" else function, one.place(pc))
