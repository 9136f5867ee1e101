"""A report in a few lines, as plain data, and as a trace for Perfetto."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from bhemu.analysis.chrome_trace import group_name, level, span, trace_file, track_name
from bhemu.analysis.hazard import count_line
from bhemu.report.chips import chip_lines, chips_as_json
from bhemu.report.figures import Kernel, Report
from bhemu.report.levels import levels_as_json
from bhemu.report.links import link_lines, links_as_json
from bhemu.report.noc import link_traffic_as_json
from bhemu.report.operations import operation_as_json, operation_lines
from bhemu.report.timeline import KIND_NAMES, LEVEL
from bhemu.report.work import peaks_as_json, work_as_json

ROWS: Final = 10
TIME: Final = "rounds: in one, a core executes at most one instruction, without caches or latencies (rule T34)"


def _top(counts: Counter[str], number: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:number]


def summary_lines(report: Report, *, number: int = ROWS) -> list[str]:
    """The slowest kernels with their hottest line and what they wait for, operations, hazards, notes."""
    lines = [*told, ""] if (told := chip_lines(report.chips, number)) else []
    lines += operation_lines(report.timed) if report.timed else []
    if report.timed and not report.kernels:
        return lines + [f"note: {note}" for note in report.notes]
    if report.operations:
        lines.append(f"{'operation':<24}{'clocks':>12}{'tiles':>7}  kernels")
        for operation in sorted(report.operations, key=lambda one: one.begin - one.end)[:number]:
            tiles = len({place for place, _ in operation.launches})
            kernels = ", ".join(operation.kernels)
            lines.append(f"{operation.name:<24.24}{operation.end - operation.begin:>12,}{tiles:>7}  {kernels}")
        lines.append("")
    named = [kernel for kernel in report.kernels if kernel.is_named] or report.kernels
    lines.append(f"{'core':<6}{'rounds':>10}{'blocked':>9}{'tiles':>7}  {'hottest line':<30}  kernel")
    for kernel in named[:number]:
        share = kernel.blocked / kernel.rounds if kernel.rounds else 0.0
        lines.append(
            f"{kernel.core:<6}{kernel.longest:>10,}{share:>9.0%}{len(kernel.tiles):>7}  "
            f"{kernel.hottest:<30}  {kernel.name}"
        )
    if named:
        lines += ["", *_slowest(named[0])]
    lines.append("")
    if links := link_lines(report.links, number):
        lines += [*links, ""]
    lines.append(count_line(sum(one.is_certain for one in report.hazards), len(report.hazards)))
    if report.failures:
        lines += ["asserts and watcher:", *(f"  {line}" for line in failure_lines(report))]
    if report.suppressed:
        lines.append(f"suppressed hazards: {report.suppressed}")
    lines += [f"note: {note}" for note in report.notes]
    return lines


def _slowest(kernel: Kernel) -> list[str]:
    line = kernel.hottest
    rounds = kernel.lines[line]
    lines = [
        f"slowest: {kernel.name} on core {kernel.core}, {kernel.longest:,} {TIME}",
        f"  hottest line: {line}, {rounds:,} rounds ({rounds / max(kernel.rounds, 1):.0%})",
    ]
    waits = _top(kernel.line_waits[line], 1) if line in kernel.line_waits else []
    lines += [f"  there it waits for: {what}, {count:,} rounds" for what, count in waits]
    if not waits and kernel.waits:
        lines.append(f"  it waits for: {kernel.waits_for}, {kernel.waits[kernel.waits_for]:,} rounds")
    if kernel.stalls:
        causes = ", ".join(f"{cause} {cycles:,}" for cause, cycles in _top(kernel.stalls, 3))
        lines.append(f"  its thread stalls for (modelled cycles): {causes}")
    return lines


def failure_lines(report: Report) -> list[str]:
    """Each failed assert and finding of the watcher, with tile, core, source line, kernel and operation."""
    lines = []
    for one in report.failures:
        operation = report.operation_of((one.place, one.launch))
        where = f"{one.line or 'place unknown'} in {one.kernel or 'unknown code'}"
        where += f", operation {operation}" * bool(operation)
        where += f", waypoint {one.waypoint}" * bool(one.waypoint)
        lines.append(f"tile {one.place[0]}-{one.place[1]}, core {one.core}: {one.code} at {where}")
        if one.detail:
            lines.append(f"  {one.detail}")
        if len(one.calls) > 1:
            lines.append(f"  calls: {', '.join(one.calls)}")
    return lines


def hazard_lines(report: Report) -> list[str]:
    """Each hazard with its tile and both source lines."""
    return [line for one in report.hazards for line in one.lines()]


def kernel_as_json(kernel: Kernel) -> dict[str, Any]:
    """A kernel as plain data."""
    return {
        "name": kernel.name,
        "core": kernel.core,
        "path": kernel.path,
        "source": kernel.source,
        "tiles": [list(place) for place in sorted(kernel.tiles)],
        "instructions": kernel.instructions,
        "blocked": kernel.blocked,
        "rounds": kernel.rounds,
        "longest": kernel.longest,
        "hottest": kernel.hottest,
        "waits": dict(_top(kernel.waits, 50)),
        "lines": dict(_top(kernel.lines, 50)),
        "line_waits": {line: dict(_top(waits, 5)) for line, waits in kernel.line_waits.items()},
        "units": dict(_top(kernel.units, 20)),
        "stalls": dict(_top(kernel.stalls, 20)),
        "work": work_as_json(kernel.work, kernel.clocks // max(len(kernel.tiles), 1), len(kernel.tiles)),
    }


def report_as_json(report: Report) -> dict[str, Any]:
    """The report as plain data, without single events and pictures."""
    return {
        "about": report.about,
        "time": TIME,
        "operations": [
            {
                "name": operation.name,
                "begin": operation.begin,
                "end": operation.end,
                "kernels": operation.kernels,
                "tiles": [list(place) for place in sorted({place for place, _ in operation.launches})],
                "work": work_as_json(operation.work, operation.end - operation.begin, operation.tiles),
            }
            for operation in report.operations
        ],
        "kernels": [kernel_as_json(kernel) for kernel in report.kernels],
        "tiles": [
            {"x": x, "y": y, **vars(figures), "waits": dict(_top(figures.waits, 5))}
            for (x, y), figures in sorted(report.tiles.items())
        ],
        "traffic": [
            {"tile": tile, "kind": kind, "other": other, "bytes": size}
            for (tile, kind, other), size in report.traffic.most_common()
        ],
        "levels": levels_as_json(report.timeline.levels),
        "peaks": peaks_as_json(),
        "noc": link_traffic_as_json(report.link_traffic),
        "chips": chips_as_json(report.chips),
        "links": links_as_json(report.links),
        "failures": [
            {**vars(one), "operation": report.operation_of((one.place, one.launch))} for one in report.failures
        ],
        "hazards": [one.as_json() for one in report.hazards],
        "changes": report.changes,
        "notes": report.notes,
        "timed": [operation_as_json(operation) for operation in report.timed],
    }


def perfetto_json(*reports: Report) -> bytes:
    """All events in the Chrome trace format: a process for each tile; one microsecond is one clock of the chip.

    Args:
        reports: of the chips, which have one clock.
    """
    events: list[dict[str, Any]] = []
    processes = 0
    for report in reports:
        processes += _add_events(events, report, processes + 1, names_chip=len(reports) > 1)
    return trace_file(events, {"time": "one microsecond is one clock of the chip"}, "ns")


def _add_events(events: list[dict[str, Any]], report: Report, first: int, *, names_chip: bool) -> int:
    """Add the events of a chip, whose processes have numbers from `first` on; returns how many processes."""
    timeline = report.timeline
    places = {place: number for number, place in enumerate(dict.fromkeys(place for place, _ in timeline.tracks), first)}
    chip = f"chip {report.chip} " * names_chip
    events += [group_name(pid, f"{chip}tile {x}-{y}") for (x, y), pid in places.items()]
    events += [track_name(places[place], number, name) for number, (place, name) in enumerate(timeline.tracks)]
    for begin, length, track, kind, text in zip(*(one.tolist() for one in timeline.columns()), strict=True):
        name, _, where = timeline.texts[text].partition(" | ")
        place, lane = timeline.tracks[track]
        at = (places[place], track)
        if kind == LEVEL:
            events.append(level(lane, at, begin, {"level": int(name.split()[0])}))
        else:
            events.append(span(name, KIND_NAMES[kind], at, begin, length, {"at": where}))
    return len(places)
