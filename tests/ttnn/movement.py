"""Moving data: layouts, shapes, slices, concatenation, gathering, embedding, shardings, memory."""

from __future__ import annotations

from typing import Any

from tests.ttnn.case import SHORT, Bench, Body, Group, torch, ttnn

group = Group("movement")

Step = Any


def _move(shape: tuple[int, ...], got: Step, want: Step, dtype: str = "bfloat16", rows: bool = False) -> Body:
    def body(bench: Bench) -> Any:
        values = bench.integers(0, 200, *shape) if dtype.startswith(("int", "uint")) else bench.normal(*shape)
        x, held = bench.pair(values, dtype, rows=rows)
        return [(got(x), want(held))]

    return body


def _add(name: str, shape: tuple[int, ...], got: Step, want: Step, *dtypes: str, rows: bool = False) -> None:
    for dtype in dtypes or ("bfloat16",):
        variant = f"{name} {SHORT.get(dtype, dtype)}{' row-major' if rows else ''}"
        group.add(variant, _move(shape, got, want, dtype, rows), tolerance=0.0)


ALL = ("bfloat16", "float32", "bfloat8_b", "int32", "uint16", "uint32")
for _dtype in ALL:
    if _dtype != "bfloat8_b":
        _add(
            "to_layout/tiles",
            (1, 2, 40, 70),
            lambda x: ttnn.to_layout(x, ttnn.TILE_LAYOUT),
            lambda x: x,
            _dtype,
            rows=True,
        )
        _add("to_layout/rows", (1, 2, 40, 70), lambda x: ttnn.to_layout(x, ttnn.ROW_MAJOR_LAYOUT), lambda x: x, _dtype)
_add("tilize/plain", (1, 1, 64, 96), lambda x: ttnn.tilize(x), lambda x: x, "bfloat16", "float32", "int32", rows=True)
_add("untilize/plain", (1, 1, 64, 96), lambda x: ttnn.untilize(x), lambda x: x, "bfloat16", "float32", "int32")
_add("tilize_with_zero_padding/odd", (1, 1, 40, 50), lambda x: ttnn.tilize_with_zero_padding(x), lambda x: x, rows=True)
_add(
    "untilize_with_unpadding/odd",
    (1, 1, 64, 64),
    lambda x: ttnn.untilize_with_unpadding(x, [0, 0, 39, 49]),
    lambda x: x[..., :40, :50],
)
for _a, _b in ((-2, -1), (1, 2), (0, 1), (1, 3)):
    _add(
        f"transpose/{_a} {_b}",
        (2, 3, 64, 32),
        lambda x, a=_a, b=_b: ttnn.transpose(x, a, b),
        lambda x, a=_a, b=_b: x.transpose(a, b),
    )
_add(
    "transpose/last two",
    (1, 2, 64, 96),
    lambda x: ttnn.transpose(x, -2, -1),
    lambda x: x.transpose(-2, -1),
    "float32",
    "int32",
)
group.add(
    "transpose/last two bfp8",
    _move((1, 2, 64, 96), lambda x: ttnn.transpose(x, -2, -1), lambda x: x.transpose(-2, -1), "bfloat8_b"),
    "bfloat8_b",  # other numbers share an exponent then
)
for _order in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3), (0, 1, 3, 2)):
    _name = "".join(map(str, _order))
    _add(
        f"permute/{_name}",
        (2, 3, 32, 64),
        lambda x, o=_order: ttnn.permute(x, o),
        lambda x, o=_order: x.permute(o),
        "bfloat16",
        "float32",
    )
_add(
    "permute/0213", (2, 3, 32, 64), lambda x: ttnn.permute(x, (0, 2, 1, 3)), lambda x: x.permute(0, 2, 1, 3), rows=True
)
_add("permute/201", (4, 32, 64), lambda x: ttnn.permute(x, (2, 0, 1)), lambda x: x.permute(2, 0, 1))
for _shape in ((1, 1, 128, 32), (4, 32, 32), (64, 64), (1, 4, 16, 64), (2, 2, 32, 32)):
    _name = " ".join(map(str, _shape))
    _add(f"reshape/{_name}", (1, 2, 32, 64), lambda x, s=_shape: ttnn.reshape(x, s), lambda x, s=_shape: x.reshape(s))
_add("reshape/100 41", (1, 1, 82, 50), lambda x: ttnn.reshape(x, (100, 41)), lambda x: x.reshape(100, 41), rows=True)
_add("reshape/100 41", (1, 1, 82, 50), lambda x: ttnn.reshape(x, (100, 41)), lambda x: x.reshape(100, 41), "float32")
_add("squeeze/1", (2, 1, 32, 64), lambda x: ttnn.squeeze(x, 1), lambda x: x.squeeze(1))
_add("unsqueeze/0", (3, 32, 64), lambda x: ttnn.unsqueeze(x, 0), lambda x: x.unsqueeze(0))
_add("unsqueeze_to_4D/2", (32, 64), lambda x: ttnn.unsqueeze_to_4D(x), lambda x: x.reshape(1, 1, 32, 64))
_add("view/split", (1, 1, 64, 64), lambda x: ttnn.view(x, (2, 32, 64)), lambda x: x.reshape(2, 32, 64))
for _where, _pick in {
    "tiles": (slice(0, 1), slice(0, 2), slice(32, 64), slice(0, 64)),
    "rows": (slice(0, 2), slice(1, 3), slice(5, 37), slice(0, 96)),
    "inside": (slice(0, 2), slice(0, 1), slice(3, 41), slice(7, 90)),
}.items():
    _add(f"slice/{_where}", (2, 3, 64, 96), lambda x, p=_pick: x[p], lambda x, p=_pick: x[p], "bfloat16", "float32")
    _add(f"slice/{_where}", (2, 3, 64, 96), lambda x, p=_pick: x[p], lambda x, p=_pick: x[p], rows=True)
_add(
    "slice/steps",
    (1, 2, 64, 96),
    lambda x: ttnn.slice(x, [0, 0, 0, 0], [1, 2, 64, 96], [1, 1, 2, 3]),
    lambda x: x[:, :, ::2, ::3],
    rows=True,
)
_add("narrow/2", (1, 1, 64, 256), lambda x: ttnn.narrow(x, 2, 32, 32), lambda x: x.narrow(2, 32, 32))
_add("chunk/2", (1, 2, 64, 96), lambda x: ttnn.chunk(x, 2, 2)[1], lambda x: torch.chunk(x, 2, 2)[1])
for _dim in (0, 1, 2, 3):
    _add(
        f"concat/{_dim}",
        (2, 2, 32, 64),
        lambda x, d=_dim: ttnn.concat([x, x], d),
        lambda x, d=_dim: torch.cat([x, x], d),
        "bfloat16",
        "float32",
    )
_add("concat/odd", (1, 1, 20, 30), lambda x: ttnn.concat([x, x, x], -1), lambda x: torch.cat([x, x, x], -1))
_add("concat/3", (1, 2, 32, 48), lambda x: ttnn.concat([x, x], 3), lambda x: torch.cat([x, x], 3), rows=True)
_add("stack/0", (32, 64), lambda x: ttnn.stack([x, x], 0), lambda x: torch.stack([x, x], 0))
_add("repeat/2 1 3 1", (1, 2, 32, 64), lambda x: ttnn.repeat(x, (2, 1, 3, 1)), lambda x: x.repeat(2, 1, 3, 1))
_add(
    "repeat/1 1 1 2", (1, 2, 32, 64), lambda x: ttnn.repeat(x, (1, 1, 1, 2)), lambda x: x.repeat(1, 1, 1, 2), rows=True
)
for _dim in (0, 1, 2):
    _add(
        f"repeat_interleave/{_dim}",
        (2, 2, 32, 64),
        lambda x, d=_dim: ttnn.repeat_interleave(x, 2, d),
        lambda x, d=_dim: x.repeat_interleave(2, d),
    )
_add("expand/3", (1, 1, 32, 64), lambda x: ttnn.expand(x, (3, 2, 32, 64)), lambda x: x.expand(3, 2, 32, 64))
_add("roll/2", (1, 1, 64, 64), lambda x: ttnn.roll(x, 5, 2), lambda x: torch.roll(x, 5, 2))
_add(
    "pad/value",
    (1, 1, 40, 50),
    lambda x: ttnn.pad(x, [(0, 0), (0, 1), (0, 24), (0, 14)], 1.5),
    lambda x: torch.nn.functional.pad(x, (0, 14, 0, 24, 0, 1), value=1.5),
    rows=True,
)
_add(
    "pad/tiles",
    (1, 1, 32, 64),
    lambda x: ttnn.pad(x, [(0, 0), (0, 1), (0, 32), (0, 32)], 0.0),
    lambda x: torch.nn.functional.pad(x, (0, 32, 0, 32, 0, 1)),
)
_add(
    "pad/front",
    (1, 1, 30, 64),
    lambda x: ttnn.pad(x, [(0, 0), (0, 0), (2, 3), (0, 0)], 0.0),
    lambda x: torch.nn.functional.pad(x, (0, 0, 2, 3)),
    rows=True,
)
_add(
    "fold/2",
    (1, 8, 8, 32),
    lambda x: ttnn.fold(x, 2, 2),
    lambda x: x.reshape(1, 4, 2, 4, 2, 32).permute(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, 128),
    rows=True,
)
_add(
    "clone/to L1",
    (1, 2, 64, 64),
    lambda x: ttnn.clone(x, memory_config=ttnn.L1_MEMORY_CONFIG),
    lambda x: x,
    "bfloat16",
    "float32",
    "bfloat8_b",
)
_add(
    "to_memory_config/L1 and back",
    (1, 2, 64, 64),
    lambda x: ttnn.to_memory_config(ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG), ttnn.DRAM_MEMORY_CONFIG),
    lambda x: x,
    "bfloat16",
    "float32",
    "int32",
)
_add("move/L1", (1, 2, 64, 64), lambda x: ttnn.move(ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)), lambda x: x)
_add("assign/L1", (1, 2, 64, 64), lambda x: ttnn.assign(x, memory_config=ttnn.L1_MEMORY_CONFIG), lambda x: x)
_add(
    "reallocate/L1",
    (1, 2, 64, 64),
    lambda x: ttnn.reallocate(ttnn.to_memory_config(x, ttnn.L1_MEMORY_CONFIG)),
    lambda x: x,
)


def _sharded(strategy: str, cores: tuple[int, int], orientation: str, dtype: str, between: str | None) -> Body:
    """To a sharding, through an operation there, and back."""

    def body(bench: Bench) -> Any:
        shape = (1, 1, 128, 256)
        memory = ttnn.create_sharded_memory_config(
            shape,
            core_grid=ttnn.CoreGrid(y=cores[0], x=cores[1]),
            strategy=getattr(ttnn.ShardStrategy, strategy),
            orientation=getattr(ttnn.ShardOrientation, orientation),
        )
        x, held = bench.pair(bench.normal(*shape), dtype)
        placed = ttnn.interleaved_to_sharded(x, memory)
        if between == "relu":
            placed, held = ttnn.relu(placed), torch.relu(held)
        elif between == "add":
            placed, held = ttnn.add(placed, placed), held + held
        elif between == "reshard":
            other = ttnn.create_sharded_memory_config(
                shape,
                core_grid=ttnn.CoreGrid(y=1, x=4),
                strategy=ttnn.ShardStrategy.WIDTH if strategy == "HEIGHT" else ttnn.ShardStrategy.HEIGHT,
                orientation=ttnn.ShardOrientation.ROW_MAJOR,
            )
            placed = ttnn.reshard(placed, other)
        return [(ttnn.sharded_to_interleaved(placed, ttnn.DRAM_MEMORY_CONFIG), held)]

    return body


for _strategy, _cores in (("HEIGHT", (2, 2)), ("WIDTH", (2, 4)), ("BLOCK", (2, 4))):
    for _orientation in ("ROW_MAJOR", "COL_MAJOR"):
        for _between in (None, "relu", "add"):
            _cores_used = _cores if _orientation == "ROW_MAJOR" or _strategy != "BLOCK" else (4, 2)
            _how = f"{_strategy} {_orientation.replace('_', '-')} {_between or ''}".lower().strip()
            _name = f"sharded/{_how}"
            group.add(
                _name,
                _sharded(_strategy, _cores_used, _orientation, "bfloat16", _between),
                tolerance=0.01 if _between else 0.0,
            )
    group.add(
        f"sharded/{_strategy.lower()} fp32", _sharded(_strategy, _cores, "ROW_MAJOR", "float32", "relu"), tolerance=0.0
    )
    group.add(
        f"sharded/{_strategy.lower()} bfp8",
        _sharded(_strategy, _cores, "ROW_MAJOR", "bfloat8_b", "add"),
        tolerance=0.01,
    )
for _strategy in ("HEIGHT", "WIDTH"):
    group.add(
        f"reshard/from {_strategy.lower()}",
        _sharded(_strategy, (2, 2), "ROW_MAJOR", "bfloat16", "reshard"),
        tolerance=0.0,
    )


@group.case("embedding/rows", tolerance=0.0)
def _(bench: Bench) -> Any:
    table, held = bench.pair(bench.normal(64, 96), rows=True)
    places = bench.integers(0, 64, 2, 32)
    return [(ttnn.embedding(bench.put(places, "uint32", rows=True), table), held[places.long()])]


@group.case("embedding/tiles", tolerance=0.0)
def _(bench: Bench) -> Any:
    table, held = bench.pair(bench.normal(64, 96), rows=True)
    places = bench.integers(0, 64, 1, 64)
    got = ttnn.embedding(bench.put(places, "uint32", rows=True), table, layout=ttnn.TILE_LAYOUT)
    return [(got, held[places.long()])]


@group.case("gather/last", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 1, 32, 128))
    places = bench.integers(0, 128, 1, 1, 32, 64)
    return [(ttnn.gather(x, -1, bench.put(places, "uint16")), torch.gather(held, -1, places.long()))]


@group.case("scatter/last", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(1, 1, 32, 64), rows=True)
    places = torch.stack([bench.permutation(64)[:32] for _ in range(32)]).reshape(1, 1, 32, 32).int()
    source, held_source = bench.pair(bench.normal(1, 1, 32, 32), rows=True)
    got = ttnn.scatter(x, -1, bench.put(places, "int32", rows=True), source)
    return [(got, held.scatter(-1, places.long(), held_source))]


@group.case("index_fill/rows", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(4, 8, 32, 32), rows=True)
    places = bench.put(torch.tensor([0, 2], dtype=torch.int32), "uint32", rows=True)
    return [(ttnn.index_fill(x, 0, places, 1.5), held.index_fill(0, torch.tensor([0, 2]), 1.5))]


@group.case("indexed_fill/batches", tolerance=0.0)
def _(bench: Bench) -> Any:
    x, held = bench.pair(bench.normal(4, 1, 32, 32), rows=True)
    y, held_y = bench.pair(bench.normal(2, 1, 32, 32), rows=True)
    places = bench.put(torch.tensor([[[[1, 3]]]], dtype=torch.int32), "uint32", rows=True)
    want = held.clone()
    want[[1, 3]] = held_y
    return [(ttnn.indexed_fill(places, x, y), want)]


@group.case("nonzero/rows", tolerance=0.0)
def _(bench: Bench) -> Any:
    values = (bench.uniform(0, 1, 1, 1, 1, 64) > 0.6).float()
    count, places = ttnn.nonzero(bench.put(values, rows=True))
    found = int(ttnn.to_torch(count).reshape(-1)[0])
    want = torch.nonzero(values.reshape(-1)).reshape(-1)
    listed = ttnn.to_torch(places).reshape(-1, 4)[: len(want), 3]  # four indices a place
    return [(torch.tensor([found]), torch.tensor([len(want)])), (listed, want)]


for _dtype in ("bfloat16", "float32"):
    group.add(
        f"full/{SHORT[_dtype]}",
        lambda bench, d=_dtype: [
            (
                ttnn.full((2, 32, 64), 1.5, dtype=getattr(ttnn, d), layout=ttnn.TILE_LAYOUT, device=bench.device),
                torch.full((2, 32, 64), 1.5),
            )
        ],
        tolerance=0.0,
    )
    group.add(
        f"full_like/{SHORT[_dtype]}",
        lambda bench, d=_dtype: [
            (ttnn.full_like(bench.put(bench.normal(2, 32, 64), d), 2.5), torch.full((2, 32, 64), 2.5))
        ],
        tolerance=0.0,
    )
    group.add(
        f"zeros_like/{SHORT[_dtype]}",
        lambda bench, d=_dtype: [(ttnn.zeros_like(bench.put(bench.normal(2, 32, 64), d)), torch.zeros(2, 32, 64))],
        tolerance=0.0,
    )
    group.add(
        f"arange/{SHORT[_dtype]}",
        lambda bench, d=_dtype: [
            (ttnn.arange(0, 64, 2, dtype=getattr(ttnn, d), device=bench.device), torch.arange(0, 64, 2))
        ],
        tolerance=0.0,
    )
