"""The example programs give the right numbers, whatever the shapes and choices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bhemu import Result, load_program, run_program
from bhemu.machine.compiler import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="whole programs take minutes as plain Python")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BF16_ULP = 2.0**-8
"""Half a unit of the last of BF16's 8 significant bits, relative to the value."""


def run(name: str, inputs: dict[str, Any] | None = None, **settings: str) -> Result:
    return run_program(load_program(EXAMPLES / f"{name}.py"), inputs, settings=settings)


def bf16(values: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Rounded to BF16, as float32."""
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def normal(shape: tuple[int, ...], seed: int) -> np.ndarray:  # type: ignore[type-arg]
    return bf16(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("shape", [(32, 32), (96, 64), (32, 320)])
def test_datacopy_is_exact(shape: tuple[int, int]) -> None:
    a = normal(shape, 1)
    a[0, :4] = bf16(np.array([0.0, 1e-30, -3e38, 1.0]))
    np.testing.assert_array_equal(run("datacopy", {"a": a}).outputs["c"].astype(np.float32), a)


def test_add1_is_float32_plus_one_cut_to_bf16_bit_for_bit() -> None:
    rng = np.random.default_rng(2)
    bits = rng.integers(0, 1 << 16, (320, 32)).astype(np.uint32)
    exponent = bits >> 7 & 0xFF
    bits[(exponent == 0) | (exponent == 255)] = 0x3F80  # numbers only; what pack does to NaN and denormals is P6
    a = (bits << 16).view(np.float32)
    expected = (a + np.float32(1)).view(np.uint32) >> 16
    got = run("add1", {"a": a}).outputs["c"].astype(np.float32).view(np.uint32) >> 16
    expected[expected & 0x7F80 == 0] = 0  # a denormal sum becomes +0
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_eltwise_is_right_to_the_last_bit_of_bf16(op: str) -> None:
    a, b = normal((64, 96), 3), normal((64, 96), 4)
    exact = {"add": a.astype(np.float64) + b, "sub": a.astype(np.float64) - b, "mul": a.astype(np.float64) * b}[op]
    got = run("eltwise", {"a": a, "b": b}, op=op).outputs["c"].astype(np.float64)
    # Sums are aligned to the larger operand before they are rounded (F11), hence the operands in the bound; a product
    # is rounded in Dst after each of its four phases.
    scale = np.maximum(np.abs(a), np.abs(b)) if op != "mul" else 2 * np.abs(exact)
    assert (np.abs(got - exact) <= 2 * BF16_ULP * scale + 1e-38).all()


@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3", "HiFi4"])
@pytest.mark.parametrize("dst", ["fp32", "bf16"])
def test_matmul_in_every_fidelity(fidelity: str, dst: str) -> None:
    m, k, n = 64, 96, 32
    a, b = normal((m, k), 5), normal((k, n), 6)
    result = run("matmul", {"a": a, "b": b}, fidelity=fidelity, dst=dst)
    exact = a.astype(np.float64) @ b
    error = np.abs(result.outputs["c"].astype(np.float64) - exact)
    # LoFi keeps 5 bits of one factor, HiFi2 all of it, HiFi3 and 4 all of both (F8).
    lost = {"LoFi": 2.0**-4, "HiFi2": 2.0**-6, "HiFi3": 2.0**-7, "HiFi4": 0.0}[fidelity]
    terms = np.abs(a).astype(np.float64) @ np.abs(b)
    steps = k / 16 if dst == "bf16" else 0  # each MVMUL rounds a BF16 Dst
    assert (error <= (lost + (1 + steps) * BF16_ULP) * terms).all()
    assert result.report.tiles == 2
    phases = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}[fidelity]
    assert result.report.units["matrix"]["MVMUL"] == 16 * phases * (m * k * n) // 32**3


def test_fidelity_improves_the_result() -> None:
    errors = [run("matmul", fidelity=f).report.errors["c"].absolute for f in ("LoFi", "HiFi2", "HiFi4")]
    assert errors[0] > errors[1] > errors[2]


def test_two_runs_give_the_same_bits() -> None:
    first, second = run("matmul"), run("matmul")
    np.testing.assert_array_equal(first.outputs["c"], second.outputs["c"])
    assert first.report.cycles == second.report.cycles
