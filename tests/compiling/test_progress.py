"""Progress of compilation: which function of how many, and how long it still takes."""

from __future__ import annotations

import io
import time

import pytest

from bhemu.api.tile_programs import opcodes_of
from bhemu.compiling import progress as compile_progress
from bhemu.isa import INSTRUCTIONS, to_ttinsn
from bhemu.loader import boot
from bhemu.loader.elf import load_elf
from tests.loader.boot_programs import write_elf

pytestmark = pytest.mark.plain


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function is expected, compiled or fetched yet."""
    monkeypatch.setattr(compile_progress, "_expected", set())
    monkeypatch.setattr(compile_progress, "_seen", set())
    monkeypatch.setattr(compile_progress, "_seconds", [])
    monkeypatch.setattr(compile_progress, "_told", [0])
    monkeypatch.setattr(compile_progress, "_teller", compile_progress._Teller())


@pytest.mark.usefixtures("progress")
def test_function_n_of_m_counts_what_is_expected_and_not_there() -> None:
    compile_progress.expect(["A", "B", "C", "D"])
    with compile_progress.getting("B"):
        pass  # from the cache
    assert compile_progress.describe("A") == "compiling function 1 of 3, A (first use only)"
    with compile_progress.getting("A"):
        compile_progress.counted("A")
    compile_progress._seconds[:] = [4.0]
    assert compile_progress.describe("C") == "compiling function 2 of 3, C (first use only), about 8 s left"
    with compile_progress.getting("D"):
        pass
    assert compile_progress.describe("C") == "compiling function 2 of 2, C (first use only), about 4 s left"


@pytest.mark.usefixtures("progress")
def test_function_that_was_not_expected_is_counted_without_a_total() -> None:
    assert compile_progress.describe("X") == "compiling function 1, X (first use only)"


@pytest.mark.usefixtures("progress")
def test_library_tells_standard_error_about_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(compile_progress, "PATIENCE", 0.0)
    compile_progress.expect(["A", "B"])
    end = time.monotonic() + 60
    with compile_progress.getting("A"):
        compile_progress.tell("A")
        while not stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    with compile_progress.getting("B"):
        compile_progress.tell("B")
    assert stream.getvalue() == "bhemu: compiling function 1 of 2, A (first use only)\n"
    assert compile_progress._teller._thread is None


@pytest.mark.usefixtures("progress")
def test_environment_silences_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BHEMU_PROGRESS", "0")
    with compile_progress.getting("A"):
        compile_progress.tell("A")
        assert compile_progress._teller._thread is None


def test_opcodes_of_an_elf_file_are_those_of_its_ttinsn_words(tmp_path) -> None:  # type: ignore[no-untyped-def]
    words = [INSTRUCTIONS[name].opcode << 24 for name in ("SETDMAREG", "SEMPOST")]
    text = "\n".join(f".ttinsn {word:#x}" for word in words)
    executable = load_elf(write_elf(tmp_path / "kernel.elf", f"{text}\nli a0, 5\nebreak"))
    found = opcodes_of([boot.place(executable, 2)])
    assert found == {word >> 24 for word in words}
    assert all(to_ttinsn(word) & 3 != 3 for word in words)
