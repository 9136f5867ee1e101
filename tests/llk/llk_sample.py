"""A pytest plugin for the LLK suite: run a fixed sample of each test's parametrisations, and write down what happened.

It is loaded into pytest by `run_suite.py`, with `-p llk_sample`, in an environment without bhemu's own test plugins.

The sample is pseudo-random in the test's id, so it mixes formats, shapes and modes, and is the same in every run. Where
a parameter is an operation or a format, each of its values is in the sample.
A refusal of the simulator ends the process that runs the test, as the interface demands; pytest-xdist then starts
another and reports a crash. So each worker's standard output goes to a file, and the last words are read from there.
Which open choices bhemu has made is asked after each test, as workers often end without a word.

Environment:
    BHEMU_LLK_SAMPLE: parametrisations per test function, default 5, 0 for all.
    BHEMU_LLK_SAMPLES: other numbers for single functions, a JSON object by `file::function`.
    BHEMU_LLK_EACH: how often each operation is in the sample at least (most combinations of some operations are skipped
        by the suite), default 0; then each format is in it once at least.
    BHEMU_LLK_SEED: draws another sample; default none.
    BHEMU_LLK_DONE: a file with the ids of tests that are not run again, one a line; default none.
    BHEMU_LLK_OUT: a directory for `results.jsonl` (one object per test: id, outcome of pytest, text, seconds, choices:
        names of the open choices that this process made in it first) and the workers' output.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_TEXT_LIMIT = 20_000
"""Characters of a failure's text that are kept, half from each end."""


def _out() -> Path | None:
    named = os.environ.get("BHEMU_LLK_OUT")
    return Path(named) if named else None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: Any) -> Generator[None, object, object]:
    """Keep the sample of a function's parametrisations, in their order, before pytest makes tests of them.

    Some functions have tens of thousands, which would cost minutes and a gigabyte in each process; pytest has no public
    way to drop them so early.
    """
    result = yield
    name = metafunc.definition.nodeid
    count = json.loads(os.environ.get("BHEMU_LLK_SAMPLES", "{}")).get(name)
    if count is None:
        count = int(os.environ.get("BHEMU_LLK_SAMPLE", "5"))
    seed = os.environ.get("BHEMU_LLK_SEED", "")
    calls: list[Any] = metafunc._calls
    if count and len(calls) > count:
        ranked = sorted(calls, key=lambda call: hashlib.sha256(f"{seed}{name}[{call.id}]".encode()).digest())
        chosen = {id(call) for call in ranked[:count]} | _covering(ranked, int(os.environ.get("BHEMU_LLK_EACH", "0")))
        calls[:] = [call for call in calls if id(call) in chosen]
    return result


_OPERATIONS = ("mathop", "math_op", "mathop_type", "operation", "op", "sfpu_op", "reduce_pool")
_FORMATS = ("formats", "format", "input_format")


def _covering(ranked: list[Any], each: int) -> set[int]:
    """Calls, by identity, in which each operation is `each` times and each format once."""
    wanted = dict.fromkeys(_OPERATIONS, each) | dict.fromkeys(_FORMATS, min(each, 1))
    seen: dict[tuple[str, str], int] = {}
    chosen = set()
    for call in ranked:
        values = [(name, str(call.params[name])) for name in wanted if name in call.params]
        if any(seen.get(value, 0) < wanted[value[0]] for value in values):
            chosen.add(id(call))
            for value in values:
                seen[value] = seen.get(value, 0) + 1
    return chosen


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out the tests that an earlier run has results of."""
    named = os.environ.get("BHEMU_LLK_DONE")
    if named:
        done = set(Path(named).read_text().splitlines())
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]


def _worker_output(out: Path, worker: str) -> Path:
    return out / f"{worker}.txt"


def pytest_configure(config: Any) -> None:
    """A worker's standard output is lost otherwise: pytest-xdist points it to nothing."""
    out = _out()
    worker = getattr(config, "workerinput", {}).get("workerid")
    if out is not None and worker is not None:
        file = os.open(_worker_output(out, worker), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.close(file)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Say in the worker's output which test begins."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        sys.stdout.write(f"\n=== {nodeid}\n")
        sys.stdout.flush()


_reported: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, object, object]:
    """Let the report carry the open choices that bhemu has made since the last one.

    bhemu's C library runs in the Python of the process that loads it.
    """
    entry = sys.modules.get("bhemu.capi.entry")
    new = set(entry.choices_made()) - _reported if entry is not None else set()
    if new:
        _reported.update(new)
        item.user_properties.append((_CHOICES, sorted(new)))
    return (yield)


_CHOICES = "bhemu open choices"


def _tail(path: Path) -> str:
    """What a worker wrote during its last test."""
    if not path.is_file():
        return ""
    return path.read_text(errors="replace").rpartition("\n=== ")[2]


def _record(out: Path, row: dict[str, Any]) -> None:
    text = row["text"]
    if len(text) > _TEXT_LIMIT:
        row["text"] = text[: _TEXT_LIMIT // 2] + "\n...\n" + text[-_TEXT_LIMIT // 2 :]
    with (out / "results.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def pytest_runtest_logreport(report: Any) -> None:
    """Write down the outcome of a test: in the process that the user started, not in workers."""
    out = _out()
    if out is None or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when == "call" or report.outcome != "passed":
        text = report.longreprtext or str(report.longrepr or "")
        outcome = report.outcome
        if report.when == "???":  # the name that pytest-xdist gives to the phase of a crash
            outcome = "crashed"
            text += "\n" + _tail(_worker_output(out, report.node.gateway.id))
        elif hasattr(report, "wasxfail"):
            outcome = "xfailed" if report.outcome == "skipped" else "xpassed"
        choices = sorted({name for key, names in report.user_properties if key == _CHOICES for name in names})
        row = {"id": report.nodeid, "outcome": outcome, "text": text, "seconds": round(report.duration, 2)}
        _record(out, row | {"choices": choices})


def pytest_collectreport(report: Any) -> None:
    """A file that cannot be collected counts as one failed test."""
    out = _out()
    if out is not None and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        _record(
            out, {"id": report.nodeid, "outcome": "error", "text": report.longreprtext, "seconds": 0.0, "choices": []}
        )
