"""Arrays saved in files that NumPy and bhemu read back."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import bhemu
from bhemu.errors import BhemuError, FormatError, ProgramError
from bhemu.formats.files import load, save
from bhemu.programs.run import Report

pytestmark = pytest.mark.plain


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_formats_that_numpy_lacks_are_saved_exactly(tmp_path: Path, dtype: type) -> None:
    width = np.dtype(dtype).itemsize
    every = np.arange(1 << 8 * width, dtype=f"u{width}").view(dtype)
    path = save(tmp_path / "a.npy", every)
    back = np.load(path)
    assert back.dtype == np.float32
    np.testing.assert_array_equal(back, every.astype(np.float32))
    np.testing.assert_array_equal(load(path), back)


def test_integers_keep_their_type(tmp_path: Path) -> None:
    assert load(save(tmp_path / "a.npy", np.arange(3, dtype=np.uint16))).dtype == np.uint16


def test_output_of_a_program_is_saved_by_name(tmp_path: Path) -> None:
    result = bhemu.Result({"c": np.ones((2, 2), ml_dtypes.bfloat16)}, Report(), bhemu.Tile())
    assert (np.load(result.save("c", tmp_path / "c.npy")) == 1).all()
    with pytest.raises(ProgramError, match="no output 'd'"):
        result.save("d", tmp_path / "d.npy")


def test_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot write"):
        save(tmp_path / "none" / "a.npy", np.zeros(2))
    with pytest.raises(BhemuError):
        save(3, np.zeros(2))  # type: ignore[arg-type]
