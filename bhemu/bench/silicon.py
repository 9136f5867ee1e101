"""`bhemu bench --silicon`: estimates held against figures that were measured on cards.

The figures are files in a folder, each of a known form (docs/time.md); a file that is missing is left out. What can be
run is run in timed mode; what a model estimates is named so. No figure of the folder influences an estimate.
"""

from __future__ import annotations

import csv
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bhemu.bench.silicon_kernels import cycles_per_tile
from bhemu.bench.silicon_micro import NotReproduced, measure, slope
from bhemu.bench.silicon_operations import operation, program_time
from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import figure
from bhemu.predict.matmul import Matmul
from bhemu.predict.matmul import predict as predict_matmul
from bhemu.predict.noc import Traffic, cycles, dram_readers, wire

Row = dict[str, str]

EXECUTED: Final = "executed in timed mode"
MODEL: Final = "analytical model"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure and its estimate.

    Attributes:
        group: of figures that are judged together.
        name: which one.
        measured: on a card.
        predicted: the estimate; NaN when there is none.
        why_not: why there is none.
    """

    group: str
    name: str
    measured: float
    predicted: float = math.nan
    why_not: str = ""

    @property
    def error(self) -> float:
        """|predicted / measured - 1|"""
        return abs(self.predicted / self.measured - 1)


@dataclass(frozen=True, slots=True)
class Group:
    """Figures that are judged together.

    Attributes:
        name: of the group.
        how: how its estimates are made.
        median, worst: what the median and the 90th percentile of the errors must not exceed; NaN no goal.
    """

    name: str
    how: str
    median: float = math.nan
    worst: float = math.nan


@dataclass
class Outcome:
    """Errors of a group.

    Attributes:
        group: which.
        figures: all of it.
    """

    group: Group
    figures: list[Figure] = field(default_factory=list)

    @property
    def compared(self) -> list[Figure]:
        """Those with an estimate."""
        return [one for one in self.figures if not one.why_not]

    @property
    def median(self) -> float:
        """Of the errors."""
        return float(np.median([one.error for one in self.compared])) if self.compared else math.nan

    @property
    def worst(self) -> float:
        """90th percentile of the errors."""
        return float(np.percentile([one.error for one in self.compared], 90)) if self.compared else math.nan

    @property
    def why_not(self) -> Counter[str]:
        """Reasons for which figures have no estimate."""
        return Counter(one.why_not for one in self.figures if one.why_not)

    @property
    def holds(self) -> bool:
        """The goals are met. A group without any estimate meets none."""
        goals = ((self.median, self.group.median), (self.worst, self.group.worst))
        return all(math.isnan(goal) or value <= goal for value, goal in goals)


FILES: Final = (
    "core_microbench_blackhole.csv",
    "noc_latency_blackhole.csv",
    "noc_microbench_blackhole.csv",
    "dram_microbench_blackhole.csv",
    "matmul_p150.csv",
    "llk_sfpu_blackhole.csv",
    "ops_blackhole.csv",
    "pgm_dispatch_blackhole.csv",
)
"""The files that are read, as docs/time.md describes them."""


def read(folder: Path, name: str) -> list[Row]:
    """Rows of a file, as text by column; none when the folder does not have it."""
    path = folder / name
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _estimated(group: Group, name: str, measured: str, estimate: Callable[[], float]) -> Figure:
    """A figure whose estimate may be missing, with the reason."""
    try:
        value = float(measured)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        return Figure(group.name, name, math.nan, why_not="the file has no measured value")
    try:
        return Figure(group.name, name, value, estimate())
    except (NotReproduced, ConfigurationError) as error:
        return Figure(group.name, name, value, why_not=error.message)


# --- core_microbench_blackhole.csv ------------------------------------------------------------------------------------

MICRO: Final = Group("core and Tensix micro-benchmarks", EXECUTED, 0.03, 0.15)
MATMUL_TILES: Final = Group("matmul_tiles", MODEL, 0.03, 0.15)
_PHASES: Final = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}
_FLAT: Final = 0.25
"""A slope below it, in cycles, says that nothing depends on the count: there is nothing to compare."""


def _points(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pairs = [pair.split(":") for pair in text.split()]
    return tuple(int(n) for n, _ in pairs), tuple(int(c) for _, c in pairs)


def _micro(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "core_microbench_blackhole.csv"):
        name = f"{row['phase']} {row['variant']} {row['probe']} x{row['unroll']}, {row['dataset']}"
        measured = float(row["slope_cycles_per_block"])
        if row["phase"] == "B":
            phases = _PHASES[row["variant"]]
            call = figure("llk.matmul_tiles.call").value + phases * figure("llk.matmul_tiles.phase").value
            yield MATMUL_TILES, Figure(MATMUL_TILES.name, name, measured, call)
            continue
        if measured < _FLAT:
            yield MICRO, Figure(MICRO.name, name, measured, why_not="the measured time does not depend on the count")
            continue
        progress(f"{row['phase']} {row['probe']}")
        counts, _ = _points(row["points(n:cycles)"])
        numbers = (int(row["unroll"]), int(row["active_threads"]), int(row["thread"]))
        try:
            cycles = measure(row["phase"], row["probe"], *numbers, counts)
        except NotReproduced as error:
            yield MICRO, Figure(MICRO.name, name, measured, why_not=str(error))
            continue
        yield MICRO, Figure(MICRO.name, name, measured, slope(counts, cycles))


# --- noc_latency_blackhole.csv ----------------------------------------------------------------------------------------

ONE_CORE: Final = Group("NoC, one to one and one from one, L1", MODEL, 0.05)
ONE_DRAM: Final = Group("DRAM, one core", MODEL, 0.05)
MULTICAST: Final = Group("NoC, multicast", MODEL, 0.15)
MANY: Final = Group("NoC and DRAM, one core and many, many cores", MODEL, 0.15)
_GRIDS: Final = {4: (2, 2), 9: (3, 3), 25: (5, 5), 64: (8, 8), 109: (11, 10), 110: (11, 10)}


def _grid(row: Row) -> tuple[int, int]:
    """(columns, rows) of the cores that are addressed."""
    count = int(row["num_subordinates"])
    if "ROW" in row["pattern"]:
        return count, 1
    if "COLUMN" in row["pattern"]:
        return 1, count
    return _GRIDS.get(count, (1, 1))


def traffic_of(row: Row) -> Traffic:
    """What a row of the NoC estimator has measured."""
    columns, rows = _grid(row)
    memory = {"L1": "l1", "DRAM_SHARDED": "sharded", "DRAM_INTERLEAVED": "interleaved"}[row["memory"]]
    pattern = row["pattern"]
    return Traffic(
        reads="FROM" in pattern,
        count=int(row["num_transactions"]),
        size=int(row["size_bytes"]),
        destinations=max(int(row["num_subordinates"]), 1),
        columns=columns,
        rows=rows,
        same_axis=row["same_axis"] == "1",
        memory=memory,
        multicast=row["mechanism"].startswith("MULTICAST"),
        linked=row["mechanism"].endswith("LINKED"),
        outside=row["loopback"] == "0",
        stateful=row["stateful"] == "1",
        everybody=pattern.startswith(("ALL", "ROW", "COLUMN")),
        noc=int(row["noc"]),
    )


def _noc_group(traffic: Traffic) -> Group:
    if traffic.multicast:
        return MULTICAST
    if traffic.everybody or (traffic.memory == "l1" and traffic.destinations > 1):
        return MANY
    return ONE_CORE if traffic.memory == "l1" else ONE_DRAM


def _noc(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    progress("NoC latencies")
    for row in read(folder, "noc_latency_blackhole.csv"):
        traffic = traffic_of(row)
        group = _noc_group(traffic)
        columns = ("mechanism", "pattern", "memory", "num_subordinates", "num_transactions", "size_bytes")
        name = " ".join(row[column] for column in columns)
        flags = [flag for flag in ("same_axis", "stateful", "loopback") if row[flag] == "1"]
        name = " ".join([name, *flags, f"noc{row['noc']}"])
        measured = float(row["latency_cycles"])
        if row["note"]:
            yield group, Figure(group.name, name, measured, why_not="not measured: copied from a smaller size")
        elif traffic.multicast and traffic.everybody:
            yield group, Figure(group.name, name, measured, why_not="multicasts of many cores at once are not modelled")
        else:
            yield group, _estimated(group, name, row["latency_cycles"], functools.partial(cycles, traffic))


# --- noc_microbench_blackhole.csv, dram_microbench_blackhole.csv ------------------------------------------------------

FLOWS: Final = Group("NoC, flows that share links and ends", MODEL, 0.15)
READERS: Final = Group("DRAM, 1 to 120 readers", MODEL, 0.15)


def _flows(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    progress("NoC flows")
    for row in read(folder, "noc_microbench_blackhole.csv"):
        name = f"{row['exp']} {row['point']} flow {row['flow']} {row['tx_bytes']} bytes, {row['dataset']}"
        measured = float(row["cycles"])
        reads = row["direction"] == "read"
        count, size = int(row["num_tx"]), int(row["tx_bytes"])
        own = figure("noc.own.issue.read" if reads else "noc.own.issue.write").value
        source, end = (tuple(int(part) for part in row[key].split("-")) for key in ("src_noc0_xy", "dst_noc0_xy"))
        flow, flows = int(row["flow"]), int(row["n_flows"])
        together = 1
        if row["exp"] == "contention":
            together = min(flow + 2, flows)
        elif not reads and flows > 1 and int(row["shared_payload_links"] or 0):
            together = flows
        fixed = figure("noc.own.read.fixed" if reads else "noc.write.fixed").value
        hops = (source[0] != end[0]) * figure("noc.ring.x").value + (source[1] != end[1]) * figure("noc.ring.y").value
        step = max(own, together * wire(size, reads))
        first = fixed + hops * figure("noc.hop").value + wire(size, reads)
        yield FLOWS, Figure(FLOWS.name, name, measured, first + (count - 1) * step)


def _readers(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "dram_microbench_blackhole.csv"):
        name = f"{row['arm']} {row['num_readers']} readers, {row['distinct_banks']} banks, repeat {row['repeat']}"
        rate = dram_readers(int(row["num_readers"]), int(row["distinct_banks"]), int(row["tx_bytes"]))
        yield READERS, Figure(READERS.name, name, float(row["agg_bytes_per_cycle"]), rate)


# --- matmul_p150.csv --------------------------------------------------------------------------------------------------

TUNED: Final = Group("matmul on a P150, tuned, L1-sharded, traced", MODEL, 0.08, 0.20)
TUNED_DRAM: Final = Group("matmul on a P150, tuned, in DRAM, traced", MODEL)
OUT_OF_BOX: Final = Group("matmul on a P150, out of the box, in DRAM, traced", MODEL, 0.12)
_LARGEST: Final = 20480
"""Matmuls of that many rows let the card reduce its clock."""
# What the benchmark's program does with each core's share, (m, k, n) in elements: the divisor of K, output blocks
_DIVISORS: Final = {
    "BFLOAT16": {(256, 384, 384): 2, (384, 384, 384): 4, (384, 384, 512): 2, (384, 512, 512): 2},
    "BFLOAT8_B": {(384, 384, 384): 2, (384, 384, 512): 2},
    "BFLOAT4_B": {(384, 512, 512): 2},
}
_LARGE: Final = {
    512: {"BFLOAT16": (1, 2), "BFLOAT8_B": (1, 2), "BFLOAT4_B": (2, 1)},
    1024: {"BFLOAT16": (2, 4), "BFLOAT8_B": (2, 4), "BFLOAT4_B": (2, 2)},
    2048: {"BFLOAT16": (4, 8), "BFLOAT8_B": (4, 8), "BFLOAT4_B": (4, 4)},
}


def matmul_of(row: Row) -> Matmul:
    """The program of a row, as the benchmark configures it; for ttnn's own choice the same is taken."""
    m, k, n = (int(row[name]) for name in ("M", "K", "N"))
    columns, rows, dtype = int(row["grid_x"]), int(row["grid_y"]), row["dtype"]
    share = (m // rows, k // columns, n // columns)
    divisor, blocks = _DIVISORS.get(dtype, {}).get(share, 1), 1
    if share[0] == share[1] == share[2] and share[0] in _LARGE:
        divisor, blocks = _LARGE[share[0]][dtype]
    return Matmul(m, k, n, columns, rows, dtype, row["fidelity"], divisor, blocks, blocks)


def _matmul_cycles(matmul: Matmul) -> float:
    return predict_matmul(matmul).cycles


def _matmuls(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    progress("matmuls")
    for row in read(folder, "matmul_p150.csv"):
        if row["trace"] != "True" or row["table"].startswith("older"):
            continue  # with the host's dispatch in it; replaced by a later table
        sharded = row["in0_sharded"] == "True"
        group = OUT_OF_BOX if row["table"].startswith("out_of_box") else TUNED if sharded else TUNED_DRAM
        grid = f"{row['grid_x']}x{row['grid_y']}"
        name = f"{row['M']}x{row['K']}x{row['N']} {row['dtype']} {row['fidelity']} on {grid}"
        measured = float(row["device_cycles"])
        if int(row["M"]) >= _LARGEST:
            yield group, Figure(group.name, name, measured, why_not="the card reduces its clock in so large a matmul")
            continue
        estimate = functools.partial(_matmul_cycles, matmul_of(row))
        yield group, _estimated(group, name, row["device_cycles"], estimate)


# --- llk_sfpu_blackhole.csv, and files that nothing here estimates ----------------------------------------------------

KERNELS: Final = Group("SFPU, pack, unpack and tilize kernels", EXECUTED, 0.10)
OPERATIONS: Final = Group("other operations of ttnn", MODEL, 0.25)
DISPATCH: Final = Group("dispatch of programs", MODEL)


def _kernels(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "llk_sfpu_blackhole.csv"):
        measured = row["cycles_per_tile_after"] or row["cycles_per_tile_before"]
        kernel = (row["op"], row["variant"], row["data_format"])
        progress(f"the kernel {row['op']}")
        name = " ".join(word for word in kernel if word)
        yield KERNELS, _estimated(KERNELS, name, measured, functools.partial(cycles_per_tile, *kernel))


def _operations(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "ops_blackhole.csv"):
        words = (row[column] for column in ("op", "shape", "dtype", "grid"))
        name = " ".join(word for word in words if word)
        yield OPERATIONS, _estimated(OPERATIONS, name, row["value"], functools.partial(operation, row))


def _dispatch(folder: Path, progress: Callable[[str], object]) -> Iterator[tuple[Group, Figure]]:
    for row in read(folder, "pgm_dispatch_blackhole.csv"):
        name = row["benchmark"]
        yield DISPATCH, _estimated(DISPATCH, name, row["iteration_us"], functools.partial(program_time, name))


_SOURCES: Final = {
    _micro: (MICRO, MATMUL_TILES),
    _noc: (ONE_CORE, ONE_DRAM, MULTICAST, MANY),
    _flows: (FLOWS,),
    _readers: (READERS,),
    _matmuls: (TUNED, TUNED_DRAM, OUT_OF_BOX),
    _kernels: (KERNELS,),
    _operations: (OPERATIONS,),
    _dispatch: (DISPATCH,),
}
GROUPS: Final = tuple(group for groups in _SOURCES.values() for group in groups)


def compare(folder: Path, only: list[str], progress: Callable[[str], object] = lambda text: None) -> list[Outcome]:
    """Estimate every figure of a folder.

    Args:
        folder: with files of the forms that docs/time.md describes.
        only: beginnings of names of groups; empty: all.
        progress: called now and then with what is being estimated.

    Returns:
        A group each that has figures, in the order of `GROUPS`.

    Raises:
        ConfigurationError: the folder has no such file.
    """
    if not any((folder / name).is_file() for name in FILES):
        raise ConfigurationError(
            f"{folder} holds no figures of silicon", remedy="name a folder with files such as noc_latency_blackhole.csv"
        )
    outcomes = {group.name: Outcome(group) for group in GROUPS}
    for source, groups in _SOURCES.items():
        if only and not any(group.name.startswith(name) for group in groups for name in only):
            continue
        for group, one in source(folder, progress):
            if not only or any(group.name.startswith(name) for name in only):
                outcomes[group.name].figures.append(one)
    return [outcome for outcome in outcomes.values() if outcome.figures]
