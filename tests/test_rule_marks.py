"""Tests name the rules that they show in marks, not in their names, and can be chosen by them."""

from __future__ import annotations

import re

import pytest

from tests.rules import all_tests, rule_marks, rules_with_tests
from tools.rule_ids import is_id

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow
ID_IN_NAME = re.compile(r"test_(00[0-4]|i|[fknrtvy]\d+[a-c]?|e\d+)_|_(00[0-4](_\w+)?|[pi]_?\d+)$")


def test_every_mark_names_rules_by_their_ids() -> None:
    wrong = [(test.name, rule) for _, test in all_tests() for rule in rule_marks(test) if not is_id(rule)]
    assert wrong == []


def test_no_mark_names_a_rule_twice() -> None:
    assert [test.name for _, test in all_tests() if len(rule_marks(test)) != len(set(rule_marks(test)))] == []


def test_names_of_tests_have_no_rule_ids() -> None:
    assert [test.name for _, test in all_tests() if ID_IN_NAME.search(test.name)] == []


def test_every_area_of_the_rules_is_named_by_tests() -> None:
    areas = {re.sub(r"(\.|\d).*", "", rule) if rule[0] not in "0" else rule[:3] for rule in rules_with_tests()}
    assert areas >= {"000", "001", "002", "003", "004", "I", "P", "U"}
    assert areas >= {f"math {letter}" for letter in "FRVY"} | {f"tile {letter}" for letter in "TKNEHB"}


SUITE = """
    import pytest

    @pytest.mark.rule("tile K42", "I.3")
    def test_first(): pass

    @pytest.mark.rule("003.2.1a")
    @pytest.mark.parametrize("value", [1, 2])
    def test_second(value): pass

    def test_third(): pass
"""


@pytest.mark.parametrize(
    ("options", "passed"),
    [
        (["--rule", "tile K42"], 1),
        (["--rule", "003.2.1a"], 2),
        (["--rule", "I.3", "--rule", "003.2.1a"], 3),
        (["-m", "rule"], 3),
        ([], 4),
    ],
)
def test_tests_are_chosen_by_rule(pytester: pytest.Pytester, options: list[str], passed: int) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest("-p", "tests.conftest", *options)
    result.assert_outcomes(passed=passed, deselected=4 - passed)


def test_a_rule_that_no_test_names_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest("-p", "tests.conftest", "--rule", "tile K999")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no test names the rule tile K999*"])


def test_the_list_of_rules_has_each_with_its_tests(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("-p", "tests.conftest", "--rules")
    assert result.ret == 0
    lines = result.outlines
    name = "test_setdmareg_words_of_the_seed_carry_16_bits"
    assert f"  tensix/test_scalar.py::{name}" in lines[lines.index("003.2.1a") :]
