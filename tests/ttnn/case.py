"""What a case of the sweep is: a ttnn operation on random tensors, and what torch computes from the same numbers.

This and the modules of cases are imported by the sweep, which has neither ttnn nor torch, and by `worker.py` in ttnn's
own environment (Python 3.10), which has nothing of bhemu. So `ttnn` and `torch` are imported when a case runs.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Body = Callable[["Bench"], "Sequence[tuple[Any, Any]]"]


class _Lazy:
    """A module that is imported on first use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


ttnn: Any = _Lazy("ttnn")
torch: Any = _Lazy("torch")

TOLERANCE = {"float32": 0.004, "bfloat16": 0.02, "bfloat8_b": 0.06, "bfloat4_b": 0.55}
"""By the format of the result; integers must be exact.

A block of bfp4 has steps of a quarter of its largest power of two: where a number of four times the mean shares it,
half a step is half the mean.
"""
SHORT = {"float32": "fp32", "bfloat16": "bf16", "bfloat8_b": "bfp8", "bfloat4_b": "bfp4"}


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: `group/operation/variant`.
        body: runs it on a bench; returns pairs of a result and what torch computes.
        tolerance: the largest deviation that is right: max |got - want| / (|want| + mean |want|); 0 for exact results.
    """

    name: str
    body: Body
    tolerance: float

    @property
    def group(self) -> str:
        return self.name.partition("/")[0]

    @property
    def operation(self) -> str:
        """`group/operation`."""
        return self.name.rpartition("/")[0]

    @property
    def tenth(self) -> int:
        """Which tenth of the sweep it is in, by the hash of its name."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 10


class Group:
    """Collects the cases of a module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cases: list[Case] = []

    def add(self, name: str, body: Body, dtype: str = "bfloat16", tolerance: float | None = None) -> None:
        """Add a case whose results have a format, and with it a tolerance, unless another one is given."""
        if tolerance is None:
            tolerance = TOLERANCE.get(dtype, 0.0)
        self.cases.append(Case(f"{self.name}/{name}", body, tolerance))

    def case(self, name: str, dtype: str = "bfloat16", tolerance: float | None = None) -> Callable[[Body], Body]:
        """Decorator: the function is the body of a case."""

        def keep(body: Body) -> Body:
            self.add(name, body, dtype, tolerance)
            return body

        return keep


class Bench:
    """What a case works with: a device and random numbers that depend on the case alone.

    Attributes:
        device: the opened device.
    """

    def __init__(self, device: Any, name: str) -> None:
        self.device = device
        self._random = torch.Generator().manual_seed(int(hashlib.sha256(name.encode()).hexdigest()[:12], 16))

    def normal(self, *shape: int) -> Any:
        """Numbers of a normal distribution, float32."""
        return torch.randn(*shape, generator=self._random)

    def uniform(self, low: float, high: float, *shape: int) -> Any:
        """Numbers between two, float32."""
        return torch.rand(*shape, generator=self._random) * (high - low) + low

    def integers(self, low: int, high: int, *shape: int) -> Any:
        """Integers from `low` to `high` - 1, int32."""
        return torch.randint(low, high, shape, generator=self._random, dtype=torch.int32)

    def permutation(self, count: int) -> Any:
        """The numbers 0 to count - 1 in random order, int64."""
        return torch.randperm(count, generator=self._random)

    def put(self, values: Any, dtype: str = "bfloat16", *, rows: bool = False, memory: Any = None) -> Any:
        """A tensor on the device.

        Args:
            values: torch tensor.
            dtype: name of the format.
            rows: row-major, not in tiles.
            memory: memory configuration; DRAM by default.
        """
        return ttnn.from_torch(
            values,
            dtype=getattr(ttnn, dtype),
            layout=ttnn.ROW_MAJOR_LAYOUT if rows else ttnn.TILE_LAYOUT,
            device=self.device,
            memory_config=memory or ttnn.DRAM_MEMORY_CONFIG,
        )

    def pair(self, values: Any, dtype: str = "bfloat16", *, rows: bool = False, memory: Any = None) -> tuple[Any, Any]:
        """A tensor on the device, and the numbers that it holds as a torch tensor: rounded to the format."""
        placed = self.put(values, dtype, rows=rows, memory=memory)
        held = ttnn.to_torch(placed)
        return placed, held.float() if held.is_floating_point() else held


@functools.cache
def named(path: str) -> Any:
    """A function of torch by its path, such as `nn.functional.gelu`."""
    return functools.reduce(getattr, path.split("."), importlib.import_module("torch"))
