"""Run Tenstorrent's own LLK test suite, unmodified, on bhemu (`make test-llk`).

The suite is that of the `ttnn` wheel. It compiles kernels, drives a chip through tt-exalens, tt-umd and the C library
that bhemu is behind, and compares results with its own golden model. Kernels are compiled by Tenstorrent's compiler, or
with `--stock` by a stock one. Without files on the command line the list `expected.toml` or `expected_stock.toml` is
run and judged: the status is 1 when a test does not do what the list says. Where pip reaches no index or a compiler is
missing, it says so and the status is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bhemu.analysis.check_tile import parse_kinds
from tests.llk.suite_check import check_recordings
from tests.llk.suite_parts import CannotRun, Parts, prepare
from tests.llk.suite_results import (
    Expected,
    Kind,
    disappointments,
    first_uses,
    never_executed,
    read_expected,
    read_results,
    table,
)

HERE = Path(__file__).resolve().parent
RESULTS = "results.jsonl"
DONE = "done.txt"
"""Names of the tests that an earlier run has left results of: fixed for a run, as all workers must collect the same."""
TABLE = "table.txt"
HAZARDS = "hazards.txt"
TILE = "1-2"
"""The tile, in translated coordinates, on which the suite's kernels run."""
_DISK_MIB = 20_000
"""What a process may record, so that no instruction is left out."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stock", action="store_true", help="kernels by the stock compiler, and its list of tests")
    parser.add_argument("--first", action="store_true", help="of the fixed list, only the files that `first` names")
    parser.add_argument("tests", nargs="*", help="files or test functions of the suite; default: the fixed list")
    parser.add_argument("--sample", type=int, help="parametrisations of each test function, 0: all")
    parser.add_argument("--seed", default="", help="any text: draws another sample")
    parser.add_argument("--hardware", action="store_true", help="a Blackhole's queues, not the official simulator's")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; default: processors")
    parser.add_argument("--timeout", type=int, default=600, help="seconds that one test may take")
    parser.add_argument("--minutes", type=float, default=120, help="minutes that the whole run may take")
    parser.add_argument("--out", type=Path, help="directory for results and the workers' output; kept")
    parser.add_argument("--resume", action="store_true", help="keep the results in --out, and run what is not there")
    parser.add_argument("--check", metavar="KIND,...", help="record all tests and look for hazards: hazards.txt")
    return parser.parse_args()


@dataclass(frozen=True)
class Session:
    """One session of pytest.

    Attributes:
        name: of its folder below the results.
        tests: what to run.
        settings: environment.
        workers: processes that run tests.
    """

    name: str
    tests: tuple[str, ...]
    settings: dict[str, str]
    workers: int


def plan(options: argparse.Namespace, expected: Expected) -> list[Session]:
    """The sessions of a run: a process has one chip with one kind of queues, so each kind has a session of its own."""
    tests = tuple(options.tests) or expected.run or expected.functions
    whole = any("[" in test for test in options.tests)  # whole ids: the user has chosen
    sample = expected.sample if options.sample is None else options.sample
    settings = {"BHEMU_LLK_SAMPLE": str(0 if whole else sample), "BHEMU_LLK_SEED": options.seed}
    if options.sample is None and not whole:
        settings |= {"BHEMU_LLK_SAMPLES": json.dumps(expected.samples), "BHEMU_LLK_EACH": str(expected.each)}
    of_hardware = tests if options.hardware else tuple(test for test in tests if test in expected.hardware)
    others = tuple(test for test in tests if test not in of_hardware)
    apart: tuple[str, ...] = ()
    if (
        not options.tests and expected.run and not options.hardware
    ):  # whole folders: what has a session of its own leaves
        of_hardware = expected.hardware
        apart = tuple(
            f"--deselect={test}" if "::" in test else f"--ignore-glob=*{test}"
            for test in (*of_hardware, *expected.without)
        )
    sessions = []
    if others:
        both = (*others, *apart)
        sessions.append(Session("simulator", both, settings | {"BHEMU_ORDER": "simulator"}, options.workers))
    if of_hardware:
        workers = options.workers if options.hardware else 1
        sessions.append(Session("hardware", of_hardware, settings | {"BHEMU_ORDER": "hardware"}, workers))
    return sessions


@contextmanager
def started(
    parts: Parts, session: Session, out: Path, timeout: int, *, resume: bool, check: str | None
) -> Iterator[subprocess.Popen[bytes]]:
    """A session that runs, and has ended afterwards; results are in `out`, with what a check has found."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("gw*.txt"), *([] if resume else [out / RESULTS])]:
        old.unlink(missing_ok=True)
    (out / DONE).write_text("".join(f"{result.name}\n" for result in read_results(out / RESULTS)))
    work = Path(tempfile.mkdtemp(prefix="bhemu-llk-"))
    command = [str(parts.python), "-m", "pytest", "-p", "llk_sample", "-p", "no:cacheprovider", "--run-simulator"]
    command += [f"--timeout={timeout}", "-n", str(session.workers), "--max-worker-restart=1000", "--tb=short"]
    recorded: dict[str, str] = {}
    if check is not None:
        recorded = {"BHEMU_RECORD": str(work / "recorded"), "BHEMU_TILES": TILE, "BHEMU_RECORD_LIMIT": str(_DISK_MIB)}
    with (out / "pytest.txt").open("w") as log:
        # A process group of its own: all workers end with it.
        process = subprocess.Popen(
            [*command, *session.tests],
            cwd=parts.tests,
            env=parts.environment(work)
            | session.settings
            | recorded
            | {"BHEMU_LLK_OUT": str(out), "BHEMU_LLK_DONE": str(out / DONE), "BHEMU_STATES": "0"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if check is not None:
                text = check_recordings(work / "recorded", work, parse_kinds(check))
                (out / HAZARDS).write_text(text)
                print(text, flush=True)
            shutil.rmtree(work, ignore_errors=True)


def run_sessions(
    parts: Parts,
    sessions: list[Session],
    out: Path,
    *,
    timeout: int,
    minutes: float,
    resume: bool,
    check: str | None,
) -> bool:
    """Run sessions side by side, and say every minute how far they are; False when the time was up."""
    began, told = time.monotonic(), 0
    with ExitStack() as stack:
        processes = [
            stack.enter_context(started(parts, one, out / one.name, timeout, resume=resume, check=check))
            for one in sessions
        ]
        while any(process.poll() is None for process in processes):
            time.sleep(0.5)
            passed = (time.monotonic() - began) / 60
            if passed >= minutes:
                return False
            if passed >= told + 1:
                told += 1
                rows = sum(file.read_text().count("\n") for file in out.glob(f"*/{RESULTS}"))
                print(f"{told} minutes: {rows} tests", flush=True)
    return True


def main() -> int:
    """Prepare, run, report."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as well as Ctrl-C: sessions end too
    options = _arguments()
    expected = read_expected(HERE / ("expected_stock.toml" if options.stock else "expected.toml"))
    if options.first:
        expected = expected.first_part()
    started = time.monotonic()
    try:
        parts = prepare(stock=options.stock)
    except CannotRun as reason:
        print(f"THE LLK SUITE DID NOT RUN: {reason}", flush=True)
        return 0
    out: Path = (options.out or Path(tempfile.mkdtemp(prefix="bhemu-llk-results-"))).resolve()
    out.mkdir(parents=True, exist_ok=True)
    sessions = plan(options, expected)
    print(f"prepared in {time.monotonic() - started:.0f} seconds; results in {out}", flush=True)
    finished = run_sessions(
        parts,
        sessions,
        out,
        timeout=options.timeout,
        minutes=options.minutes,
        resume=options.resume,
        check=options.check,
    )
    results = [result for session in sessions for result in read_results(out / session.name / RESULTS)]
    (out / TABLE).write_text(table(results) + "\n")
    print(table(results))
    for choice, test in sorted(first_uses(results).items()):
        print(f"no source settles this, and a choice was made: {choice}, first in {test}")
    print(f"{time.monotonic() - started:.0f} seconds")
    if options.tests:
        for result in results:
            if result.kind in (Kind.FAIL, Kind.REFUSED, Kind.NOT_COMPILABLE):
                print(f"{result.kind.value}: {result.name}\n    {result.reason}")
        return 0 if finished else 1
    wrong = disappointments(results, expected)
    if not options.first:
        wrong += [f"{operation}: drawn and never executed" for operation in never_executed(results, expected)]
    if not finished:
        wrong.insert(0, f"the time of {options.minutes:g} minutes was up before all tests had run")
    if not results:
        wrong.insert(0, f"no test ran at all: see {out / 'pytest.txt'}")
    for line in wrong:
        print(f"NOT AS EXPECTED: {line}")
    print("all as expected" if not wrong else f"{len(wrong)} not as expected; details in {out}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
