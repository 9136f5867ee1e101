"""Batches until enough is done: in a process beside this one, or on Dask."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu.checks import checked
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.fuzz import batch_process
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.state import State, Summary
from bhemu.machine.processes import end_with_parent


@dataclass(frozen=True)
class Kind:
    """A kind of fuzzing.

    Attributes:
        module: of this room; its function `run` does a batch.
        unit: what it counts.
        size: of a batch, when none is asked for.
        goal: what `bhemu fuzz` does without `--count`.
    """

    module: str
    unit: str
    size: int
    goal: int


KINDS: Final = {
    "tensix": Kind("entries", "instructions", 200_000, 1_000_000),  # Tensix programs, in each of bhemu's ways
    "library": Kind("against", "instructions", 2_000_000, 10_000_000),  # the same on another library, too
    "riscv": Kind("lockstep", "instructions", 200_000, 1_000_000),  # RISC-V programs, in lock step with Unicorn
    "tile": Kind("tiles", "instructions", 100_000, 500_000),  # programs of all cores of a tile, with NoC and semaphores
    "parsers": Kind("parsers", "inputs", 50_000, 500_000),  # damaged files of every kind
}

MOST_FAILURES: Final = 3
"""Batches in succession that do nothing before a campaign ends."""


@checked
def seed_of(campaign: int, kind: str, number: int) -> int:
    """The seed of a batch: 63 bits that follow from the campaign's."""
    digest = hashlib.blake2b(f"{campaign} {kind} {number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def run_task(task: Task) -> tuple[Result, float]:
    """Do one batch in a process of its own, which may end; and the seconds that it took."""
    start = time.monotonic()
    result = batch_process.run(task, KINDS[task.kind].module)
    return result, time.monotonic() - start


@checked
@contextmanager
def executor(workers: int, scheduler: str | None) -> Iterator[Executor]:
    """Where batches run: a process of its own for one worker, Dask for more or with a scheduler.

    Raises:
        ConfigurationError: Dask is needed and is not there, or cannot be reached.
    """
    if workers == 1 and scheduler is None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent) as pool:
            yield pool
        return
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        raise ConfigurationError(
            "several workers need Dask, which is not installed",
            remedy="pip install 'bhemu[fuzz]', or use --workers 1",
        ) from None
    try:
        place = scheduler or LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        client = Client(place)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{scheduler}: {error}", remedy="name a scheduler as tcp://HOST:PORT") from None
    with client:
        yield client.get_executor(retries=0)
        if not isinstance(place, str):
            place.close()


@checked
@dataclass
class Campaign:
    """Batches of one kind.

    Attributes:
        count: how much to do in all, in the unit of the kind; batches that the state holds count.
        seed, size: of the campaign and of its batches, unless the state knows others.
        keep: directory for what differs.
        progress: called with a summary after each batch.
    """

    state: State
    kind: str
    count: int
    seed: int = 0
    size: int = 0
    library: Path | None = None
    keep: Path = Path("fuzz-found")
    progress: Callable[[Summary], Any] | None = None

    def run(self, workers: int = 1, scheduler: str | None = None) -> Summary:
        """Do batches until the count is reached; what is done already is not done again.

        A campaign of which several batches in succession have failed ends; they are findings.

        Raises:
            BhemuError: a batch could not be done at all, for example as the library cannot be loaded.
        """
        seed, size = self.state.settle(self.kind, self.seed, self.size or KINDS[self.kind].size)
        summary = self.state.summary(self.kind)
        finished = self.state.finished(self.kind)
        numbers = (number for number in itertools.count() if number not in finished)
        failed = 0
        with executor(workers, scheduler) as place:
            under_way: dict[Future[tuple[Result, float]], tuple[int, Task]] = {}
            while failed < MOST_FAILURES and (summary.done < self.count or under_way):
                while summary.done < self.count and len(under_way) < 2 * workers - 1:
                    number = next(numbers)
                    task = Task(self.kind, seed_of(seed, self.kind, number), size, self.library, self.keep)
                    under_way[place.submit(run_task, task)] = number, task
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    number, task = under_way.pop(future)
                    result, seconds = _outcome(future, task)
                    failed = 0 if result.done else failed + 1
                    self.state.add(task, number, result, seconds)
                    summary = self.state.summary(self.kind)
                    if self.progress is not None:
                        self.progress(summary)
        return summary


def _outcome(future: Future[tuple[Result, float]], task: Task) -> tuple[Result, float]:
    """What came of a batch; that a worker has ended is a finding."""
    try:
        return future.result()
    except BhemuError:
        raise
    except Exception as error:  # of the pool, or of Dask
        what = f"{type(error).__name__}: {error}"
        return Result(findings=[Finding(f"{task.kind}: {what}", f"batch with seed {task.seed}: {what}")]), 0.0
