"""The models of examples/ttnn agree with torch: the unmodified ttnn, with kernels of the vendor's compiler."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.processes import finished
from tests.ttnn.environment import ROOT, CannotRun, Parts, prepare

pytestmark = pytest.mark.models

COMPARISONS = {"encoder": 1, "cnn": 1, "decode": 6, "training": 12}
"""Results that each model compares."""


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
