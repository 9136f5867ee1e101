"""One program of a ttnn client, run by the Python of an environment with ttnn: opens a device, computes, closes it.

    python ttnn_program.py NAME

Inputs are random with a fixed seed. Results are compared with NumPy's, so that a stream is not recorded from a run that
went wrong. Needs ttnn and NumPy alone, and Python 3.10 suffices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import ttnn

RNG = np.random.default_rng(1)


class Client:
    """A device and the way of arrays to it and back."""

    def __init__(self, **options: Any) -> None:
        self.device = ttnn.open_device(device_id=0, **options)

    def close(self) -> None:
        """Give the device back."""
        ttnn.close_device(self.device)

    def put(self, array: Any, kind: Any = ttnn.bfloat16, *, tiles: bool = True) -> Any:
        """An array as a tensor on the device."""
        tensor = ttnn.Tensor(array.flatten().tolist(), list(array.shape), kind, ttnn.ROW_MAJOR_LAYOUT)
        return ttnn.to_device(ttnn.to_layout(tensor, ttnn.TILE_LAYOUT) if tiles else tensor, self.device)

    def get(self, tensor: Any) -> Any:
        """A tensor as an array."""
        return np.array(ttnn.to_layout(ttnn.from_device(tensor), ttnn.ROW_MAJOR_LAYOUT).to_list(), np.float32)


def _check(found: Any, wanted: Any, tolerance: float) -> None:
    error = np.abs(found.reshape(wanted.shape) - wanted).max()
    if not error <= tolerance * np.abs(wanted).max():
        raise SystemExit(f"the result is wrong by {error}")


def _integers(*shape: int) -> Any:
    return RNG.integers(-8, 8, shape).astype(np.float32)


def _open() -> Client:
    return Client()


def _eltwise(name: str, wanted: Callable[[Any], Any]) -> Client:
    client = Client()
    array = _integers(256, 256)
    tensor = client.put(array)
    for _ in range(5):
        result = ttnn.add(tensor, tensor) if name == "add" else getattr(ttnn, name)(tensor)
    _check(client.get(result), wanted(array), 0.1 if name == "softmax" else 0.02)
    return client


def _softmax(array: Any) -> Any:
    powers = np.exp(array - array.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _matmul(size: int, repeats: int) -> Client:
    client = Client()
    a, b = _integers(size, size), _integers(size, size)
    x, y = client.put(a), client.put(b)
    for _ in range(repeats):
        result = ttnn.matmul(x, y)
    _check(client.get(result), a @ b, 0.05)
    return client


def _matmul_on_110() -> Client:
    """A matmul with multicast in two dimensions on 11x10 tiles."""
    client = Client()
    a, b = _integers(640, 704), _integers(704, 704)
    program = ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
        compute_with_storage_grid_size=(11, 10),
        in0_block_w=2,
        out_subblock_h=2,
        out_subblock_w=2,
        per_core_M=2,
        per_core_N=2,
        transpose_mcast=False,
        fused_activation=None,
    )
    x, y = client.put(a), client.put(b)
    for _ in range(5):
        result = ttnn.matmul(x, y, program_config=program)
    _check(client.get(result), a @ b, 0.05)
    return client


def _embedding() -> Client:
    client = Client()
    weights = _integers(512, 128)
    rows = RNG.integers(0, 512, (2, 128)).astype(np.uint32)
    indices = client.put(rows, ttnn.uint32, tiles=False)
    table = client.put(weights, tiles=False)
    for _ in range(5):
        result = ttnn.embedding(indices, table)
    _check(client.get(result), weights[rows], 0)
    return client


def _conv2d() -> Client:
    client = Client(l1_small_size=16384)
    image, weights = _integers(1, 16, 16, 32), _integers(32, 32, 3, 3)
    tensor = client.put(image, tiles=False)
    kernel = ttnn.Tensor(weights.flatten().tolist(), list(weights.shape), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT)
    sizes = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 16, "input_width": 16}
    for _ in range(2):
        result = ttnn.conv2d(
            input_tensor=tensor,
            weight_tensor=kernel,
            device=client.device,
            kernel_size=(3, 3),
            stride=(1, 1),
            padding=(1, 1),
            **sizes,
        )
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(
        padded[:, row : row + 16, column : column + 16] @ weights[:, :, row, column].T
        for row in range(3)
        for column in range(3)
    )
    _check(client.get(result), wanted, 0.02)
    return client


def _max_pool2d() -> Client:
    client = Client(l1_small_size=16384)
    image = _integers(1, 1, 16 * 16, 32)
    tensor = client.put(image, tiles=False)
    for _ in range(2):
        result = ttnn.max_pool2d(
            input_tensor=tensor,
            batch_size=1,
            input_h=16,
            input_w=16,
            channels=32,
            kernel_size=[2, 2],
            stride=[2, 2],
            padding=[0, 0],
            dilation=[1, 1],
        )
    _check(client.get(result), image.reshape(8, 2, 8, 2, 32).max((1, 3)), 0)
    return client


PROGRAMS: dict[str, Callable[[], Client]] = {
    "open": _open,
    "add": lambda: _eltwise("add", lambda array: array + array),
    "exp2": lambda: _eltwise("exp2", np.exp2),
    "softmax": lambda: _eltwise("softmax", _softmax),
    "embedding": _embedding,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "matmul256": lambda: _matmul(256, 5),
    "matmul512": lambda: _matmul(512, 2),
    "matmul1024": lambda: _matmul(1024, 1),
    "matmul110": _matmul_on_110,
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]().close()
    print("done")
