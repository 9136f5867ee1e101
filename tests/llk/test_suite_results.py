"""How outcomes of the LLK suite are told apart, counted and judged (`make test-llk`)."""

from __future__ import annotations

import json
from argparse import Namespace
from collections import Counter
from pathlib import Path

import pytest

from tests.llk.llk_sample import _covering, pytest_collection_modifyitems
from tests.llk.run_suite import plan
from tests.llk.suite_results import (
    Expected,
    Kind,
    Result,
    disappointments,
    first_uses,
    never_executed,
    read_expected,
    read_results,
    result_of,
    table,
)

pytestmark = pytest.mark.plain

HERE = Path(__file__).resolve().parent
REFUSAL = (
    "worker 'gw0' crashed\nwaiting\n[4711] ERROR: UndefinedBehavior: libttsim_clock: SFPSWAP mode 15\n  remedy: 1\n"
)
COMPILER = (
    "Command:\n/x/compiler/bin/riscv-tt-elf-g++ -O3 a.cpp\nstderr:\na.h:42:23: error: 'f' is not a member of 'sfpi'\n"
)


def kind(outcome: str, text: str) -> tuple[Kind, str]:
    result = result_of({"id": "test_a.py::f[x]", "outcome": outcome, "text": text, "seconds": 1.5, "choices": []})
    return result.kind, result.reason


def test_kinds() -> None:
    assert kind("passed", "") == (Kind.PASS, "")
    assert kind("skipped", "('a.py', 3, 'Skipped: not on Blackhole')")[0] is Kind.SKIPPED
    assert kind("xfailed", "known")[0] is Kind.XFAIL
    assert kind("xpassed", "known") == (Kind.PASS, "")
    assert kind("failed", "line\nAssertionError: values differ\n") == (
        Kind.FAIL,
        "failed: AssertionError: values differ",
    )
    assert kind("error", "ImportError: torch") == (Kind.FAIL, "error: ImportError: torch")


def test_a_refusal_is_a_crash_with_the_simulators_message() -> None:
    assert kind("crashed", REFUSAL) == (Kind.REFUSED, "UndefinedBehavior: SFPSWAP mode 15")
    assert kind("crashed", "worker 'gw0' crashed")[0] is Kind.FAIL
    assert kind("failed", REFUSAL)[0] is Kind.FAIL
    late = "[5] ERROR: AssertionFailure: libttsim_clock: Traceback (most recent call last):\nFailed: Timeout (>240.0s)"
    assert kind("crashed", late) == (Kind.FAIL, "crashed: Failed: Timeout (>240.0s)")


def test_a_kernel_that_cannot_be_compiled_needs_the_compilers_own_message() -> None:
    assert kind("failed", COMPILER) == (Kind.NOT_COMPILABLE, "error: 'f' is not a member of 'sfpi'")
    assert kind("failed", "riscv-tt-elf-g++ worked\nAssertionError: values differ")[0] is Kind.FAIL
    assert kind("failed", "error: values differ")[0] is Kind.FAIL
    assert kind("passed", COMPILER)[0] is Kind.PASS


def result(name: str, kind: Kind) -> Result:
    return Result(name, kind, "why", 1.0)


def expected(**outcomes: Kind) -> Expected:
    return Expected(5, (), {f"test_a.py::{name}": kind for name, kind in outcomes.items()})


def test_judgement() -> None:
    good = [result("test_a.py::f[1]", Kind.PASS), result("test_a.py::f[2]", Kind.SKIPPED)]
    assert disappointments(good, expected(f=Kind.PASS)) == []
    (line,) = disappointments([*good, result("test_a.py::f[3]", Kind.REFUSED)], expected(f=Kind.PASS))
    assert line.startswith("test_a.py::f[3]: refused, expected: pass")
    (line,) = disappointments(good, expected(f=Kind.NOT_COMPILABLE))
    assert "f[1]: pass, expected: not compilable" in line


def test_a_whole_id_wins_over_its_function() -> None:
    wanted = Expected(5, (), {"a.py::f": Kind.PASS, "a.py::f[2]": Kind.REFUSED})
    assert disappointments([result("a.py::f[1]", Kind.PASS), result("a.py::f[2]", Kind.REFUSED)], wanted) == []
    assert len(disappointments([result("a.py::f[1]", Kind.PASS), result("a.py::f[2]", Kind.PASS)], wanted)) == 1
    assert len(disappointments([result("a.py::f[1]", Kind.PASS)], wanted)) == 1


def test_what_is_on_the_list_must_run_and_what_is_not_must_pass() -> None:
    assert disappointments([], expected(f=Kind.PASS)) == ["test_a.py::f: did not run, expected: pass"]
    only_skipped = [result("test_a.py::f[1]", Kind.SKIPPED)]
    assert disappointments(only_skipped, expected(f=Kind.PASS)) == ["test_a.py::f: did not run, expected: pass"]
    assert disappointments(only_skipped, expected(f=Kind.SKIPPED)) == []
    assert len(disappointments([result("test_a.py::new", Kind.FAIL)], expected())) == 1


def test_table_counts_by_file() -> None:
    text = table([result("a.py::f[1]", Kind.PASS), result("a.py::f[2]", Kind.FAIL), result("b.py::g", Kind.PASS)])
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines()[1:]}
    assert rows == {
        "a.py": ["1", "1", "0", "0", "0", "0"],
        "b.py": ["1", "0", "0", "0", "0", "0"],
        "total": ["2", "1", "0", "0", "0", "0"],
    }


def test_results_are_read_as_they_are_written(tmp_path: Path) -> None:
    rows = [
        {"id": "a.py::f[1]", "outcome": "passed", "text": "", "seconds": 2.0, "choices": ["a"]},
        {"id": "a.py::f[2]", "outcome": "crashed", "text": REFUSAL, "seconds": 0, "choices": []},
    ]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(r.name, r.function, r.file, r.kind) for r in read_results(path)] == [
        ("a.py::f[1]", "a.py::f", "a.py", Kind.PASS),
        ("a.py::f[2]", "a.py::f", "a.py", Kind.REFUSED),
    ]
    assert read_results(tmp_path / "none") == []


def test_open_choices_are_told_with_the_first_test_that_made_them() -> None:
    results = [
        Result("a.py::f[1]", Kind.PASS, "", 1.0),
        Result("a.py::f[2]", Kind.PASS, "", 1.0, ("b", "a")),
        Result("a.py::f[3]", Kind.FAIL, "", 1.0, ("b", "c")),  # another process
    ]
    assert first_uses(results) == {"b": "a.py::f[2]", "a": "a.py::f[2]", "c": "a.py::f[3]"}


def options(**changed: object) -> Namespace:
    return Namespace(**{"tests": [], "sample": None, "seed": "", "hardware": False, "workers": 3} | changed)


def test_each_kind_of_queues_has_a_session() -> None:
    listed = Expected(5, ("a.py::f", "a.py::g"), {}, samples={"a.py::f": 9}, hardware=("a.py::g",))
    first, second = plan(options(), listed)
    assert (first.tests, first.workers, first.settings["BHEMU_ORDER"]) == (("a.py::f",), 3, "simulator")
    assert (second.tests, second.workers, second.settings["BHEMU_ORDER"]) == (("a.py::g",), 1, "hardware")
    assert first.settings["BHEMU_LLK_SAMPLE"] == "5"
    assert json.loads(first.settings["BHEMU_LLK_SAMPLES"]) == {"a.py::f": 9}


def test_the_user_chooses_tests_numbers_and_queues() -> None:
    listed = Expected(5, ("a.py::f",), {}, samples={"a.py::f": 9})
    (chosen,) = plan(options(tests=["a.py::f[x]"]), listed)
    assert (chosen.tests, chosen.settings["BHEMU_LLK_SAMPLE"]) == (("a.py::f[x]",), "0")
    (drawn,) = plan(options(sample=7, seed="s", hardware=True), listed)
    assert drawn.settings == {"BHEMU_LLK_SAMPLE": "7", "BHEMU_LLK_SEED": "s", "BHEMU_ORDER": "hardware"}
    assert (drawn.name, drawn.workers) == ("hardware", 3)


def test_whole_folders_run_without_what_runs_elsewhere_or_not_at_all() -> None:
    listed = Expected(
        5, (), {}, hardware=("a.py::g",), run=("test_a.py", "z"), each=3, without=("perf_*.py", "b.py::h")
    )
    first, second = plan(options(), listed)
    assert first.tests == ("test_a.py", "z", "--deselect=a.py::g", "--ignore-glob=*perf_*.py", "--deselect=b.py::h")
    assert first.settings["BHEMU_LLK_EACH"] == "3"
    assert second.tests == ("a.py::g",)
    (chosen,) = plan(options(tests=["b.py::h"]), listed)
    assert chosen.tests == ("b.py::h",)


def test_an_operation_all_of_whose_tests_were_skipped_is_named() -> None:
    results = [
        result("a.py::f[formats:A->B-mathop:Cbrt-dest_acc:No]", Kind.SKIPPED),
        result("a.py::f[formats:A->B-mathop:I0-dest_acc:No]", Kind.SKIPPED),
        result("a.py::f[formats:A->A-mathop:I0-dest_acc:Yes]", Kind.PASS),
        result("b.py::g[Float16-MathOperation.Erf]", Kind.SKIPPED),
        result("b.py::g[Float16-MathOperation.Abs]", Kind.SKIPPED),
    ]
    assert never_executed(results, Expected(5, (), {}, idle=("Abs",))) == ["Cbrt", "Erf"]


class Call:
    """A parametrisation, as pytest has it."""

    def __init__(self, mathop: str, formats: str) -> None:
        self.params = {"mathop": mathop, "formats": formats, "other": 1}


def test_the_sample_has_each_operation_and_each_format() -> None:
    calls = [Call(mathop, formats) for mathop in "abcdef" for formats in ("A->A", "A->B", "B->B")]
    chosen = [call for call in calls if id(call) in _covering(calls, 2)]
    assert Counter(call.params["mathop"] for call in chosen) == dict.fromkeys("abcdef", 2) | {"a": 3}
    assert {call.params["formats"] for call in chosen} == {"A->A", "A->B", "B->B"}
    assert _covering(calls, 0) == set()


def test_a_run_that_resumes_another_leaves_out_what_has_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "done.txt").write_text("a.py::f[1]\na.py::g[x y]\n")
    monkeypatch.setenv("BHEMU_LLK_DONE", str(tmp_path / "done.txt"))
    left_out: list[str] = []
    hook = Namespace(pytest_deselected=lambda items: left_out.extend(item.nodeid for item in items))
    items = [Namespace(nodeid=name) for name in ("a.py::f[1]", "a.py::f[2]", "a.py::g[x y]")]
    pytest_collection_modifyitems(Namespace(hook=hook), items)
    assert [item.nodeid for item in items] == ["a.py::f[2]"]
    assert left_out == ["a.py::f[1]", "a.py::g[x y]"]


@pytest.mark.parametrize("name", ["expected.toml", "expected_stock.toml"])
def test_the_lists_are_well_formed(name: str) -> None:
    listed = read_expected(HERE / name)
    assert listed.sample >= 5
    assert set(listed.samples) <= set(listed.functions)
    assert all(count > listed.sample for count in listed.samples.values())
    assert all(function.startswith("test_") and ".py::test_" in function for function in listed.outcomes)
    assert not any("[" in function for function in (*listed.functions, *listed.hardware))
    if listed.run:
        assert listed.each >= 1
    else:
        assert set(listed.hardware) <= set(listed.functions)


def test_the_first_part_of_the_list_has_the_tests_of_its_files_alone() -> None:
    outcomes = {"a.py::f": Kind.PASS, "a.py::f[2]": Kind.REFUSED, "b.py::g": Kind.PASS}
    part = Expected(4, ("a.py::f", "b.py::g"), outcomes, first=("a.py",)).first_part()
    assert part.functions == ("a.py::f",)
    assert set(part.outcomes) == {"a.py::f", "a.py::f[2]"}
