"""Audit rows 001.3: format codes, conversions on the way in, cell layouts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from bhemu.errors import FormatError, MissingSpecification, UndefinedBehavior
from bhemu.formats import DataFormat
from bhemu.machine.state import L1_SIZE
from tests.tensix.unpacker import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    TF32,
    Unpacker,
)

BITS_OF_CODE = {0: 32, 1: 16, 2: 8, 3: 4, 4: 32, 5: 16, 6: 8, 7: 4, 8: 32, 9: 16, 10: 8, 11: 2, 14: 8, 15: 2}
EXPONENT_BITS_OF_CODE = {0: 8, 1: 5, 2: 5, 3: 5, 4: 8, 5: 8, 6: 8, 7: 8, 10: 5, 11: 5, 15: 8}


def unpacked(source: int, target: int, raw: list[int], dtype: str, *, dst: bool = False, **fields: int) -> Unpacker:
    """After an unpack of `raw` (datums, at most 64) through SrcB, or to Dst."""
    u = Unpacker(0 if dst else 1)
    u.formats(source, target)
    if dst:
        u.to_dst()
    for name, value in fields.items():
        u.set(name, value)
    u.l1(raw, dtype)
    u.count(len(raw))
    assert u.unpack()
    return u


@pytest.mark.rule("001.3.1b")
@pytest.mark.parametrize("code", sorted(BITS_OF_CODE))
def test_each_format_has_its_bits_of_a_datum(code: int) -> None:
    """128 datums end where L1 ends, one 16-byte unit further up they do not fit.

    Codes 10 and 11 do not follow the class that bits 3:2 of the others give: 8 bits a datum, 2 bits a datum.
    """
    size = 128 * BITS_OF_CODE[code] // 8
    is_bfp = code in (2, 3, 6, 7, 11, 15)
    for base, fits in ((L1_SIZE - size, True), (L1_SIZE - size + 16, False)):
        u = Unpacker(0)
        u.formats(code)
        u.to_dst()
        u.set("THCON_SEC0_REG2_Force_shared_exp", int(is_bfp))
        u.base(base)
        u.count(128)
        if fits:
            assert u.unpack()
        else:
            with pytest.raises(UndefinedBehavior, match="outside L1"):
                u.unpack()
    assert DataFormat.from_code(code).bits == BITS_OF_CODE[code]


@pytest.mark.rule("001.3.1b")
@pytest.mark.parametrize("code", sorted(EXPONENT_BITS_OF_CODE))
def test_each_format_has_its_bits_of_an_exponent(code: int) -> None:
    """FP8 (10) and BFP2a (11) have 5 bits though bits 3:2 are those of no 5-bit class."""
    found = DataFormat.from_code(code)
    assert (found.exponent_bits, found.exponent_bias) == (
        EXPONENT_BITS_OF_CODE[code],
        127 if EXPONENT_BITS_OF_CODE[code] == 8 else 15,
    )


@pytest.mark.rule("001.3.1c")
def test_code_14_is_int8_and_code_11_bfp2a() -> None:
    """12 and 13 are not formats."""
    assert int(unpacked(14, 14, [0x85], "<u1").src()[0, 0]) == 1 << 18 | 5 << 8 | 16
    u = unpacked(11, 11, [20] + [0] * 15 + [0b01], "<u1", THCON_SEC1_REG0_TileDescriptor_z_dim=1)
    assert int(u.src()[0, 0]) == 20  # 1.0 * 2^(20 - 15)
    for code in (12, 13):
        with pytest.raises(UndefinedBehavior, match=f"code {code} is unassigned"):
            unpacked(code, code, [0], "<u1")
        with pytest.raises(FormatError):
            DataFormat.from_code(code)


@pytest.mark.rule("001.3.1d")
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Float32", 0),
        ("Float16", 1),
        ("Bfp8_a", 2),
        ("Bfp4_a", 3),
        ("Tf32", 4),
        ("Float16_b", 5),
        ("Bfp8_b", 6),
        ("Bfp4_b", 7),
        ("Int32", 8),
        ("UInt32", 8),
        ("UInt16", 9),
        ("Lf8", 10),
        ("Bfp2_a", 11),
        ("Int8", 14),
        ("UInt8", 14),
        ("Bfp2_b", 15),
    ],
)
def test_names_of_the_software_enumeration_have_its_codes(name: str, code: int) -> None:
    assert DataFormat.parse(name).code == code


@pytest.mark.rule("001.3.1d")
def test_a_bare_bfp_name_is_not_guessed() -> None:
    """Software means code 2 by Bfp8, the seed code 6."""
    for name in ("Bfp8", "Bfp4", "Bfp2"):
        with pytest.raises(FormatError, match="ambiguous"):
            DataFormat.parse(name)


def fp16_cell(sign: int, exponent: int, mantissa: int) -> int:
    return sign << 18 | mantissa << 8 | exponent


@pytest.mark.rule("001.3.2c")
@pytest.mark.parametrize(
    ("bits", "cell"),
    [
        (0x3F800000, fp16_cell(0, 15, 0)),  # 1.0
        (0xBFC01FFF, fp16_cell(1, 15, 0x200)),  # -1.5 and bits that are dropped
        (111 << 23 | 0x7FFFFF, 0),  # E = -1
        (1 << 31 | 111 << 23, fp16_cell(1, 0, 0)),
        (112 << 23 | 0x7FE000, fp16_cell(0, 0, 0x3FF)),  # E = 0 keeps its mantissa
        (143 << 23 | 0x002000, fp16_cell(0, 31, 1)),  # E = 31 is an ordinary value
        (144 << 23, fp16_cell(0, 31, 0x3FF)),  # E = 32
        (0xFF800000, fp16_cell(1, 31, 0x3FF)),  # -Inf
        (0x7FC00000, fp16_cell(0, 31, 0x3FF)),  # NaN
        (0x80000001, fp16_cell(1, 0, 0)),
    ],
)
def test_fp32_becomes_the_fp16_cell_of_the_rule(bits: int, cell: int) -> None:
    assert int(unpacked(FP32, FP16, [bits], "<u4").src()[0, 0]) == cell


@pytest.mark.rule("001.3.2e", "001.3.5c", "004.6d", "001.14.2e")
def test_e4m3_is_code_10_under_a_mode_bit_of_each_unpacker() -> None:
    """Each unpacker has its own bit.

    Exact rule: exponent e ? e + 8 : 0, mantissa m << 7, and 0x7F below it for e = 15, m = 7.
    """
    raw = list(range(256))
    expected = []
    for x in raw:
        s, e, m = x >> 7, x >> 3 & 15, x & 7
        expected.append(fp16_cell(s, e + 8 if e else 0, m << 7 | (0x7F if e == 15 and m == 7 else 0)))
    u = Unpacker(1)
    u.formats(FP8)
    u.l1(raw, "<u1")
    u.count(256)
    u.set("THCON_SEC0_REG1_Unp_LF8_4b_exp", 1)  # unpacker 0's bit does not matter to unpacker 1
    assert u.unpack()
    e5m2 = [fp16_cell(x >> 7, x >> 2 & 31, (x & 3) << 8 | (0xFF if x & 0x7F == 0x7F else 0)) for x in raw]
    np.testing.assert_array_equal(u.src()[:16].reshape(-1), e5m2)
    u.set("THCON_SEC1_REG1_Unp_LF8_4b_exp", 1)
    assert u.unpack()
    np.testing.assert_array_equal(u.src()[:16].reshape(-1), expected)


@pytest.mark.rule("001.3.2f", "001.3.4b")
@pytest.mark.parametrize(("kind", "bits"), [(BFP8, 8), (BFP4, 4), (BFP2, 2)])
def test_a_bfp_datum_is_magnitude_times_a_power_of_two(kind: int, bits: int) -> None:
    """Exactly mag / 2^(bits - 2) * 2^(E - 127); the code with the sign alone is minus infinity (001.3.4b)."""
    per_byte = 8 // bits
    datums = list(range(1 << bits)) * (64 // (1 << bits) or 1)
    raw = bytes(
        sum(d << bits * n for n, d in enumerate(datums[i : i + per_byte])) for i in range(0, len(datums), per_byte)
    )
    exponents = [100 + n for n in range(16)]
    u = Unpacker(1)
    u.formats(kind)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    u.l1(exponents + list(raw), "<u1")
    u.count(len(datums))
    assert u.unpack()
    for n, (datum, cell) in enumerate(zip(datums, u.src().reshape(-1).tolist(), strict=False)):
        sign, mag = datum >> bits - 1, datum & (1 << bits - 1) - 1
        if mag == 0:
            assert cell == (1 << 18 | 255 if sign else 0)
            continue
        value = Fraction(mag, 1 << bits - 2) * Fraction(2) ** (exponents[n // 16] - 127)
        got = (1 + Fraction(cell >> 8 & 0x3FF, 1024)) * Fraction(2) ** ((cell & 0xFF) - 127)
        assert (cell >> 18, got) == (sign, value)


@pytest.mark.rule("001.3.2f")
def test_a_small_shared_exponent_wraps() -> None:
    """Modulo 256, so that a tiny value becomes a huge one."""
    u = unpacked(BFP8, BFP8, [3] + [0] * 15 + [1], "<u1", THCON_SEC1_REG0_TileDescriptor_z_dim=1)
    assert int(u.src()[0, 0]) == (3 - 6) % 256


@pytest.mark.rule("001.3.3b", "004.1b")
def test_a_fp16_cell_says_something_else_when_read_as_tf32() -> None:
    """1.0 has exponent 15 in [4:0]; the bank's implied format goes with it."""
    u = Unpacker(1)
    u.formats(FP16)
    u.l1([0x3C00] * 16)
    assert u.unpack(SetDatValid=1)
    cell = int(u.src(0)[0, 0])
    assert cell == 15
    assert cell >> 5 & 7 == 0
    assert Fraction(2) ** ((cell & 0xFF) - 127) != 1  # what a TF32 reader would see
    assert u.t["src_format"][1, 0] == FP16
    u.formats(BF16)
    u.l1([0x3F80] * 16)
    assert u.unpack(SetDatValid=1)
    assert int(u.src(1)[0, 0]) == 127
    assert list(u.t["src_format"][1]) == [FP16, BF16]


@pytest.mark.rule("001.3.3c", "004.1e")
@pytest.mark.parametrize(
    ("source", "target", "dtype", "raw", "cell"),
    [
        (BF16, BF16, "<u2", 0b1_10000001_0110011, 0b1_0110011_10000001),
        (FP16, FP16, "<u2", 0b1_10101_0110011001, 0b1_0110011001_10101),
        (INT16, INT16, "<u2", 0xA55A, 0xA55A),
        (INT8, INT8, "<u1", 0x85, 1 << 15 | 5 << 5 | 16),
        (INT8, INT8, "<u1", 0x00, 0),
        (FP8, FP8, "<u1", 0b1_10101_01, 0b1_0100000000_10101),
    ],
)
def test_each_format_has_its_layout_of_16_bit_dst_cells(
    source: int, target: int, dtype: str, raw: int, cell: int
) -> None:
    """Permutations of sign, mantissa, exponent."""
    u = unpacked(source, target, [raw] * 16, dtype, dst=True)
    assert set(u.t["dst"][0]) == {cell}
    assert not u.t["dst"][1:].any()


@pytest.mark.rule("001.3.3c", "004.1e")
@pytest.mark.parametrize("kind", [FP32, TF32, INT32])
def test_32_bit_dst_cells_are_two_permuted_halves(kind: int) -> None:
    """The upper half is permuted as BF16, the lower is raw, whatever the format."""
    u = unpacked(kind, kind, [0b1_10000001_0110011_1010010110100101] * 16, "<u4", dst=True)
    assert set(u.t["dst"][0]) == {0b1_0110011_10000001}
    assert set(u.t["dst"][8]) == {0b1010010110100101}


@pytest.mark.rule("001.3.4b")
def test_negative_zero_is_minus_infinity_and_positive_zero_is_zero() -> None:
    """0xFF80 for each of BFP8, BFP4, BFP2 (cell: sign, mantissa 0, exponent 255)."""
    for kind, raw in ((BFP8, [0x80, 0x00]), (BFP4, [0x08]), (BFP2, [0b0010])):
        u = unpacked(kind, kind, [10] + [0] * 15 + raw, "<u1", THCON_SEC1_REG0_TileDescriptor_z_dim=1)
        np.testing.assert_array_equal(u.src()[0, :2], [1 << 18 | 255, 0])


@pytest.mark.rule("001.3.5a")
def test_tf32_comes_to_src_from_fp32_and_to_dst_as_it_is() -> None:
    """Code 4 as input has a Dst output only; L1 TF32 for Src is declared FP32 in, TF32 out."""
    bits = 0xC0490FDB
    assert (
        int(unpacked(FP32, TF32, [bits], "<u4").src()[0, 0]) == 1 << 18 | (bits >> 13 & 0x3FF) << 8 | bits >> 23 & 0xFF
    )
    u = unpacked(TF32, TF32, [bits] * 16, "<u4", dst=True)
    assert set(u.dst32(0)) == {bits}
    with pytest.raises(MissingSpecification, match=r"TF32 \(4\) to a Src"):
        unpacked(TF32, TF32, [bits], "<u4")


@pytest.mark.rule("001.3.2f")
def test_a_family_result_is_fp16() -> None:
    """Exponent byte 20 (bias 15), datum 0x50 = 1.25."""
    u = unpacked(BFP8A, BFP8A, [20] + [0] * 15 + [0x50], "<u1", THCON_SEC1_REG0_TileDescriptor_z_dim=1)
    assert int(u.src()[0, 0]) == fp16_cell(0, 20, 0x100)
    u = unpacked(BFP2A, BFP2A, [20] + [0] * 15 + [0b11], "<u1", THCON_SEC1_REG0_TileDescriptor_z_dim=1)
    assert int(u.src()[0, 0]) == fp16_cell(1, 20, 0)
