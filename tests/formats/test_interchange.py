"""Arrays of other libraries."""

from __future__ import annotations

import subprocess
import sys
import types

import ml_dtypes
import numpy as np
import pytest

from bhemu.errors import FormatError
from bhemu.formats import as_numpy, as_torch, decode, encode


def test_importing_and_using_formats_does_not_import_torch() -> None:
    script = (
        "import sys, numpy as np, bhemu.formats as f\n"
        "f.decode(f.encode(np.ones((32, 32)), 'bfp8'), 'bfp8', (32, 32))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_numpy_arrays_pass_through_and_sequences_convert() -> None:
    array = np.ones(3)
    assert as_numpy(array) is array
    assert as_numpy([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_objects_with_array_conversion_are_taken() -> None:
    class Wrapped:
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            return np.arange(4, dtype=np.float32)

    assert encode(Wrapped(), "fp32", tile_shape=None).view(np.float32).tolist() == [0, 1, 2, 3]


def test_ragged_sequences_and_masked_arrays_are_refused() -> None:
    with pytest.raises(FormatError, match="rectangular"):
        as_numpy([[1, 2], [3]])
    with pytest.raises(FormatError, match=r"mask[\s\S]*filled"):
        as_numpy(np.ma.masked_array([1, 2], [True, False]))


def test_without_torch_the_way_out_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # an import of torch fails
    with pytest.raises(FormatError, match=r"torch is not installed[\s\S]*bhemu\[torch\]"):
        as_torch(np.ones(2))


def test_the_way_in_by_a_stand_in_for_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:  # as much of torch.Tensor as the way in touches
        def __init__(self, array: np.ndarray, dtype: str, device: str = "cpu") -> None:
            self.array, self.dtype, self.device = array, f"torch.{dtype}", types.SimpleNamespace(type=device)

        def detach(self) -> Tensor:
            return self

        def view(self, dtype: str) -> Tensor:
            return Tensor(self.array.view(dtype), dtype)

        def numpy(self) -> np.ndarray:
            if self.dtype in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.complex32"):
                raise TypeError("unsupported ScalarType")
            return self.array

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor, int16="int16", uint8="uint8"))
    for dtype in ("bfloat16", "float8_e4m3fn", "float32"):
        storage = np.array([1.0, -2.0]).astype(dtype)
        array = as_numpy(Tensor(storage, dtype))
        assert array.dtype == storage.dtype
        assert np.shares_memory(array, storage)
        assert encode(Tensor(storage, dtype), "fp32", tile_shape=None).view(np.float32).tolist() == [1.0, -2.0]
    with pytest.raises(FormatError, match="dtype complex32 does not convert"):
        as_numpy(Tensor(np.ones(2), "complex32"))
    with pytest.raises(FormatError, match="not in host memory"):
        as_numpy(Tensor(np.ones(2), "float32", device="cuda"))


def test_torch_tensors_of_every_float_dtype_share_memory() -> None:
    torch = pytest.importorskip("torch")
    for dtype, expected in (
        (torch.float32, np.float32),
        (torch.float16, np.float16),
        (torch.bfloat16, ml_dtypes.bfloat16),
        (torch.float8_e5m2, ml_dtypes.float8_e5m2),
        (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
    ):
        tensor = torch.tensor([1.0, -2.0, 0.5]).to(dtype)
        array = as_numpy(tensor)
        assert array.dtype == expected
        assert array.astype(np.float32).tolist() == [1.0, -2.0, 0.5]
        assert array.ctypes.data == tensor.data_ptr()
        back = as_torch(array)
        assert back.dtype == dtype
        assert back.data_ptr() == tensor.data_ptr()


def test_torch_tensors_encode_and_need_no_detaching() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.randn(32, 32, requires_grad=True)
    data = encode(tensor, "bfp8")
    assert data.tobytes() == encode(tensor.detach().numpy(), "bfp8").tobytes()
    assert encode(tensor.t(), "bf16").tobytes() == encode(tensor.detach().numpy().T, "bf16").tobytes()
    assert as_torch(decode(data, "bfp8", (32, 32))).dtype == torch.bfloat16


def test_read_only_arrays_are_copied_for_torch() -> None:
    torch = pytest.importorskip("torch")
    tensor = as_torch(decode(np.ones(2, np.float32).tobytes(), "fp32", 2, tile_shape=None))
    assert tensor.tolist() == [1.0, 1.0]
    assert tensor.dtype == torch.float32


def test_tensors_off_the_host_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(FormatError, match=r"device meta[\s\S]*cpu\(\)"):
        as_numpy(torch.ones(2, device="meta"))
