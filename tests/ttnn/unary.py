"""Operations on one tensor, element by element."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, named, torch, ttnn

group = Group("unary")

FUNCTIONS = """
abs abs -5 5
acos acos -0.95 0.95
acosh acosh 1.1 5
asin asin -0.95 0.95
asinh asinh -5 5
atan atan -5 5
atanh atanh -0.9 0.9
cbrt :cbrt -5 5
ceil ceil -9 9
cos cos -3 3
cosh cosh -3 3
deg2rad deg2rad -90 90
digamma digamma 1 9
elu nn.functional.elu -3 3
erf erf -2 2
erfc erfc -1.5 1.5
erfinv erfinv -0.8 0.8
exp exp -4 4
exp2 exp2 -4 4
expm1 expm1 -3 3
floor floor -9 9
frac frac -9 9
gelu nn.functional.gelu -4 4
hardmish :hardmish -4 4
hardshrink nn.functional.hardshrink -2 2
hardsigmoid nn.functional.hardsigmoid -4 4
hardswish nn.functional.hardswish -4 4
hardtanh nn.functional.hardtanh -3 3
i0 special.i0 -4 4
i1 special.i1 -4 4
lgamma lgamma 0.5 9
log log 0.1 9
log10 log10 0.1 9
log1p log1p 0 9
log2 log2 0.1 9
log_sigmoid nn.functional.logsigmoid -4 4
mish nn.functional.mish -4 4
multigammaln :multigammaln 2.5 9
neg neg -5 5
rad2deg rad2deg -3 3
reciprocal reciprocal 0.3 5
relu nn.functional.relu -4 4
relu6 nn.functional.relu6 -4 9
round round -9 9
rsqrt rsqrt 0.2 9
selu nn.functional.selu -3 3
sigmoid sigmoid -5 5
sigmoid_accurate sigmoid -5 5
sign sign -3 3
silu nn.functional.silu -5 5
sin sin -3 3
sinh sinh -3 3
softplus nn.functional.softplus -4 4
softshrink nn.functional.softshrink -2 2
softsign nn.functional.softsign -5 5
sqrt sqrt 0 9
square square -4 4
swish nn.functional.silu -5 5
tan tan -1.2 1.2
tanh tanh -3 3
tanhshrink nn.functional.tanhshrink -3 3
trunc trunc -9 9
tril tril -3 3
triu triu -3 3
clone clone -3 3
identity clone -3 3
"""
OTHERS: dict[str, Any] = {
    ":cbrt": lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3),
    ":hardmish": lambda x: x * torch.clamp(0.5 * x + 1.0, 0.0, 1.0),  # ttnn's own definition
    ":multigammaln": lambda x: torch.special.multigammaln(x, 4),
}
PREDICATES = ["eqz", "nez", "gtz", "ltz", "gez", "lez", "logical_not", "signbit"]
TORCH_PREDICATES = {
    "eqz": lambda x: x == 0,
    "nez": lambda x: x != 0,
    "gtz": lambda x: x > 0,
    "ltz": lambda x: x < 0,
    "gez": lambda x: x >= 0,
    "lez": lambda x: x <= 0,
    "logical_not": lambda x: x == 0,
    "signbit": lambda x: torch.signbit(x),
}
SPECIALS = ["isfinite", "isinf", "isnan", "isneginf", "isposinf"]

WITH_ARGUMENTS: list[tuple[str, str, Any, Any]] = [
    ("clamp", "between", lambda x: ttnn.clamp(x, -1.0, 2.0), lambda x: torch.clamp(x, -1.0, 2.0)),
    ("clip", "between", lambda x: ttnn.clip(x, -2.0, 0.5), lambda x: torch.clip(x, -2.0, 0.5)),
    ("leaky_relu", "0.1", lambda x: ttnn.leaky_relu(x, 0.1), lambda x: torch.nn.functional.leaky_relu(x, 0.1)),
    ("celu", "0.7", lambda x: ttnn.celu(x, alpha=0.7), lambda x: torch.nn.functional.celu(x, 0.7)),
    ("elu", "2", lambda x: ttnn.elu(x, alpha=2.0), lambda x: torch.nn.functional.elu(x, 2.0)),
    ("relu_max", "1.5", lambda x: ttnn.relu_max(x, 1.5), lambda x: torch.clamp(x, 0.0, 1.5)),
    ("relu_min", "0.5", lambda x: ttnn.relu_min(x, 0.5), lambda x: torch.clamp(x, min=0.5)),
    ("heaviside", "0.5", lambda x: ttnn.heaviside(x, 0.5), lambda x: torch.heaviside(x, torch.tensor(0.5))),
    ("prelu", "0.2", lambda x: ttnn.prelu(x, 0.2), lambda x: torch.nn.functional.prelu(x, torch.tensor(0.2))),
    ("threshold", "1 5", lambda x: ttnn.threshold(x, 1.0, 5.0), lambda x: torch.nn.functional.threshold(x, 1.0, 5.0)),
    ("fill", "2.5", lambda x: ttnn.fill(x, 2.5), lambda x: torch.full_like(x, 2.5)),
    ("pow", "2", lambda x: ttnn.pow(x, 2), lambda x: x**2),
    ("pow", "3", lambda x: ttnn.pow(x, 3), lambda x: x**3),
    ("rdiv", "3", lambda x: ttnn.rdiv(ttnn.add(ttnn.abs(x), 1.0), 3.0), lambda x: 3.0 / (x.abs() + 1)),
    ("rsub", "2", lambda x: ttnn.rsub(x, 2.0), lambda x: 2.0 - x),
    ("rpow", "2", lambda x: ttnn.rpow(x, 2.0), lambda x: 2.0**x),
    (
        "softplus",
        "2 10",
        lambda x: ttnn.softplus(x, beta=2.0, threshold=10.0),
        lambda x: torch.nn.functional.softplus(x, 2.0, 10.0),
    ),
    (
        "logit",
        "eps",
        lambda x: ttnn.logit(ttnn.sigmoid(x), eps=1e-3),
        lambda x: torch.logit(torch.sigmoid(x), eps=1e-3),
    ),
    ("gelu", "fast", lambda x: ttnn.gelu(x, fast_and_approximate_mode=True), lambda x: torch.nn.functional.gelu(x)),
    ("exp", "fast", lambda x: ttnn.exp(x, fast_and_approximate_mode=True), lambda x: torch.exp(x)),
    ("round", "1", lambda x: ttnn.round(x, decimals=1), lambda x: torch.round(x, decimals=1)),
    ("polyval", "4", lambda x: ttnn.polyval(x, [1.0, -2.0, 0.5, 3.0]), lambda x: ((x - 2.0) * x + 0.5) * x + 3.0),
    ("glu", "last", lambda x: ttnn.glu(x, -1), lambda x: torch.nn.functional.glu(x, -1)),
    ("geglu", "last", lambda x: ttnn.geglu(x, -1), lambda x: _halves(x)[0] * torch.nn.functional.gelu(_halves(x)[1])),
    ("reglu", "last", lambda x: ttnn.reglu(x, -1), lambda x: _halves(x)[0] * torch.relu(_halves(x)[1])),
    ("swiglu", "last", lambda x: ttnn.swiglu(x, -1), lambda x: _halves(x)[0] * torch.nn.functional.silu(_halves(x)[1])),
    ("unary_chain", "relu exp", lambda x: _chain(x), lambda x: torch.exp(torch.relu(x))),
    ("normalize_hw", "", lambda x: ttnn.normalize_hw(x), lambda x: _normalized(x, (-2, -1))),
    ("normalize_global", "", lambda x: ttnn.normalize_global(x), lambda x: _normalized(x, (0, 1, 2, 3))),
    (
        "polygamma",
        "2",
        lambda x: ttnn.polygamma(ttnn.add(ttnn.abs(x), 1.5), 2),
        lambda x: torch.polygamma(2, x.abs() + 1.5),
    ),
]
INTEGERS: list[tuple[str, Any, Any]] = [
    ("abs", lambda x: ttnn.abs(x), lambda x: x.abs()),
    ("neg", lambda x: ttnn.neg(x), lambda x: -x),
    ("relu", lambda x: ttnn.relu(x), lambda x: x.clamp(min=0)),
    ("square", lambda x: ttnn.square(x), lambda x: x * x),
    ("bitwise_not", lambda x: ttnn.bitwise_not(x), lambda x: ~x),
    ("eqz", lambda x: ttnn.eqz(x), lambda x: (x == 0).int()),
    ("nez", lambda x: ttnn.nez(x), lambda x: (x != 0).int()),
    ("gtz", lambda x: ttnn.gtz(x), lambda x: (x > 0).int()),
    ("ltz", lambda x: ttnn.ltz(x), lambda x: (x < 0).int()),
    ("logical_not", lambda x: ttnn.logical_not(x), lambda x: (x == 0).int()),
    ("clamp", lambda x: ttnn.clamp(x, -100, 50), lambda x: x.clamp(-100, 50)),
    ("bitwise_left_shift", lambda x: ttnn.bitwise_left_shift(x, 3), lambda x: x << 3),
    ("bitwise_right_shift", lambda x: ttnn.bitwise_right_shift(x, 2), lambda x: x >> 2),
]
FORMATS = ("float32", "bfloat16", "bfloat8_b", "bfloat4_b", "int32", "uint32", "uint16")


def _halves(x: Any) -> Any:
    return torch.chunk(x, 2, -1)


def _chain(x: Any) -> Any:
    steps = [ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU), ttnn.UnaryWithParam(ttnn.UnaryOpType.EXP, 0.0)]
    return ttnn.unary_chain(x, steps)


def _normalized(x: Any, dims: tuple[int, ...]) -> Any:
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True, unbiased=False)


def _function(name: str, want: str, low: float, high: float, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(low, high, 1, 1, 64, 96), dtype)
        return [(getattr(ttnn, name)(x), OTHERS[want](held) if want in OTHERS else named(want)(held))]

    return body


def _with_arguments(got: Any, want: Any, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(-3.0, 3.0, 1, 2, 32, 128), dtype)
        return [(got(x), want(held))]

    return body


def _predicate(name: str, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        values = bench.uniform(-2.0, 2.0, 1, 1, 32, 64)
        values[..., ::5] = 0.0
        x, held = bench.pair(values, dtype)
        return [(getattr(ttnn, name)(x), TORCH_PREDICATES[name](held).float())]

    return body


def _special(name: str, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        values = bench.normal(1, 1, 32, 64)
        values[..., ::7], values[..., 1::7], values[..., 2::7] = float("inf"), -float("inf"), float("nan")
        x = bench.put(values, dtype)
        return [(getattr(ttnn, name)(x), getattr(torch, name)(values).float())]

    return body


def _integer(got: Any, want: Any) -> Body:
    def body(bench: Bench) -> Any:
        values = bench.integers(-1000, 1000, 1, 1, 32, 96)
        values[..., ::6] = 0
        return [(got(bench.put(values, "int32")), want(values))]

    return body


def _typecast(source: str, target: str) -> Body:
    def body(bench: Bench) -> Any:
        values = bench.integers(0, 250, 1, 1, 64, 64)
        x, held = bench.pair(values if source.startswith(("int", "uint")) else values.float(), source)
        return [(ttnn.typecast(x, getattr(ttnn, target)), held.double())]

    return body


LOOSE = {
    # What ttnn computes is an approximation of this size, on every device.
    "digamma": 0.05,
    "lgamma": 0.05,
    "multigammaln": 0.05,
    "polygamma": 0.05,
    "erfinv": 0.05,
    "tan": 0.05,
    "i1": 0.05,
    "exp fast": 0.1,
    "normalize_hw": 0.02,
    "gelu fast": 0.1,
    "logit": 0.05,
}

for _line in FUNCTIONS.split("\n")[1:-1]:
    _name, _want, _low, _high = _line.split()
    for _dtype in ("bfloat16", "float32"):
        group.add(
            f"{_name}/{SHORT[_dtype]}",
            _function(_name, _want, float(_low), float(_high), _dtype),
            _dtype,
            LOOSE.get(_name),
        )
for _name in ["abs", "exp", "gelu", "relu", "sigmoid", "sqrt", "tanh", "silu", "square", "neg", "reciprocal", "cos"]:
    _row = next(line.split() for line in FUNCTIONS.split("\n") if line.startswith(f"{_name} "))
    for _dtype in ("bfloat8_b", "bfloat4_b")[: 2 if _name in ("abs", "relu", "sigmoid", "neg") else 1]:
        group.add(f"{_name}/{SHORT[_dtype]}", _function(_name, _row[1], float(_row[2]), float(_row[3]), _dtype), _dtype)
for _name, _what, _got, _want in WITH_ARGUMENTS:
    for _dtype in ("bfloat16", "float32"):
        _loose = LOOSE.get(f"{_name} {_what}") or LOOSE.get(_name)
        group.add(
            f"{_name}/{(_what + ' ').lstrip()}{SHORT[_dtype]}", _with_arguments(_got, _want, _dtype), _dtype, _loose
        )
for _name in PREDICATES:
    for _dtype in ("bfloat16", "float32"):
        group.add(f"{_name}/{SHORT[_dtype]}", _predicate(_name, _dtype), tolerance=0.0)
for _name in SPECIALS:
    for _dtype in ("bfloat16", "float32"):
        group.add(f"{_name}/{SHORT[_dtype]}", _special(_name, _dtype), tolerance=0.0)
for _name, _got, _want in INTEGERS:
    group.add(f"{_name}/int32", _integer(_got, _want), "int32")
for _source in FORMATS:
    for _target in FORMATS:
        if _source != _target and "bfloat4_b" not in (_source, _target):
            # Shared exponents of a block of 16 numbers below 250 leave steps of 2 to bfp8.
            group.add(
                f"typecast/{_source} to {_target}",
                _typecast(_source, _target),
                tolerance=0.06 if _target == "bfloat8_b" else 0.0,
            )
