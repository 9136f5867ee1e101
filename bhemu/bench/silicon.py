"""`bhemu bench --silicon`: estimates held against figures that were measured on cards.

The figures are files in a folder, each of a known form (docs/time.md); a file that is missing is left out. What can be
run is run in timed mode; what a model estimates is named so. No figure of the folder influences an estimate.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from bhemu.bench.silicon_kernels import cycles_per_tile
from bhemu.bench.silicon_micro import NotReproduced, measure, slope
from bhemu.bench.silicon_operations import operation, program_time
from bhemu.bench.silicon_rows import Row, read
from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import figure
from bhemu.machine.state import THREADS
from bhemu.predict.matmul import PHASES, Matmul
from bhemu.predict.matmul import predict as predict_matmul
from bhemu.predict.noc import Traffic, cycles, dram_readers, wire

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


@dataclass(frozen=True, slots=True)
class Case:
    """What a row has measured.

    Attributes:
        group: that it belongs to.
        name: which figure.
        measured: on a card.
        estimate: gives the estimate; raises NotReproduced or ConfigurationError when there is none.
    """

    group: Group
    name: str
    measured: float
    estimate: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Source:
    """A file of figures.

    Attributes:
        file: its name.
        cases: what a row has measured; nothing for a row that is not for an emulator.
        groups: that its rows belong to; the first has the rows that cannot be read.
    """

    file: str
    cases: Callable[[Row], Iterator[Case]]
    groups: tuple[Group, ...]


def _estimated(case: Case) -> Figure:
    """A figure whose estimate may be missing, with the reason."""
    known = (case.group.name, case.name, case.measured)
    try:
        value = case.estimate()
    except (NotReproduced, ConfigurationError) as error:
        return Figure(*known, why_not=error.message)
    except ArithmeticError:
        value = math.nan
    if not math.isfinite(value):
        return Figure(*known, why_not="the model gives no number")
    return Figure(*known, value)


def _figures(folder: Path, source: Source, progress: Callable[[str], object]) -> Iterator[Figure]:
    """All figures of a file."""
    first = source.groups[0].name
    if not (folder / source.file).exists():
        return
    rows = read(folder, source.file)
    if not rows:
        yield Figure(first, source.file, math.nan, why_not=f"{source.file} has no rows")
    for row in rows:
        try:
            for case in source.cases(row):
                progress(case.name)
                yield _estimated(case)
        except NotReproduced as error:
            yield Figure(first, row.place, math.nan, why_not=error.message)


# --- core_microbench_blackhole.csv ------------------------------------------------------------------------------------

MICRO: Final = Group("core and Tensix micro-benchmarks", EXECUTED, 0.03, 0.15)
MATMUL_TILES: Final = Group("matmul_tiles", MODEL, 0.03, 0.15)
_FLAT: Final = 0.25
"""A slope below it, in cycles, says that nothing depends on the count: there is nothing to compare."""
_LONGEST: Final = 1 << 14
"""More instructions in a block are too long for a program."""


def _refuse(why: str) -> Callable[[], float]:
    """An estimate that is not made."""

    def estimate() -> float:
        raise NotReproduced(why)

    return estimate


def _points(row: Row) -> tuple[int, ...]:
    """Counts of the points of a series."""
    text = row["points(n:cycles)"]
    counts = tuple(int(n) for n in re.findall(r"(\d+):\d+(?:\s|$)", text))
    if len(counts) < 2 or len(counts) != len(text.split()) or len(set(counts)) == 1:
        raise NotReproduced(f"{row.place}: points(n:cycles) is {text!r}, no series of counts and cycles")
    return counts


def _series(row: Row) -> float:
    """Cycles of a further block of a series."""
    counts = _points(row)
    threads = row.whole("active_threads", 1)
    if threads > THREADS:
        raise NotReproduced(f"{row.place}: there are no {threads} threads")
    numbers = (row.whole("unroll", most=_LONGEST), threads, row.whole("thread", 0, THREADS - 1))
    return slope(counts, measure(row["phase"], row["probe"], *numbers, counts))


def _matmul_tiles(row: Row) -> float:
    phases = PHASES[row.known("variant", PHASES)]
    return figure("llk.matmul_tiles.call").value + phases * figure("llk.matmul_tiles.phase").value


def _micro(row: Row) -> Iterator[Case]:
    name = f"{row['phase']} {row['variant']} {row['probe']} x{row['unroll']}, {row.get('dataset', '')}"
    measured = row.number("slope_cycles_per_block")
    if row["phase"] == "B":
        yield Case(MATMUL_TILES, name, measured, functools.partial(_matmul_tiles, row))
    elif measured < _FLAT:
        yield Case(MICRO, name, measured, _refuse("the measured time does not depend on the count"))
    else:
        yield Case(MICRO, name, measured, functools.partial(_series, row))


# --- noc_latency_blackhole.csv ----------------------------------------------------------------------------------------

ONE_CORE: Final = Group("NoC, one to one and one from one, L1", MODEL, 0.05)
ONE_DRAM: Final = Group("DRAM, one core", MODEL, 0.05)
MULTICAST: Final = Group("NoC, multicast", MODEL, 0.15)
MANY: Final = Group("NoC and DRAM, one core and many, many cores", MODEL, 0.15)
_GRIDS: Final = {109: (11, 10), 110: (11, 10), 119: (12, 10), 120: (12, 10), 129: (13, 10), 130: (13, 10)}
"""Grids of all cores, some without the core that addresses the others; smaller ones are squares."""
_MEMORY: Final = {"L1": "l1", "DRAM_SHARDED": "sharded", "DRAM_INTERLEAVED": "interleaved"}
_MECHANISMS: Final = {"UNICAST": 0, "MULTICAST": 1, "MULTICAST_LINKED": 1}
_PATTERN: Final = re.compile("(ONE|ALL|ROW|COLUMN)_(TO|FROM)_(ONE|ALL|ROW|COLUMN)|(ROW|COLUMN)")


def _grid(row: Row) -> tuple[int, int]:
    """(columns, rows) of the cores that are addressed."""
    count = max(row.whole("num_subordinates"), 1)
    if "ROW" in row["pattern"]:
        return count, 1
    if "COLUMN" in row["pattern"]:
        return 1, count
    side = math.isqrt(count)
    if count not in _GRIDS and side * side != count:
        raise NotReproduced(f"how {count} cores lie is not known")
    return _GRIDS.get(count, (side, side))


def traffic_of(row: Row) -> Traffic:
    """What a row of the NoC estimator has measured.

    Raises:
        NotReproduced: it says something that is not known here.
    """
    mechanism, pattern = row.known("mechanism", _MECHANISMS), row["pattern"]
    if not _PATTERN.fullmatch(pattern):
        raise NotReproduced(f"pattern {pattern!r} is not known")
    columns, rows = _grid(row)
    return Traffic(
        reads="FROM" in pattern,
        count=row.whole("num_transactions", 1),
        size=row.whole("size_bytes", 1),
        destinations=max(row.whole("num_subordinates"), 1),
        columns=columns,
        rows=rows,
        same_axis=row["same_axis"] == "1",
        memory=_MEMORY[row.known("memory", _MEMORY)],
        multicast=_MECHANISMS[mechanism] == 1,
        linked=mechanism.endswith("LINKED"),
        outside=row["loopback"] == "0",
        stateful=row["stateful"] == "1",
        everybody=pattern.startswith(("ALL", "ROW", "COLUMN")),
        noc=int(row.known("noc", {"0": 0, "1": 1})),
    )


def _noc_group(traffic: Traffic) -> Group:
    if traffic.multicast:
        return MULTICAST
    if traffic.everybody or (traffic.memory == "l1" and traffic.destinations > 1):
        return MANY
    return ONE_CORE if traffic.memory == "l1" else ONE_DRAM


def _noc(row: Row) -> Iterator[Case]:
    traffic = traffic_of(row)
    columns = ("mechanism", "pattern", "memory", "num_subordinates", "num_transactions", "size_bytes")
    name = " ".join(row[column] for column in columns)
    flags = [flag for flag in ("same_axis", "stateful", "loopback") if row[flag] == "1"]
    name = " ".join([name, *flags, f"noc{row['noc']}"])
    estimate: Callable[[], float] = functools.partial(cycles, traffic)
    if row["note"]:
        estimate = _refuse("not measured: copied from a smaller size")
    elif traffic.multicast and traffic.everybody and min(traffic.columns, traffic.rows) > 1:
        estimate = _refuse("multicasts of the cores of many rows and columns at once are not modelled")
    yield Case(_noc_group(traffic), name, row.measured("latency_cycles"), estimate)


# --- noc_microbench_blackhole.csv, dram_microbench_blackhole.csv ------------------------------------------------------

FLOWS: Final = Group("NoC, flows that share links and ends", MODEL, 0.15)
READERS: Final = Group("DRAM, 1 to 120 readers", MODEL, 0.15)


def _place(row: Row, column: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)-(\d+)", row[column].strip())
    if found is None:
        raise NotReproduced(f"{row.place}: {column} is {row[column]!r}, not a place such as 1-2")
    return int(found[1]), int(found[2])


def _flow(row: Row) -> float:
    """Cycles of one flow beside others."""
    reads = row["direction"] == "read"
    if not reads and row["direction"] not in ("", "write") and not row["direction"].isdigit():
        raise NotReproduced(f"direction {row['direction']!r} is not known")
    count, size = row.whole("num_tx", 1), row.whole("tx_bytes", 1)
    own = figure("noc.own.issue.read" if reads else "noc.own.issue.write").value
    source, end = _place(row, "src_noc0_xy"), _place(row, "dst_noc0_xy")
    flow, flows = row.whole("flow"), row.whole("n_flows", 1)
    together = 1
    if row["exp"] == "contention":
        together = min(flow + 2, flows)
    elif not reads and flows > 1 and row["shared_payload_links"].strip() not in ("", "0"):
        together = flows
    fixed = figure("noc.own.read.fixed" if reads else "noc.write.fixed").value
    hops = (source[0] != end[0]) * figure("noc.ring.x").value + (source[1] != end[1]) * figure("noc.ring.y").value
    step = max(own, together * wire(size, reads))
    first = fixed + hops * figure("noc.hop").value + wire(size, reads)
    return first + (count - 1) * step


def _flows(row: Row) -> Iterator[Case]:
    name = f"{row['exp']} {row.get('point', '')} flow {row['flow']} {row['tx_bytes']} bytes, {row.get('dataset', '')}"
    yield Case(FLOWS, name, row.measured("cycles"), functools.partial(_flow, row))


def _readers(row: Row) -> Iterator[Case]:
    name = f"{row['num_readers']} readers, {row['distinct_banks']} banks, repeat {row.get('repeat', '')}"
    numbers = (row.whole("num_readers", 1), row.whole("distinct_banks", 1), row.whole("tx_bytes", 1))
    yield Case(READERS, name, row.measured("agg_bytes_per_cycle"), functools.partial(dram_readers, *numbers))


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
    """The program of a row, as the benchmark configures it; for ttnn's own choice the same is taken.

    Raises:
        NotReproduced: the row has no size, or no grid.
    """
    m, k, n = (row.whole(name, 1) for name in ("M", "K", "N"))
    columns, rows, dtype = row.whole("grid_x", 1), row.whole("grid_y", 1), row["dtype"]
    share = (m // rows, k // columns, n // columns)
    divisor, blocks = _DIVISORS.get(dtype, {}).get(share, 1), 1
    if share[0] == share[1] == share[2] and share[0] in _LARGE:
        divisor, blocks = _LARGE[share[0]].get(dtype, (1, 1))
    return Matmul(m, k, n, columns, rows, dtype, row["fidelity"], divisor, blocks, blocks)


def _matmul_cycles(row: Row) -> float:
    return predict_matmul(matmul_of(row)).cycles


def _matmuls(row: Row) -> Iterator[Case]:
    if row["trace"] != "True" or row["table"].startswith("older"):
        return  # with the host's dispatch in it; replaced by a later table
    sharded = row["in0_sharded"] == "True"
    group = OUT_OF_BOX if row["table"].startswith("out_of_box") else TUNED if sharded else TUNED_DRAM
    name = f"{row['M']}x{row['K']}x{row['N']} {row['dtype']} {row['fidelity']} on {row['grid_x']}x{row['grid_y']}"
    estimate: Callable[[], float] = functools.partial(_matmul_cycles, row)
    if row.whole("M") >= _LARGEST:
        estimate = _refuse("the card reduces its clock in so large a matmul")
    yield Case(group, name, row.measured("device_cycles"), estimate)


# --- llk_sfpu_blackhole.csv, and files that nothing here estimates ----------------------------------------------------

KERNELS: Final = Group("SFPU, pack, unpack and tilize kernels", EXECUTED, 0.10)
OPERATIONS: Final = Group("other operations of ttnn", MODEL, 0.25)
DISPATCH: Final = Group("dispatch of programs", MODEL)


def _kernels(row: Row) -> Iterator[Case]:
    column = "cycles_per_tile_after" if row["cycles_per_tile_after"].strip() else "cycles_per_tile_before"
    kernel = (row["op"], row["variant"], row["data_format"])
    name = " ".join(word for word in kernel if word)
    yield Case(KERNELS, name, row.measured(column), functools.partial(cycles_per_tile, *kernel))


def _operations(row: Row) -> Iterator[Case]:
    name = " ".join(row[column] for column in ("op", "shape", "dtype", "grid") if row[column])
    yield Case(OPERATIONS, name, row.measured("value"), functools.partial(operation, row))


def _dispatch(row: Row) -> Iterator[Case]:
    name = row["benchmark"]
    yield Case(DISPATCH, name, row.measured("iteration_us"), functools.partial(program_time, name))


SOURCES: Final = (
    Source("core_microbench_blackhole.csv", _micro, (MICRO, MATMUL_TILES)),
    Source("noc_latency_blackhole.csv", _noc, (ONE_CORE, ONE_DRAM, MULTICAST, MANY)),
    Source("noc_microbench_blackhole.csv", _flows, (FLOWS,)),
    Source("dram_microbench_blackhole.csv", _readers, (READERS,)),
    Source("matmul_p150.csv", _matmuls, (TUNED, TUNED_DRAM, OUT_OF_BOX)),
    Source("llk_sfpu_blackhole.csv", _kernels, (KERNELS,)),
    Source("ops_blackhole.csv", _operations, (OPERATIONS,)),
    Source("pgm_dispatch_blackhole.csv", _dispatch, (DISPATCH,)),
)
"""The files that are read, as docs/time.md describes them."""
GROUPS: Final = tuple(group for source in SOURCES for group in source.groups)


def compare(folder: Path, only: list[str], progress: Callable[[str], object] = lambda text: None) -> list[Outcome]:
    """Estimate every figure of a folder.

    Args:
        folder: with files of the forms that docs/time.md describes.
        only: beginnings of names of groups; empty: all.
        progress: called now and then with what is being estimated.

    Returns:
        A group each that has figures, in the order of `GROUPS`.

    Raises:
        ConfigurationError: the folder has no such file, or one that cannot be read.
    """
    if not any((folder / source.file).is_file() for source in SOURCES):
        raise ConfigurationError(
            f"{folder} holds no figures of silicon", remedy="name a folder with files such as noc_latency_blackhole.csv"
        )
    outcomes = {group.name: Outcome(group) for group in GROUPS}
    for source in SOURCES:
        if only and not any(group.name.startswith(name) for group in source.groups for name in only):
            continue
        for one in _figures(folder, source, progress):
            if not only or any(one.group.startswith(name) for name in only):
                outcomes[one.group].figures.append(one)
    return [outcome for outcome in outcomes.values() if outcome.figures]
