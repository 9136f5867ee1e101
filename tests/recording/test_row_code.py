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
