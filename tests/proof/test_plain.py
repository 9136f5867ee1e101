"""A sample of every conformance family, for running without the compiler: the units are also plain Python."""

from __future__ import annotations

import pytest

from bhemu.proof.conformance import VECTORS, conformance, describe

# Every so-many-th case, so that a family takes seconds as plain Python.
STEPS = {"adc_rwc": 20, "fpu": 60, "frontend": 6, "pack": 60, "programs": 100, "scalar": 25, "sfpu": 25, "unpack": 75}


def test_the_sample_names_every_family() -> None:
    assert {path.stem for path in VECTORS.glob("*.npz")} == set(STEPS)


@pytest.mark.plain
@pytest.mark.parametrize("family", sorted(STEPS))
def test_sample_of_family_passes(family: str) -> None:
    [report] = conformance([VECTORS / f"{family}.npz"], step=STEPS[family])
    assert report.total.passed > 0
    assert report.clean, "\n".join(describe(d) for d in report.differences[:3])
