"""Campaigns: they go on where they were, a damaged state file is refused by name, Dask is asked for when needed."""

from __future__ import annotations

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bhemu.errors import BhemuError, ConfigurationError, FormatError
from bhemu.fuzz import batch_process, campaign, parsers
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.campaign import Campaign, executor, run_task, seed_of
from bhemu.fuzz.state import State


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, in_this_process: None) -> list[Task]:
    """The batches that are done; each does its size and finds something."""
    tasks: list[Task] = []

    def run(task: Task) -> tuple[Result, float]:
        tasks.append(task)
        return Result(task.size, features={f"feature {len(tasks)}"}, findings=[Finding("title", "text")]), 0.5

    monkeypatch.setattr(campaign, "run_task", run)
    return tasks


def test_a_campaign_goes_on_where_it_was(tmp_path: Path, done: list[Task]) -> None:
    path = tmp_path / "state.sqlite"
    for count, batches in ((20, 2), (20, 2), (35, 4)):
        state = State(path)
        summary = Campaign(state, "parsers", count, seed=5, size=10).run()
        state.close()
        assert (summary.done, summary.batches, len(done)) == (10 * batches, batches, batches)
    assert [task.seed for task in done] == [seed_of(5, "parsers", number) for number in range(4)]
    assert summary.seconds == 2.0
    assert summary.features == len(summary.findings) == 4


def test_seed_and_size_stay_those_of_the_beginning(tmp_path: Path, done: list[Task]) -> None:
    state = State(tmp_path / "state.sqlite")
    Campaign(state, "parsers", 10, seed=5, size=10).run()
    Campaign(state, "parsers", 20, seed=6, size=20).run()
    assert [task.seed for task in done] == [seed_of(5, "parsers", number) for number in range(2)]
    assert {task.size for task in done} == {10}


def test_the_same_seed_does_the_same(tmp_path: Path) -> None:
    one, other = (parsers.run(Task("parsers", 3, 200, keep=tmp_path)) for _ in range(2))
    assert one.counts == other.counts
    assert sum(one.counts.values()) == 200


def test_a_worker_that_ends_is_a_finding_and_the_campaign_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
) -> None:
    results = [RuntimeError("boom"), None]

    def run(task: Task) -> tuple[Result, float]:
        error = results.pop(0)
        if error is not None:
            raise error
        return Result(task.size), 0.0

    monkeypatch.setattr(campaign, "run_task", run)
    summary = Campaign(State(tmp_path / "state.sqlite"), "tile", 5, size=5).run()
    assert [finding.title for finding in summary.findings] == ["tile: RuntimeError: boom"]
    assert summary.done == 5


def test_a_campaign_whose_batches_all_fail_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None
) -> None:
    def run(task: Task) -> tuple[Result, float]:
        raise RuntimeError("boom")

    monkeypatch.setattr(campaign, "run_task", run)
    summary = Campaign(State(tmp_path / "state.sqlite"), "tile", 5, size=5).run()
    assert (summary.done, len(summary.findings)) == (0, campaign.MOST_FAILURES)


def test_a_batch_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Also in a thread, as Dask's workers call it."""
    with ThreadPoolExecutor(1) as threads:
        task = Task("parsers", 3, 20, keep=tmp_path)
        result, _ = threads.submit(run_task, task).result()
    assert result.done == 20
    assert sum(result.counts.values()) == 20


def test_a_batch_whose_process_is_ended_is_a_finding() -> None:
    result = batch_process.run(Task("parsers", 3, 20), "no_such_module")
    assert [finding.title for finding in result.findings] == ["parsers: the process of a batch ends with status 1"]


def test_a_batch_that_is_refused_is_refused_here(tmp_path: Path) -> None:
    task = Task("library", 3, 20, tmp_path / "none.so")
    with pytest.raises(BhemuError, match="no such file") as error:
        batch_process.run(task, "against")
    assert error.value.remedy


@pytest.mark.parametrize("damage", ["text", "other", "version", "cut", "pages", "setting", "directory"])
def test_a_damaged_state_file_is_refused_by_name(tmp_path: Path, damage: str, done: list[Task]) -> None:
    path = tmp_path / "state.sqlite"
    state = State(path)
    Campaign(state, "parsers", 200, seed=5, size=1).run()
    state.close()
    if damage == "text":
        path.write_text("not a data base, and long enough to be read as one" * 10)
    elif damage == "directory":
        path.unlink()
        path.mkdir()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[: 4096 * 3])
    elif damage == "pages":
        content = path.read_bytes()
        path.write_bytes(content[:4096] + bytes(len(content) - 4096))
    else:
        base = sqlite3.connect(path)
        change = {
            "other": "pragma application_id = 1",
            "version": "pragma user_version = 99",
            "setting": "update setting set value = '[1'",
        }
        base.execute(change[damage])
        base.commit()
        base.close()
    with pytest.raises(BhemuError) as error:
        Campaign(State(path), "parsers", 300).run()
    assert str(path) in error.value.message
    assert error.value.remedy
    assert isinstance(error.value, FormatError)


def test_several_workers_without_dask_are_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ConfigurationError, match="Dask") as error, executor(2, None):
        pass
    assert "pip install 'bhemu[fuzz]'" in str(error.value.remedy)


def test_one_worker_is_a_process_of_its_own() -> None:
    with executor(1, None) as place:
        assert place.submit(abs, -3).result() == 3
