"""Which tests show which rule: the ids in their `rule` marks, and in the headers of pairs."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.rule_ids import is_id

TESTS = Path(__file__).parent


def all_tests() -> Iterator[tuple[Path, ast.FunctionDef]]:
    """Every test of the suite, with its file."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield file, node


def rule_marks(test: ast.FunctionDef) -> list[str]:
    """Ids of a test's `rule` marks, in their order."""
    return [
        ast.literal_eval(argument)
        for decorator in test.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.rule"
        for argument in decorator.args
    ]


def all_pairs() -> list[Path]:
    """Every program of a pair of program and expectation (tests/pairs)."""
    return sorted(file for file in (TESTS / "pairs").rglob("*") if file.suffix in (".tt", ".s"))


def pair_rules(program: Path) -> list[str]:
    """Rule ids of a program's first line, `# rules: math F8, I.11`; the second line says the behaviour.

    Raises:
        ValueError: the program has no such header.
    """
    lines = program.read_text().splitlines()
    if not lines or not lines[0].startswith("# rules: "):
        raise ValueError(f"{program}:1: the first line names rules: `# rules: math F8, I.11`")
    rules = [rule.strip() for rule in lines[0].removeprefix("# rules: ").split(",")]
    if wrong := [rule for rule in rules if not is_id(rule)]:
        raise ValueError(f"{program}:1: {', '.join(wrong)} is not a rule id")
    if len(lines) < 2 or not re.match(r"# \w.{20}", lines[1]):
        raise ValueError(f"{program}:2: the second line is a comment, a sentence that says the behaviour")
    return rules


def rules_with_tests() -> dict[str, list[str]]:
    """Each rule id that a mark or a pair names, and its tests as `tile/test_reset.py::test_...`."""
    found: dict[str, list[str]] = defaultdict(list)
    for file, test in all_tests():
        for rule in rule_marks(test):
            found[rule].append(f"{file.relative_to(TESTS).as_posix()}::{test.name}")
    for program in all_pairs():
        for rule in pair_rules(program):
            found[rule].append(program.relative_to(TESTS).as_posix())
    return dict(sorted(found.items()))
