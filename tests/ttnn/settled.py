"""Results that differ much from torch's, and must have exactly these bits.

Each is what the operation's instructions make of its numbers: `tests/numerics/test_numbers_of_ttnn.py` computes the
same bits from them with `bhemu.numerics`, and docs/numerics.md says where the difference from torch comes from.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.ttnn.case import Bench, Group, torch, ttnn

group = Group("settled")

DIGESTS = {
    "prod": "ab6e91774f8fa2f51be8652ac5d016032f106e6fd800cf8e5ed509ebb63a9072",
    "hardswish_bw": "c9ac6c82cd0bb691b4e3bf8001e7f4f6185524163407ac5faa2fb5ba31da22a9",
    "moreh_norm": "824677cf67c89038554b0929f8cce6866f5d88391f7a96d5c161097790f5044a",
    "moreh_adam": "eba0546a1374e5e030dc508fad8dba50fdb60ec90520615123df3a4d9ee789f6",
}
"""SHA-256 of the results' bfloat16 bits, by operation."""


def numbers(seed: int, rows: int, columns: int, low: float, high: float) -> list[list[float]]:
    """65 numbers from `low` to `high`, which bfloat16 has, in an order that looks random and is always the same."""
    made, state = [], seed
    for _ in range(rows * columns):
        state = (state * 1103515245 + 12345) % (1 << 31)
        made.append(low + (high - low) * ((state >> 16) % 65) / 64)
    return [made[row * columns : (row + 1) * columns] for row in range(rows)]


PROD = (numbers(1, 64, 64, 0.75, 1.25),)
HARDSWISH_BW = (numbers(2, 32, 32, -4.0, 4.0), numbers(3, 32, 32, -2.0, 2.0))
"""Input, which also is exactly -3 and 3; gradient of the result."""
MOREH_NORM = (numbers(4, 32, 64, 0.0625, 1.0625),)
MOREH_ADAM = (
    numbers(5, 32, 32, -1.0, 1.0),
    numbers(6, 32, 32, -1.0, 1.0),
    numbers(7, 32, 32, -0.25, 0.25),
    numbers(8, 32, 32, 0.25, 1.25),
)
"""Parameter, gradient, mean of gradients, mean of their squares."""


def digest_of(*bits: bytes) -> str:
    """The digest of results' bits, one after the other."""
    return hashlib.sha256(b"".join(bits)).hexdigest()


def _compared(name: str, *results: Any) -> Any:
    values = [result if torch.is_tensor(result) else ttnn.to_torch(result) for result in results]
    bits = [value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() for value in values]
    return [(torch.tensor([float(digest_of(*bits) == DIGESTS[name])]), torch.ones(1))]


def _placed(bench: Bench, lists: tuple[list[list[float]], ...]) -> list[Any]:
    return [bench.put(torch.tensor([[rows]])) for rows in lists]


@group.case("prod/all", tolerance=0.0)
def _(bench: Bench) -> Any:
    return _compared("prod", ttnn.prod(*_placed(bench, PROD)))


@group.case("hardswish_bw/bf16", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, gradient = _placed(bench, HARDSWISH_BW)
    return _compared("hardswish_bw", ttnn.hardswish_bw(gradient, x)[0])


@group.case("moreh_norm/2 over 3", tolerance=0.0)
def _(bench: Bench) -> Any:
    return _compared("moreh_norm", ttnn.moreh_norm(*_placed(bench, MOREH_NORM), 2.0, dim=3, keepdim=True))


@group.case("moreh_adam/bf16", tolerance=0.0)
def _(bench: Bench) -> Any:
    options = {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 1e-4, "weight_decay": 0.05, "step": 3, "amsgrad": False}
    return _compared("moreh_adam", *ttnn.moreh_adam(*_placed(bench, MOREH_ADAM), **options)[:3])
