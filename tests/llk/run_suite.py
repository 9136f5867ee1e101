"""Run Tenstorrent's own LLK test suite, unmodified, on bhemu (`make test-llk`).

The suite is that of the `ttnn` wheel. It compiles kernels, drives a chip through tt-exalens, tt-umd and the C library
that bhemu is behind, and compares results with its own golden model. Without files on the command line the fixed list
`expected.toml` is run and judged: the status is 1 when a test does not do what the list says. Where pip reaches no
index or a compiler is missing, it says so and the status is 0.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent / "host")]

from suite_parts import CannotRun, Parts, prepare  # noqa: E402
from suite_results import Kind, disappointments, read_expected, read_results, table  # noqa: E402

RESULTS = "results.jsonl"
CHOICE = re.compile(r"bhemu: no source settles this, a choice was made: (.*)")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--first", action="store_true", help="of the fixed list, only the files that `first` names")
    parser.add_argument("tests", nargs="*", help="files or test functions of the suite; default: the fixed list")
    parser.add_argument("--sample", type=int, help="parametrisations of each test function, 0: all")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes; default: processors")
    parser.add_argument("--timeout", type=int, default=600, help="seconds that one test may take")
    parser.add_argument("--minutes", type=float, default=40, help="minutes that the whole run may take")
    parser.add_argument("--out", type=Path, help="directory for results and the workers' output; kept")
    return parser.parse_args()


def _sample(options: argparse.Namespace, default: int) -> int:
    if any("[" in test for test in options.tests):
        return 0  # whole ids: the user has chosen
    return default if options.sample is None else int(options.sample)


def _wait(process: subprocess.Popen[bytes], out: Path, minutes: float) -> bool:
    """Wait, and say every minute how far it is; False when the time was up."""
    for minute in range(1, math.ceil(minutes) + 1):
        try:
            process.wait(60 * min(1.0, minutes - minute + 1))
        except subprocess.TimeoutExpired:
            rows = (out / RESULTS).read_text().count("\n") if (out / RESULTS).is_file() else 0
            print(f"{minute} minutes: {rows} tests", flush=True)
        else:
            return True
    return False


def run_pytest(
    parts: Parts, tests: list[str], out: Path, *, sample: int, workers: int, timeout: int, minutes: float
) -> bool:
    """Run tests of the suite; results are in `out`.

    Returns:
        False when the time was up.
    """
    work = Path(tempfile.mkdtemp(prefix="bhemu-llk-"))
    command = [str(parts.python), "-m", "pytest", "-p", "llk_sample", "-p", "no:cacheprovider", "--run-simulator"]
    command += [f"--timeout={timeout}", "-n", str(workers), "--max-worker-restart=1000", "--tb=short", *tests]
    settings = {"BHEMU_LLK_SAMPLE": str(sample), "BHEMU_LLK_OUT": str(out)}
    with (out / "pytest.txt").open("w") as log:
        # A process group of its own: all workers end with it.
        process = subprocess.Popen(
            command,
            cwd=parts.tests,
            env=parts.environment(work) | settings,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return _wait(process, out, minutes)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            shutil.rmtree(work, ignore_errors=True)


def main() -> int:
    """Prepare, run, report."""
    options = _arguments()
    expected = read_expected(HERE / "expected.toml")
    if options.first:
        expected = expected.first_part()
    started = time.monotonic()
    try:
        parts = prepare()
    except CannotRun as reason:
        print(f"THE LLK SUITE DID NOT RUN: {reason}", flush=True)
        return 0
    out: Path = (options.out or Path(tempfile.mkdtemp(prefix="bhemu-llk-results-"))).resolve()
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("gw*.txt"), out / RESULTS]:
        old.unlink(missing_ok=True)
    print(f"prepared in {time.monotonic() - started:.0f} seconds; results in {out}", flush=True)
    finished = run_pytest(
        parts,
        options.tests or list(expected.functions),
        out,
        sample=_sample(options, expected.sample),
        workers=options.workers,
        timeout=options.timeout,
        minutes=options.minutes,
    )
    results = read_results(out / RESULTS)
    print(table(results))
    for choice in sorted({line for file in out.glob("gw*.txt") for line in CHOICE.findall(file.read_text())}):
        print(f"no source settles this, and a choice was made: {choice}")
    print(f"{time.monotonic() - started:.0f} seconds")
    if options.tests:
        for result in results:
            if result.kind in (Kind.FAIL, Kind.REFUSED, Kind.NOT_COMPILABLE):
                print(f"{result.kind.value}: {result.name}\n    {result.reason}")
        return 0 if finished else 1
    wrong = disappointments(results, expected)
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
