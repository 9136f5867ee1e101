"""The support table promises no more than the code and the vectors hold."""

from __future__ import annotations

import pytest

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.proof.support import FIDELITIES, Evidence, Row, table
from bhemu.tensix.instruction import DOCUMENTED, HANDLERS, MISSING, VERIFIED

ROWS = table()


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return Evidence()


def test_every_instruction_is_listed() -> None:
    assert list(dict.fromkeys(row.mnemonic for row in ROWS)) == list(INSTRUCTIONS)


def test_every_row_has_a_known_fidelity_a_mode_and_its_unit() -> None:
    for row in ROWS:
        assert row.fidelity in FIDELITIES
        assert row.mode
        assert row.unit == INSTRUCTIONS[row.mnemonic].unit


def test_modes_of_an_instruction_have_different_names() -> None:
    names = [(row.mnemonic, row.mode) for row in ROWS]
    assert len(set(names)) == len(names)


def test_every_mode_that_is_built_cites_a_rule() -> None:
    assert [row for row in ROWS if row.fidelity != MISSING and not row.rule] == []


def test_instruction_without_a_handler_is_missing() -> None:
    expanded = {"MOP", "MOP_CFG", "REPLAY"}
    for row in ROWS:
        if INSTRUCTIONS[row.mnemonic].opcode not in HANDLERS and row.mnemonic not in expanded:
            assert row.fidelity == MISSING


@pytest.mark.parametrize("mnemonic", INSTRUCTIONS)
def test_every_verified_mode_has_a_vector_that_executes_it(evidence: Evidence, mnemonic: str) -> None:
    assert [(row.mode, why) for row in ROWS if row.mnemonic == mnemonic and (why := evidence.missing(row))] == []


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("", "names no vector file"),
        ("frontend", "names no vector file"),
        ("nothing:SEMGET", "names no vector file"),
        ("frontend:NOTHING", "no label"),
        ("frontend:SEMGET, frontend:NOTHING", "no label"),
        ("frontend:MUTEX", "no case of frontend:MUTEX executes SEMGET"),
    ],
)
def test_claim_without_evidence_is_found(evidence: Evidence, claim: str, reason: str) -> None:
    assert reason in (evidence.missing(Row("SEMGET", "sync", "any", VERIFIED, claim)) or "")


def test_claim_with_evidence_is_accepted(evidence: Evidence) -> None:
    assert evidence.missing(Row("SEMGET", "sync", "any", VERIFIED, "frontend:SEMGET")) is None


def test_vectors_named_by_a_mode_that_is_not_verified_are_found(evidence: Evidence) -> None:
    assert evidence.missing(Row("SEMGET", "sync", "any", DOCUMENTED, "frontend:SEMGET")) is not None


def test_words_that_only_a_mop_expands_to_count(evidence: Evidence) -> None:
    """NOP never stands in a program of the `mop0` cases' own words alone; MOP configurations hold it."""
    assert evidence.missing(Row("MOP", "frontend", "any", VERIFIED, "frontend:mop0")) is None
    assert evidence.missing(Row("SFPPUSHC", "vector", "any", VERIFIED, "frontend:mop0")) is not None
