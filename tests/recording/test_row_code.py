"""Rows as bytes: what is written is read, and rows that repeat take little."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.recording.row_code import FORMS, decoded, encoded

pytestmark = pytest.mark.plain


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("count", [0, 1, 50])
def test_any_rows_are_read_as_they_were_written(name: str, count: int) -> None:
    form, random = FORMS[name], np.random.default_rng(count)
    far = random.integers(-(2**63), 2**63 - 1, (count, form.columns), dtype=np.int64)
    near = random.integers(-3, 3, (count, form.columns), dtype=np.int64)
    for rows in (far, near):
        assert np.array_equal(decoded(form, encoded(form, rows), count), rows)


def test_a_loop_takes_little_more_than_its_masks() -> None:
    form = FORMS["rows"]
    turn = np.arange(4 * form.columns, dtype=np.int64).reshape(4, form.columns) << 3
    turn[:, form.group] = 2
    rows = np.concatenate([turn + 0] * 50)
    for counter in form.counters:
        rows[:, counter] = 7 * np.arange(len(rows))
    code = encoded(form, rows)
    assert np.array_equal(decoded(form, code, len(rows)), rows)
    assert len(code) < 3 * len(rows)


@pytest.mark.parametrize("name", FORMS)
def test_bytes_that_are_not_those_of_the_rows_are_refused(name: str) -> None:
    form, random = FORMS[name], np.random.default_rng(5)
    rows = random.integers(-(2**63), 2**63 - 1, (40, form.columns), dtype=np.int64)
    code = encoded(form, rows)
    for size in (0, 1, 2, len(code) // 2, len(code) - 1):
        # What lies after the end would be read, were it not for its length.
        with pytest.raises(ValueError, match="bytes are not those of 40 rows"):
            decoded(form, code[:size], 40)
    for count in (-1, 39, 41, 1 << 40):
        with pytest.raises(ValueError, match="bytes are not those of"):
            decoded(form, code, count)


@pytest.mark.parametrize("name", FORMS)
def test_a_number_without_an_end_is_refused(name: str) -> None:
    form = FORMS[name]
    code = np.full(1000, 0xFF, np.uint8)
    with pytest.raises(ValueError, match="bytes are not those of 1 rows"):
        decoded(form, code, 1)


@pytest.mark.parametrize("name", FORMS)
def test_any_bytes_are_read_within_their_end_or_refused(name: str) -> None:
    form, random = FORMS[name], np.random.default_rng(6)
    code = encoded(form, np.cumsum(random.integers(0, 9, (60, form.columns), dtype=np.int64), axis=0))
    refused = 0
    for _ in range(300):
        damaged = code.copy()
        damaged[random.integers(0, len(code), 3)] = random.integers(0, 256, 3)
        try:
            assert decoded(form, damaged, 60).shape == (60, form.columns)
        except ValueError:
            refused += 1
    assert refused > 50
