"""`bhemu library DIR` (tile H3)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from bhemu.cli.main import app


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["library", *arguments])
    return done.exit_code, done.output


def test_both_files_are_written(library: Path, tmp_path: Path) -> None:
    status, out = run(str(tmp_path / "new" / "simulator"))
    assert status == 0
    made = tmp_path / "new" / "simulator"
    assert sorted(file.name for file in made.iterdir()) == [library.name, "soc_descriptor.yaml"]
    assert f"export TT_METAL_SIMULATOR={made / library.name}" in out


def test_what_cannot_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    status, out = run(str(file))
    assert status == 2
    assert "is not a directory" in out
    status, out = run(str(file / "below"))
    assert status == 1
    assert "cannot write into" in out
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    status, out = run(str(tmp_path / "directory"))
    assert status == 1
    assert "there is no C compiler" in out
