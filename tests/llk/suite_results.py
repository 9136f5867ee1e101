"""Outcomes of the LLK suite's tests: what kind of outcome each is, a table by file, and what was expected."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any


class Kind(Enum):
    """What became of a test."""

    PASS = "pass"
    FAIL = "fail"
    REFUSED = "refused"
    """bhemu refused what the kernel did, and ended the process, as the interface demands."""
    NOT_COMPILABLE = "not compilable"
    """The stock compiler cannot compile the kernel: most often it needs the vendor's compiler, for the SFPU."""
    SKIPPED = "skipped"
    """The suite does not run these parameters on Blackhole."""
    XFAIL = "xfail"
    """The suite expects the test to fail, and it does."""


@dataclass(frozen=True)
class Result:
    """One test.

    Attributes:
        name: id of pytest.
        kind: what became of it.
        reason: one line; empty for a pass.
        seconds: of the test itself.
        choices: open cases in which bhemu used its recommended choice, first in this test of its process.
    """

    name: str
    kind: Kind
    reason: str
    seconds: float
    choices: tuple[str, ...] = ()

    @property
    def function(self) -> str:
        """`file::function`."""
        return self.name.partition("[")[0]

    @property
    def file(self) -> str:
        """Name of the file."""
        return self.name.partition("::")[0]


_REFUSAL = re.compile(r"^\[\d+\] ERROR: (\w+): \w+: (.*)", re.MULTILINE)
_COMPILER = re.compile(r"riscv-tt-elf-g\+\+")
_COMPILER_ERROR = re.compile(r"(?:^|\s)(?:fatal )?error: .*|undefined reference to .*", re.MULTILINE)
_KINDS = {"passed": Kind.PASS, "xpassed": Kind.PASS, "skipped": Kind.SKIPPED, "xfailed": Kind.XFAIL}
"""By the outcome of pytest. `xpassed` may pass: where the suite insists on a failure, pytest says `failed`."""


def result_of(row: dict[str, Any]) -> Result:
    """The result of one row that `llk_sample` has written."""
    kind, reason = _classify(row["outcome"], row["text"])
    return Result(row["id"], kind, reason, float(row["seconds"]), tuple(row["choices"]))


def _classify(outcome: str, text: str) -> tuple[Kind, str]:
    if outcome in _KINDS:
        return _KINDS[outcome], "" if _KINDS[outcome] is Kind.PASS else _last_line(text)
    refusals = _REFUSAL.findall(text)
    if refusals and outcome == "crashed" and refusals[-1][0] != "AssertionFailure":  # not a refusal, but a time limit
        return Kind.REFUSED, ": ".join(refusals[-1])
    error = _COMPILER_ERROR.search(text)
    if error and _COMPILER.search(text):
        return Kind.NOT_COMPILABLE, error.group().strip()
    return Kind.FAIL, f"{outcome}: {_last_line(text)}"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def read_results(path: Path) -> list[Result]:
    """All results of a run, in the order in which tests ended."""
    if not path.is_file():
        return []
    return [result_of(json.loads(line)) for line in path.read_text().splitlines()]


def table(results: Sequence[Result]) -> str:
    """Numbers by file and kind, with totals, for people."""
    kinds = list(Kind)
    files = sorted({result.file for result in results})
    width = max([len(file) for file in files] + [5])
    lines = ["  ".join([" " * width, *(kind.value for kind in kinds)])]
    for file in [*files, "total"]:
        counts = Counter(result.kind for result in results if file in ("total", result.file))
        lines.append("  ".join([file.ljust(width), *(str(counts[kind]).rjust(len(kind.value)) for kind in kinds)]))
    return "\n".join(lines)


def first_uses(results: Sequence[Result]) -> dict[str, str]:
    """The open choices that were made, each with the first test that made it."""
    uses: dict[str, str] = {}
    for result in results:
        for choice in result.choices:
            uses.setdefault(choice, result.name)
    return uses


@dataclass(frozen=True)
class Expected:
    """The fixed list.

    Attributes:
        sample: parametrisations of each test function.
        functions: the test functions to run.
        samples: other numbers of parametrisations, by test function.
        hardware: test functions that run with a Blackhole's queues, not with those of the official simulator.
        outcomes: by test function (`file::function`) or by a test's whole id, which wins.
        first: files that `make test-llk` runs.
        run: files, folders and functions to run; empty for those of `outcomes`.
        each: how often each operation is in the sample of a function.
        without: functions, and patterns of files, that are not run, though `run` has them.
        idle: operations that the suite itself skips on Blackhole, whatever the other parameters.
    """

    sample: int
    functions: tuple[str, ...]
    outcomes: dict[str, Kind]
    first: tuple[str, ...] = ()
    samples: dict[str, int] = field(default_factory=dict)
    hardware: tuple[str, ...] = ()
    run: tuple[str, ...] = ()
    each: int = 0
    without: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()

    def first_part(self) -> Expected:
        """The list without the tests of other files than `first` names."""
        outcomes = {name: kind for name, kind in self.outcomes.items() if name.partition("::")[0] in self.first}
        functions = _functions(outcomes)
        hardware = tuple(name for name in self.hardware if name in functions)
        return replace(
            self, outcomes=outcomes, functions=functions, hardware=hardware, run=self.first if self.run else ()
        )


def _functions(outcomes: dict[str, Kind]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.partition("[")[0] for name in outcomes))


def read_expected(path: Path) -> Expected:
    """Read the fixed list.

    Raises:
        ValueError: an outcome that is none.
    """
    data = tomllib.loads(path.read_text())
    outcomes = {name: Kind(value) for name, value in data["outcomes"].items()}
    return Expected(
        sample=int(data["sample"]),
        functions=_functions(outcomes),
        outcomes=outcomes,
        first=tuple(data["first"]),
        samples={name: int(count) for name, count in data["samples"].items()},
        hardware=tuple(data["hardware"]),
        run=tuple(data.get("run", ())),
        each=int(data.get("each", 0)),
        without=tuple(data.get("without", ())),
        idle=tuple(data.get("idle", ())),
    )


def disappointments(results: Sequence[Result], expected: Expected) -> list[str]:
    """What did not come out as expected, one line each.

    Parameters that the suite itself skips, and failures that it expects, are as good as a pass; but a test function
    that is on the list must have run at least once, and a test that is not on it must not have done anything but pass.
    """
    lines = []
    for result in results:
        wanted = expected.outcomes.get(result.name) or expected.outcomes.get(result.function) or Kind.PASS
        if result.kind not in (wanted, Kind.SKIPPED, Kind.XFAIL):
            lines.append(f"{result.name}: {result.kind.value}, expected: {wanted.value}\n    {result.reason}")
    ran = [result for result in results if result.kind is not Kind.SKIPPED]
    seen = {result.function for result in ran} | {result.name for result in results}
    lines += [
        f"{name}: did not run, expected: {wanted.value}"
        for name, wanted in expected.outcomes.items()
        if name not in seen and wanted is not Kind.SKIPPED
    ]
    return lines


_OPERATION = re.compile(r"\b(?:math_?op|operation|op):([A-Za-z]\w*)|MathOperation\.(\w+)")


def never_executed(results: Sequence[Result], expected: Expected) -> list[str]:
    """Operations that are parameters of tests all of which were skipped."""
    drawn: set[str] = set()
    executed: set[str] = set()
    for result in results:
        names = {one or other for one, other in _OPERATION.findall(result.name)}
        drawn |= names
        if result.kind is not Kind.SKIPPED:
            executed |= names
    return sorted(drawn - executed - set(expected.idle))
