"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bhemu.files import write_all, write_whole


def test_a_file_is_replaced_with_its_rights_and_through_its_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_new_file_has_the_rights_that_files_of_this_process_have(tmp_path: Path) -> None:
    (tmp_path / "usual").write_bytes(b"")
    write_whole(tmp_path / "new", b"content")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    for name in ("file", "new"):
        with pytest.raises(OSError, match="No space left"):
            write_whole(tmp_path / name, b"new")
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_device_is_an_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_whole(Path("/dev/full"), b"content")


def test_of_several_files_none_is_written_when_one_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "first").write_bytes(b"old")
    with pytest.raises(OSError, match="No such file") as caught:
        write_all({tmp_path / "first": b"new", tmp_path / "nowhere" / "second": b"new"})
    assert caught.value.filename == str(tmp_path / "nowhere" / "second")
    assert os.listdir(tmp_path) == ["first"]
    assert (tmp_path / "first").read_bytes() == b"old"
