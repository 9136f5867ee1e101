"""The table of timing: every instruction has an entry, with a grade and a source."""

from __future__ import annotations

import pytest

from bhemu.analysis import figures
from bhemu.isa import INSTRUCTIONS, encode
from bhemu.isa.riscv_timing import CLASSES
from bhemu.isa.timing import FACTS, GRADES, TIMINGS, UNKNOWN, timing_of

pytestmark = pytest.mark.plain


def test_every_instruction_has_timing_and_no_other_name_has() -> None:
    assert set(TIMINGS) == set(INSTRUCTIONS)


def test_the_last_entry_of_an_instruction_counts_for_all_its_modes() -> None:
    for mnemonic, entries in TIMINGS.items():
        assert not entries[-1].tests, mnemonic
        assert all(entry.tests for entry in entries[:-1]), mnemonic


def test_every_figure_has_a_grade_and_a_source_and_what_is_unknown_has_no_number() -> None:
    for mnemonic, entries in TIMINGS.items():
        for entry in entries:
            assert entry.grade in GRADES, mnemonic
            assert entry.source, mnemonic
            has_numbers = entry.latency is not None and entry.occupancy is not None
            assert has_numbers is (entry.grade != UNKNOWN and not entry.by), mnemonic
    assert all(fact.source and fact.note for fact in FACTS.values())
    assert all(entry.grade in GRADES for entry in CLASSES)


def test_every_function_that_the_table_names_exists_and_every_such_function_is_named() -> None:
    assert {entry.by for entries in TIMINGS.values() for entry in entries if entry.by} == set(figures.BY)


def test_instructions_that_alone_are_accepted_exist() -> None:
    for entries in TIMINGS.values():
        for entry in entries:
            assert entry.then_only <= set(INSTRUCTIONS)
            assert bool(entry.then_only) is bool(entry.then_cycles)


def test_a_mode_can_have_timing_of_its_own() -> None:
    assert [timing_of(encode("SFPSHFT2", instr_mod1=mode)).latency for mode in range(6)] == [1, 1, 2, 2, 2, 1]
