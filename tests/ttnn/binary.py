"""Operations on two or three tensors, element by element: also broadcasts, scalars, activations, in place."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, torch, ttnn

group = Group("binary")

TWO: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "maximum": lambda a, b: torch.maximum(a, b),
    "minimum": lambda a, b: torch.minimum(a, b),
    "pow": lambda a, b: torch.pow(a, b),
    "atan2": lambda a, b: torch.atan2(a, b),
    "hypot": lambda a, b: torch.hypot(a, b),
    "fmod": lambda a, b: torch.fmod(a, b),
    "remainder": lambda a, b: torch.remainder(a, b),
    "floor_div": lambda a, b: torch.floor(a / b),
    "div_no_nan": lambda a, b: a / b,
    "squared_difference": lambda a, b: (a - b) ** 2,
    "logaddexp": lambda a, b: torch.logaddexp(a, b),
    "logaddexp2": lambda a, b: torch.logaddexp2(a, b),
    "ldexp": lambda a, b: a * 2.0**b,
    "xlogy": lambda a, b: torch.xlogy(a, b),
    "nextafter": lambda a, b: torch.where(a < b, a + 2**-20, a - 2**-20),
    "bias_gelu": lambda a, b: torch.nn.functional.gelu(a + b),
    "prelu": lambda a, b: torch.where(a < 0, a * b.reshape(-1, 1, 1), a),
    "rsub": lambda a, b: b - a,
    "gt": lambda a, b: (a > b).float(),
    "lt": lambda a, b: (a < b).float(),
    "ge": lambda a, b: (a >= b).float(),
    "le": lambda a, b: (a <= b).float(),
    "eq": lambda a, b: (a == b).float(),
    "ne": lambda a, b: (a != b).float(),
    "logical_and": lambda a, b: torch.logical_and(a, b).float(),
    "logical_or": lambda a, b: torch.logical_or(a, b).float(),
    "logical_xor": lambda a, b: torch.logical_xor(a, b).float(),
    "isclose": lambda a, b: torch.isclose(a, b).float(),
}
POSITIVE = {"pow", "xlogy", "fmod", "remainder", "floor_div", "div", "div_no_nan"}
"""Operations whose operands are from 0.5 to 3: there a rounded quotient or logarithm says something."""
COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne")
EXACT = {*COMPARISONS, "logical_and", "logical_or", "logical_xor", "isclose", "maximum", "minimum"}
LOOSE = {"pow": 0.05, "floor_div": 1.0, "fmod": 3.0, "remainder": 3.0, "atan2": 0.03}
"""A quotient that is nearly whole falls on either side: floor_div is then off by one, a remainder by the divisor."""
FROM_SHAPES = {
    "row": (1, 1, 1, 96),
    "column": (1, 1, 64, 1),
    "scalar tile": (1, 1, 1, 1),
    "batch": (1, 1, 64, 96),
    "batch and row": (2, 1, 1, 96),
    "both": (2, 3, 64, 1),
}
SCALARS: dict[str, tuple[Any, Any]] = {
    "add": (lambda x: ttnn.add(x, 1.5), lambda x: x + 1.5),
    "sub": (lambda x: ttnn.sub(x, 0.75), lambda x: x - 0.75),
    "mul": (lambda x: ttnn.mul(x, -2.5), lambda x: x * -2.5),
    "div": (lambda x: ttnn.div(x, 3.0), lambda x: x / 3.0),
    "gt": (lambda x: ttnn.gt(x, 0.5), lambda x: (x > 0.5).float()),
    "le": (lambda x: ttnn.le(x, 0.5), lambda x: (x <= 0.5).float()),
    "maximum": (lambda x: ttnn.maximum(x, 0.5), lambda x: x.clamp(min=0.5)),
    "minimum": (lambda x: ttnn.minimum(x, 0.5), lambda x: x.clamp(max=0.5)),
    "fmod": (lambda x: ttnn.fmod(x, 1.0), lambda x: torch.fmod(x, 1.0)),
    "remainder": (lambda x: ttnn.remainder(x, 1.0), lambda x: torch.remainder(x, 1.0)),
}
ON_INTEGERS: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": lambda a, b: torch.maximum(a, b),
    "minimum": lambda a, b: torch.minimum(a, b),
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "gcd": lambda a, b: torch.gcd(a, b),
    "lcm": lambda a, b: torch.lcm(a, b),
    "gt": lambda a, b: (a > b).int(),
    "lt": lambda a, b: (a < b).int(),
    "ge": lambda a, b: (a >= b).int(),
    "le": lambda a, b: (a <= b).int(),
    "eq": lambda a, b: (a == b).int(),
    "ne": lambda a, b: (a != b).int(),
    "logical_and": lambda a, b: torch.logical_and(a, b).int(),
    "logical_or": lambda a, b: torch.logical_or(a, b).int(),
    "logical_xor": lambda a, b: torch.logical_xor(a, b).int(),
    "squared_difference": lambda a, b: (a - b) ** 2,
}
SHIFTS: dict[str, Any] = {
    "bitwise_left_shift": lambda a, b: a << b,
    "logical_left_shift": lambda a, b: a << b,
    "bitwise_right_shift": lambda a, b: a >> b,
    "logical_right_shift": lambda a, b: ((a.long() & 0xFFFFFFFF) >> b).int(),
}
ACTIVATIONS: dict[str, Any] = {
    "RELU": lambda x: torch.relu(x),
    "GELU": lambda x: torch.nn.functional.gelu(x),
    "SILU": lambda x: torch.nn.functional.silu(x),
    "SIGMOID": lambda x: torch.sigmoid(x),
    "TANH": lambda x: torch.tanh(x),
    "SQUARE": lambda x: x * x,
}
IN_PLACE = [
    "add_",
    "sub_",
    "mul_",
    "div_",
    "rsub_",
    "squared_difference_",
    "gt_",
    "lt_",
    "eq_",
    "logical_and_",
    "logical_or_",
    "bias_gelu_",
]


def _operands(bench: Bench, name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]], dtype: str) -> Any:
    made = []
    for shape in shapes:
        values = bench.uniform(0.5, 3.0, *shape) if name.rstrip("_") in POSITIVE else bench.uniform(-3.0, 3.0, *shape)
        if name.rstrip("_") in ("ldexp", "eq", "ne", "logical_and", "logical_or", "logical_xor", "isclose"):
            values = values.round()
        made.append(bench.pair(values, dtype))
    return made


def _two(name: str, dtype: str, shape: tuple[int, ...] = (1, 2, 64, 96), other: tuple[int, ...] | None = None) -> Body:
    def body(bench: Bench) -> Any:
        (a, held_a), (b, held_b) = _operands(bench, name, (shape, other or shape), dtype)
        return [(getattr(ttnn, name)(a, b), TWO[name.rstrip("_")](held_a, held_b))]

    return body


def _in_place(name: str, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        (a, held_a), (b, held_b) = _operands(bench, name, ((1, 1, 64, 64),) * 2, dtype)
        getattr(ttnn, name)(a, b)
        return [(a, TWO[name.rstrip("_")](held_a, held_b))]

    return body


def _scalar(name: str, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held = bench.pair(bench.uniform(0.1, 3.0, 1, 1, 64, 64), dtype)
        got, want = SCALARS[name]
        return [(got(x), want(held))]

    return body


def _integers(name: str, dtype: str, low: int, high: int) -> Body:
    def body(bench: Bench) -> Any:
        a, b = (bench.integers(low, high, 1, 1, 64, 64) for _ in range(2))
        b[..., ::4] = a[..., ::4]
        want = ON_INTEGERS[name](a, b)
        if dtype.startswith("uint"):
            want = want.long() & (1 << int(dtype[4:])) - 1  # a difference below 0 wraps
        return [(getattr(ttnn, name)(bench.put(a, dtype), bench.put(b, dtype)), want)]

    return body


def _shift(name: str) -> Body:
    def body(bench: Bench) -> Any:
        a, b = bench.integers(-(1 << 30), 1 << 30, 1, 1, 32, 64), bench.integers(0, 31, 1, 1, 32, 64)
        return [(getattr(ttnn, name)(bench.put(a, "int32"), bench.put(b, "int32")), SHIFTS[name](a, b))]

    return body


def _activation(name: str, activation: str) -> Body:
    def body(bench: Bench) -> Any:
        (a, held_a), (b, held_b) = _operands(bench, name, ((1, 1, 64, 64),) * 2, "bfloat16")
        chosen = [ttnn.UnaryWithParam(getattr(ttnn.UnaryOpType, activation))]
        return [(getattr(ttnn, name)(a, b, activations=chosen), ACTIVATIONS[activation](TWO[name](held_a, held_b)))]

    return body


for _name in TWO:
    for _dtype in ("bfloat16", "float32"):
        if _name == "nextafter" or (_name == "bias_gelu" and _dtype == "float32"):
            continue
        _body = _two(_name, _dtype, other=(2,)) if _name == "prelu" else _two(_name, _dtype)  # a slope a channel
        group.add(f"{_name}/{SHORT[_dtype]}", _body, _dtype, 0.0 if _name in EXACT else LOOSE.get(_name))
for _name in ["add", "sub", "mul"]:
    for _dtype in ("bfloat8_b", "bfloat4_b"):
        group.add(f"{_name}/{SHORT[_dtype]}", _two(_name, _dtype), _dtype)
for _name in ["add", "sub", "mul", "div", "maximum", "gt"]:
    for _what, _shape in FROM_SHAPES.items():
        group.add(
            f"{_name}/broadcast {_what}",
            _two(_name, "bfloat16", (2, 3, 64, 96), _shape),
            tolerance=0.0 if _name in EXACT else None,
        )
for _name in ["add", "mul"]:
    group.add(f"{_name}/broadcast first fp32", _two(_name, "float32", (1, 1, 1, 96), (2, 3, 64, 96)), "float32")
    group.add(f"{_name}/odd shape", _two(_name, "bfloat16", (3, 45, 70), (3, 45, 70)))
for _name in SCALARS:
    for _dtype in ("bfloat16", "float32"):
        _exact = _name in ("gt", "le", "maximum", "minimum")
        _loose = 2.0 if _name in ("fmod", "remainder") else None
        group.add(f"{_name}/scalar {SHORT[_dtype]}", _scalar(_name, _dtype), _dtype, 0.0 if _exact else _loose)
for _name in ON_INTEGERS:
    _positive = _name in ("gcd", "lcm")
    group.add(f"{_name}/int32", _integers(_name, "int32", 1 if _positive else -3000, 3000), "int32")
for _name in ["add", "sub", "mul", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "lt", "gt", "maximum", "minimum"]:
    group.add(f"{_name}/uint32", _integers(_name, "uint32", 0, 2000), "uint32")
for _name in ["add", "bitwise_and", "bitwise_xor", "eq"]:
    group.add(f"{_name}/uint16", _integers(_name, "uint16", 0, 200), "uint16")
for _name in SHIFTS:
    group.add(f"{_name}/int32", _shift(_name), "int32")
for _name in ("add", "mul"):
    for _activation_name in ACTIVATIONS:
        group.add(f"{_name}/then {_activation_name.lower()}", _activation(_name, _activation_name), tolerance=0.03)
for _name in IN_PLACE:
    group.add(f"{_name}/bf16", _in_place(_name, "bfloat16"), tolerance=0.0 if _name.rstrip("_") in EXACT else None)


def _three(name: str, want: Any, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        made = [bench.pair(bench.uniform(0.5, 3.0, 1, 1, 64, 64), dtype) for _ in range(3)]
        tensors, held = [m[0] for m in made], [m[1] for m in made]
        return [(getattr(ttnn, name)(*tensors, **({"value": 0.5} if name.startswith("addc") else {})), want(*held))]

    return body


for _name, _want in {
    "addcmul": lambda a, b, c: a + 0.5 * b * c,
    "addcdiv": lambda a, b, c: a + 0.5 * b / c,
    "lerp": lambda a, b, c: torch.lerp(a, b, c),
    "mac": lambda a, b, c: a * b + c,
}.items():
    for _dtype in ("bfloat16", "float32"):
        group.add(f"{_name}/{SHORT[_dtype]}", _three(_name, _want, _dtype), _dtype)


def _where(dtype: str, kind: str) -> Body:
    def body(bench: Bench) -> Any:
        shape = (1, 2, 32, 64)
        chosen = (bench.uniform(0, 1, *shape) > 0.5).float()
        a, held_a = bench.pair(bench.normal(*shape), dtype)
        b, held_b = bench.pair(bench.normal(*shape), dtype)
        if kind == "scalars":
            return [(ttnn.where(bench.put(chosen, dtype), 1.5, -2.0), torch.where(chosen != 0, 1.5, -2.0))]
        if kind == "scalar":
            return [
                (ttnn.where(bench.put(chosen, dtype), a, -2.0), torch.where(chosen != 0, held_a, torch.tensor(-2.0)))
            ]
        return [(ttnn.where(bench.put(chosen, dtype), a, b), torch.where(chosen != 0, held_a, held_b))]

    return body


for _kind in ("tensors", "scalar", "scalars"):
    for _dtype in ("bfloat16", "float32"):
        group.add(f"where/{_kind} {SHORT[_dtype]}", _where(_dtype, _kind), tolerance=0.0)


@group.case("addalpha/bf16")
def _(bench: Bench) -> Any:
    (a, held_a), (b, held_b) = (bench.pair(bench.normal(1, 1, 32, 64)) for _ in range(2))
    return [(ttnn.addalpha(a, b, 0.5), held_a + 0.5 * held_b)]


@group.case("subalpha/bf16")
def _(bench: Bench) -> Any:
    (a, held_a), (b, held_b) = (bench.pair(bench.normal(1, 1, 32, 64)) for _ in range(2))
    return [(ttnn.subalpha(a, b, 0.5), held_a - 0.5 * held_b)]


@group.case("outer/bf16")
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 64, 1))
    b, held_b = bench.pair(bench.normal(1, 1, 1, 96))
    return [(ttnn.outer(a, b), held_a * held_b)]


@group.case("add/formats mixed", "bfloat16")
def _(bench: Bench) -> Any:
    a, held_a = bench.pair(bench.normal(1, 1, 64, 64), "bfloat8_b")
    b, held_b = bench.pair(bench.normal(1, 1, 64, 64), "bfloat16")
    return [(ttnn.add(a, b, dtype=ttnn.bfloat16), held_a + held_b)]


@group.case("mul/output in fp32", "float32")
def _(bench: Bench) -> Any:
    (a, held_a), (b, held_b) = (bench.pair(bench.normal(1, 1, 64, 64), "float32") for _ in range(2))
    return [(ttnn.mul(a, b, dtype=ttnn.float32), held_a * held_b)]


@group.case("add/preallocated output")
def _(bench: Bench) -> Any:
    (a, held_a), (b, held_b) = (bench.pair(bench.normal(1, 1, 64, 64)) for _ in range(2))
    output = bench.put(bench.normal(1, 1, 64, 64))
    ttnn.add(a, b, output_tensor=output)
    return [(output, held_a + held_b)]


@group.case("quantize/there and back", "float32", 0.03)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.uniform(-4, 4, 1, 1, 32, 64), "float32")
    return [(ttnn.dequantize(ttnn.quantize(x, 0.05, 3), 0.05, 3), (held / 0.05).round() * 0.05)]
