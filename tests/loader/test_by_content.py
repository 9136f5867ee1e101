"""ELF files are found by the code that is in memory, wherever it lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bhemu.loader.by_content import CodeIndex
from tests.loader.elf_files import Load, Name, make_elf, with_symbols

pytestmark = pytest.mark.plain


def code(seed: int, words: int = 200) -> np.ndarray:
    """Words that look like instructions."""
    return (np.random.default_rng(seed).integers(0, 1 << 30, words) << 2 | 3).astype("<u4")


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = []
    for seed, base in ((1, 0x6000), (2, 0x7000)):
        path = tmp_path / f"kernel{seed}.elf"
        symbols = with_symbols([Name("main", base + 0x40, 0x80)])
        path.write_bytes(make_elf((Load(base, code(seed).tobytes()),), symbols, entry=base))
        paths.append(path)
    (tmp_path / "text.elf").write_text("not an ELF file")
    return [*paths, tmp_path / "text.elf"]


def test_code_is_found_where_it_was_linked_for_and_elsewhere(files: list[Path]) -> None:
    index = CodeIndex(files)
    assert len(index) == 2
    (found,) = index.find(0x6000, code(1).tobytes())
    assert (found.path, found.distance, found.first, found.end, found.equal) == (files[0], 0, 0x6000, 0x6320, 1.0)
    (moved,) = index.find(0x9000, code(1)[10:150].tobytes())
    assert (moved.path, moved.first, moved.distance) == (files[0], 0x9000 - 40, 0x9000 - 40 - 0x6000)
    symbol, offset = moved.symbol_at(moved.first + 0x44) or pytest.fail("no symbol")
    assert (symbol.name, symbol.address, offset) == ("main", moved.first + 0x40, 4)


def test_two_programs_in_one_piece_of_memory_are_told_apart(files: list[Path]) -> None:
    index = CodeIndex(files)
    piece = np.concatenate([code(2), np.zeros(30, "<u4"), code(1)])
    found = {moved.path: moved.first for moved in index.find(0x8000, piece.tobytes())}
    assert found == {files[1]: 0x8000, files[0]: 0x8000 + 4 * 230}
    assert index.used == set(files[:2])


def test_a_host_may_have_adapted_some_instructions(files: list[Path]) -> None:
    words = code(1)
    words[7::16] ^= 0x1000
    (found,) = CodeIndex(files).find(0x6000, words.tobytes())
    assert found.path == files[0]
    assert 0.9 < found.equal < 1.0


def test_other_code_matches_no_file(files: list[Path]) -> None:
    words = np.concatenate([code(1)[:12], code(3)])
    index = CodeIndex(files)
    assert index.find(0x6000, words.tobytes()) == []
    assert not index.used
