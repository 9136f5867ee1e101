"""`bhemu.numerics` as a library: shapes, blocks, formats, errors, and that examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bhemu
from bhemu import numerics
from bhemu.errors import ConfigurationError, FormatError, MissingSpecification, UndefinedBehavior
from bhemu.formats import DataFormat, bfp, floats

RNG = np.random.default_rng(2024)


def normal(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


def test_numerics_is_an_attribute_of_the_package() -> None:
    assert bhemu.numerics is numerics


@pytest.mark.parametrize("name", ["conversion", "elementwise", "matrix", "vector"])
def test_examples_in_docstrings_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"bhemu.numerics.{name}"))
    assert result.attempted > 4
    assert not result.failed


def test_the_example_of_the_package_runs() -> None:
    result = doctest.testmod(numerics)
    assert result.attempted
    assert not result.failed


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dst_format", "fidelity"), [("fp32", "LoFi"), ("bf16", "HiFi2"), ("fp32", "HiFi4")])
def test_a_product_of_any_shape_is_made_of_16_deep_products_in_order(dst_format: str, fidelity: str) -> None:
    """Accumulating a slice of K at a time gives the same bits as all of K at once (math F13)."""
    left, right, dst = normal(11, 70), normal(70, 21), normal(11, 21)
    dst = dst.astype(ml_dtypes.bfloat16).astype(np.float32)
    whole = numerics.mvmul(left, right, dst, fidelity, dst_format, depth=16)
    parts = dst
    for k in range(0, 70, 16):
        parts = numerics.mvmul(left[:, k : k + 16], right[k : k + 16], parts, fidelity, dst_format)
    np.testing.assert_array_equal(whole, parts)


def test_depth_decides_when_the_fidelity_phase_changes() -> None:
    left, right = normal(8, 64), normal(64, 16)
    by_hand: Any = None
    for k in (0, 32):
        for phase in (0, 1):
            for step in (k, k + 16):
                part = slice(step, step + 16)
                by_hand = numerics.mvmul(left[:, part], right[part], by_hand, [phase], "bf16")
    np.testing.assert_array_equal(numerics.mvmul(left, right, None, "HiFi2", "bf16"), by_hand)
    assert (numerics.mvmul(left, right, None, "HiFi2", "bf16", depth=16) != by_hand).any()


def test_large_products_are_cut_into_calls_without_a_seam() -> None:
    left, right = normal(1030, 530), normal(530, 17)
    whole = numerics.mvmul(left, right, None, "HiFi4")
    assert whole.shape == (1030, 17)
    rows = [0, 511, 512, 1023, 1024, 1029]
    np.testing.assert_array_equal(whole[rows], numerics.mvmul(left[rows], right, None, "HiFi4"))


def test_small_integers_multiply_exactly_in_every_float_format() -> None:
    left, right = RNG.integers(-3, 4, (24, 32)), RNG.integers(-3, 4, (32, 24))
    for source, dst in (("bf16", "fp32"), ("tf32", "bf16"), ("fp16", "fp16"), ("fp16", "fp32")):
        np.testing.assert_array_equal(
            numerics.mvmul(left, right, None, "LoFi", dst, source_format=source), left @ right
        )


def test_int8_products_are_exact_in_hifi4_and_saturate() -> None:
    left, right = RNG.integers(-127, 128, (9, 48)), RNG.integers(-127, 128, (48, 5))
    got = numerics.mvmul(left, right, None, "HiFi4", source_format="int8")
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, left @ right)
    top = 2**31 - 1
    assert numerics.mvmul([[64]], [[96]], [[top - 5]], source_format="int8")[0, 0] == top


@pytest.mark.plain
def test_products_maxima_and_conversions_of_a_few_values() -> None:
    left, right = np.full((2, 17), 1.5, np.float32), np.ones((17, 3), np.float32)
    np.testing.assert_array_equal(numerics.mvmul(left, right, 1.0, "HiFi2", "bf16"), np.full((2, 3), 26.5))
    np.testing.assert_array_equal(numerics.gmpool([[1.0, -3.0], [2.0, -4.0]]), [2.0, -3.0])
    packed = numerics.pack_convert(np.full(32, 0x3F800000, np.uint32), "bfp4")
    cells = numerics.unpack_convert(packed.bits, "bfp4", exponents=packed.exponents)
    np.testing.assert_array_equal(numerics.src_values(cells, "bf16"), np.ones(32))


def test_average_pooling_is_the_same_product() -> None:
    left, right = normal(6, 32), normal(32, 20)
    np.testing.assert_array_equal(
        numerics.gapool(left, right, None, "HiFi3"), numerics.mvmul(left, right, None, "HiFi3")
    )


def test_mixed_source_formats_are_given_in_the_order_of_the_operands() -> None:
    left, right = np.full((1, 1), 1 + 2**-7 + 2**-9, np.float32), np.ones((1, 1), np.float32)
    got = [
        numerics.mvmul(left, right, None, "HiFi3", source_format=pair)[0, 0] - 1
        for pair in (("tf32", "bf16"), ("bf16", "tf32"))
    ]
    assert got == [2**-7 + 2**-9, 2**-7]


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 5, 0)])
def test_products_without_elements_are_the_old_dst(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    got = numerics.mvmul(np.zeros((m, k)), np.zeros((k, n)), np.full((m, n), 2.5))
    np.testing.assert_array_equal(got, np.full((m, n), 2.5, np.float32))


# --- element-wise, maxima --------------------------------------------------------------------------------------------


def test_element_wise_operations_broadcast_and_keep_shapes() -> None:
    a, b = normal(3, 1, 50), normal(7, 1)
    got = numerics.elwadd(a, b, source_format="tf32")
    assert got.shape == (3, 7, 50)
    assert got[2, 4, 9] == numerics.elwadd(a[2, 0, 9], b[4, 0], source_format="tf32")
    assert isinstance(numerics.elwmul(2.0, 3.0), np.float32)
    assert numerics.elwsub(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_more_elements_than_one_call_takes_are_all_computed() -> None:
    a = np.arange(256 * 128 * 2 + 77, dtype=np.float32) % 128
    np.testing.assert_array_equal(numerics.elwmul(2.0, a), 2 * a)
    np.testing.assert_array_equal(numerics.fma(a, 2.0, 1.0), 2 * a + 1)


def test_integers_add_and_multiply_element_by_element() -> None:
    a, b = RNG.integers(-127, 128, 300), RNG.integers(-127, 128, 300)
    np.testing.assert_array_equal(numerics.elwadd(a, b, source_format="int8"), a + b)
    np.testing.assert_array_equal(numerics.elwsub(a, b, 1000, source_format="int8"), 1000 + a - b)
    np.testing.assert_array_equal(numerics.elwmul(a, b, None, "HiFi4", source_format="int8"), a * b)


def test_maxima_of_more_rows_and_columns_than_one_instruction_takes() -> None:
    a = normal(37, 50).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(numerics.gmpool(a), a.astype(np.float32).max(axis=0))
    np.testing.assert_array_equal(numerics.gmpool(a, np.full(50, 9.0)), np.full(50, 9.0))
    np.testing.assert_array_equal(numerics.gmpool(-np.abs(a)), -np.abs(a.astype(np.float32)).min(axis=0))


def test_sources_keep_their_bits_when_they_are_in_the_format_already() -> None:
    infinity = np.array([np.inf], np.float16)  # exponent 31 is a number: 65536; by way of FP32 it would be the largest
    assert numerics.elwmul(infinity, np.float16(1), source_format="fp16")[0] == 65536
    assert numerics.elwmul(infinity.astype(np.float32), 1.0, None, "HiFi4", source_format="fp16")[0] > 130000


# --- vector unit -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(*[st.floats(-1e3, 1e3, width=32)] * 3), min_size=1, max_size=70))
@example([(335.0, 7.031855823828365e-41, 0.0)])
@settings(max_examples=50)
def test_fma_is_half_a_unit_and_sticky_bits_away_from_the_exact_sum(
    items: list[tuple[float, float, float]],
) -> None:
    x, y, z = (np.array(column, np.float32) for column in zip(*items, strict=True))
    got = numerics.fma(x, y, z)
    x, y, z = (np.where(np.abs(value) < np.finfo(np.float32).tiny, 0, value) for value in (x, y, z))  # denormal inputs
    exact = x.astype(np.float64) * y + z
    # Half a unit of the last place, and the sticky bits of product and z, which count as bits (V10).
    sticky = (np.abs(x.astype(np.float64) * y) + np.abs(z)) * 2.0**-25
    bound = np.abs(exact) * 2.0**-24 + sticky + 2.0**-125
    assert (np.abs(got - exact) <= bound).all()


def test_stochastic_rounding_depends_on_the_seed_alone() -> None:
    x = np.full(3000, 1 + 2**-9, np.float32)  # a quarter of the way between two BF16 numbers
    once, again = (numerics.stochastic_round(x, "bf16", "stochastic", seed=7) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert set(np.unique(once)) == {1.0, 1 + 2**-7}
    assert 0.2 < (once > 1).mean() < 0.3
    assert (once != numerics.stochastic_round(x, "bf16", "stochastic", seed=8)).any()


def test_casts_of_integers_are_nearest_even() -> None:
    x = RNG.integers(-(2**31) + 1, 2**31, 500)
    np.testing.assert_array_equal(numerics.cast(x), x.astype(np.float32))
    assert hex(numerics.cast_bits(0x80000000)) == "0x80000000"


def test_mul24_takes_23_bits() -> None:
    x, y = RNG.integers(0, 2**32, (2, 200))
    product = (x & 0x7FFFFF) * (y & 0x7FFFFF)
    np.testing.assert_array_equal(numerics.mul24(x, y), product & 0x7FFFFF)
    np.testing.assert_array_equal(numerics.mul24(x, y, high=True), product >> 23)


# --- conversions, against the host's own codecs ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_all_16_bit_patterns_pass_the_unpacker(name: str) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    values = numerics.src_values(numerics.unpack_convert(bits, name), name)
    # NaNs of BF16 as bits, since they do not equal themselves.
    if name == "bf16":
        np.testing.assert_array_equal(values.view(np.uint32) >> 16, bits)
    else:
        normal_ones = (bits & 0x7C00) != 0
        np.testing.assert_array_equal(values[normal_ones], floats.fp16_to_float32(bits)[normal_ones])


@pytest.mark.parametrize(
    ("name", "target"), [("bfp8", "bf16"), ("bfp4", "bf16"), ("bfp2", "bf16"), ("fp8_e4m3", "fp16")]
)
def test_all_8_bit_patterns_pass_the_unpacker(name: str, target: str) -> None:
    data_format = DataFormat.parse(name)
    codes = np.tile(np.arange(1 << data_format.bits, dtype=np.uint8), 256)
    if data_format.is_bfp:
        codes = np.resize(codes, 256 * max(16, 1 << data_format.bits)).reshape(-1, 16)
        exponents = (np.arange(len(codes)) % 256).astype(np.uint8)
        want = bfp.to_bf16_bits(exponents, codes, data_format.bits).astype(np.uint32) << np.uint32(16)
        got = numerics.src_values(numerics.unpack_convert(codes, name, exponents=exponents), target)
        np.testing.assert_array_equal(got.view(np.uint32), want)
    else:
        got = numerics.src_values(numerics.unpack_convert(codes, name), target)
        small = (codes & 0x78) == 0
        np.testing.assert_array_equal(got[~small], floats.fp16_to_float32(floats.e4m3_to_fp16(codes))[~small])


FP32_BITS = np.concatenate([RNG.integers(0, 2**32, 20000, dtype=np.uint32), normal(12768).view(np.uint32)])


@pytest.mark.parametrize(
    ("name", "intermediate"), [("bf16", "bf16"), ("fp16", "fp16"), ("fp8_e4m3", "fp16"), ("bf16", "fp32")]
)
def test_packed_datums_are_those_of_the_host_codec(name: str, intermediate: str) -> None:
    formats = DataFormat.parse(name), DataFormat.parse(intermediate)
    got = numerics.pack_convert(FP32_BITS, name, intermediate=intermediate)
    np.testing.assert_array_equal(got.bits, floats.encode_hardware(FP32_BITS, *formats))
    assert got.exponents.size == 0


@pytest.mark.parametrize("name", ["bfp8", "bfp4", "bfp2"])
@pytest.mark.parametrize("intermediate", ["bfp8", "fp32"])
def test_packed_bfp_groups_are_those_of_the_host_codec(name: str, intermediate: str) -> None:
    groups = FP32_BITS.reshape(-1, 16)
    exponents, datums = bfp.encode_hardware(groups, DataFormat.parse(name), DataFormat.parse(intermediate))
    got = numerics.pack_convert(groups, name, intermediate=intermediate)
    np.testing.assert_array_equal(got.exponents, exponents)
    np.testing.assert_array_equal(got.bits, datums)


def test_packed_bfp_unpacks_to_itself() -> None:
    packed = numerics.pack_convert(normal(4096).view(np.uint32), "bfp8")
    cells = numerics.unpack_convert(packed.bits, "bfp8", exponents=packed.exponents)
    again = numerics.pack_convert(numerics.src_values(cells, "bf16").view(np.uint32), "bfp8")
    np.testing.assert_array_equal(again.bits, packed.bits)
    np.testing.assert_array_equal(again.exponents, packed.exponents)


# --- errors ----------------------------------------------------------------------------------------------------------

EYE = np.eye(4, dtype=np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: numerics.mvmul(EYE, np.ones((5, 2))),
        lambda: numerics.mvmul(EYE[0], EYE),
        lambda: numerics.mvmul(EYE, EYE, np.ones(5)),
        lambda: numerics.mvmul([["a"]], EYE),
        lambda: numerics.mvmul([[1, 2], [3]], EYE),
        lambda: numerics.mvmul([[200]], [[1]], source_format="int8"),
        lambda: numerics.mvmul_bits([[1 << 19]], [[0]]),
        lambda: numerics.mvmul_bits(EYE, EYE),
        lambda: numerics.elwadd(np.ones(3), np.ones(4)),
        lambda: numerics.elwadd(1j, 1.0),
        lambda: numerics.fma(np.ones(3), np.ones(4), 0.0),
        lambda: numerics.fma_bits(-1, 0, 0),
        lambda: numerics.gmpool(np.zeros((0, 4))),
        lambda: numerics.cast([1.5]),
        lambda: numerics.cast([-(2**31)]),
        lambda: numerics.lut(1.0, [1, 2]),
        lambda: numerics.lutfp32(1.0, [1.0], [1.0]),
        lambda: numerics.unpack_convert([0x100], "bfp8", exponents=[1]),
        lambda: numerics.unpack_convert(np.zeros(16, np.uint8), "bfp8"),
        lambda: numerics.unpack_convert([1], "bf16", exponents=[1]),
        lambda: numerics.unpack_convert([1], "bf17"),
        lambda: numerics.pack_convert(np.zeros(17, np.uint32), "bfp8"),
        lambda: numerics.src_values([1], "int8"),
    ],
)
def test_arrays_that_do_not_fit_are_format_errors(call: Any) -> None:
    with pytest.raises(FormatError) as caught:
        call()
    assert caught.value.remedy


@pytest.mark.parametrize(
    "call",
    [
        lambda: numerics.mvmul(EYE, EYE, None, "HiFi5"),
        lambda: numerics.mvmul(EYE, EYE, None, [0, 4]),
        lambda: numerics.mvmul(EYE, EYE, None, []),
        lambda: numerics.mvmul(EYE, EYE, depth=20),
        lambda: numerics.mvmul(EYE, EYE, dst_format="fp16"),
        lambda: numerics.mvmul(EYE, EYE, dst_format="bf16", source_format="fp16"),
        lambda: numerics.mvmul(EYE, EYE, source_format=("bf16", "fp16")),
        lambda: numerics.mvmul(EYE, EYE, source_format="bfp8"),
        lambda: numerics.elementwise_bits("MVMUL", 0, 0),
        lambda: numerics.stochastic_round(1.0, "fp16"),
        lambda: numerics.stochastic_round(1.0, "bf16", "up"),  # type: ignore[arg-type]
        lambda: numerics.shift_round([1], 32),
        lambda: numerics.shift_round([1], 1, "int16"),
        lambda: numerics.lutfp32(1.0, [1.0], [1.0], table="bf16"),
        lambda: numerics.pack_convert([0], "bf16", dst_format="tf32"),
    ],
)
def test_settings_that_do_not_exist_are_configuration_errors(call: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        call()
    assert caught.value.remedy


def test_what_the_machine_refuses_is_refused_and_the_next_call_works() -> None:
    with pytest.raises(MissingSpecification):
        numerics.unpack_convert([0], "tf32")
    with pytest.raises(UndefinedBehavior, match="cannot become"):
        numerics.unpack_convert([0], "bf16", "fp16")
    with pytest.raises(MissingSpecification):
        numerics.gmpool(EYE, source_format="fp16")
    np.testing.assert_array_equal(numerics.mvmul(EYE, EYE), EYE)
    np.testing.assert_array_equal(numerics.gmpool(EYE), np.ones(4))


def test_calls_from_several_threads_do_not_meet() -> None:
    left, right = normal(64, 64), normal(64, 64)
    want = numerics.mvmul(left, right, None, "HiFi4")
    results: list[bool] = []

    def work() -> None:
        results.extend(np.array_equal(numerics.mvmul(left, right, None, "HiFi4"), want) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 60
