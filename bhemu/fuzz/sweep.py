"""One run for each file of a directory and each combination of parameters; a row of SQLite for each."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.compare.calls import CLOCK, Call
from bhemu.errors import BhemuError, CycleLimit, FormatError
from bhemu.fuzz.campaign import executor
from bhemu.fuzz.database import Database
from bhemu.loader.elf import MAGIC

PROGRAM, KERNEL, RECORDING = "program", "kernel", "recording"
_RECORDINGS: Final = (".jsonl", ".jsonl.gz", ".jsonl.xz")
APPLICATION: Final = 0x6268_7377
VERSION: Final = 0
_TABLE: Final = """create table run (file text, digest text, kind text, parameters text, outcome text, message text,
    clocks integer, instructions integer, seconds real, figures text, primary key (file, digest, parameters));"""


@dataclass(frozen=True)
class Job:
    """A run that is to be made.

    Attributes:
        path: of the file.
        kind: program, kernel or recording.
        digest: of the file's content.
        parameters: by name: settings of a program, and its seed.
    """

    path: Path
    kind: str
    digest: str
    parameters: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return str(self.path), self.digest, json.dumps(self.parameters, sort_keys=True)


@dataclass(frozen=True)
class Row:
    """What came of a run.

    Attributes:
        outcome: `done`, `different` (a recording's answers, or another library's), or the category of the refusal.
        message: of the refusal.
        clocks: that passed.
        instructions: of cores and threads.
        seconds: processor time.
        figures: what else is known: errors of outputs, digests of outputs, answers that were compared.
    """

    outcome: str
    message: str = ""
    clocks: int = 0
    instructions: int = 0
    seconds: float = 0.0
    figures: Mapping[str, Any] | None = None


def kind_of(path: Path) -> str | None:
    """What a file is; None for one that cannot be run."""
    if path.name.endswith(_RECORDINGS):
        return RECORDING
    if path.suffix == ".py":
        return PROGRAM if b"Program(" in path.read_bytes() else None  # not a module that programs import
    with path.open("rb") as stream:
        return KERNEL if stream.read(len(MAGIC)) == MAGIC else None


@checked
def jobs(directory: Path, grid: Mapping[str, Sequence[str]]) -> list[Job]:
    """All runs of a directory: each Python program with each combination of parameters, each other file once.

    Raises:
        FormatError: there is nothing to run.
    """
    if not directory.is_dir():
        raise FormatError(f"{directory}: not a directory", remedy="name one with programs, ELF files or call traces")
    found = []
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    for path in sorted(file for file in directory.rglob("*") if file.is_file()):
        kind = kind_of(path)
        if kind is not None:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
            found += [Job(path, kind, digest, p) for p in (combinations if kind == PROGRAM else [{}])]
    if not found:
        raise FormatError(
            f"{directory} has nothing to run", remedy="put Python programs, ELF files or call traces (.jsonl) there"
        )
    return found


def make(job: Job, max_clocks: int) -> Row:
    """Make a run, here."""
    start = time.process_time()
    try:
        row = {PROGRAM: _program, KERNEL: _kernel, RECORDING: _recording}[job.kind](job, max_clocks)
    except BhemuError as error:
        row = Row(error.category, error.message)
    except Exception as error:  # of the user's program
        row = Row("error", f"{type(error).__name__}: {error}")
    return Row(row.outcome, row.message, row.clocks, row.instructions, time.process_time() - start, row.figures)


def _program(job: Job, max_clocks: int) -> Row:
    from bhemu.programs.load import load_program
    from bhemu.programs.run import run_program

    settings = dict(job.parameters)
    seed = int(settings.pop("seed", "0"))
    result = run_program(load_program(job.path), settings=settings, seed=seed, max_cycles=max_clocks)
    errors = {name: [e.absolute, e.relative] for name, e in result.report.errors.items()}
    digests = {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        for name, array in result.outputs.items()
    }
    instructions = sum(count for unit in result.report.units.values() for count in unit.values())
    return Row("done", "", result.report.cycles, instructions, figures={"errors": errors, "outputs": digests})


def _kernel(job: Job, max_clocks: int) -> Row:
    from bhemu.api.machine import Machine

    machine = Machine()
    machine.load(job.path)
    machine.start()
    result = machine.run(max_clocks=max_clocks)
    record = machine.tile.record
    instructions = int(record.core_retired.sum()) + int(record.issued.sum())
    return Row("done", "", result.clocks, instructions, figures={"ended": result.reason})


def _up_to(calls: Iterable[Call], max_clocks: int) -> Iterator[Call]:
    """Calls of a client, as long as no more clocks pass than may."""
    passed = 0
    for call in calls:
        passed += call.a if call.name == CLOCK else 0
        if passed > max_clocks:
            raise CycleLimit(
                f"the client lets {passed:,} clocks pass, and {max_clocks:,} are allowed", remedy="raise --max-clocks"
            )
        yield call


def _recording(job: Job, max_clocks: int) -> Row:
    from bhemu.compare.chip_side import ChipSide
    from bhemu.compare.lockstep import RecordedSide, play
    from bhemu.compare.trace import read_trace

    played = play(_up_to(read_trace(job.path), max_clocks), ChipSide(), RecordedSide())
    figures = {"calls": len(played.calls), "compared": played.compared, "bytes": played.bytes}
    if played.difference is not None:
        return Row(
            "different", f"call {played.difference.index}: {played.difference.call}", played.clocks, 0, 0.0, figures
        )
    return Row("done", "", played.clocks, figures=figures)


@checked
class Results:
    """The SQLite file of a sweep.

    Raises:
        FormatError: the file is something else, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._file = Database(path, _TABLE, APPLICATION, VERSION, use="for the results of a sweep", option="--results")

    def known(self) -> set[tuple[str, str, str]]:
        """Keys of the runs that were made."""
        return set(self._file.rows("select file, digest, parameters from run"))

    def add(self, job: Job, row: Row) -> None:
        """Keep a run."""
        self._file.rows(
            "insert or replace into run values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *job.key[:2], job.kind, job.key[2], row.outcome, row.message, row.clocks, row.instructions,
            row.seconds, json.dumps(row.figures or {}),
        )  # fmt: skip

    def outcomes(self) -> list[tuple[str, str, str, str, int, int, float]]:
        """(file, parameters, outcome, message, clocks, instructions, seconds) of all runs."""
        columns = "file, parameters, outcome, message, clocks, instructions, seconds"
        return self._file.rows(f"select {columns} from run order by file, parameters")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@checked
def sweep(
    todo: Sequence[Job],
    results: Results,
    *,
    max_clocks: int,
    workers: int = 1,
    scheduler: str | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> None:
    """Make the runs that the results do not have yet.

    Args:
        max_clocks: a run that takes longer is refused.
        workers, scheduler: as of `campaign.executor`.
        progress: called with runs made and runs in all.

    Raises:
        BhemuError: Dask or the file cannot be used.
    """
    known = results.known()
    left = [job for job in todo if job.key not in known]
    done, total = len(todo) - len(left), len(todo)
    while left:
        with executor(workers, scheduler) as place:
            under_way: dict[Future[Row], Job] = {}
            broken = False
            while (left or under_way) and not broken:
                while left and len(under_way) < 2 * workers - 1:
                    job = left.pop(0)
                    under_way[place.submit(make, job, max_clocks)] = job
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    job = under_way.pop(future)
                    error = future.exception()
                    broken = broken or error is not None
                    results.add(job, Row("ended", f"its process has ended: {error}") if error else future.result())
                    done += 1
                    if progress is not None:
                        progress(done, total)
            left += under_way.values()
