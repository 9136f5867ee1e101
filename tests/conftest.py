"""What holds for the whole suite: rule marks, and nothing that asks how fast the machine is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import bhemu.cc.sfpi
from tests.rules import rules_with_tests

# A busy machine is slow, which is not a failure. The other settings of CI's own profile stay.
settings.register_profile("any speed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")
settings.register_profile("fast", settings(), max_examples=5)  # make test-fast

# Tests of stock compilers and of what the documentation prints must not find the vendor's compiler of this machine.
os.environ.pop(bhemu.cc.sfpi.TT_METAL_HOME, None)
bhemu.cc.sfpi.INSTALLED = Path(os.devnull)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rules of the machine")
    group.addoption("--rule", action="append", default=[], metavar="ID", help="run the tests of a rule; repeatable")
    group.addoption("--rules", action="store_true", help="list the rules that tests name, each with its tests, and end")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """`--rules` lists and ends."""
    if not config.getoption("rules"):
        return None
    for rule, tests in rules_with_tests().items():
        print(rule, *tests, sep="\n  ")
    return 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`--rule` keeps the tests whose marks name one of the rules."""
    wanted = set(config.getoption("rule"))
    if not wanted:
        return
    if unknown := wanted - rules_with_tests().keys():
        raise pytest.UsageError(f"no test names the rule {', '.join(sorted(unknown))}; `pytest --rules` lists them")
    kept = [item for item in items if any(wanted & set(mark.args) for mark in item.iter_markers("rule"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept
