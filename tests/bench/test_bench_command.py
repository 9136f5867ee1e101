"""`bhemu bench --client` as users call it: tables, JSON, exit status, refusals."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from bhemu.bench import ttnn_streams
from bhemu.bench.calls import FIGURES
from bhemu.compare.trace import write_trace
from bhemu.errors import ProgramError
from tests.bench.client_streams import polling_stream, waiting_stream
from tests.cli.cli_programs import invoke

pytestmark = pytest.mark.plain


def bhemu(*arguments: object) -> Any:
    return invoke("bench", *arguments)


@pytest.fixture
def pair(small_chip: Path, tmp_path: Path) -> list[object]:
    """Options that name two libraries, and two streams."""
    other = tmp_path / "other.so"
    other.write_bytes(small_chip.read_bytes())
    streams = tmp_path / "streams"
    streams.mkdir()
    write_trace(streams / "polling.jsonl.xz", polling_stream())
    write_trace(streams / "waiting.jsonl.gz", waiting_stream())
    return ["--client", "--rounds", 1, "--library", small_chip, "--library", other, "--stream", streams]


def test_the_table_has_a_row_for_each_stream_and_the_mean(pair: list[object]) -> None:
    done = bhemu(*pair)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split()[:6] == ["stream", "calls", "small_chip", "other", "other", "faster"]
    rows = {line.split("  ")[0]: line for line in lines}
    for name in ("polling", "waiting", "geometric mean"):
        assert "x" in rows[name]
    for name, _ in FIGURES:
        assert name in done.stdout


def test_json_has_every_replay(pair: list[object]) -> None:
    done = bhemu(*pair, "--json", "--busy", 1)
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["libraries"] == ["small_chip", "other"]
    assert [stream["name"] for stream in found["streams"]] == ["polling", "waiting"]
    one = found["streams"][0]["libraries"]["other"]
    assert len(one["replays"]) == 1
    assert one["replays"][0]["differences"] == 0
    assert one["replays"][0]["functions"]["clock"]["calls"] == one["replays"][0]["clocks"]
    assert math.isclose(one["seconds"], one["replays"][0]["whole_ns"] / 1e9)
    assert set(found["calls_ns"]["other"]) == {*(name for name, _ in FIGURES), "libttsim_init"}


def test_only_the_named_streams_are_replayed(pair: list[object]) -> None:
    done = bhemu(*pair, "--only", "wait", "--json")
    found = json.loads(done.stdout)
    assert [stream["name"] for stream in found["streams"]] == ["waiting"]
    assert "calls_ns" not in found


def test_what_differs_is_reported(pair: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLOWNESS", "3")
    done = bhemu(*pair, "--exact")
    assert done.exit_code == 0
    assert "differs first in polling on small_chip: call " in done.stdout


def test_a_refusal_ends_with_status_1(pair: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFUSE", "1")
    done = bhemu(*pair)
    assert done.exit_code == 1
    assert "polling on other: UndefinedBehavior at call " in done.stderr


@pytest.mark.parametrize("content", [b"", b"\xfd7zXZ\0 damaged", b'{"trace": "other"}\n', b"\0\xff"])
def test_a_damaged_or_foreign_stream_is_one_error(pair: list[object], tmp_path: Path, content: bytes) -> None:
    stream = tmp_path / "stream.jsonl"
    stream.write_bytes(content)
    done = bhemu(*pair[:-1], stream)
    assert done.exit_code == 1
    assert done.stderr.count("bhemu: TraceError") == 1
    assert str(stream.name) in done.stderr


@pytest.mark.parametrize("option", ["--stream", "--library", "--make-streams", "--python"])
def test_options_of_clients_are_refused_without_client(tmp_path: Path, option: str) -> None:
    done = bhemu(option, tmp_path)
    assert done.exit_code == 2
    assert f"{option} is for recorded clients" in done.stderr


def test_streams_that_cannot_be_made_are_said(
    small_chip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise ProgramError("ttnn needs Python 3.10, which this machine does not have", remedy="install it")

    monkeypatch.setattr(ttnn_streams, "ttnn_python", none)
    done = bhemu("--client", "--library", small_chip, "--make-streams", tmp_path / "streams")
    assert done.exit_code == 1
    assert "ttnn needs Python 3.10" in done.stderr
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'ModuleNotFoundError: no ttnn here' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setenv("TT_METAL_RUNTIME_ROOT", str(tmp_path))
    command = ["--client", "--library", small_chip, "--make-streams", tmp_path / "streams", "--python", python]
    done = bhemu(*command, "--only", "ttnn-slow-open")
    assert done.exit_code == 1
    assert "ttnn-slow-open: SKIPPED, ModuleNotFoundError: no ttnn here" in done.stdout
    assert "1 streams were NOT recorded" in done.stderr
    assert bhemu(*command, "--only", "nothing").exit_code == 1
