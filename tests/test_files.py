"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from bhemu.files import array_type, write_all, write_whole


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


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.bool_, ">i8", "V13", "S4"])
def test_the_type_of_an_array_is_read_from_its_text(kind: object) -> None:
    assert array_type(np.dtype(kind).str) == np.dtype(kind)  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", "<u,", "(2,)<u4", "u4,u4", "(1).__class__,u4", "<u3", "<q99", 4, None, ["<u4"]])
def test_a_text_that_is_not_the_type_of_an_array_is_refused(text: object) -> None:
    """NumPy evaluates parts of such a text as Python, and answers with a SyntaxError."""
    with pytest.raises((TypeError, ValueError)):
        array_type(text)
