"""Reductions, prefixes, sorting and indices of the largest."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, torch, ttnn

group = Group("reduction")

WANT: dict[str, Any] = {
    "sum": lambda x, d: x.sum(d, keepdim=True),
    "mean": lambda x, d: x.mean(d, keepdim=True),
    "max": lambda x, d: torch.amax(x, d, keepdim=True),
    "min": lambda x, d: torch.amin(x, d, keepdim=True),
    "std": lambda x, d: x.std(d, keepdim=True),
    "var": lambda x, d: x.var(d, keepdim=True),
}
DIMENSIONS: dict[str, tuple[int, ...]] = {"rows": (-1,), "columns": (-2,), "both": (-2, -1), "batch": (1,)}
TOLERANCES = {"sum": 0.03, "mean": 0.03, "std": 0.03, "var": 0.05, "max": 0.0, "min": 0.0}


def _reduce(name: str, dims: tuple[int, ...], dtype: str, shape: tuple[int, ...], **options: Any) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(-1.0, 2.0, *shape), dtype)
        dim = dims if len(dims) > 1 else dims[0]
        return [(getattr(ttnn, name)(x, dim=dim, keepdim=True, **options), WANT[name](held, dims))]

    return body


for _name in WANT:
    for _what, _dims in DIMENSIONS.items():
        for _dtype in ("bfloat16", "float32"):
            if _dtype == "float32" and _what == "batch":
                continue
            # max and min through the matrix unit have TF32's precision at best: fp32 values are rounded.
            _tolerance = TOLERANCES[_name] or (0.002 if _dtype == "float32" else 0.0)
            group.add(
                f"{_name}/{_what} {SHORT[_dtype]}", _reduce(_name, _dims, _dtype, (2, 3, 64, 96)), tolerance=_tolerance
            )
for _name in ("sum", "mean", "max"):
    group.add(f"{_name}/rows bfp8", _reduce(_name, (-1,), "bfloat8_b", (1, 1, 64, 128)), tolerance=0.06)
    group.add(f"{_name}/odd shape", _reduce(_name, (-1,), "bfloat16", (1, 2, 45, 70)), tolerance=TOLERANCES[_name])


@group.case("sum/scaled", tolerance=0.03)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.0, 1.0, 1, 1, 64, 64))
    return [(ttnn.sum(x, dim=-1, keepdim=True, scalar=0.5), held.sum(-1, keepdim=True) * 0.5)]


@group.case("sum/all", tolerance=0.03)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.0, 1.0, 1, 2, 64, 64))
    return [(torch.as_tensor(ttnn.to_torch(ttnn.sum(x))).reshape(1), held.sum().reshape(1))]


def _prefix(name: str, dim: int, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(0.8, 1.2, 2, 3, 32, 64), dtype)
        return [(getattr(ttnn, name)(x, dim=dim), getattr(torch, name)(held, dim))]

    return body


for _name in ("cumsum", "cumprod"):
    for _dim in (0, 1, 2, 3):
        group.add(f"{_name}/dimension {_dim}", _prefix(_name, _dim, "bfloat16"), tolerance=0.2)
    group.add(f"{_name}/fp32", _prefix(_name, 1, "float32"), "float32")


@group.case("prod/one dimension", tolerance=0.1)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.8, 1.2, 4, 3, 32, 32))
    return [(ttnn.prod(x, dim=0), held.prod(0, keepdim=True))]


@group.case("prod/dimension 1", tolerance=0.1)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.8, 1.2, 1, 4, 32, 32))
    return [(ttnn.prod(x, dim=1), held.prod(1, keepdim=True))]


def _argmax(shape: tuple[int, ...], dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        width = shape[-1]
        values = torch.stack([bench.permutation(width).float() for _ in range(shape[-2])]).reshape(shape)
        x = bench.put(values, dtype, rows=True)
        return [(ttnn.argmax(x, dim=-1, keepdim=True), values.argmax(-1, keepdim=True))]

    return body


group.add("argmax/rows bf16", _argmax((1, 1, 32, 64), "bfloat16"), "int32")
group.add("argmax/rows fp32", _argmax((1, 1, 32, 64), "float32"), "int32")
group.add("argmax/one row bf16", _argmax((1, 1, 1, 256), "bfloat16"), "int32")


def _sorted(count: int, descending: bool) -> Body:
    def body(bench: Bench) -> Any:
        values = torch.stack([bench.permutation(count).float() for _ in range(32)]).reshape(1, 1, 32, count)
        x = bench.put(values)
        got, places = ttnn.sort(x, dim=-1, descending=descending)
        want, order = torch.sort(values, -1, descending=descending)
        return [(got, want), (places, order)]

    return body


for _count in (64, 128, 256):
    for _descending in (False, True):
        group.add(f"sort/{_count} {'falling' if _descending else 'rising'}", _sorted(_count, _descending), "int32")


def _topk(width: int, count: int, largest: bool) -> Body:
    def body(bench: Bench) -> Any:
        values = torch.stack([bench.permutation(width).float() for _ in range(32)]).reshape(1, 1, 32, width)
        got, places = ttnn.topk(bench.put(values), count, dim=-1, largest=largest, sorted=True)
        want, order = torch.topk(values, count, -1, largest=largest)
        return [(got, want), (places, order)]

    return body


for _width, _count in ((64, 32), (128, 32), (256, 8), (256, 64)):
    group.add(f"topk/{_count} of {_width}", _topk(_width, _count, True), "int32")
group.add("topk/smallest", _topk(128, 32, False), "int32")


@group.case("mean/all", tolerance=0.03)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.0, 1.0, 1, 2, 64, 64))
    return [(ttnn.to_torch(ttnn.mean(x)).reshape(1), held.mean().reshape(1))]


@group.case("ema/bf16", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0.0, 1.0, 1, 1, 64, 96))
    want, last = torch.zeros_like(held), torch.zeros(1, 1, 64)
    for place in range(96):
        last = 0.3 * held[..., place] + 0.7 * last
        want[..., place] = last
    return [(ttnn.ema(x, 0.7), want)]
