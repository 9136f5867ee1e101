"""`bhemu bench --client`: recorded sessions of client programs, replayed on libraries with the simulator's C interface.

Each replay has a fresh process, which loads one library and makes the calls of one stream (`plan.py`, `replay.c`).
Libraries take turns, so that a machine whose speed changes treats them alike; figures are medians.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bhemu.bench.calls import FIGURES, microbench
from bhemu.bench.plan import Plan, make_plan, place_of
from bhemu.capi import NAME, build, compile_program
from bhemu.checks import checked
from bhemu.compare.calls import Call, parse_message
from bhemu.compare.library import check_library
from bhemu.errors import ProgramError

SUFFIXES: Final = (".jsonl", ".jsonl.gz", ".jsonl.xz")
"""Names of call traces end so."""
OURS: Final = "bhemu"
TIMED: Final = "bhemu timed"
_LONGEST: Final = 900.0
"""Seconds that a replay may take."""
_REPLAYER: Final = "replay.c"


@dataclass(frozen=True)
class Replay:
    """One replay.

    Attributes:
        whole_ns: wall time from the start of the process to its end.
        cpu_ns: processor time of the process.
        functions: of each function of the interface calls and nanoseconds; `load` is the time of loading the library,
            `host` that of the host's memory, `replayer` what is left.
        sections: nanoseconds of each section of the microbench.
        clocks: that have passed.
        differences: reads, and writes to the host's memory, that are not as recorded.
        note: the first of them outside the card's description of itself if there is one, else the first.
        refused: why the replay did not end; empty when it did.
    """

    whole_ns: float
    cpu_ns: float
    functions: dict[str, dict[str, float]]
    sections: list[float]
    clocks: int
    differences: int
    note: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Library:
    """A library under test.

    Attributes:
        name: as it is shown.
        path: of the shared object.
        timed: it runs in timed mode, bhemu's own alone.
    """

    name: str
    path: Path
    timed: bool = False


@checked
@dataclass
class Figures:
    """What was measured of a stream: the replays of each library by its name, in the order in which they were made."""

    stream: str
    calls: int
    replays: dict[str, list[Replay]] = field(default_factory=dict)

    def refused(self, library: str) -> str:
        """Why there is no figure of that library; empty when there is one."""
        return next((replay.refused for replay in self.replays[library] if replay.refused), "")

    def seconds(self, library: str, of: Callable[[Replay], float] = lambda replay: replay.whole_ns) -> float:
        """The median in seconds; NaN when a replay was refused."""
        if self.refused(library):
            return math.nan
        return statistics.median(of(replay) for replay in self.replays[library]) / 1e9

    def ratio(self, library: str, base: str) -> float:
        """How many times as fast the library is as another one."""
        return self.seconds(base) / self.seconds(library)

    def processor_ratio(self, library: str, base: str) -> float:
        """The same of processor time, which other work on the machine changes less."""
        base_seconds, seconds = (self.seconds(name, lambda replay: replay.cpu_ns) for name in (base, library))
        return base_seconds / seconds


@checked
def geometric_mean(values: Sequence[float]) -> float:
    """Of the values that are numbers; NaN when there are none."""
    numbers = [value for value in values if not math.isnan(value)]
    return math.exp(statistics.fmean(math.log(value) for value in numbers)) if numbers else math.nan


@checked
def find_streams(places: Sequence[Path], only: Sequence[str] = ()) -> list[Path]:
    """Call traces: files, and those in directories, in the order of their names.

    Raises:
        ProgramError: there are none, or two have the same name.
    """
    found: list[Path] = []
    for place in places:
        inside = (
            [path for path in sorted(place.iterdir()) if path.name.endswith(SUFFIXES)] if place.is_dir() else [place]
        )
        if not inside:
            raise ProgramError(f"{place} has no call traces", remedy=f"their names end with {', '.join(SUFFIXES)}")
        found += inside
    chosen = [path for path in found if not only or any(stream_name(path).startswith(part) for part in only)]
    if not chosen:
        raise ProgramError("no stream has such a name", remedy=f"there are {', '.join(map(stream_name, found))}")
    names = [stream_name(path) for path in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ProgramError(f"two streams are called {twice}", remedy="rename one of the files")
    return chosen


def stream_name(path: Path) -> str:
    """The file's name without its suffixes."""
    return path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".jsonl")


@contextlib.contextmanager
def busy_processes(replayer: Path, count: int) -> Iterator[None]:
    """Processes that do nothing but burn a processor each."""
    processes = [subprocess.Popen([replayer, "--busy"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


@checked
class Bench:
    """Libraries to measure, and the replayer, in a directory of their own that ends with it.

    Args:
        libraries: the first is what ratios are of. With none bhemu's own is measured alone; with one it is the second.
        timed: bhemu's own in timed mode is the last one.

    Raises:
        ProgramError: there is no C compiler, or two libraries have the same path.
        LibraryError: a file is not a library of this machine.
    """

    def __init__(self, libraries: Sequence[Path] = (), *, timed: bool = False) -> None:
        for path in libraries:
            check_library(path)
        self._directory = tempfile.TemporaryDirectory(prefix="bhemu-bench-")
        work = Path(self._directory.name)
        self.replayer = work / "replay"
        try:
            compile_program(Path(__file__).with_name(_REPLAYER), self.replayer)
            self.libraries = [Library(name, path) for name, path in zip(_names(libraries), libraries, strict=True)]
            if len(libraries) < 2:
                self.libraries.append(Library(OURS, build(work / OURS)))
            if timed:
                self.libraries.append(Library(TIMED, build(work / OURS), timed=True))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove what it has made."""
        self._directory.cleanup()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def replay(self, library: Library, plan: Plan, calls: Sequence[Call] = ()) -> Replay:
        """Replay a plan once.

        Args:
            library: to load.
            plan: what to do.
            calls: that it was made of, for messages.
        """
        work = Path(self._directory.name)
        file, result, output = work / "plan", work / "result", work / "output"
        file.write_bytes(plan.packed())
        return self._replay(library, plan, calls, file, result, output)

    def _replay(
        self, library: Library, plan: Plan, calls: Sequence[Call], file: Path, result: Path, output: Path
    ) -> Replay:
        result.unlink(missing_ok=True)
        environment = os.environ | ({"BHEMU_PACE": "exact"} if plan.exact else {})
        if library.timed:
            environment |= {"BHEMU_TIME": "silicon"}
        command = [str(self.replayer), str(library.path.resolve()), str(file), str(result)]
        with output.open("wb") as stream:
            try:
                subprocess.run(
                    command, stdout=stream, stderr=subprocess.STDOUT, timeout=_LONGEST, check=False, env=environment
                )
            except subprocess.TimeoutExpired:
                return _nothing(f"does not end within {_LONGEST:g} s")
        if not result.is_file():
            return _nothing("the replayer ended without a result")
        found = json.loads(result.read_text())
        refused = "" if found["finished"] else _reason(found, plan, output.read_text(errors="replace"))
        return Replay(
            whole_ns=found["whole_ns"],
            cpu_ns=found["cpu_ns"],
            functions=found["functions"],
            sections=found["sections"],
            clocks=found["clocks"],
            differences=found["differences"],
            note=_note(found["first"], calls),
            refused=refused,
        )

    def measure(
        self,
        stream: str,
        calls: Sequence[Call],
        *,
        rounds: int = 3,
        exact: bool = False,
        progress: Callable[[str], Any] = lambda text: None,
    ) -> Figures:
        """Replay a stream on all libraries alternately.

        Args:
            stream: its name.
            calls: of it.
            rounds: how often it is replayed on each; before that once without counting, but for one round alone.
            exact: make the recorded calls, and do not wait for what the client waited for.
            progress: gets a text for each replay.
        """
        plan = make_plan(calls, exact=exact)
        return self._rounds(stream, plan, calls, rounds, progress)

    def _rounds(
        self, name: str, plan: Plan, calls: Sequence[Call], rounds: int, progress: Callable[[str], Any]
    ) -> Figures:
        work = Path(self._directory.name)
        file, result, output = work / "plan", work / "result", work / "output"
        file.write_bytes(plan.packed())
        figures = Figures(name, plan.calls, {library.name: [] for library in self.libraries})
        for number in range(rounds if rounds == 1 else rounds + 1):
            for library in self.libraries:
                if figures.refused(library.name):
                    continue
                progress(f"{name} on {library.name}, round {number if rounds > 1 else 1} of {rounds}")
                replay = self._replay(library, plan, calls, file, result, output)
                if number or rounds == 1 or replay.refused:
                    figures.replays[library.name].append(replay)
        return figures

    def measure_calls(self, *, rounds: int = 3, progress: Callable[[str], Any] = lambda text: None) -> Figures:
        """The microbench: single calls, in the sections of `calls.FIGURES`."""
        return self._rounds("calls", microbench(), (), rounds, progress)


def of_one_call(figures: Figures, library: str) -> dict[str, float]:
    """Of the microbench: nanoseconds of one call by the figure's name."""
    return {
        name: figures.seconds(library, lambda replay, at=at: replay.sections[at]) * 1e9 / times  # type: ignore[misc]
        for at, (name, times) in enumerate(FIGURES)
    } | {"libttsim_init": figures.seconds(library, lambda replay: replay.functions["init"]["ns"]) * 1e9}


def _names(libraries: Sequence[Path]) -> list[str]:
    """Short names that differ: the file's, or the directory's where files have the same."""
    resolved = [path.resolve() for path in libraries]
    if len(set(resolved)) < len(resolved):
        raise ProgramError("a library is named twice", remedy="name each library once")
    for name in (lambda path: path.stem, lambda path: path.parent.name, lambda path: "/".join(path.parts[-3:])):
        names = [name(path) for path in resolved]
        if len(set(names)) == len(names) and OURS not in names and Path(NAME).stem not in names:
            return names
    return [str(path) for path in resolved]


def _nothing(why: str) -> Replay:
    return Replay(math.nan, math.nan, {}, [], 0, 0, refused=why)


def _reason(found: dict[str, Any], plan: Plan, output: str) -> str:
    """Why a replay has ended before its time."""
    if found["message"]:
        return str(found["message"])
    number = plan.origin[found["operation"]] + 1 if plan.origin else 0
    said = parse_message(output)
    if said is not None:
        return f"{said.category} at call {number:,}: {said.text.splitlines()[0]}"
    if found["signal"]:
        return f"killed by signal {found['signal']} at call {number:,}"
    return f"the library ended the process with status {found['status']} at call {number:,}"


def _note(first: list[dict[str, Any]], calls: Sequence[Call]) -> str:
    """The first difference of a tile's memory or registers, else the first at all."""
    texts = []
    for one in first:
        number = one["call"]
        where = place_of(calls, number) if number < len(calls) and calls[number].name.endswith("rd_bytes") else ""
        text = f"call {number + 1:,}, {where or hex(one['address'])}: {one['found']} instead of {one['expected']}"
        if "tile" in where or not where:
            return text
        texts.append(text)
    return texts[0] if texts else ""
