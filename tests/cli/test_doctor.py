"""`bhemu doctor` says what is there, what is missing, and how to get it."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from bhemu import installation
from tests.cli.cli_programs import Invoke

pytestmark = pytest.mark.plain


def by_name(result: Any) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in json.loads(result.stdout)}


def test_what_is_installed_is_named_with_its_version(bhemu: Invoke) -> None:
    result = bhemu("doctor", "--json")
    assert result.exit_code == 0
    found = by_name(result)
    assert found["numba"]["found"] == metadata.version("numba")
    assert found["compiled code"]["found"].startswith("NOP executed")
    assert all(finding["use"] and finding["remedy"] for finding in found.values())


def test_packages_that_bhemu_declares_are_all_looked_for() -> None:
    text = (Path(installation.__file__).parents[1] / "pyproject.toml").read_text()
    declared = text.partition("dependencies = [")[2].partition("]")[0]
    assert {name for name in installation.NEEDED if f'"{name}' in declared} == set(installation.NEEDED) - {"llvmlite"}


def test_missing_tools_are_named_with_how_to_get_them(bhemu: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    result = bhemu("doctor", "--no-compile")
    assert result.exit_code == 0
    assert "apt install gdb-multiarch" in result.stdout
    assert "What is marked with - is optional" in result.stdout


def test_missing_package_fails(bhemu: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    real = installation._version
    monkeypatch.setattr(installation, "_version", lambda name: None if name == "greenlet" else real(name))
    result = bhemu("doctor", "--no-compile")
    assert result.exit_code == 1
    assert "MISSING" in result.stdout
    assert "pip install greenlet" in result.stdout


def test_cache_that_cannot_be_written_is_named(bhemu: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BHEMU_CACHE", str(tmp_path / "file" / "cache"))
    found = by_name(bhemu("doctor", "--json", "--no-compile"))
    assert found["compile cache"]["found"] is None
    assert "BHEMU_CACHE" in found["compile cache"]["remedy"]


def test_installation_that_cannot_execute_anything_fails(bhemu: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "PROBE", "NOT_AN_INSTRUCTION")
    result = bhemu("doctor")
    assert result.exit_code == 1
    assert "bhemu --traceback run" in result.stdout
