"""Which tests show which rule: the ids in their `rule` marks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

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


def rules_with_tests() -> dict[str, list[str]]:
    """Each rule id that a mark names, and its tests as `tile/test_reset.py::test_...`."""
    found: dict[str, list[str]] = defaultdict(list)
    for file, test in all_tests():
        for rule in rule_marks(test):
            found[rule].append(f"{file.relative_to(TESTS).as_posix()}::{test.name}")
    return dict(sorted(found.items()))
