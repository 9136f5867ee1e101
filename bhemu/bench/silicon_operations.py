"""Rows of `ops_blackhole.csv` and `pgm_dispatch_blackhole.csv` as calls of the analytical models."""

from __future__ import annotations

import math
import re
from typing import Final

from bhemu.bench.silicon_micro import NotReproduced
from bhemu.bench.silicon_rows import Row
from bhemu.predict import operations as model
from bhemu.predict.dispatch import Program, dispatch
from bhemu.predict.matmul import PHASES

_DTYPES: Final = {
    "bf16": "BFLOAT16",
    "bfloat16": "BFLOAT16",
    "bfp8_b": "BFLOAT8_B",
    "bf8": "BFLOAT8_B",
    "bfp4_b": "BFLOAT4_B",
    "bf4": "BFLOAT4_B",
}
_MANY: Final = 1000


def _number(pattern: str, text: str, default: int) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else default


def _fidelity(row: Row, default: str) -> str:
    text = f"{row['shape']} {row['fidelity_or_options']}"
    return next((name for name in PHASES if name in text), default)


def _cores(row: Row) -> int:
    if found := re.fullmatch(r"(\d+)x(\d+)", row["grid"].strip()):
        return int(found[1]) * int(found[2])
    return _number(r"(\d+) cores", row["grid"], 110)


def _attention(row: Row) -> float:
    shape, options = row["shape"], row["fidelity_or_options"]
    rows = _number(r"\bS(\d+)", shape, 0)
    if not rows or "ring" in row["op"] or "MLA" in row["op"]:
        raise NotReproduced("this form of attention is not modelled")
    both = _number(r"q=k=(\d+)", shape, 0)
    one = model.Attention(
        heads=_number(r"(\d+) ?q heads", options, _number(r"(\d+) ?q heads", shape, 32)),
        rows=rows,
        size=_number(r"\bd(\d+)", options, 128),
        rows_q=both or _number(r"\bq(\d+)", shape, 128),
        rows_k=both or _number(r"\bk(\d+)", shape, 128),
        causal="non-causal" not in shape,
        fidelity=_fidelity(row, "HiFi2"),
        cores=_cores(row),
    )
    if "compute only" in shape:
        return model.attention_math(one, vector=False)
    return model.attention_math(one) if "busy" in row["kind"] else model.attention(one)


def _decode(row: Row) -> float:
    shape = row["shape"]
    if row["dtype"] not in _DTYPES:
        raise NotReproduced("the data type of the cache is not known")
    batch, heads = _number(r"batch (\d+)", shape, 1), _number(r"(\d+)kv", shape, 8)
    rows, size = _number(r"cache (\d+)", shape, 0), _number(r"\bd(\d+)", shape, 128)
    if not rows:
        raise NotReproduced("the length of the cache is not known")
    return model.attention_decode(batch, heads, rows, size, _DTYPES[row["dtype"]], _cores(row))


def _gather(row: Row) -> float:
    shape = row["shape"]
    lists = [[int(part) for part in found.split(",")] for found in re.findall(r"\[([\d, ]+)\]", shape)]
    if not lists or len(lists[0]) < 2 or "native" not in row["fidelity_or_options"]:
        raise NotReproduced("the shapes of this gather are not known")
    *outer, rows, columns = lists[0]
    index = _number(r"idx (\d+)", shape, lists[-1][-1])
    if "dim -2" not in shape:
        return model.gather(math.prod(outer) * rows, columns, index)
    wanted = lists[-1][-2] if len(lists) > 1 else index
    return model.gather(math.prod(outer) * columns, rows, wanted) + model.transposes()


def _convolution(row: Row) -> float:
    shape = row["shape"]
    channels = re.search(r"(\d+) ?-> ?(\d+)", shape)
    image = re.search(r"(\d+)x(\d+)(?=,)", shape)
    if channels is None or image is None:
        raise NotReproduced("the shape of this convolution is not known")
    window = _number(r"(\d+)x\1 ?s", shape[image.end() :], 3)
    one = model.Convolution(
        inputs=int(channels[1]),
        outputs=int(channels[2]),
        high=int(image[1]),
        wide=int(image[2]),
        window=window,
        stride=_number(r"\bs(\d+)", shape[image.end() :], 1),
        padding=_number(r"\bp(\d+)", shape[image.end() :], window // 2),
        fidelity=_fidelity(row, "LoFi"),
        sharded="block" if "block" in shape else "height",
        batch=_number(r"batch (\d+)", shape, 1),
    )
    return model.convolution(one)


def _narrow(row: Row) -> float:
    found = re.match(r"(\d+)x(\d+)x(\d+)", row["shape"])
    if found is None:
        raise NotReproduced("the shape of this matmul is not known")
    return model.narrow_matmul(*(int(part) for part in found.groups()))


_MODELS: Final = {
    "ttnn.transformer.scaled_dot_product_attention": _attention,
    "ttnn.transformer.scaled_dot_product_attention_decode": _decode,
    "ttnn.gather": _gather,
    "ttnn.conv2d": _convolution,
    "ttnn.experimental.small_m_matmul": _narrow,
}


def operation(row: Row) -> float:
    """Estimate of a row of `ops_blackhole.csv`, in its unit.

    Raises:
        NotReproduced: no model covers it.
    """
    found = _MODELS.get(row["op"])
    if found is None:
        raise NotReproduced("there is no model of this operation")
    if "Wormhole" in row["arch_certainty"] or "uncertain" in row["arch_certainty"]:
        raise NotReproduced("the figure does not say that the card is a Blackhole")
    us = found(row)
    mhz = row.measured("clock_mhz") if row["clock_mhz"].strip() else model.MHZ
    units = {"us": 1.0, "ms": 1e-3, "ns": 1e3, "cycles": mhz}
    if row["unit"] not in units:
        raise NotReproduced(f"nothing is estimated in {row['unit']}")
    return us * units[row["unit"]]


_PROCESSORS: Final = {"brisc_only": 1, "ncrisc_only": 1, "trisc_only": 3, "brisc_trisc_only": 4, "one_processor": 1}
_WORD: Final = 4


def program_of(benchmark: str) -> Program:
    """The program of a row of `pgm_dispatch_blackhole.csv`, by the words of its name.

    Raises:
        NotReproduced: the name does not say what the program has.
    """
    slow = re.match(r"BM_pgm_dispatch_vary_slow_cycles/(\d+)_bytes_brisc_only\w*/(\d+)$", benchmark)
    if slow:
        return Program(int(slow[1]), all_cores=False, slow_cycles=int(slow[2]))
    name, _, size = benchmark.rpartition("/")
    if not size.isdigit():
        raise NotReproduced("the name does not say how large the kernels are")
    if name.startswith(("kernel_groups", "load_prefetcher", "maxed")):
        raise NotReproduced("the name does not say how many groups of cores, or which configuration, there are")
    before = re.match(r"(\d+)_kernel_", name)
    processors = next((count for word, count in _PROCESSORS.items() if name.startswith(word)), 5)
    if "1_processor_" in name:
        processors = 1
    unique = _number(r"_(\d+)_rta", name, 0)
    many = "all_cores" in name
    return Program(
        int(size),
        processors=processors,
        all_cores=many,
        configured=bool(re.search(r"\d+_?cbs?|_crta", name)),
        unique_bytes=unique * _WORD * processors if many else 0,
        groups=_number(r"_(\d+)g\b", name, 1),
        slow_cycles=int(before[1]) if before and int(before[1]) >= _MANY else 0,
    )


def program_time(benchmark: str) -> float:
    """Microseconds of a row of `pgm_dispatch_blackhole.csv`.

    Raises:
        NotReproduced: as `program_of`.
    """
    return dispatch(program_of(benchmark))
