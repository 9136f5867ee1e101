"""What a training step needs: backward operations, moreh's operations and optimizers, random numbers."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import Bench, Body, Group, named, torch, ttnn

backward = Group("backward")
moreh = Group("moreh")
random = Group("random")

ONE = """
abs_bw abs -3 3
acos_bw acos -0.8 0.8
acosh_bw acosh 1.5 4
asin_bw asin -0.8 0.8
asinh_bw asinh -3 3
atan_bw atan -3 3
atanh_bw atanh -0.8 0.8
ceil_bw ceil -3 3
cos_bw cos -3 3
cosh_bw cosh -2 2
elu_bw nn.functional.elu -3 3
erf_bw erf -2 2
erfc_bw erfc -2 2
exp_bw exp -3 3
exp2_bw exp2 -3 3
expm1_bw expm1 -3 3
floor_bw floor -3 3
frac_bw frac -3 3
gelu_bw nn.functional.gelu -3 3
hardshrink_bw nn.functional.hardshrink -3 3
hardsigmoid_bw nn.functional.hardsigmoid -2 2
hardtanh_bw nn.functional.hardtanh -3 3
leaky_relu_bw nn.functional.leaky_relu -3 3
log_bw log 0.3 5
log10_bw log10 0.3 5
log1p_bw log1p 0.3 5
log2_bw log2 0.3 5
log_sigmoid_bw nn.functional.logsigmoid -3 3
neg_bw neg -3 3
rad2deg_bw rad2deg -3 3
deg2rad_bw deg2rad -3 3
reciprocal_bw reciprocal 0.5 3
relu_bw relu -3 3
relu6_bw nn.functional.relu6 -3 9
round_bw round -3 3
rsqrt_bw rsqrt 0.5 3
selu_bw nn.functional.selu -3 3
sigmoid_bw sigmoid -3 3
sign_bw sign -3 3
silu_bw nn.functional.silu -3 3
sin_bw sin -3 3
sinh_bw sinh -2 2
softsign_bw nn.functional.softsign -3 3
sqrt_bw sqrt 0.5 4
square_bw square -3 3
tan_bw tan -1 1
tanh_bw tanh -2 2
tanhshrink_bw nn.functional.tanhshrink -3 3
trunc_bw trunc -3 3
"""
TWO: dict[str, Any] = {
    "add_bw": lambda a, b: a + b,
    "sub_bw": lambda a, b: a - b,
    "mul_bw": lambda a, b: a * b,
    "div_bw": lambda a, b: a / b,
    "atan2_bw": lambda a, b: torch.atan2(a, b),
    "hypot_bw": lambda a, b: torch.hypot(a, b),
    "max_bw": lambda a, b: torch.maximum(a, b),
    "min_bw": lambda a, b: torch.minimum(a, b),
    "squared_difference_bw": lambda a, b: (a - b) ** 2,
    "logaddexp_bw": lambda a, b: torch.logaddexp(a, b),
    "xlogy_bw": lambda a, b: torch.xlogy(a, b),
    "rsub_bw": lambda a, b: b - a,
}


def _one(name: str, forward: str, low: float, high: float) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(low, high, 1, 1, 32, 64))
        grad, held_grad = bench.pair(bench.uniform(0.5, 2.0, 1, 1, 32, 64))
        held = held.clone().requires_grad_()
        named(forward)(held).backward(held_grad)
        return [(getattr(ttnn, name)(grad, x)[0], held.grad)]

    return body


def _two(name: str, forward: Any) -> Body:
    def body(bench: Bench) -> Any:
        (a, held_a), (b, held_b) = (bench.pair(bench.uniform(0.5, 3.0, 1, 1, 32, 64)) for _ in range(2))
        grad, held_grad = bench.pair(bench.uniform(0.5, 2.0, 1, 1, 32, 64))
        held = [held_a.clone().requires_grad_(), held_b.clone().requires_grad_()]
        forward(*held).backward(held_grad)
        got = getattr(ttnn, name)(grad, a, b)
        return [(one, want.grad) for one, want in zip(got, held, strict=False)]

    return body


for _line in ONE.split("\n")[1:-1]:
    _name, _forward, _low, _high = _line.split()
    backward.add(f"{_name}/bf16", _one(_name, _forward, float(_low), float(_high)), tolerance=0.05)
for _name, _forward_of_two in TWO.items():
    backward.add(f"{_name}/bf16", _two(_name, _forward_of_two), tolerance=0.06)


@backward.case("embedding_bw/rows", tolerance=0.05)
def _(bench: Bench) -> Any:
    places = bench.integers(0, 64, 1, 32)
    grad, held_grad = bench.pair(bench.normal(1, 1, 32, 64))
    weight = torch.zeros(64, 64, requires_grad=True)
    torch.nn.functional.embedding(places.long(), weight).backward(held_grad[0])
    got = ttnn.embedding_bw(bench.put(places, "uint32", rows=True), bench.put(torch.zeros(64, 64), rows=True), grad)
    return [(got, weight.grad)]


def _moreh_reduce(name: str, dim: int, want: Any, back: bool) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(0.0, 1.0, 2, 3, 64, 64))
        if not back:
            return [(getattr(ttnn, name)(x, dim=dim, keepdim=True), want(held, dim))]
        grad, held_grad = bench.pair(bench.normal(*[1 if place == dim else n for place, n in enumerate(held.shape)]))
        held = held.clone().requires_grad_()
        want(held, dim).backward(held_grad)
        got = (
            getattr(ttnn, f"{name}_backward")(grad, input_grad=None, dim=dim, keepdim=True, input=x)
            if name == "moreh_sum"
            else (ttnn.moreh_mean_backward(grad, dim=dim, keepdim=True, input_grad_shape=list(held.shape)))
        )
        return [(got, held.grad)]

    return body


for _dim in (0, 1, 2, 3):
    moreh.add(
        f"moreh_sum/{_dim}",
        _moreh_reduce("moreh_sum", _dim, lambda x, d: x.sum(d, keepdim=True), False),
        tolerance=0.03,
    )
    moreh.add(
        f"moreh_sum_backward/{_dim}",
        _moreh_reduce("moreh_sum", _dim, lambda x, d: x.sum(d, keepdim=True), True),
        tolerance=0.03,
    )
    moreh.add(
        f"moreh_mean/{_dim}",
        _moreh_reduce("moreh_mean", _dim, lambda x, d: x.mean(d, keepdim=True), False),
        tolerance=0.03,
    )
    moreh.add(
        f"moreh_mean_backward/{_dim}",
        _moreh_reduce("moreh_mean", _dim, lambda x, d: x.mean(d, keepdim=True), True),
        tolerance=0.03,
    )

SOFT: dict[str, Any] = {
    "moreh_softmax": lambda x, d: torch.softmax(x, d),
    "moreh_softmin": lambda x, d: torch.softmax(-x, d),
    "moreh_logsoftmax": lambda x, d: torch.log_softmax(x, d),
}


def _soft(name: str, dim: int, back: bool) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(-2.0, 2.0, 2, 2, 64, 64))
        if not back:
            return [(getattr(ttnn, name)(x, dim), SOFT[name](held, dim))]
        y, held_y = bench.pair(SOFT[name](held, dim))
        grad, held_grad = bench.pair(bench.normal(2, 2, 64, 64))
        if name == "moreh_logsoftmax":
            want = held_grad - held_y.exp() * held_grad.sum(dim, keepdim=True)
        else:
            want = held_y * (held_grad - (held_y * held_grad).sum(dim, keepdim=True))
            want = -want if name == "moreh_softmin" else want
        return [(getattr(ttnn, f"{name}_backward")(y, grad, dim), want)]

    return body


for _name in SOFT:
    for _dim in (1, 2, 3):
        moreh.add(f"{_name}/{_dim}", _soft(_name, _dim, False), tolerance=0.05)
        moreh.add(f"{_name}_backward/{_dim}", _soft(_name, _dim, True), tolerance=0.1)


@moreh.case("moreh_matmul/batches", tolerance=0.1)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(2, 2, 64, 32))
    b, held_b = bench.pair(bench.normal(2, 2, 32, 64))
    return [(ttnn.moreh_matmul(a, b), held_a @ held_b)]


@moreh.case("moreh_matmul/transposed", tolerance=0.1)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 32, 64))
    b, held_b = bench.pair(bench.normal(1, 1, 64, 32))
    got = ttnn.moreh_matmul(a, b, transpose_input=True, transpose_other=True)
    return [(got, held_a.transpose(-2, -1) @ held_b.transpose(-2, -1))]


@moreh.case("moreh_linear/bias", tolerance=0.1)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 1, 64, 96))
    w, held_w = bench.pair(bench.normal(64, 96) / 8)
    b, held_b = bench.pair(bench.normal(1, 64))
    return [(ttnn.moreh_linear(x, w, bias=b), held @ held_w.T + held_b)]


@moreh.case("moreh_bmm/3", tolerance=0.1)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(3, 64, 32))
    b, held_b = bench.pair(bench.normal(3, 32, 64))
    return [(ttnn.moreh_bmm(a, b), held_a @ held_b)]


@moreh.case("moreh_dot/128", tolerance=0.05)
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.uniform(0, 1, 1, 1, 1, 128))
    b, held_b = bench.pair(bench.uniform(0, 1, 1, 1, 1, 128))
    return [(ttnn.to_torch(ttnn.moreh_dot(a, b)).reshape(-1)[:1], (held_a * held_b).sum().reshape(1))]


@moreh.case("moreh_cumsum/1", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(0, 1, 2, 4, 32, 32))
    return [(ttnn.moreh_cumsum(x, 1), held.cumsum(1))]


@moreh.case("moreh_layer_norm/last", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 2, 64, 96))
    w, held_w = bench.pair(bench.uniform(0.5, 1.5, 1, 96))
    b, held_b = bench.pair(bench.normal(1, 96))
    got, _, _ = ttnn.moreh_layer_norm(x, 1, 1e-5, w, b)
    return [(got, torch.nn.functional.layer_norm(held, (96,), held_w[0], held_b[0]))]


@moreh.case("moreh_group_norm/2", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(2, 4, 32, 32))
    got, _, _ = ttnn.moreh_group_norm(x, 2, 1e-5)
    return [(got, torch.nn.functional.group_norm(held, 2))]


# The norm's root comes from the vector unit in bfloat16, and powers from a logarithm: a few percent at p = 1 and 3.
for _p in (1.0, 2.0, 3.0):
    for _dim in (2, 3):

        def _norm(bench: Bench, p: float = _p, dim: int = _dim) -> Any:
            x, held = bench.pair(bench.uniform(0.1, 1.0, 1, 2, 64, 64))
            return [(ttnn.moreh_norm(x, p, dim=dim, keepdim=True), held.norm(p, dim, keepdim=True))]

        moreh.add(f"moreh_norm/{_p:g} over {_dim}", _norm, tolerance=0.1)


@moreh.case("moreh_abs_pow/2", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 2, 32, 64))
    return [(ttnn.moreh_abs_pow(x, 2.0), held.abs() ** 2)]


@moreh.case("moreh_nll_loss/mean", tolerance=0.05)
def _(bench: Bench) -> Any:
    x, held = bench.pair(torch.log_softmax(bench.normal(32, 32), 1))
    target = bench.integers(0, 32, 32)
    placed = bench.put(target, "int32")
    got = ttnn.moreh_nll_loss(x, placed, "mean", divisor_tensor=bench.put(torch.zeros(1)), ignore_index=-100)
    return [(ttnn.to_torch(got).reshape(-1)[:1], torch.nn.functional.nll_loss(held, target.long()).reshape(1))]


@moreh.case("moreh_arange/fp32", tolerance=0.0)
def _(bench: Bench) -> Any:
    got = ttnn.moreh_arange(0, 64, 1, bench.device, dtype=ttnn.float32)
    return [(got, torch.arange(64))]


@moreh.case("moreh_full/bf16", tolerance=0.0)
def _(bench: Bench) -> Any:
    return [
        (
            ttnn.moreh_full([2, 32, 64], 1.5, bench.device, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT),
            torch.full((2, 32, 64), 1.5),
        )
    ]


@moreh.case("moreh_getitem/rows", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(8, 2, 32, 64), rows=True)
    places = torch.tensor([5, 0, 3], dtype=torch.int32)
    return [(ttnn.moreh_getitem(x, [bench.put(places, "int32", rows=True)], [0]), held[places.long()])]


@moreh.case("moreh_sgd/momentum", tolerance=0.03)
def _(bench: Bench) -> Any:
    p, held_p = bench.pair(bench.normal(1, 1, 32, 64))
    g, held_g = bench.pair(bench.normal(1, 1, 32, 64))
    m, held_m = bench.pair(bench.normal(1, 1, 32, 64))
    out, momentum = ttnn.moreh_sgd(p, g, m, None, None, 0.1, 0.9, 0.0, 0.01, False, momentum_initialized=True)
    step = 0.9 * held_m + held_g + 0.01 * held_p
    return [(out, held_p - 0.1 * step), (momentum, step)]


def _adam(name: str, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        values = [bench.normal(1, 1, 32, 64), bench.normal(1, 1, 32, 64), bench.normal(1, 1, 32, 64) / 4]
        values.append(bench.uniform(0.2, 1.0, 1, 1, 32, 64))
        placed = [bench.pair(v, dtype) for v in values]
        p, g, m, v = (held for _, held in placed)
        rate, decay, step = 0.1, 0.05, 3
        got = getattr(ttnn, name)(
            *(tensor for tensor, _ in placed),
            lr=rate,
            beta1=0.9,
            beta2=0.99,
            eps=1e-4,
            weight_decay=decay,
            step=step,
            amsgrad=False,
        )
        if name == "moreh_adamw":
            p = p * (1 - rate * decay)
        else:
            g = g + decay * p
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        want = p - rate * (m / (1 - 0.9**step)) / ((v / (1 - 0.99**step)).sqrt() + 1e-4)
        return [(got[0], want), (got[1], m), (got[2], v)]

    return body


for _name in ("moreh_adam", "moreh_adamw"):
    # bf16 loses 1 - beta2 ** step, a small difference of large numbers, and with it some percent of the step.
    moreh.add(f"{_name}/bf16", _adam(_name, "bfloat16"), tolerance=0.2)


@random.case("rand/range and mean", tolerance=0.05)
def _(bench: Bench) -> Any:
    """Random numbers are judged by where they lie and by their mean."""
    got = ttnn.to_torch(ttnn.rand((1, 1, 64, 128), device=bench.device, dtype=ttnn.float32, seed=7)).float()
    inside = ((got >= 0) & (got < 1)).all().reshape(1).float()
    return [(got.mean().reshape(1), torch.tensor([0.5])), (inside, torch.ones(1))]


@random.case("rand/seed repeats", tolerance=0.0)
def _(bench: Bench) -> Any:
    made = [ttnn.rand((1, 1, 32, 64), device=bench.device, dtype=ttnn.float32, seed=11) for _ in range(2)]
    return [(made[0], ttnn.to_torch(made[1]))]


@random.case("uniform/range and mean", tolerance=0.05)
def _(bench: Bench) -> Any:
    x = bench.put(torch.zeros(1, 1, 64, 128), "float32")
    ttnn.uniform(x, -1.0, 3.0, 5)
    got = ttnn.to_torch(x)
    inside = ((got >= -1) & (got < 3)).all().reshape(1).float()
    return [(got.mean().reshape(1) + 1, torch.tensor([2.0])), (inside, torch.ones(1))]


@random.case("bernoulli/share of ones", tolerance=0.05)
def _(bench: Bench) -> Any:
    got = ttnn.to_torch(ttnn.bernoulli(bench.put(torch.full((1, 1, 64, 128), 0.3)), seed=3)).float()
    only = ((got == 0) | (got == 1)).all().reshape(1).float()
    return [(got.mean().reshape(1) + 1, torch.tensor([1.3])), (only, torch.ones(1))]


@random.case("randn/mean and deviation", tolerance=0.06)
def _(bench: Bench) -> Any:
    got = ttnn.to_torch(ttnn.randn((1, 1, 64, 128), device=bench.device, dtype=ttnn.float32, seed=9)).float()
    return [(got.mean().reshape(1) + 1, torch.ones(1)), (got.std().reshape(1), torch.ones(1))]


@random.case("dropout/kept values are scaled", tolerance=0.02)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(1, 2, 1, 1, 64, 128))
    got = ttnn.to_torch(ttnn.experimental.dropout(x, probability=0.25, scale=1 / 0.75, seed=5)).float()
    kept = got != 0
    return [(got[kept], held[kept] / 0.75), (kept.float().mean().reshape(1), kept.float().mean().reshape(1))]
