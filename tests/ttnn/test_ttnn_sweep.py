"""The sweep of ttnn operations: its cases, which of them run, and how outcomes are read (`make test-ttnn`)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.ttnn.case import Group
from tests.ttnn.cases import CASES, GROUPS
from tests.ttnn.environment import ROOT, Parts
from tests.ttnn.run_sweep import Outcome, Runner, choose, differences, table

pytestmark = pytest.mark.plain

WORKER = """
import json, os, sys
results, *names = sys.argv[3:]
for name in names:
    with open(results, "a") as file:
        print(json.dumps({"begins": name}), file=file)
    if name == "refused":
        print("[7] ERROR: UndefinedBehavior: libttsim_clock: SFPSWAP mode 15")
        sys.exit(1)
    if name == "crashed":
        os._exit(9)
    if name == "late":
        import time
        time.sleep(60)
    row = {"name": name, "outcome": "right", "deviation": 0.0, "digest": "x", "seconds": 1, "text": ""}
    with open(results, "a") as file:
        print(json.dumps(row), file=file)
"""


def test_there_are_at_least_600_cases_with_names_of_their_own() -> None:
    assert len(CASES) >= 600
    assert Counter(case.name for case in CASES).most_common(1)[0][1] == 1


def test_every_kind_of_operation_has_a_group() -> None:
    names = {group.name for group in GROUPS}
    assert names >= {"unary", "binary", "reduction", "matmul", "norm", "movement", "network", "moreh", "random"}
    assert all(group.cases for group in GROUPS)


def test_tenths_cover_all_cases_and_none_twice() -> None:
    tenths = [choose(CASES, [], tenth) for tenth in range(10)]
    assert sorted(case.name for tenth in tenths for case in tenth) == sorted(case.name for case in CASES)
    assert all(len(CASES) / 20 < len(tenth) < len(CASES) / 5 for tenth in tenths)
    assert choose(CASES, [], 23) == tenths[3]


def test_cases_are_chosen_by_parts_of_their_names() -> None:
    group = Group("g")
    for name in ("add/bf16", "add/fp32", "sub/bf16"):
        group.add(name, lambda bench: [])
    chosen = choose(group.cases, ["add/", "^g/sub"], None)
    assert sorted(case.name for case in chosen) == ["g/add/bf16", "g/add/fp32", "g/sub/bf16"]
    assert choose(group.cases, ["fp32$"], None) == [group.cases[1]]


def test_one_case_of_each_operation_runs_before_a_second_one_of_any() -> None:
    group = Group("g")
    for name in ("add/a", "add/b", "sub/a", "add/c", "sub/b"):
        group.add(name, lambda bench: [])
    assert [case.name[2:] for case in choose(group.cases, [], None)] == ["add/a", "sub/a", "add/b", "sub/b", "add/c"]


def test_a_case_takes_its_tolerance_from_the_format_of_its_result() -> None:
    group = Group("g")
    for dtype in ("float32", "bfloat8_b", "int32"):
        group.add(dtype, lambda bench: [], dtype)
    group.add("own", lambda bench: [], "float32", 0.5)
    assert [case.tolerance for case in group.cases] == [0.004, 0.06, 0.0, 0.5]


def test_cases_are_listed_without_ttnn_and_torch() -> None:
    text = "import sys; import tests.ttnn.cases; print({'torch', 'ttnn', 'bhemu'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def runner(folder: Path, timeout: float = 30, *, resume: bool = False, until: float = float("inf")) -> Runner:
    script = folder / "python"
    script.write_text(f"#!{sys.executable}\n{WORKER}")
    script.chmod(0o755)
    parts = Parts(script, folder, folder, folder)
    return Runner(parts, folder / "out", slow=True, library=None, timeout=timeout, until=until, resume=resume)


def test_a_refusal_costs_one_case_and_the_others_run(tmp_path: Path) -> None:
    outcomes = runner(tmp_path).run(["a", "refused", "b", "crashed", "c"])
    assert {name: outcome.outcome for name, outcome in outcomes.items()} == {
        "a": "right",
        "refused": "refused",
        "b": "right",
        "crashed": "crashed",
        "c": "right",
    }
    assert "SFPSWAP mode 15" in outcomes["refused"].text


def test_a_case_that_takes_too_long_is_ended_and_the_others_run(tmp_path: Path) -> None:
    outcomes = runner(tmp_path, timeout=3).run(["late", "a"])
    assert [outcomes[name].outcome for name in ("late", "a")] == ["late", "right"]


def test_a_case_in_which_the_time_of_the_run_is_up_has_no_outcome(tmp_path: Path) -> None:
    assert runner(tmp_path, until=time.monotonic() + 3).run(["late", "a"]) == {}


def test_a_run_that_resumes_another_runs_what_is_left(tmp_path: Path) -> None:
    runner(tmp_path).run(["a", "refused"])
    outcomes = runner(tmp_path, resume=True).run(["a", "refused", "b"])
    assert [outcomes[name].outcome for name in ("a", "refused", "b")] == ["right", "refused", "right"]
    begun = (tmp_path / "out" / "results.jsonl").read_text()
    assert [begun.count(f'"begins": "{name}"') for name in ("a", "refused", "b")] == [1, 1, 1]


def test_counts_are_shown_by_group() -> None:
    outcomes = [Outcome("a/x", "right"), Outcome("a/y", "wrong"), Outcome("b/x", "right")]
    rows = {line.split()[0]: line.split()[1:] for line in table({o.name: o for o in outcomes}).splitlines()[1:]}
    assert rows == {"a": list("110000"), "b": list("100000"), "total": list("210000")}


def test_bits_are_compared_where_both_libraries_have_a_result() -> None:
    def of(**digests: str) -> dict[str, Outcome]:
        return {name: Outcome(name, "right", digest=digest) for name, digest in digests.items()}

    assert differences(of(a="1", b="2", c="3", d=""), of(a="1", b="9", d="4")) == (1, ["b"])
