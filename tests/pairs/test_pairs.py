"""Every pair of program and expectation; what the files may say is in tests/pairs/pair_files.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pairs.pair_files import check, read_pair
from tests.rules import all_pairs, pair_rules

pytestmark = pytest.mark.plain

PAIRS = Path(__file__).parent
PROGRAMS = [
    pytest.param(file, id=file.relative_to(PAIRS).as_posix(), marks=pytest.mark.rule(*pair_rules(file)))
    for file in all_pairs()
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_does_what_is_expected(program: Path) -> None:
    check(read_pair(program))


def test_every_expectation_has_a_program() -> None:
    programs = {file.with_suffix(".exp") for file in all_pairs()}
    assert [file for file in PAIRS.rglob("*.exp") if file not in programs] == []
