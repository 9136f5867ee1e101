"""Files of the compile cache: what is not exactly what was stored, or what others can write, counts as missing."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from bhemu.machine import cache
from bhemu.machine.cache import CacheWarning, fetch, store

CONTENT = bytes(range(256)) * 40


def forget() -> None:
    """As in a new process."""
    for known in (cache._is_trusted, cache._say_once):
        known.cache_clear()


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "NAME-0123.bin"
    store(path, CONTENT)
    assert fetch(path) == CONTENT
    forget()
    return path


def store_twice(folder: Path) -> None:
    store(folder / "one.bin", CONTENT)
    store(folder / "two.bin", CONTENT)


def test_every_single_flipped_bit_makes_a_file_count_as_missing(file: Path) -> None:
    whole = file.read_bytes()
    header = 8 * (len(whole) - len(CONTENT))
    chosen = [*range(header), *random.Random(1).sample(range(header, 8 * len(whole)), 2000)]
    for bit in chosen:
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        assert fetch(file) is None, f"bit {bit}"


@pytest.mark.parametrize("size", [0, 5, 46, 47, 1000, -1])
def test_a_cut_file_counts_as_missing(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    assert fetch(file) is None


def test_a_file_under_another_name_counts_as_missing(file: Path) -> None:
    other = file.rename(file.with_name("OTHER-0123.bin"))
    assert fetch(other) is None
    assert fetch(file) is None


def test_a_stored_file_replaces_a_damaged_one(file: Path) -> None:
    file.write_bytes(b"something else")
    store(file, b"new")
    assert fetch(file) == b"new"


def test_directory_and_files_of_the_cache_are_for_their_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store(tmp_path / "cache" / "a.bin", CONTENT)
    finally:
        os.umask(before)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "cache" / "a.bin").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o707])
def test_a_directory_that_others_can_write_to_is_not_used_and_said_once(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    with pytest.warns(CacheWarning, match=r"is not used: .*can be written by other users.*chmod go-w") as said:
        store_twice(file.parent)
    assert fetch(file) is None
    assert len(said) == 1
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_directory_inside_one_that_others_can_write_to_is_not_used(file: Path) -> None:
    file.parent.parent.chmod(0o777)
    with pytest.warns(CacheWarning, match="can be written by other users"):
        assert fetch(file) is None


def test_a_directory_inside_one_like_tmp_is_used(file: Path) -> None:
    file.parent.parent.chmod(0o1777)
    assert fetch(file) == CONTENT


def test_a_file_that_others_can_write_counts_as_missing(file: Path) -> None:
    file.chmod(0o666)
    assert fetch(file) is None


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give files away")
def test_what_belongs_to_another_user_is_not_used(file: Path) -> None:
    os.chown(file, 12345, 12345)
    assert fetch(file) is None
    os.chown(file, 0, 0)
    os.chown(file.parent, 12345, 12345)
    forget()
    with pytest.warns(CacheWarning, match="belongs to user 12345"):
        assert fetch(file) is None


def test_a_cache_that_cannot_be_written_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(CacheWarning, match="cannot be written") as said:
        store_twice(tmp_path / "cache")
    assert len(said) == 1


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_no_file(file: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            store(file.with_name("new.bin"), CONTENT)
        except KeyboardInterrupt:
            assert isinstance(error, KeyboardInterrupt)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
