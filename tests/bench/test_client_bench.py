"""Recorded clients are replayed on libraries of any speed, and what they find is checked against the recording."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bhemu.bench.client import Bench, Figures, busy_processes, find_streams, geometric_mean
from bhemu.compare.calls import EXIT, INIT, Call, clock
from bhemu.compare.library import LibraryError
from bhemu.compare.places import aim
from bhemu.errors import BhemuError, ProgramError
from tests.bench.client_streams import BASE, CARD, answered, contents, polling_stream, waiting_stream

pytestmark = pytest.mark.plain


@pytest.fixture(scope="module")
def bench(small_chip: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A bench of the small chip alone; bhemu's own library is not built for it."""
    other = tmp_path_factory.mktemp("other") / "other.so"
    other.write_bytes(small_chip.read_bytes())
    with Bench([small_chip, other]) as made:
        made.libraries.pop()
        yield made


def replayed(bench: Bench, calls: list[Call], *, exact: bool = False) -> Figures:
    return bench.measure("stream", calls, rounds=1, exact=exact)


STREAMS = {"polling": polling_stream(), "waiting": waiting_stream()}


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("exact", [True, False])
def test_a_replay_makes_the_recorded_calls_and_finds_the_recorded_results(bench: Bench, name: str, exact: bool) -> None:
    found = replayed(bench, STREAMS[name], exact=exact)
    (replay,) = found.replays["small_chip"]
    assert (replay.refused, replay.differences, replay.note) == ("", 0, "")
    assert replay.clocks == sum(call.a for call in STREAMS[name] if call.name == "clock")
    assert replay.functions["init"]["calls"] == replay.functions["exit"]["calls"] == 1
    assert found.calls == len(STREAMS[name])
    assert found.seconds("small_chip") > 0


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("slowness", ["7", "0"])
def test_a_library_with_another_number_of_clocks_for_the_work_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, slowness: str
) -> None:
    monkeypatch.setenv("SLOWNESS", slowness)
    (replay,) = replayed(bench, STREAMS[name]).replays["small_chip"]
    assert (replay.refused, replay.differences, replay.note) == ("", 0, "")
    recorded = sum(call.a for call in STREAMS[name] if call.name == "clock")
    assert replay.clocks > 5 * recorded if slowness == "7" else replay.clocks < recorded / 5


@pytest.mark.parametrize("name", STREAMS)
def test_an_exact_replay_does_not_wait_and_says_what_differs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SLOWNESS", "2")
    (replay,) = replayed(bench, STREAMS[name], exact=True).replays["small_chip"]
    assert replay.clocks == sum(call.a for call in STREAMS[name] if call.name == "clock")
    assert replay.differences > 0
    assert "instead of" in replay.note


def test_a_wait_that_does_not_end_is_given_up_and_reported(bench: Bench) -> None:
    wrong = [Call(**{**_fields(call), "answer": bytes(64)}) if call.size == 64 else call for call in polling_stream(1)]
    (replay,) = replayed(bench, wrong).replays["small_chip"]
    assert replay.differences == 1
    assert replay.note.endswith("L1 0x100 of tile 1-2: 0102030405060708 instead of 0000000000000000")
    assert 20_000 <= replay.clocks <= 21_000


def test_what_the_chip_overwrites_in_the_hosts_memory_may_come_in_fewer_steps(bench: Bench) -> None:
    calls = [
        Call(**{**_fields(call), "host_writes": ((call.host_writes[0][0], bytes(64)), *call.host_writes)})
        if call.host_writes
        else call
        for call in waiting_stream()
    ]
    (replay,) = replayed(bench, calls).replays["small_chip"]
    assert (replay.differences, replay.note) == (0, "")


def _fields(call: Call) -> dict[str, object]:
    return {name: getattr(call, name) for name in Call.__slots__}


def test_the_chip_reads_of_the_hosts_memory_what_was_recorded(bench: Bench) -> None:
    calls = waiting_stream(2)
    others = [
        Call(**{**_fields(call), "host": tuple((address, contents(5)[0]) for address, _ in call.host)})
        for call in calls
    ]
    (replay,) = replayed(bench, others).replays["small_chip"]
    assert replay.differences == 2  # what the engine makes of other contents is not what was recorded


def test_a_refusal_is_reported_with_its_call(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSE", "1")
    calls = polling_stream()
    found = replayed(bench, calls)
    first_write = next(at for at, call in enumerate(calls) if len(call.content) == 4 and call.a < 0x11FC00000)
    assert found.refused("small_chip") == f"UndefinedBehavior at call {first_write + 1}: engine: it does not like that"
    assert math.isnan(found.seconds("small_chip"))


def test_what_the_card_says_of_itself_may_differ_and_is_not_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place outside Tensix tiles."""
    setup, place = aim(0, (8, 0), 0)
    monkeypatch.setenv("CARD_WORD", "9")
    calls = [Call(INIT), *setup, answered(place + CARD - BASE, 7), clock(1), Call(EXIT)]
    (replay,) = replayed(bench, calls).replays["small_chip"]
    assert (replay.differences, replay.clocks) == (1, 1)
    assert replay.note == "call 5, 0x18 of ARC 8-0: 09000000 instead of 07000000"


def test_libraries_take_turns(small_chip: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.so"
    other.write_bytes(small_chip.read_bytes())
    said: list[str] = []
    with Bench([small_chip, other]) as bench:
        found = bench.measure("stream", polling_stream(1), rounds=2, progress=said.append)
    assert [text.split()[2].rstrip(",") for text in said] == 3 * ["small_chip", "other"]
    assert [len(found.replays[name]) for name in ("small_chip", "other")] == [2, 2]
    assert found.ratio("other", "small_chip") > 0


def test_busy_processes_end_with_their_context(bench: Bench) -> None:
    before = set(_children())
    with busy_processes(bench.replayer, 2):
        assert len(set(_children()) - before) == 2
    assert set(_children()) - before == set()


def _children() -> list[int]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(text) for text in listed.read_text().split()]


@pytest.mark.parametrize("what", ["missing", "text"])
def test_what_is_no_library_is_refused(tmp_path: Path, what: str) -> None:
    place = tmp_path / "library.so"
    if what == "text":
        place.write_text("not a shared object at all")
    with pytest.raises(LibraryError):
        Bench([place])


def test_a_library_that_is_named_twice_is_refused(small_chip: Path) -> None:
    with pytest.raises(ProgramError, match="twice"):
        Bench([small_chip, small_chip])


def test_streams_are_found_by_name(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl.xz", "c.txt", "ab.jsonl.gz"):
        (tmp_path / name).touch()
    assert [path.name for path in find_streams([tmp_path])] == ["a.jsonl.xz", "ab.jsonl.gz", "b.jsonl"]
    assert [path.name for path in find_streams([tmp_path], ["b"])] == ["b.jsonl"]
    with pytest.raises(BhemuError, match="no stream"):
        find_streams([tmp_path], ["z"])
    with pytest.raises(BhemuError, match="two streams"):
        find_streams([tmp_path, tmp_path / "b.jsonl"])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(BhemuError, match="no call traces"):
        find_streams([empty])


def test_the_geometric_mean_leaves_out_what_was_refused() -> None:
    assert geometric_mean([2.0, 8.0, math.nan]) == pytest.approx(4.0)
    assert math.isnan(geometric_mean([math.nan]))
