"""The example programs are free of hazards; taking away a wait that the documents require is found."""

from __future__ import annotations

import ast
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from bhemu import load_program, run_program
from bhemu.analysis import HAZARD, NOTE, Hazard, hazards, timing
from bhemu.errors import Deadlock
from bhemu.machine.compiler import JIT
from bhemu.programs.record import record
from bhemu.recording import Recorder
from tests.analysis.logs import certain

pytestmark = pytest.mark.skipif(not JIT, reason="whole programs take minutes as plain Python")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = ["datacopy", "add1", "eltwise", "matmul"]


@pytest.fixture(autouse=True)
def own_library() -> Iterator[None]:
    """The examples share a module; each test loads the one next to its program."""
    sys.modules.pop("llk", None)
    yield
    sys.modules.pop("llk", None)


@pytest.mark.parametrize("settings", [{}, {"op": "mul"}, {"fidelity": "LoFi", "dst": "bf16"}])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_examples_are_free_of_hazards_and_of_notes(name: str, settings: dict[str, str]) -> None:
    program = load_program(EXAMPLES / f"{name}.py")
    chosen = {key: value for key, value in settings.items() if key in program.parameters}
    _, log = record(program, settings=chosen)
    assert len(log) > 100
    assert hazards(log) == []


def test_recording_does_not_change_the_result() -> None:
    plain = run_program(load_program(EXAMPLES / "matmul.py"))
    recorded, log = record(load_program(EXAMPLES / "matmul.py"))
    np.testing.assert_array_equal(plain.outputs["c"], recorded.outputs["c"])
    np.testing.assert_array_equal(plain.tile.record.issued, recorded.tile.record.issued)
    frontend = sum(plain.report.units["frontend"].values())
    assert len(log) == plain.tile.record.issued.sum() - frontend


def without(folder: Path, statement: str, program: str) -> list[Hazard]:
    """Hazards of a program from a copy of the examples in which the statement that begins so is taken out."""
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, folder)
    removed = 0
    for path in (folder / "llk.py", folder / f"{program}.py"):
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Expr) and ast.unparse(node).startswith(statement):
                end = node.end_lineno or node.lineno
                lines[node.lineno - 1 : end] = [" " * node.col_offset + "pass"] + [""] * (end - node.lineno)
                removed += 1
        path.write_text("\n".join(lines))
    assert removed == 1, f"{statement} occurs {removed} times in the examples"
    recorder = Recorder()
    with suppress(Deadlock):  # then the log ends where nothing could move
        run_program(load_program(folder / f"{program}.py"), recorder=recorder)
    return hazards(recorder.log())


REQUIRED = {
    # statement: (what is reported as missing, programs)
    "core.STALLWAIT(stall_res=Block.UNPACK, wait_res=Condition.TRISC_CFG": (
        "STALLWAIT(STALL_UNPACK, TRISC_CFG)",
        PROGRAMS,
    ),
    "self.core.SEMWAIT(stall_res=Block.MATH | Block.SFPU": ("SEMWAIT(STALL_MATH", PROGRAMS),
    "self.core.SEMWAIT(stall_res=Block.TDMA": ("SEMWAIT(STALL_PACK", PROGRAMS),
    "core.STALLWAIT(stall_res=Block.CFG, wait_res=Condition.THCON": ("STALLWAIT(STALL_CFG, THCON)", PROGRAMS),
    "core.STALLWAIT(stall_res=Block.MATH, wait_res=Condition.PACK": ("STALLWAIT(STALL_MATH, PACK)", PROGRAMS),
    "self.core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.MATH": ("STALLWAIT(STALL_SYNC, SFPU)", ["add1"]),
    "core.DMANOP()": ("NOP", PROGRAMS),
    "core.wait_until(": ("a semaphore that the instruction's thread gets after it", ["matmul"]),
}


@pytest.mark.parametrize(
    ("statement", "program"), [(statement, program) for statement in REQUIRED for program in REQUIRED[statement][1]]
)
def test_taking_a_required_wait_away_is_found(tmp_path: Path, statement: str, program: str) -> None:
    found = certain(without(tmp_path, statement, program))
    assert [hazard for hazard in found if REQUIRED[statement][0] in hazard.missing], found


@pytest.mark.parametrize("program", ["datacopy", "eltwise", "matmul"])
def test_without_the_wait_for_the_matrix_unit_only_the_scoreboard_holds_the_packer(
    tmp_path: Path, program: str
) -> None:
    found = without(tmp_path, "self.core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.MATH", program)
    assert {hazard.severity for hazard in found} == {NOTE}
    assert all("STALLWAIT(STALL_SYNC, MATH)" in hazard.missing for hazard in found)


@pytest.mark.parametrize(
    "statement",
    [
        # UNPACR has read its base address before its thread issues the next word (U12; 001.11.2a has no wait).
        "core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.UNPACK0",
        # The packer was waited for before ZEROACC, and ZEROACC is in order with the math thread's words.
        "core.STALLWAIT(stall_res=Block.SYNC, wait_res=Condition.PACK",
        # The first SFPLOAD reads rows that were written more than three instructions ago.
        "core.STALLWAIT(stall_res=Block.SFPU, wait_res=Condition.MATH",
    ],
)
def test_waits_that_the_documents_do_not_require_raise_no_alarm_when_they_are_gone(
    tmp_path: Path, statement: str
) -> None:
    assert [h for h in without(tmp_path, statement, "add1") if h.severity == HAZARD] == []


def test_the_modelled_time_of_a_product_is_the_matrix_units() -> None:
    cycles = {}
    for fidelity in ("LoFi", "HiFi2", "HiFi4"):
        _, log = record(load_program(EXAMPLES / "matmul.py"), settings={"fidelity": fidelity})
        timed = timing(log)
        assert timed.forced == 0
        for thread in timed.threads:
            assert thread.issued + thread.stalls.total() == thread.last
        cycles[fidelity] = timed.cycles
        products = {"LoFi": 1024, "HiFi2": 2048, "HiFi4": 4096}[fidelity]
        assert timed.units["matrix"].instructions >= products
        assert timed.cycles >= timed.units["matrix"].busy
    assert cycles["HiFi4"] < 1.1 * 4096  # sixteen products of a tile write eight blocks in turn: full rate
    assert cycles["LoFi"] < cycles["HiFi2"] < cycles["HiFi4"]
    assert timed.unknown == {"PACR": 256}
    assert timed.at_least == {"UNPACR": 128}
