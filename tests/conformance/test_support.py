"""The support table promises no more than the code and the vectors hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu.conformance.run import VECTORS
from bhemu.conformance.support import FIDELITIES, Evidence, Row, table
from bhemu.conformance.vector_file import VectorFile
from bhemu.isa.instructions import INSTRUCTIONS
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
        ("fpu:MVMUL", "no case of fpu:MVMUL executes SEMGET"),
    ],
)
def test_claim_without_evidence_is_found(evidence: Evidence, claim: str, reason: str) -> None:
    assert reason in (evidence.missing(Row("SEMGET", "sync", "any", VERIFIED, claim)) or "")


def test_claim_with_evidence_is_accepted(evidence: Evidence) -> None:
    assert evidence.missing(Row("SEMGET", "sync", "any", VERIFIED, "frontend:SEMGET")) is None


def test_vectors_named_by_a_mode_that_is_not_verified_are_found(evidence: Evidence) -> None:
    assert evidence.missing(Row("SEMGET", "sync", "any", DOCUMENTED, "frontend:SEMGET")) is not None


def test_words_that_a_mop_or_a_replay_takes_from_the_initial_state_count(tmp_path: Path) -> None:
    with np.load(VECTORS / "frontend.npz", allow_pickle=False) as content:
        arrays = {key: content[key] for key in content.files}
    file = VectorFile(VECTORS / "frontend.npz")
    alone = next(case for case in file if len(case.program) == 1 and "mop1" in case.labels)
    thread = alone.program[0][0]
    first = {int(word) >> 24 for word in file.initial(alone.index)["mop"][9 * thread + 2 : 9 * thread + 9]}
    path = tmp_path / "frontend.npz"
    arrays["label_names"] = np.array([*arrays["label_names"], b"only"])
    arrays["label_id"] = arrays["label_id"].copy()
    arrays["label_id"][arrays["label_ptr"][alone.index]] = len(arrays["label_names"]) - 1
    np.savez(path, **arrays)
    small = Evidence(tmp_path)
    for row in INSTRUCTIONS.values():
        found = small.missing(Row(row.mnemonic, row.unit, "any", VERIFIED, "frontend:only")) is None
        assert found == (row.opcode in first or row.mnemonic == "MOP")
    assert len(first & {row.opcode for row in INSTRUCTIONS.values()}) > 1
