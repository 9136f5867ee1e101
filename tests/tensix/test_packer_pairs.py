"""Rows of BF16 that are packed two at a time, against the same rows packed stage by stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.tensix.packer_bench import BF16, BFP8, Bench

SPECIAL = [0x0000, 0x8000, 0x0001, 0x007F, 0x0080, 0x807F, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7F81, 0xFFFF, 0x3F80]

WORDS = 80
"""32-bit words of L1 that are compared."""


def prepared(read_32b: int, raw: int, seed: int, **fields: int) -> Bench:
    """Dst full of ordinary and special numbers, an eighth of its rows not valid; the configuration is decoded."""
    bench = Bench(BF16, BF16, read_32b=read_32b)
    bench.set(PCK_DEST_RD_CTRL_Read_int8=raw, **fields)
    rng = np.random.default_rng(seed)
    dst = rng.integers(0, 1 << 16, (1024, 16), dtype=np.uint16)
    special = rng.random(dst.shape) < 0.3
    bits = rng.choice(np.array(SPECIAL, np.uint32), dst.shape)
    dst[special] = ((bits & 0x8000) | (bits & 0x7F) << 8 | (bits >> 7) & 0xFF).astype(np.uint16)[special]
    dst[rng.random(dst.shape) < 0.1] = 0
    bench.tile["dst"] = dst
    bench.tile["dst_valid"] = rng.random(1024) > 0.125
    bench.pacr(ReadIntfSel=0, Flush=1, Last=0)
    return bench


def outcome(bench: Bench) -> dict[str, Any]:
    """What packing may change, without the field that chooses how."""
    pack = {name: bench.tile["pack"][name].tolist() for name in bench.tile["pack"].dtype.names if name != "bf16_pairs"}
    return {"l1": bench.l1("u4", WORDS), "pack": pack}


@pytest.mark.parametrize("relu", [0, 1, 2, 3])
@pytest.mark.parametrize(("read_32b", "raw"), [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("offset", [0, 2, 4, 5, 7, 8, 13, 508, 1020, 1021, 1023])
def test_pairs_are_packed_as_rows_are_stage_by_stage(read_32b: int, raw: int, relu: int, offset: int) -> None:
    fields = {
        "DEST_TARGET_REG_CFG_PACK_SEC0_Offset": offset,
        "STACC_RELU_ApplyRelu": relu,
        "STACC_RELU_ReluThreshold": 0x3F80,
    }
    pairs, rows = (prepared(read_32b, raw, offset, **fields) for _ in range(2))
    assert pairs.tile["pack"]["bf16_pairs"] == (relu < 2 and not (read_32b and raw))
    rows.tile["pack"]["bf16_pairs"] = 0
    for bench in (pairs, rows):
        bench.pacr(ReadIntfSel=0, Last=0)
        bench.pacr(ReadIntfSel=0, Last=1)
    assert outcome(pairs) == outcome(rows)
    assert any(pairs.l1("u4", 64))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_rows_that_follow_a_part_of_one(count: int) -> None:
    """The words of L1 are not aligned any more after an odd number of datums."""
    pairs, rows = (prepared(0, 0, count) for _ in range(2))
    rows.tile["pack"]["bf16_pairs"] = 0
    for bench in (pairs, rows):
        bench.tile["adc"][:, 2, 4] = count - 1
        bench.pacr(ReadIntfSel=1, Last=0)
        bench.tile["adc"][:, 2, 4] = 15
        bench.pacr(ReadIntfSel=0, Last=1)
    assert outcome(pairs) == outcome(rows)


@pytest.mark.parametrize(
    "fields",
    [
        {"THCON_SEC0_REG1_Out_data_format": BFP8, "THCON_SEC0_REG1_Exp_section_size": 4},
        {"THCON_SEC0_REG1_Disable_zero_compress": 0},
        {"THCON_SEC0_REG1_Pack_L1_Acc": 1},
        {"THCON_SEC0_REG1_Exp_threshold_en": 1, "THCON_SEC0_REG1_Exp_threshold": 100},
        {"PCK_EDGE_OFFSET_SEC0_mask": 0x7FFF},
    ],
)
def test_other_configurations_are_not_pairs(fields: dict[str, int]) -> None:
    bench = prepared(0, 0, 1, **fields)
    assert bench.tile["pack"]["bf16_pairs"] == 0
