"""Matrix multiplications: formats, batches, transposes, biases, fidelities, program configurations, shardings."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, TOLERANCE, Bench, Body, Group, torch, ttnn

group = Group("matmul")

Shape = tuple[int, ...]


def _matmul(a: Shape, b: Shape, first: str = "bfloat16", second: str = "bfloat16", **options: Any) -> Body:
    def body(bench: Bench) -> Any:
        x, held_x = bench.pair(bench.normal(*a), first)
        y, held_y = bench.pair(bench.normal(*b), second)
        left = held_x.transpose(-2, -1) if options.get("transpose_a") else held_x
        right = held_y.transpose(-2, -1) if options.get("transpose_b") else held_y
        return [(ttnn.matmul(x, y, **options), left @ right)]

    return body


SHAPES: dict[str, tuple[Shape, Shape]] = {
    "one tile": ((1, 1, 32, 32), (1, 1, 32, 32)),
    "tall": ((1, 1, 256, 64), (1, 1, 64, 32)),
    "wide": ((1, 1, 32, 64), (1, 1, 64, 256)),
    "deep": ((1, 1, 32, 512), (1, 1, 512, 32)),
    "square": ((1, 1, 128, 128), (1, 1, 128, 128)),
    "batches": ((2, 3, 64, 32), (2, 3, 32, 64)),
    "one weight": ((3, 1, 64, 96), (1, 1, 96, 64)),
    "odd": ((1, 1, 40, 50), (1, 1, 50, 70)),
    "vector": ((1, 1, 1, 128), (1, 1, 128, 96)),
}
for _what, (_a, _b) in SHAPES.items():
    group.add(f"matmul/{_what}", _matmul(_a, _b))
for _what in ("one tile", "square", "batches", "odd"):
    # Operands of fp32 reach the matrix unit as TF32.
    group.add(f"matmul/{_what} fp32", _matmul(*SHAPES[_what], "float32", "float32"), "float32", 0.01)
for _first in ("bfloat16", "bfloat8_b", "bfloat4_b", "float32"):
    for _second in ("bfloat16", "bfloat8_b", "bfloat4_b"):
        if _first != "bfloat16" or _second != "bfloat16":
            group.add(
                f"matmul/{SHORT[_first]} by {SHORT[_second]}",
                _matmul((1, 1, 64, 128), (1, 1, 128, 64), _first, _second),
                tolerance=TOLERANCE[_first] if _first.endswith("_b") else 0.03,  # the result has the first one's format
            )
group.add("matmul/transposed first", _matmul((1, 1, 64, 96), (1, 1, 64, 32), transpose_a=True))
group.add("matmul/transposed second", _matmul((1, 1, 64, 96), (1, 1, 32, 96), transpose_b=True))
group.add("matmul/transposed both", _matmul((1, 1, 64, 96), (1, 1, 32, 64), transpose_a=True, transpose_b=True))


def _kernel(fidelity: str, wide: bool, dtype: str, approximate: bool = False, packer: bool = False) -> Body:
    def body(bench: Bench) -> Any:
        x, held_x = bench.pair(bench.normal(1, 1, 64, 256), dtype)
        y, held_y = bench.pair(bench.normal(1, 1, 256, 64), dtype)
        chosen = ttnn.init_device_compute_kernel_config(
            bench.device.arch(),
            math_fidelity=getattr(ttnn.MathFidelity, fidelity),
            math_approx_mode=approximate,
            fp32_dest_acc_en=wide,
            packer_l1_acc=packer,
        )
        return [(ttnn.matmul(x, y, compute_kernel_config=chosen), held_x @ held_y)]

    return body


FIDELITY = {"LoFi": 0.1, "HiFi2": 0.04, "HiFi3": 0.03, "HiFi4": 0.02}
NARROW_DST = 0.02
"""What partial sums that are rounded to the 16 bits of Dst add to a deviation, for 256 products."""
for _fidelity, _tolerance in FIDELITY.items():
    for _wide in (False, True):
        for _packer in (False, True):
            _name = f"matmul/{_fidelity} {'32' if _wide else '16'}-bit Dst{' L1 accumulation' if _packer else ''}"
            _allowed = _tolerance if _wide else _tolerance + NARROW_DST
            group.add(_name, _kernel(_fidelity, _wide, "bfloat16", packer=_packer), tolerance=_allowed)
for _fidelity in ("HiFi2", "HiFi4"):
    group.add(f"matmul/{_fidelity} 32-bit Dst fp32", _kernel(_fidelity, True, "float32"), tolerance=FIDELITY[_fidelity])
    group.add(f"matmul/{_fidelity} bfp8", _kernel(_fidelity, True, "bfloat8_b"), tolerance=0.06)

ACTIVATED: dict[str, Any] = {
    "relu": lambda x: torch.relu(x),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "silu": lambda x: torch.nn.functional.silu(x),
}


def _linear(bias: bool, activation: str | None, dtype: str) -> Body:
    def body(bench: Bench) -> Any:
        x, held_x = bench.pair(bench.normal(1, 1, 64, 128), dtype)
        w, held_w = bench.pair(bench.normal(1, 1, 128, 96) / 8, dtype)
        b, held_b = bench.pair(bench.normal(1, 1, 1, 96), dtype)
        want = held_x @ held_w + (held_b if bias else 0)
        got = ttnn.linear(x, w, bias=b if bias else None, activation=activation)
        return [(got, ACTIVATED[activation](want) if activation else want)]

    return body


for _bias in (False, True):
    for _activation in (None, "relu", "gelu", "silu"):
        _name = f"linear/{'bias' if _bias else 'no bias'}{' ' + _activation if _activation else ''}"
        group.add(_name, _linear(_bias, _activation, "bfloat16"), tolerance=0.05)
group.add("linear/bias fp32", _linear(True, None, "float32"), tolerance=0.01)
group.add("linear/bias bfp8", _linear(True, "gelu", "bfloat8_b"), tolerance=FIDELITY["LoFi"])


def _programmed(kind: str, x_cores: int, y_cores: int, m: int, k: int, n: int) -> Body:
    def body(bench: Bench) -> Any:
        x, held_x = bench.pair(bench.normal(1, 1, m, k))
        y, held_y = bench.pair(bench.normal(1, 1, k, n))
        grid = ttnn.CoreCoord(x_cores, y_cores)
        tiles_m, tiles_n = m // 32, n // 32
        if kind == "two-dimensional":
            chosen = ttnn.MatmulMultiCoreReuseMultiCastProgramConfig(
                compute_with_storage_grid_size=grid,
                in0_block_w=2,
                out_subblock_h=1,
                out_subblock_w=1,
                per_core_M=tiles_m // y_cores,
                per_core_N=tiles_n // x_cores,
                transpose_mcast=False,
                fused_activation=None,
            )
        else:
            chosen = ttnn.MatmulMultiCoreReuseMultiCast1DProgramConfig(
                compute_with_storage_grid_size=grid,
                in0_block_w=1,
                out_subblock_h=1,
                out_subblock_w=1,
                per_core_M=tiles_m if kind == "along rows" else tiles_m // (x_cores * y_cores),
                per_core_N=tiles_n // (x_cores * y_cores) if kind == "along rows" else tiles_n,
                fuse_batch=True,
                fused_activation=None,
                mcast_in0=kind == "along rows",
            )
        return [(ttnn.matmul(x, y, program_config=chosen), held_x @ held_y)]

    return body


for _x, _y in ((2, 2), (4, 2)):
    for _kind, _sizes in {
        "two-dimensional": (128, 128, 256),
        "along rows": (64, 128, 256),
        "along columns": (256, 128, 64),
    }.items():
        # With a program's configuration and none of the kernel's, ttnn multiplies with LoFi.
        _body = _programmed(_kind, _x, _y, *_sizes)
        group.add(f"matmul/{_kind} {_x} by {_y} cores", _body, tolerance=FIDELITY["LoFi"])


def _sharded(strategy: str, m: int, k: int, cores: tuple[int, int]) -> Body:
    def body(bench: Bench) -> Any:
        memory = ttnn.create_sharded_memory_config(
            (1, 1, m, k),
            core_grid=ttnn.CoreGrid(y=cores[0], x=cores[1]),
            strategy=getattr(ttnn.ShardStrategy, strategy),
            orientation=ttnn.ShardOrientation.ROW_MAJOR,
        )
        x, held_x = bench.pair(bench.normal(1, 1, m, k), memory=memory)
        y, held_y = bench.pair(bench.normal(1, 1, k, 64))
        got = ttnn.matmul(x, y, memory_config=ttnn.DRAM_MEMORY_CONFIG)
        return [(got, held_x @ held_y)]

    return body


group.add("matmul/first by rows on 4 cores", _sharded("HEIGHT", 128, 64, (2, 2)))
group.add("matmul/first by columns on 4 cores", _sharded("WIDTH", 64, 256, (2, 2)))
group.add("matmul/first by blocks on 4 cores", _sharded("BLOCK", 64, 128, (2, 2)), tolerance=0.03)


@group.case("addmm/bf16", tolerance=0.03)  # two roundings to bf16
def _(bench: Bench) -> Any:
    c, held_c = bench.pair(bench.normal(64, 96))
    x, held_x = bench.pair(bench.normal(64, 128))
    y, held_y = bench.pair(bench.normal(128, 96))
    return [(ttnn.addmm(c, x, y, alpha=0.5, beta=2.0), 2.0 * held_c + 0.5 * (held_x @ held_y))]


@group.case("matmul/result in bfp8", "bfloat8_b")
def _(bench: Bench) -> Any:
    x, held_x = bench.pair(bench.normal(1, 1, 64, 128))
    y, held_y = bench.pair(bench.normal(1, 1, 128, 64))
    return [(ttnn.matmul(x, y, dtype=ttnn.bfloat8_b), held_x @ held_y)]


@group.case("matmul/result in fp32")
def _(bench: Bench) -> Any:
    x, held_x = bench.pair(bench.normal(1, 1, 64, 128))
    y, held_y = bench.pair(bench.normal(1, 1, 128, 64))
    return [(ttnn.matmul(x, y, dtype=ttnn.float32), held_x @ held_y)]


@group.case("matmul/result in L1")
def _(bench: Bench) -> Any:
    x, held_x = bench.pair(bench.normal(1, 1, 64, 128), memory=ttnn.L1_MEMORY_CONFIG)
    y, held_y = bench.pair(bench.normal(1, 1, 128, 64), memory=ttnn.L1_MEMORY_CONFIG)
    return [(ttnn.matmul(x, y, memory_config=ttnn.L1_MEMORY_CONFIG), held_x @ held_y)]
