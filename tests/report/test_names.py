"""Which files the code of a recording may be from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bhemu.errors import ProgramError
from bhemu.report.names import find_files


def a_file(path: Path, changed: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    os.utime(path, (changed, changed))
    return path


def test_files_come_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    later = a_file(tmp_path / "a" / "kernel.elf", 2)
    earlier = a_file(tmp_path / "b" / "kernel.elf", 1)
    a_file(tmp_path / "b" / "kernel.o", 3)
    assert find_files([], [tmp_path]) == [earlier, later]


def test_of_two_forms_of_a_kernel_the_one_that_is_loaded_is_found(tmp_path: Path) -> None:
    a_file(tmp_path / "brisc.elf", 1)
    moved = a_file(tmp_path / "brisc.elf.xip.elf", 1)
    assert find_files([], [tmp_path]) == [moved]


def test_a_file_that_another_client_removes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, stays = a_file(tmp_path / "gone.elf", 1), a_file(tmp_path / "stays.elf", 2)
    is_file = Path.is_file

    def then_remove(path: Path) -> bool:
        found = is_file(path)
        if path == gone:
            gone.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", then_remove)
    assert find_files([], [tmp_path]) == [stays]


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no such file or directory"):
        find_files([], [tmp_path / "nowhere"])
