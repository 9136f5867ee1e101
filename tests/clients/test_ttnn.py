"""The unmodified ttnn: whole programs of tt-metal, from Python down to the kernels, on bhemu.

Its wheel exists for Python 3.10 only, which bhemu does not run in: the simulator gets a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu.capi.soc_descriptor import write_soc_descriptor
from bhemu.cc import MissingTool, find_llk, find_toolchain, write_metal_root
from tests.capi.library_client import pythons
from tests.processes import finished
from tests.ttnn_wheel import WHEEL

pytestmark = pytest.mark.clients

SLOW = {"TT_METAL_SLOW_DISPATCH_MODE": "1"}
"""Programs are dispatched by the host; otherwise by Tensix tiles, which read the host's memory."""
PRELUDE = """
import numpy as np
import ttnn
device = ttnn.open_device(device_id=0)
rng = np.random.default_rng(1)
def put(array, kind=ttnn.bfloat16):
    tensor = ttnn.Tensor(array.flatten().tolist(), list(array.shape), kind, ttnn.ROW_MAJOR_LAYOUT)
    return ttnn.to_device(ttnn.to_layout(tensor, ttnn.TILE_LAYOUT), device)
def get(tensor):
    return np.array(ttnn.to_layout(ttnn.from_device(tensor), ttnn.ROW_MAJOR_LAYOUT).to_list(), np.float32)
"""


@pytest.fixture(scope="module")
def ttnn_python(install: Callable[..., Path]) -> Path:
    """Python of an environment with ttnn."""
    base = next(iter(pythons(10)), None)
    if base is None:
        pytest.skip("TTNN IS NOT TESTED: its wheel needs Python 3.10")
    return install("TTNN", base, WHEEL)


@pytest.fixture(scope="module")
def settings(ttnn_python: Path, library: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a ttnn program: the library next to the description of the chip."""
    simulator = tmp_path_factory.mktemp("simulator")
    shutil.copy(library, simulator)
    write_soc_descriptor(simulator)
    package = next(ttnn_python.parents[1].glob("lib/python*/site-packages/ttnn"))
    try:
        root = write_metal_root(tmp_path_factory.mktemp("metal"), find_llk(package), find_toolchain())
    except MissingTool as missing:
        pytest.skip(f"TTNN IS NOT TESTED: {missing.message}")
    of_others = ("BHEMU_", "TTSIM_", "TT_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(of_others)}
    kept = {name: os.environ[name] for name in ("BHEMU_CACHE",) if name in os.environ}
    return clean | {
        **kept,
        "TT_METAL_SIMULATOR": str(simulator / library.name),
        "TT_METAL_RUNTIME_ROOT": str(root),
        "TT_METAL_CACHE": str(root / "cache"),
        "TT_METAL_LOGGER_LEVEL": "FATAL",
    }


def run(ttnn_python: Path, settings: dict[str, str], script: str, work: Path) -> str:
    """Output of a program that has to end well."""
    command = [ttnn_python, "-c", PRELUDE + script + "\nttnn.close_device(device)\nprint('done')"]
    done = finished(command, env=settings, cwd=work)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "\ndone\n" in "\n" + done.stdout
    assert " ERROR: " not in done.stdout
    return done.stdout


@pytest.mark.parametrize("dispatch", ["by the host", "by cores"])
def test_ttnn_operations(ttnn_python: Path, settings: dict[str, str], tmp_path: Path, dispatch: str) -> None:
    """Firmware boots on 140 Tensix and 12 Ethernet tiles; small integers come back exactly, a product and powers with
    bfloat16's precision."""
    run(
        ttnn_python,
        settings | SLOW if dispatch == "by the host" else settings,
        """
a = rng.integers(-8, 8, (64, 96)).astype(np.float32)
b = rng.integers(-8, 8, (96, 128)).astype(np.float32)
x, y = put(a), put(b)
assert np.array_equal(get(x), a)
assert np.array_equal(get(ttnn.add(x, x)), a + a)
assert np.array_equal(get(ttnn.transpose(x, -2, -1)), a.T)
product, want = get(ttnn.matmul(x, y)), a @ b
assert product.shape == want.shape
assert np.abs(product - want).max() <= np.abs(want).max() / 100
assert np.abs(want).max() > 500
again = get(ttnn.matmul(x, y))  # from tt-metal's program cache
assert np.array_equal(again, product)
powers = get(ttnn.exp(put(np.linspace(-3, 3, 1024, dtype=np.float32).reshape(32, 32))))  # the vector unit, by raw words
assert np.allclose(powers.flatten(), np.exp(np.linspace(-3, 3, 1024)), rtol=0.02)
""",
        tmp_path,
    )


def test_vector_kernels_are_refused_by_name(ttnn_python: Path, settings: dict[str, str], tmp_path: Path) -> None:
    """They need the vendor's compiler; the program can go on."""
    run(
        ttnn_python,
        settings | SLOW,
        """
x = put(np.ones((32, 32), np.float32))
try:
    ttnn.relu(x)
except RuntimeError as error:
    assert "needs the vendor's SFPU compiler (sfpi)" in str(error), str(error)[:2000]
else:
    raise AssertionError("it compiled")
assert np.array_equal(get(ttnn.add(x, x)), np.full((32, 32), 2, np.float32))
""",
        tmp_path,
    )


def test_the_python_is_another_one(ttnn_python: Path) -> None:
    """Else these tests would say nothing about the simulator's own process."""
    assert f"{sys.version_info.major}.{sys.version_info.minor}" != "3.10"
    says = subprocess.run([ttnn_python, "--version"], capture_output=True, text=True, check=True).stdout
    assert says.startswith("Python 3.10.")
