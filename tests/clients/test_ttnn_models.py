"""The models of examples/ttnn agree with torch: the unmodified ttnn, with kernels of the vendor's compiler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bhemu.capi import build
from tests.processes import finished
from tests.ttnn.environment import ROOT, CannotRun, Parts, prepare

pytestmark = pytest.mark.models

COMPARISONS = {"encoder": 1, "cnn": 1, "decode": 6, "training": 12}
"""Results that each model compares."""
COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "point_to_point"]


@pytest.fixture(scope="module")
def parts() -> Parts:
    try:
        return prepare()
    except CannotRun as reason:
        pytest.skip(f"MODELS OF TTNN ARE NOT TESTED: {reason}")


@pytest.mark.parametrize("model", COMPARISONS)
def test_a_model_agrees_with_torch(parts: Parts, tmp_path: Path, model: str) -> None:
    done = finished(
        [str(parts.python), str(ROOT / "examples" / "ttnn" / f"{model}.py")],
        env=parts.environment(slow=True),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    correlations = [float(text) for text in re.findall(r" PCC ([\d.]+) ", done.stdout)]
    assert len(correlations) == COMPARISONS[model]
    assert min(correlations) >= 0.999


def test_chips_of_a_mesh_compute_together(parts: Parts, tmp_path: Path) -> None:
    """Collectives are exact, a matmul and a block in parts agree with torch; threads and processes change no bit."""
    library = build(tmp_path / "p300", chips="p300")
    digests = set()
    for settings in ({"BHEMU_THREADS": "1"}, {"BHEMU_THREADS": "2"}, {"BHEMU_THREADS": "2", "BHEMU_PROCESS": "own"}):
        done = finished(
            [str(parts.python), str(ROOT / "examples" / "ttnn" / "mesh.py")],
            env=parts.environment(slow=True, library=library) | settings,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        cases = re.findall(r"^(\w+) +(exact|PCC [\d.]+) +2 times  ([0-9a-f]{12})  ", done.stdout, re.MULTILINE)
        assert [name for name, agrees, _ in cases if agrees == "exact"] == COLLECTIVES
        assert [name for name, agrees, _ in cases if agrees != "exact"] == ["matmul", "block"]
        digests.add(tuple(digest for _, _, digest in cases))
    assert len(digests) == 1
