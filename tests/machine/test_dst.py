"""The one home of Dst's row and cell formulas (rules I.2, I.3)."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu.machine import dst
from bhemu.machine.kernel import plain

PACKAGE = Path(bhemu.__file__).parent
HALVES = np.arange(1 << 16, dtype=np.uint32)


def test_the_halves_of_512_wide_rows_fill_dst_without_overlap() -> None:
    high = plain(dst.high_row)(np.arange(512))
    assert sorted([*high.tolist(), *(high + dst.LOW_HALF).tolist()]) == list(range(dst.DST_ROWS))
    assert high[:10].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 16, 17]


@pytest.mark.parametrize(
    ("to_cell", "from_cell", "exponent_bits"),
    [(dst.cell_of_bf16, dst.bf16_of_cell, 8), (dst.cell_of_fp16, dst.fp16_of_cell, 5)],
    ids=["bf16", "fp16"],
)
def test_a_cell_holds_sign_mantissa_exponent_and_gives_every_number_back(to_cell, from_cell, exponent_bits) -> None:  # type: ignore[no-untyped-def]
    cells = plain(to_cell)(HALVES)
    mantissa_bits = 15 - exponent_bits
    exponent = HALVES >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = HALVES & ((1 << mantissa_bits) - 1)
    np.testing.assert_array_equal(cells, HALVES & 0x8000 | mantissa << exponent_bits | exponent)
    np.testing.assert_array_equal(plain(from_cell)(cells), HALVES)


@pytest.mark.parametrize(
    ("magnitude", "signed"),
    [(dst.cell_of_bf16_magnitude, dst.cell_of_bf16), (dst.cell_of_fp16_magnitude, dst.cell_of_fp16)],
    ids=["bf16", "fp16"],
)
def test_the_formula_for_magnitudes_is_that_of_positive_numbers(magnitude, signed) -> None:  # type: ignore[no-untyped-def]
    positive = HALVES[: 1 << 15]
    np.testing.assert_array_equal(plain(magnitude)(positive), plain(signed)(positive))


_ROW_FORMULA = re.compile(r"& 504\) << 1")
_CELL_FORMULA = re.compile(
    r"\((.+) & (?:127\) << 8 \| \1 >> 7|255\) << 7 \| \1 >> 8|1023\) << 5 \| \1 >> 10|31\) << 10 \| \1 >> 5)"
)


def _expressions(path: Path) -> list[str]:
    """Text of the binary operations of a file, in one spelling: numbers are decimal."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp)]


def test_no_other_file_spells_a_formula_of_dst() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): text
        for path in PACKAGE.rglob("*.py")
        if path.name != "dst.py" or path.parent.name != "machine"
        for text in _expressions(path)
        if _CELL_FORMULA.search(text) or _ROW_FORMULA.search(text)
    }
    assert not found


def test_the_search_finds_the_formulas_where_they_are() -> None:
    home = "\n".join(_expressions(PACKAGE / "machine" / "dst.py"))
    assert len({match.group() for match in _CELL_FORMULA.finditer(home)}) == 4
    assert _ROW_FORMULA.search(home)
