"""Record call streams of Tenstorrent's LLK suite for `bhemu bench --client`, one of each test function.

    python -m tests.llk.record_streams DIR [--library LIBRARY] [--count N] [--stock] [TEST...]

Each test runs in a process of its own, on a library that passes its calls on to LIBRARY (bhemu's own by default) and
writes them down. A test that fails, is refused or cannot be compiled gives no stream. The streams hold kernels made of
the suite's sources: they are for measuring where they were made, and not to be given away.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bhemu.capi import build_recorder
from bhemu.capi.soc_descriptor import write_soc_descriptor
from bhemu.compare.trace import read_trace, write_trace
from tests.llk.run_suite import HERE
from tests.llk.suite_parts import CannotRun, Parts, prepare
from tests.llk.suite_results import Kind, read_expected

COUNT = 40
TIMEOUT = 600


def record(parts: Parts, recorder: Path, test: str, out: Path) -> tuple[bool, str]:
    """Run one parametrisation of a test, and keep its calls; returns whether it gave a stream, and what to say."""
    with tempfile.TemporaryDirectory(prefix="bhemu-llk-") as folder:
        work = Path(folder)
        command = [str(parts.python), "-m", "pytest", "-p", "llk_sample", "-p", "no:cacheprovider", "--run-simulator"]
        command += [f"--timeout={TIMEOUT}", "-n", "1", "--max-worker-restart=0", test]
        settings = {"BHEMU_LLK_SAMPLE": "1", "TT_METAL_SIMULATOR": str(recorder), "BHEMU_TRACE": f"{work}/%p.jsonl"}
        done = subprocess.run(
            command,
            cwd=parts.tests,
            env=parts.environment(work) | settings,
            capture_output=True,
            text=True,
            check=False,
        )
        traces = sorted(work.glob("*.jsonl"), key=lambda path: path.stat().st_size)
        summary = [line.strip("= ") for line in done.stdout.splitlines() if line.startswith("===") and " in " in line]
        if done.returncode or not any(" passed in " in line for line in summary) or not traces:
            return False, f"no stream: {' '.join(summary[-1:]) or (done.stdout + done.stderr)[-500:]}"
        name = "llk-" + test.partition("::")[2].removeprefix("test_")
        calls = read_trace(traces[-1])
        write_trace(out / f"{name}.jsonl.xz", calls)
        return True, f"{len(calls):,} calls"


def main() -> int:
    """Prepare, record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path, metavar="DIR", help="where the streams go")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="FILE::FUNCTION; default: some of those that pass")
    parser.add_argument("--library", type=Path, help="the simulator; default: bhemu's own library")
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many of those that pass, default {COUNT}")
    parser.add_argument("--stock", action="store_true", help="the stock compiler, not the vendor's")
    options = parser.parse_args()
    expected = read_expected(HERE / "expected_stock.toml")  # names each function; the other list names what fails
    passing = [name for name in expected.functions if expected.outcomes.get(name) is Kind.PASS]
    functions = [name for name in passing if name not in expected.hardware]
    spread = functions[:: max(1, len(functions) // options.count)][: options.count]
    try:
        parts = prepare(stock=options.stock)
    except CannotRun as reason:
        print(f"NO STREAM WAS RECORDED: {reason}", flush=True)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    recorded = 0
    with tempfile.TemporaryDirectory(prefix="bhemu-recorder-") as folder:
        recorder = build_recorder(Path(folder), options.library or parts.library)
        write_soc_descriptor(recorder.parent)
        for test in options.tests or spread:
            is_recorded, told = record(parts, recorder, test, options.out.resolve())
            print(f"{test}: {told}", flush=True)
            recorded += is_recorded
    return 0 if recorded else 1


if __name__ == "__main__":
    sys.exit(main())
