"""Normalisation, softmax, losses."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, torch, ttnn

group = Group("norm")


APPROXIMATE = 0.05
"""The exponential of softmax is an approximation by default."""


def _softmax(shape: tuple[int, ...], dim: int, dtype: str, **options: Any) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(-3, 3, *shape), dtype)
        return [(ttnn.softmax(x, dim=dim, **options), torch.softmax(held, dim))]

    return body


for _dtype in ("bfloat16", "float32", "bfloat8_b"):
    group.add(
        f"softmax/rows {SHORT[_dtype]}",
        _softmax((1, 2, 64, 96), -1, _dtype),
        _dtype,
        0.15 if _dtype == "bfloat8_b" else APPROXIMATE,
    )
group.add("softmax/stable", _softmax((1, 1, 64, 128), -1, "bfloat16", numeric_stable=True), tolerance=APPROXIMATE)
group.add("softmax/columns", _softmax((1, 1, 64, 64), -2, "bfloat16"), tolerance=APPROXIMATE)
group.add("softmax/batch", _softmax((1, 4, 32, 32), 1, "bfloat16"), tolerance=APPROXIMATE)
group.add("softmax/odd shape", _softmax((1, 1, 40, 50), -1, "bfloat16"), tolerance=APPROXIMATE)
group.add("softmax/long rows", _softmax((1, 1, 32, 1024), -1, "bfloat16"), tolerance=APPROXIMATE)


@group.case("softmax_in_place/bf16", tolerance=APPROXIMATE)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(-3, 3, 1, 1, 64, 64))
    return [(ttnn.softmax_in_place(x), torch.softmax(held, -1))]


def _masked_softmax(function: str, *, causal: bool = False) -> Body:
    """Softmax with a scale and a mask: of one row, or causal, with a row for each row."""

    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(-3, 3, 1, 2, 64, 64))
        hidden = torch.ones(64, 64).triu(1) if causal else torch.arange(64).reshape(1, 64) >= 40
        mask = torch.zeros(1, 1, *hidden.shape).masked_fill(hidden.bool(), -1e9)
        got = getattr(ttnn, function)(x, 0.5, bench.put(mask), is_causal_mask=causal)
        return [(got, torch.softmax(held * 0.5 + mask, -1))]

    return body


for _name in ("scale_mask_softmax", "scale_mask_softmax_in_place"):
    group.add(f"{_name}/one row", _masked_softmax(_name), tolerance=APPROXIMATE)
group.add(f"{_name}/causal", _masked_softmax(_name, causal=True), tolerance=APPROXIMATE)


def _layer_norm(width: int, weights: bool, dtype: str, residual: bool = False) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.normal(1, 1, 64, width), dtype)
        w, held_w = bench.pair(bench.uniform(0.5, 1.5, 1, 1, 1, width), dtype)
        b, held_b = bench.pair(bench.normal(1, 1, 1, width), dtype)
        r, held_r = bench.pair(bench.normal(1, 1, 64, width), dtype)
        options: dict[str, Any] = {"epsilon": 1e-5}
        if weights:
            options |= {"weight": w, "bias": b}
        if residual:
            options["residual_input_tensor"] = r
            held = held + held_r
        want = torch.nn.functional.layer_norm(held, (width,), eps=1e-5)
        return [(ttnn.layer_norm(x, **options), want * held_w + held_b if weights else want)]

    return body


for _width in (64, 256, 1024):
    for _weights in (False, True):
        group.add(
            f"layer_norm/{_width}{' weights' if _weights else ''}",
            _layer_norm(_width, _weights, "bfloat16"),
            tolerance=0.03,
        )
group.add("layer_norm/fp32", _layer_norm(128, True, "float32"), "float32", 0.02)
group.add("layer_norm/residual", _layer_norm(128, True, "bfloat16", residual=True), tolerance=0.03)


def _rms_norm(width: int, weights: bool, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.normal(1, 1, 64, width), dtype)
        w, held_w = bench.pair(bench.uniform(0.5, 1.5, 1, 1, 1, width), dtype)
        want = held / (held.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        return [(ttnn.rms_norm(x, epsilon=1e-5, weight=w if weights else None), want * held_w if weights else want)]

    return body


for _width in (64, 256, 1024):
    for _weights in (False, True):
        group.add(
            f"rms_norm/{_width}{' weights' if _weights else ''}",
            _rms_norm(_width, _weights, "bfloat16"),
            tolerance=0.03,
        )
group.add("rms_norm/fp32", _rms_norm(128, True, "float32"), "float32", 0.02)


@group.case("layer_norm/sharded", tolerance=0.03)
def _(bench: Bench) -> Any:
    memory = ttnn.create_sharded_memory_config(
        (1, 1, 64, 256),
        core_grid=ttnn.CoreGrid(y=1, x=4),
        strategy=ttnn.ShardStrategy.WIDTH,
        orientation=ttnn.ShardOrientation.ROW_MAJOR,
    )
    x, held = bench.pair(bench.normal(1, 1, 64, 256), memory=memory)
    chosen = ttnn.LayerNormShardedMultiCoreProgramConfig(
        compute_with_storage_grid_size=(4, 1), subblock_w=2, block_h=2, block_w=2, inplace=False
    )
    got = ttnn.layer_norm(x, epsilon=1e-5, program_config=chosen, memory_config=memory)
    return [(got, torch.nn.functional.layer_norm(held, (256,), eps=1e-5))]


def _batch_norm(training: bool, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.normal(2, 4, 32, 32), dtype)
        mean, held_mean = bench.pair(bench.normal(1, 4, 1, 1), dtype)
        var, held_var = bench.pair(bench.uniform(0.5, 2.0, 1, 4, 1, 1), dtype)
        w, held_w = bench.pair(bench.uniform(0.5, 1.5, 1, 4, 1, 1), dtype)
        b, held_b = bench.pair(bench.normal(1, 4, 1, 1), dtype)
        got = ttnn.batch_norm(x, running_mean=mean, running_var=var, weight=w, bias=b, training=training)
        flat = [t.reshape(4).clone() for t in (held_mean, held_var, held_w, held_b)]
        want = torch.nn.functional.batch_norm(held, flat[0], flat[1], flat[2], flat[3], training=training)
        return [(got, want)]

    return body


for _training in (False, True):
    for _dtype in ("bfloat16", "float32"):
        _what = "training" if _training else "evaluation"
        group.add(f"batch_norm/{_what} {SHORT[_dtype]}", _batch_norm(_training, _dtype), _dtype, 0.03)


@group.case("group_norm/bf16", tolerance=0.06)
def _(bench: Bench) -> Any:
    values = bench.normal(1, 1, 64, 64)
    x = bench.put(values, rows=True, memory=ttnn.L1_MEMORY_CONFIG)
    grid = ttnn.CoreGrid(y=1, x=1)
    memory = ttnn.create_sharded_memory_config(
        (1, 1, 64, 64), core_grid=grid, strategy=ttnn.ShardStrategy.HEIGHT, orientation=ttnn.ShardOrientation.ROW_MAJOR
    )
    mask = ttnn.to_device(ttnn.create_group_norm_input_mask(64, 2, 1, ttnn.bfloat8_b), bench.device)
    got = ttnn.group_norm(
        ttnn.to_memory_config(x, memory), num_groups=2, input_mask=mask, core_grid=grid, memory_config=memory
    )
    held = ttnn.to_torch(x).float()
    want = torch.nn.functional.group_norm(held.reshape(1, 64, 64).transpose(1, 2), 2, eps=1e-12)
    return [(got, want.transpose(1, 2).reshape(1, 1, 64, 64))]


@group.case("mse_loss/mean", tolerance=0.05)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 32, 64))
    b, held_b = bench.pair(bench.normal(1, 1, 32, 64))
    got = ttnn.mse_loss(a, b, reduction=ttnn.LossReductionMode.MEAN)
    return [(ttnn.to_torch(got).reshape(-1)[:1], torch.nn.functional.mse_loss(held_a, held_b).reshape(1))]


@group.case("l1_loss/sum", tolerance=0.05)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 32, 64))
    b, held_b = bench.pair(bench.normal(1, 1, 32, 64))
    got = ttnn.l1_loss(a, b, reduction=ttnn.LossReductionMode.SUM)
    return [(ttnn.to_torch(got).reshape(-1)[:1], (held_a - held_b).abs().sum().reshape(1))]


@group.case("l1_loss/none")
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 32, 64))
    b, held_b = bench.pair(bench.normal(1, 1, 32, 64))
    return [(ttnn.l1_loss(a, b, reduction=ttnn.LossReductionMode.NONE), (held_a - held_b).abs())]
