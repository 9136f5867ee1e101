"""Programs against another library: refused words are left out, a planted fault is found, shrunk, kept and replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu.conformance.run import conformance
from bhemu.fuzz import against, keep, replay
from bhemu.fuzz.batch import Task
from bhemu.fuzz.machine import Program
from bhemu.fuzz.programs import Maker
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.isa.instructions import encode
from tests.fuzz.conftest import FAULTY, REFUSED, FaultyLibrary

NUMBER = (1, encode("SFPLOADI", 1, 0, 0x3F80))
GOOD = Program.of([NUMBER, (1, encode("NOP"))])
FAULT = Program.of([NUMBER, (1, encode("NOP")), (1, encode(FAULTY, 10, 1, 9, 2)), (1, encode("NOP"))])
REFUSAL = Program.of([NUMBER, (1, encode(REFUSED, 10, 1, 9, 2)), (1, encode("NOP")), (1, encode("SFPNOT", 0, 1, 2, 0))])


def _programs(monkeypatch: pytest.MonkeyPatch, programs: list[Program]) -> None:
    monkeypatch.setattr(against, "OtherLibrary", FaultyLibrary)
    monkeypatch.setattr(against, "POPULATION", len(programs))
    monkeypatch.setattr(against, "VARIANTS", 1)
    made = iter(programs * 100)
    monkeypatch.setattr(Maker, "new", lambda maker: next(made))
    monkeypatch.setattr(Maker, "changed", lambda maker, parent, other: next(made))


def test_a_planted_fault_is_found_shrunk_kept_and_replayed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _programs(monkeypatch, [GOOD, FAULT])
    result = against.run(Task("library", 7, 300, Path("none.so"), tmp_path))
    assert result.done >= 300
    (finding,) = result.findings
    assert "seed 7" in finding.text
    (small,) = keep.read_programs(Path(finding.file))
    assert [word >> 24 for _, word in small.words] == [INSTRUCTIONS[FAULTY].opcode]
    (report,) = conformance([finding.file])  # what the library left differs in one byte
    assert [difference.total for difference in report.differences] == [1]
    assert "expected 0x1" in replay.replayed(Path(finding.file), None)[0]


def test_a_word_that_the_library_refuses_is_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _programs(monkeypatch, [REFUSAL])
    result = against.run(Task("library", 7, 1, Path("none.so"), tmp_path))
    assert not result.findings
    assert dict(result.refusals) == {"UnsupportedFunctionality: sfpmul: #": 1}
    assert result.counts["programs"] == 1
    assert "SFPNOT" in result.features
    assert REFUSED not in result.features


def test_a_kept_program_is_the_same_program() -> None:
    items = np.concatenate([FAULT.items, GOOD.items])
    assert Program.of(Program(items).words).items.tolist() == items.tolist()
