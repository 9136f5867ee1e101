"""Operations of a client's run in timed mode: how long each took, what bounds it, and how far from that bound it is.

What bounds an operation is what was busy for the largest part of it: on the tile where that was busiest, or the
busiest of all links, network interfaces and DRAM banks.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.loader.by_content import CodeIndex
from bhemu.recording.parts import Reader
from bhemu.recording.zones import Marker, ProfiledRun, read_run
from bhemu.report.names import FIRMWARE, Inspector, find_files, kernel_name, operation_of
from bhemu.report.tensors import TensorText, read_operations
from bhemu.timed.recording import BUSY, LAUNCH, STEP, ZONES, TimedLaunch, read_launch, traffic

Array = np.ndarray[Any, Any]

MATH: Final = "math"
UNITS: Final = {"matrix": MATH, "vector": "SFPU", "unpack": "unpack", "pack": "pack", "scalar": "scalar unit"}
"""What units of the coprocessor are called here."""
DISPATCH: Final = "dispatch"
_DISPATCHER: Final = "cq_"
"""Names of its kernels begin so."""


@dataclass
class TimedOperation:
    """Programs that ran on tiles for the same call of the host.

    Attributes:
        name: by tt-metal's logs, or by its kernels.
        host_id: the host's number; 0: not known.
        begin, end: cycles.
        gap: cycles since the operation before has ended; 0 for the first.
        launches: of which it consists.
        kernels: names.
        busy: cycles by what may bound it, the longest first.
        guessed: share of cycles of units and cores whose figures are guesses.
        runs: what the device profiler has written, by tile.
        inputs: tensors that it was given, where tt-metal's inspector was asked for them.
    """

    name: str
    host_id: int
    begin: int
    end: int
    gap: int
    launches: list[TimedLaunch]
    kernels: list[str]
    busy: dict[str, float]
    guessed: float
    runs: dict[Place, ProfiledRun] = field(default_factory=dict)
    inputs: tuple[TensorText, ...] = ()

    @property
    def cycles(self) -> int:
        """From the first tile's begin to the last one's end."""
        return self.end - self.begin

    @property
    def tiles(self) -> int:
        """On how many it ran."""
        return len({launch.place for launch in self.launches})

    @property
    def bound(self) -> str:
        """What was busy for the largest part of it."""
        return next(iter(self.busy))

    @property
    def share(self) -> float:
        """The part for which that was busy, 0 to 1; with 1 it cannot be faster without more of that."""
        return min(self.busy[self.bound] / self.cycles, 1.0) if self.cycles else 0.0


@dataclass
class TimedRun:
    """A recording in timed mode.

    Attributes:
        about: of the recordings.
        operations: in the order of their begin.
        runs: what the device profiler has written, in the order of their ends.
    """

    about: list[dict[str, Any]]
    operations: list[TimedOperation] = field(default_factory=list)
    runs: list[ProfiledRun] = field(default_factory=list)


class _Kernels:
    """Names of kernels by what was in memory."""

    def __init__(self, about: list[dict[str, Any]], elf: Iterable[Path]) -> None:
        self._index = CodeIndex(find_files(about, elf))
        self._inspector = Inspector.read(about)
        self._known: dict[bytes, tuple[str, str]] = {}

    def find(self, address: int, content: bytes) -> tuple[str, str]:
        """(name, source) of a kernel; empty where no file is like it."""
        if content not in self._known:
            names = ("", "")
            for piece in self._index.find(address, content):
                name = kernel_name(piece.path)
                if name != FIRMWARE:
                    names = name, self._inspector.source_of(piece.path) or ""
                    break
            self._known[content] = names
        return self._known[content]

    def dispatch(self, launch: TimedLaunch) -> bool:
        """It is the dispatcher of tt-metal, which runs beside all operations."""
        names = [name for _, address, content in launch.kernels if (name := self.find(address, content)[0])]
        return bool(names) and all(name.startswith(_DISPATCHER) for name in names)


def _groups(launches: Sequence[TimedLaunch]) -> list[list[TimedLaunch]]:
    """Launches of one operation: of the same number of the host, or, without numbers, side by side."""
    groups: list[list[TimedLaunch]] = []
    last: dict[int, list[TimedLaunch]] = {}
    for launch in sorted(launches, key=lambda one: (one.begin, one.place)):
        group = last.get(launch.host_id)
        taken = group is None or any(one.place == launch.place for one in group)
        if not taken and launch.host_id == 0:
            assert group is not None
            taken = launch.begin >= max(one.end for one in group)
        if taken:
            group = last[launch.host_id] = []
            groups.append(group)
        assert group is not None
        group.append(launch)
    return groups


class _Snapshots:
    """What `ChipTime.busy` gave, by cycle."""

    def __init__(self) -> None:
        self._cycles: list[int] = []
        self._busy: list[Array] = []

    def add(self, cycle: int, busy: Array) -> None:
        self._cycles.append(cycle)
        self._busy.append(busy)

    def between(self, begin: int, end: int) -> Array:
        first = max(bisect.bisect_right(self._cycles, begin) - 1, 0)
        last = min(bisect.bisect_left(self._cycles, end), len(self._cycles) - 1)
        return self._busy[last] - self._busy[first]


def _busy(group: Sequence[TimedLaunch], busy: Array) -> dict[str, float]:
    """`TimedOperation.busy`."""
    found: dict[str, float] = {}
    for unit, name in UNITS.items():
        found[name] = max(launch.units[unit] for launch in group)
    for core in group[0].cores:
        found[f"issue of core {core}"] = max(launch.cores[core] for launch in group)
    net = traffic(busy)
    found |= {"NoC link": net.link, "NoC interface": net.interface, "DRAM bank": net.bank}
    begins = [launch.begin for launch in group]
    found[DISPATCH] = max(begins) - min(begins)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _operation(group: list[TimedLaunch], kernels: _Kernels, before: int | None, busy: Array) -> TimedOperation:
    sources: dict[str, str] = {}
    for launch in group:
        sources |= dict(kernels.find(address, content) for _, address, content in launch.kernels)
    sources.pop("", None)
    told = Counter(name for source in sources.values() if (name := operation_of(source)) is not None)
    begin, end = min(one.begin for one in group), max(one.end for one in group)
    total = sum(sum(one.units.values()) + sum(one.cores.values()) for one in group)
    return TimedOperation(
        name=told.most_common(1)[0][0] if told else ", ".join(sorted(sources)) or "(no ELF file)",
        host_id=group[0].host_id,
        begin=begin,
        end=end,
        gap=0 if before is None else max(begin - before, 0),
        launches=group,
        kernels=sorted(sources),
        busy=_busy(group, busy),
        guessed=sum(one.guessed for one in group) / total if total else 0.0,
    )


def _begin(run: ProfiledRun) -> int:
    return min((one.time for one in run.markers if one.kind == "start"), default=-1)


def _give_runs(operations: Sequence[TimedOperation], runs: Iterable[ProfiledRun]) -> None:
    """Give what the profiler has written on a tile to the operation that ran there then."""
    spans: dict[Place, list[tuple[int, int, TimedOperation]]] = {}
    for operation in operations:
        for launch in operation.launches:
            spans.setdefault(launch.place, []).append((launch.begin - STEP, launch.end + STEP, operation))
    for run in runs:
        begin = _begin(run)
        for first, last, operation in spans.get(run.place, []):
            if first <= begin <= last:
                operation.runs[run.place] = run


@checked
def read_timed_run(
    directory: Path, *, elf: Iterable[Path] = (), progress: Callable[[int], Any] = lambda number: None
) -> TimedRun:
    """The operations of a recording in timed mode, without the kernels that dispatch them.

    Args:
        directory: of the recording.
        elf: files and directories with programs that ran.
        progress: called with the number of frames so far.

    Raises:
        ProgramError: there is no recording, or one of `elf` is not there.
    """
    reader = Reader(directory)
    launches: list[TimedLaunch] = []
    snapshots = _Snapshots()
    run = TimedRun(reader.about)
    for number, (told, arrays, code) in enumerate(reader.frames()):
        progress(number)
        if told["kind"] == LAUNCH:
            launches.append(read_launch(told, arrays, code))
        elif told["kind"] == BUSY:
            snapshots.add(told["cycle"], arrays["busy"])
        elif told["kind"] == ZONES:
            x, y = told["place"]
            run.runs.append(read_run((x, y), arrays["words"], complete=told["complete"]))
    kernels = _Kernels(reader.about, elf)
    end: int | None = None
    for group in _groups(launches):
        first, last = min(one.begin for one in group), max(one.end for one in group)
        if kernels.dispatch(group[0]):
            continue
        run.operations.append(_operation(group, kernels, end, snapshots.between(first, last)))
        end = last if end is None else max(end, last)
    _give_runs(run.operations, run.runs)
    logged = read_operations(reader.about)
    for operation in run.operations:
        if operation.host_id in logged:
            operation.inputs = logged[operation.host_id].inputs
    return run


def zone_cycles(markers: Iterable[Marker]) -> list[tuple[str, int, int, int]]:
    """(core, zone, begin, end) of each zone whose two ends were written; inner ones end first."""
    found = []
    open_zones: dict[tuple[str, int], list[int]] = {}
    for marker in markers:
        key = marker.core, marker.zone
        if marker.kind == "start":
            open_zones.setdefault(key, []).append(marker.time)
        elif marker.kind == "end" and open_zones.get(key):
            found.append((*key, open_zones[key].pop(), marker.time))
    return found


def operation_as_json(operation: TimedOperation) -> dict[str, Any]:
    """An operation as plain data."""
    return {
        "name": operation.name,
        "host_id": operation.host_id,
        "begin": operation.begin,
        "cycles": operation.cycles,
        "gap": operation.gap,
        "tiles": operation.tiles,
        "bound": operation.bound,
        "share": operation.share,
        "busy": operation.busy,
        "guessed": operation.guessed,
        "kernels": operation.kernels,
        "inputs": [asdict(tensor) for tensor in operation.inputs],
    }


def operation_lines(operations: Sequence[TimedOperation]) -> list[str]:
    """A table of operations, the longest names cut off."""
    head = f"{'operation':<26}{'cycles':>10}{'gap':>9}{'tiles':>6}  {'bound by':<18}{'busy':>5}{'guessed':>9}  then"
    lines = [head]
    for one in operations:
        others = [f"{name} {cycles / max(one.cycles, 1):.0%}" for name, cycles in list(one.busy.items())[1:3]]
        lines.append(
            f"{one.name:<25.25} {one.cycles:>10,}{one.gap:>9,}{one.tiles:>6}  {one.bound:<18}{one.share:>5.0%}"
            + f"{one.guessed:>9.1%}  "
            + ", ".join(others)
        )
    return lines
