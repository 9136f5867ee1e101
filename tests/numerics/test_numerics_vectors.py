"""`bhemu.numerics` against conformance vectors: the operands of each case, as arrays, give the bits of the case."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from bhemu import numerics
from tests.numerics.numerics_cases import Operands, fields, matrix_cases, singles


@pytest.mark.parametrize(("mnemonic", "rows", "least"), [("MVMUL", 8, 200), ("GAPOOL", 4, 80)])
def test_dot_products_give_the_bits_of_the_vectors(mnemonic: str, rows: int, least: int) -> None:
    function = numerics.mvmul_bits if mnemonic == "MVMUL" else numerics.gapool_bits
    seen: Counter[Any] = Counter()
    for c in matrix_cases(mnemonic, 16, rows, rows):
        got = function(c.b, c.a, c.dst, [c.phase], c.dst_format, source_format=(c.source[1], c.source[0]))
        np.testing.assert_array_equal(got, c.expected)
        seen[c.source[0], c.dst_format] += 1
    assert seen.total() >= least
    assert len(seen) >= 7  # every pair of formats


def spread(c: Operands) -> np.ndarray[Any, Any]:
    """SrcB as the instruction's broadcast hands it out (math F11)."""
    b = c.b[:1] if c.word["instr_mod19"] & 2 else c.b
    return b[:, :1] if c.word["instr_mod19"] & 1 else b


@pytest.mark.parametrize(("mnemonic", "least"), [("ELWADD", 100), ("ELWSUB", 80), ("ELWMUL", 150)])
def test_element_wise_operations_give_the_bits_of_the_vectors(mnemonic: str, least: int) -> None:
    seen: Counter[Any] = Counter()
    for c in matrix_cases(mnemonic, 8, 8, 8):
        old = c.dst if mnemonic == "ELWMUL" or c.word["dest_accum_en"] else None
        got = numerics.elementwise_bits(
            mnemonic,
            c.a,
            spread(c),
            old,
            [c.phase],
            c.dst_format,
            source_format=c.source,
            keep_denormals=c.keep_denormals,
        )
        np.testing.assert_array_equal(got, c.expected)
        seen[c.source[0], c.dst_format] += 1
    assert seen.total() >= least
    assert len(seen) >= 7


def test_maxima_give_the_bits_of_the_vectors() -> None:
    seen = 0
    for c in matrix_cases("GMPOOL", 16, 1, 1):
        got = numerics.gmpool_bits(c.a, c.dst[0] if c.valid else None, c.dst_format, source_format=c.source[0])
        np.testing.assert_array_equal(got, c.expected[0])
        seen += 1
    assert seen >= 80


def vector_result(mnemonic: str, w: dict[str, int], r: Any) -> Any:
    """Bits of the result by `bhemu.numerics` from operands and LRegs; None where it does not have the form."""
    if mnemonic == "SFPMAD":  # mode bits flip the signs of a and c (math V11)
        flip_a, flip_c = (np.uint32((w["instr_mod1"] >> bit & 1) << 31) for bit in (0, 1))
        return numerics.fma_bits(r[w["lreg_src_a"]] ^ flip_a, r[w["lreg_src_b"]], r[w["lreg_src_c"]] ^ flip_c)
    if mnemonic == "SFPARECIP" and not w["instr_mod1"]:
        return numerics.reciprocal_bits(r[w["lreg_c"]])
    if mnemonic == "SFPMUL24":
        return numerics.mul24(r[w["lreg_src_a"]], r[w["lreg_src_b"]], high=bool(w["instr_mod1"]))
    if mnemonic == "SFPCAST" and not w["instr_mod1"]:
        return numerics.cast_bits(r[w["lreg_src_c"]])
    if mnemonic == "SFP_STOCH_RND":
        target = {1: "bf16", 2: "uint8", 3: "int8", 6: "uint16", 7: "int16"}[w["instr_mod1"]]
        return numerics.stochastic_round_bits(r[w["lreg_src_c"]], target)
    if mnemonic == "SFPLUT":
        # The table may differ by lane there: a call for each.
        keep = bool(w["instr_mod0"] & 4)
        return [numerics.lut_bits(r[3, i], r[:3, i] & 0xFFFF, keep_sign=keep) for i in range(32)]
    if mnemonic == "SFPLUTFP32":
        halves = [
            [(r[first + k // 2] >> (16 * (k % 2)) & 0xFFFF).astype(np.uint16) for k in range(6)] for first in (0, 4)
        ]
        slopes, offsets = (np.array(h).view(np.float16) for h in halves)
        with np.errstate(invalid="ignore"):
            return [numerics.lutfp32_bits(r[3, i], slopes[:, i], offsets[:, i]) for i in range(32)]
    return None


DESTINATIONS = {"SFPLUT": "lreg_ind"}


@pytest.mark.parametrize(
    ("mnemonic", "least"),
    [
        ("SFPMAD", 120),
        ("SFPARECIP", 30),
        ("SFPMUL24", 30),
        ("SFPCAST", 10),
        ("SFP_STOCH_RND", 70),
        ("SFPLUT", 30),
        ("SFPLUTFP32", 40),
    ],
)
def test_vector_operations_give_the_bits_of_the_vectors(mnemonic: str, least: int) -> None:
    compared = 0
    for case, initial, expected in singles("sfpu", mnemonic):
        word = fields(case.program[0][1])
        registers = initial["lregs"].reshape(16, 32)
        destination = word[DESTINATIONS.get(mnemonic, "lreg_dest")]
        got = vector_result(mnemonic, word, registers) if destination < 8 else None
        if got is None:
            continue
        flags, in_use = int(initial["sfpu"][0]), int(initial["sfpu"][1])
        enabled = np.array([not in_use or flags >> lane & 1 for lane in range(32)], bool)
        want = expected["lregs"].reshape(16, 32)[destination]
        np.testing.assert_array_equal(np.array(got)[enabled], want[enabled])
        compared += int(enabled.sum())
    assert compared >= 16 * least  # half of the lanes enabled
