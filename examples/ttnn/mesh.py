"""Several chips in ttnn: collectives over the links, a matmul and a transformer's block of which each chip has a part.

    python examples/ttnn/mesh.py [--mesh 1x2] [--fabric FABRIC_1D] [--only all_gather,...] [--times 2] [--size 256]

Collectives are of small integers, whose sums are exact. Each line ends with a digest of the result's bits, to
compare machines by, and with the seconds that it took: the fewest of all times. Processor time is that of this process,
with the simulator's threads where it has no process of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import ttnn
from encoder import HEADS, LENGTH, WIDTH, on_torch, weights

from tools import LEAST_PCC

COLUMNS = 64
"""Of a tensor that each chip has, in a collective."""


@dataclass
class Mesh:
    """Chips, and how tensors come to them and back."""

    device: ttnn.MeshDevice
    chips: int
    size: int
    axis: int | None

    @property
    def is_turned(self) -> bool:
        """It has rows and columns, which are the fabric's columns and rows: ttnn turns what does not fit the system."""
        rows, columns = self.device.shape
        most_rows, most_columns = ttnn._ttnn.multi_device.SystemMeshDescriptor().shape()
        return min(rows, columns) > 1 and (rows > most_rows or columns > most_columns)

    def split(self, values: torch.Tensor, dim: int) -> ttnn.Tensor:
        """A tensor of which each chip has a part, along a dimension."""
        return self._put(values, ttnn.ShardTensorToMesh(self.device, dim))

    def copied(self, values: torch.Tensor) -> ttnn.Tensor:
        """A tensor that all chips have."""
        return self._put(values, ttnn.ReplicateTensorToMesh(self.device))

    def _put(self, values: torch.Tensor, mapper: object) -> ttnn.Tensor:
        return ttnn.from_torch(
            values, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=self.device, mesh_mapper=mapper
        )


def parts_of(tensor: ttnn.Tensor) -> list[torch.Tensor]:
    """What each chip has."""
    return [ttnn.to_torch(part) for part in ttnn.get_device_tensors(tensor.cpu())]


def integers(*shape: int) -> torch.Tensor:
    """Small ones, the same in each run."""
    return torch.randint(-8, 8, shape, generator=torch.Generator().manual_seed(1)).float()


Case = Callable[[], ttnn.Tensor]
Prepared = tuple[Case, list[torch.Tensor], bool]
"""What is run, what each chip then has, and whether it has to be so exactly."""


def all_gather(mesh: Mesh) -> Prepared:
    """All chips get the parts of all, or of those of their row (axis 1) or column (axis 0).

    Where ttnn has turned the mesh, it is gathered along the rows, and then along the columns. In one, ttnn would wait
    forever: its packets for other rows and columns leave along axis 0 and branch off along axis 1, which on the fabric
    have to be north or south, and then east or west.
    """
    values = integers(1, 1, 64, COLUMNS * mesh.chips)
    x, parts = mesh.split(values, 3), values.chunk(mesh.chips, 3)
    if mesh.axis is None and mesh.is_turned:
        print(f"{'all_gather':<16}along axis 1, then axis 0: ttnn has turned the mesh", flush=True)
        rows = partial(ttnn.all_gather, dim=3, cluster_axis=1)
        return lambda: ttnn.all_gather(rows(x), dim=3, cluster_axis=0), [values] * mesh.chips, True
    if mesh.axis is None:
        return lambda: ttnn.all_gather(x, dim=3), [values] * mesh.chips, True
    _, columns = mesh.device.shape
    places = [divmod(chip, columns) for chip in range(mesh.chips)]
    other = 1 - mesh.axis
    want = [torch.cat([p for p, at in zip(parts, places, strict=True) if at[other] == own[other]], 3) for own in places]
    return lambda: ttnn.all_gather(x, dim=3, cluster_axis=mesh.axis), want, True


def reduce_scatter(mesh: Mesh) -> Prepared:
    """Each chip gets its part of the sum."""
    values = integers(1, mesh.chips, 64, COLUMNS * mesh.chips)
    x = mesh.split(values, 1)
    want = list(values.sum(1, keepdim=True).chunk(mesh.chips, 3))
    return lambda: ttnn.reduce_scatter(x, dim=3), want, True


def all_reduce(mesh: Mesh) -> Prepared:
    """All chips get the sum."""
    values = integers(1, mesh.chips, 64, COLUMNS * mesh.chips)
    x = mesh.split(values, 1)
    return lambda: ttnn.all_reduce(x), [values.sum(1, keepdim=True)] * mesh.chips, True


def point_to_point(mesh: Mesh) -> Prepared:
    """The last chip of a row gets the part of its first one; only that result is looked at."""
    values = integers(1, 1, 64, COLUMNS * mesh.chips)
    x = mesh.split(values, 3)
    _, columns = mesh.device.shape
    first, last = ttnn.MeshCoordinate(0, 0), ttnn.MeshCoordinate(0, columns - 1)
    parts = values.chunk(mesh.chips, 3)
    want = [parts[0] if chip == columns - 1 else torch.empty(0) for chip in range(mesh.chips)]
    return lambda: ttnn.point_to_point(x, first, last, topology=ttnn.Topology.Linear), want, True


def matmul(mesh: Mesh) -> Prepared:
    """Each chip computes its columns of a product; nothing goes over links."""
    a, b = integers(mesh.size, mesh.size), integers(mesh.size, 2 * mesh.size)
    x, y = mesh.copied(a), mesh.split(b, 1)
    return lambda: ttnn.matmul(x, y), list((a @ b).chunk(mesh.chips, 1)), False


def block(mesh: Mesh) -> Prepared:
    """An encoder block: each chip has some of the heads and of the hidden width; two sums go over the links."""
    torch.manual_seed(1)
    w, x = weights(), torch.randn(1, LENGTH, WIDTH).bfloat16().float()
    heads = [w["qkv"].chunk(3, 1), w["qkv_bias"].chunk(3, 1)]  # q, k, v: a chip's heads have to be side by side
    qkv, qkv_bias = (
        torch.cat([part.chunk(mesh.chips, 1)[chip] for chip in range(mesh.chips) for part in parts], 1)
        for parts in heads
    )
    put = {name: mesh.copied(w[name]) for name in ("norm1", "norm1_bias", "norm2", "norm2_bias")}
    put |= {"out_bias": mesh.copied(w["out_bias"]), "down_bias": mesh.copied(w["down_bias"])}
    put |= {"qkv": mesh.split(qkv, 1), "qkv_bias": mesh.split(qkv_bias, 1)}
    put |= {"up": mesh.split(w["up"], 1), "up_bias": mesh.split(w["up_bias"], 1)}
    put |= {"out": mesh.split(w["out"], 0), "down": mesh.split(w["down"], 0)}
    given = mesh.copied(x)

    def run() -> ttnn.Tensor:
        h = ttnn.layer_norm(given, weight=put["norm1"], bias=put["norm1_bias"], epsilon=1e-5)
        h = ttnn.linear(h, put["qkv"], bias=put["qkv_bias"])
        q, k, v = ttnn.transformer.split_query_key_value_and_split_heads(
            h, num_heads=HEADS // mesh.chips, transpose_key=False
        )
        h = ttnn.transformer.scaled_dot_product_attention(q, k, v, is_causal=False)
        h = ttnn.linear(ttnn.transformer.concatenate_heads(h), put["out"])
        y = ttnn.add(given, ttnn.add(ttnn.all_reduce(h), put["out_bias"]))
        h = ttnn.layer_norm(y, weight=put["norm2"], bias=put["norm2_bias"], epsilon=1e-5)
        h = ttnn.linear(h, put["up"], bias=put["up_bias"], activation="gelu")
        h = ttnn.linear(h, put["down"])
        return ttnn.add(y, ttnn.add(ttnn.all_reduce(h), put["down_bias"]))

    return run, [on_torch(x, w)] * mesh.chips, False


CASES: dict[str, Callable[[Mesh], Prepared]] = {
    case.__name__: case for case in (all_gather, reduce_scatter, all_reduce, point_to_point, matmul, block)
}


def check(name: str, got: list[torch.Tensor], want: list[torch.Tensor], *, exact: bool) -> str:
    """How the chips' results agree with torch's.

    Raises:
        SystemExit: they do not.
    """
    if exact:
        if not all(torch.equal(one.float(), other) for one, other in zip(got, want, strict=True) if other.numel()):
            raise SystemExit(f"{name}: differs from torch")
        return "exact"
    pairs = [torch.stack([one.flatten(), other.flatten()]).double() for one, other in zip(got, want, strict=True)]
    pcc = min(float(torch.corrcoef(pair)[0, 1]) for pair in pairs)
    if not pcc >= LEAST_PCC:
        raise SystemExit(f"{name}: PCC {pcc} is below {LEAST_PCC}")
    return f"PCC {pcc:.6f}"


def run(mesh: Mesh, name: str, times: int) -> None:
    """Run a case a number of times, with the same bits each time."""
    case, want, exact = CASES[name](mesh)
    digests, agrees, wall, processor = set(), "", [], []
    for _ in range(times):
        begun, used = time.perf_counter(), time.process_time()
        result = case()
        ttnn.synchronize_device(mesh.device)
        wall.append(time.perf_counter() - begun)
        processor.append(time.process_time() - used)
        got = parts_of(result)
        agrees = check(name, got, want, exact=exact)
        bits = [
            part.view(torch.int16).numpy().tobytes() for part, other in zip(got, want, strict=True) if other.numel()
        ]
        digests.add(hashlib.sha256(b"".join(bits)).hexdigest()[:12])
    if len(digests) > 1:
        raise SystemExit(f"{name}: {times} runs gave {len(digests)} results")
    spent = f"{min(wall):.3f} s, processor {min(processor):.3f} s"
    print(f"{name:<16}{agrees:<14} {times} times  {digests.pop()}  {spent}", flush=True)


def main() -> None:
    """Run the cases that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", default="1x2", help="rows x columns of chips")
    parser.add_argument("--fabric", default="FABRIC_1D", help="of ttnn.FabricConfig")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--size", type=int, default=256, help="of the matmul: SIZE x SIZE by SIZE x 2 SIZE")
    parser.add_argument("--axis", type=int, choices=(0, 1), help="of the mesh, for all_gather alone; without it both")
    given = parser.parse_args()
    rows, columns = (int(part) for part in given.mesh.split("x"))
    begun = time.perf_counter()
    if given.fabric != "DISABLED":
        ttnn.set_fabric_config(getattr(ttnn.FabricConfig, given.fabric))
    device = ttnn.open_mesh_device(ttnn.MeshShape(rows, columns))
    print(f"{rows}x{columns} opened in {time.perf_counter() - begun:.2f} s", flush=True)
    for name in given.only.split(","):
        if name == "point_to_point" and "2D" in given.fabric:
            print(f"{name:<16}left out: ttnn's kernel has headers of a 1D fabric")
            continue
        run(Mesh(device, rows * columns, given.size, given.axis), name, given.times)
    ttnn.close_mesh_device(device)
    print(f"done, {sum(os.times()[:2]):.1f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
