"""The unmodified ttnn on several chips: meshes, and collectives over the links, on a library with a P300."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.capi import build
from tests.clients.test_ttnn import SLOW, settings, ttnn_python  # fixtures too
from tests.hosts.engine_here import needs_engine
from tests.processes import finished

__all__ = ["settings", "ttnn_python"]

pytestmark = pytest.mark.clients

PRELUDE = """
import numpy as np
import ttnn

def put(array):
    tensor = ttnn.Tensor(array.flatten().tolist(), list(array.shape), ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT)
    return ttnn.to_layout(tensor, ttnn.TILE_LAYOUT)

def get(tensor):
    parts = ttnn.get_device_tensors(ttnn.from_device(tensor))
    return [np.array(ttnn.to_layout(part, ttnn.ROW_MAJOR_LAYOUT).to_list(), np.float32) for part in parts]

numbers = np.random.default_rng(1).integers(-8, 8, (1, 1, 32, 128)).astype(np.float32)
"""
EACH = """
mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
x = ttnn.to_device(put(numbers), mesh)
sums = get(ttnn.add(x, x))
assert len(sums) == 2 and all(np.array_equal(part, numbers + numbers) for part in sums)
ttnn.close_mesh_device(mesh)
print("done")
"""
GATHER = """
ttnn.set_fabric_config(ttnn.FabricConfig.FABRIC_1D)
mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, 2))
x = ttnn.distribute_tensor(put(numbers), ttnn.shard_tensor_to_mesh_mapper(mesh, 3), mesh)
for _ in range(2):
    gathered = ttnn.all_gather(x, dim=3, num_links=1)
    assert all(np.array_equal(part, numbers) for part in get(gathered))
    scattered = np.concatenate(get(ttnn.reduce_scatter(gathered, dim=3, num_links=1)), 3)
    assert np.array_equal(scattered, 2 * numbers)
ttnn.close_mesh_device(mesh)
print("done")
"""


@pytest.fixture(scope="module")
def pair(settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment of a ttnn program on a P300."""
    made = build(tmp_path_factory.mktemp("p300"), chips="p300")
    return settings | {"TT_METAL_SIMULATOR": str(made)}


@pytest.mark.rule("ethernet 5", "ethernet 7")
def test_an_operation_on_each_chip(ttnn_python: Path, pair: dict[str, str], tmp_path: Path) -> None:
    run(ttnn_python, pair | SLOW, EACH, tmp_path)


@pytest.mark.rule("ethernet 2.2", "ethernet 4", "ethernet 6")
@pytest.mark.parametrize("dispatch", ["by the host", "by cores"])
def test_collectives_over_the_links(ttnn_python: Path, pair: dict[str, str], tmp_path: Path, dispatch: str) -> None:
    """tt-metal's active firmware and fabric run on the joined tiles; sums of small integers are exact."""
    run(ttnn_python, pair | SLOW if dispatch == "by the host" else pair, GATHER, tmp_path)


@needs_engine
@pytest.mark.rule("ethernet 2.2", "ethernet 6")
@pytest.mark.parametrize("dispatch", ["by the host", "by cores"])
def test_collectives_of_chips_in_two_processes(
    ttnn_python: Path, pair: dict[str, str], tmp_path: Path, dispatch: str
) -> None:
    """With dispatch by cores these fetch commands from the client's memory, and tell it there what is done."""
    spread = pair | {"BHEMU_WORKERS": "2"}
    run(ttnn_python, spread | SLOW if dispatch == "by the host" else spread, GATHER, tmp_path)


def run(python: Path, environment: dict[str, str], script: str, work: Path) -> None:
    done = finished([python, "-c", PRELUDE + script], env=environment, cwd=work)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "\ndone\n" in "\n" + done.stdout
    assert " ERROR: " not in done.stdout
