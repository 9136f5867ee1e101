"""Sweeps: a row for each run, runs that are known are not made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.compare.calls import INIT, Call, clock
from bhemu.compare.trace import write_trace
from bhemu.errors import FormatError
from bhemu.fuzz import sweep as room
from bhemu.fuzz.sweep import Results, jobs, sweep
from tests.loader.boot_programs import store, write_elf

PROGRAM = """
import bhemu
program = bhemu.Program("nothing")
program.dimension("M", 32)
a = program.input("a", ("M", 32), "bf16")
@program.unpack
def unpack(core): core.NOP()
@program.math
def math(core): core.NOP()
@program.pack
def pack(core): core.NOP()
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A kernel, a kernel that is refused, a program, a module, and a text."""
    place = tmp_path / "runs"
    place.mkdir()
    write_elf(place / "good.elf", store(5))
    write_elf(place / "bad.elf", "li t0, 0x7fffffff\nlw t1, 0(t0)\nebreak")
    (place / "program.py").write_text(PROGRAM)
    (place / "helper.py").write_text("import bhemu\n")
    (place / "notes.txt").write_text("text")
    return place


def test_every_file_and_every_combination_has_a_row(directory: Path, tmp_path: Path, in_this_process: None) -> None:
    todo = jobs(directory, {"M": ["32", "64"], "seed": ["0", "1"]})
    assert len(todo) == 6
    results = Results(tmp_path / "sweep.sqlite")
    sweep(todo, results, max_clocks=10_000)
    rows = {(Path(file).name, parameters): outcome for file, parameters, outcome, *_ in results.outcomes()}
    assert rows["good.elf", "{}"] == "done"
    assert rows["bad.elf", "{}"] not in ("done", "error")
    assert [rows["program.py", json.dumps({"M": m, "seed": s})] for m in ("32", "64") for s in ("0", "1")] == [
        "done"
    ] * 4


def test_a_client_that_lets_more_clocks_pass_than_may_is_refused(tmp_path: Path, in_this_process: None) -> None:
    write_trace(tmp_path / "client.jsonl", [Call(INIT), clock(60), clock(40)])
    for most, expected in ((100, "done"), (99, "CycleLimit")):
        results = Results(tmp_path / f"{most}.sqlite")
        sweep(jobs(tmp_path, {}), results, max_clocks=most)
        ((_, _, outcome, message, *_),) = results.outcomes()
        assert outcome == expected
        assert outcome == "done" or message == "the client lets 100 clocks pass, and 99 are allowed"


def test_runs_that_are_known_are_not_made_again(
    directory: Path, tmp_path: Path, in_this_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sweep.sqlite"
    results = Results(path)
    sweep(jobs(directory, {}), results, max_clocks=10_000)
    results.close()
    made: list[str] = []
    monkeypatch.setattr(room, "make", lambda job, clocks: made.append(job.path.name) or room.Row("done"))
    write_elf(directory / "good.elf", store(6))
    sweep(jobs(directory, {}), Results(path), max_clocks=10_000)
    assert made == ["good.elf"]


def test_a_damaged_results_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "sweep.sqlite"
    path.write_text("text " * 1000)
    with pytest.raises(FormatError, match=r"sweep\.sqlite"):
        Results(path)


def test_a_directory_with_nothing_to_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nothing to run"):
        jobs(tmp_path, {})
    with pytest.raises(FormatError, match="not a directory"):
        jobs(tmp_path / "none", {})
