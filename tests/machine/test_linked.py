"""The library of all entries in the compile cache."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from bhemu.machine.linked import addresses, keep_library, library_made_of, library_path
from tests.c_programs import compiler_or_skip

TOOLS = ("a compiler", 1)
SOURCE = """
long one(void) { return 1; }
const long long bhemu_entry_count = 2;
const struct { const char *name; void *address; } bhemu_entries[] = {{"NOP-12", one}, {"MOP-34", one}};
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BHEMU_CACHE", str(tmp_path))
    addresses.cache_clear()
    return tmp_path


def linked(directory: Path) -> bytes:
    compiler = compiler_or_skip("THE LIBRARY IS NOT LINKED")
    (directory / "entries.c").write_text(SOURCE)
    subprocess.run([*compiler, "-shared", "-fPIC", "entries.c", "-o", "entries.so"], cwd=directory, check=True)
    return (directory / "entries.so").read_bytes()


def test_entries_are_found_by_their_names(tmp_path: Path) -> None:
    keep_library(TOOLS, linked(tmp_path), b"its sources")
    found = addresses(TOOLS)
    assert set(found) == {"NOP-12", "MOP-34"}
    assert ctypes.CFUNCTYPE(ctypes.c_long)(found["NOP-12"])() == 1


def test_there_is_a_library_for_each_set_of_tools() -> None:
    keep_library(TOOLS, b"content", b"its sources")
    assert library_path(("another compiler",)) is None
    assert addresses(("another compiler",)) == {}


def test_the_content_is_known_by_what_it_is_made_of() -> None:
    keep_library(TOOLS, b"content", b"its sources")
    assert library_made_of(TOOLS, b"its sources") == b"content"
    assert library_made_of(TOOLS, b"other sources") is None


def test_a_newer_library_takes_the_place_of_the_one_before(cache: Path) -> None:
    keep_library(TOOLS, b"old", b"")
    keep_library(TOOLS, b"new", b"")
    assert [path.read_bytes() for path in cache.glob("*.so")] == [b"new"]


def test_a_damaged_library_is_not_loaded() -> None:
    keep_library(TOOLS, b"content", b"its sources")
    path = library_path(TOOLS)
    assert path is not None
    path.write_bytes(b"other contents")
    assert library_path(TOOLS) is None
    assert addresses(TOOLS) == {}


def test_a_file_that_is_not_a_library_has_no_entries() -> None:
    keep_library(TOOLS, b"not a library", b"")
    assert addresses(TOOLS) == {}
