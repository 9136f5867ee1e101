"""Tensors of a client's operations, as tt-metal's inspector writes them down when it is asked to.

It is asked by two variables of the environment (`SETTINGS`), which `bhemu run-client --timed` sets. Its log has the
operations' names and inputs; outputs and attributes it does not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SETTINGS: Final = {"TT_METAL_INSPECTOR_LOG_RUNTIME_ENTRIES": "1", "TT_METAL_INSPECTOR_CAPTURE_TENSOR_SPECS": "1"}
"""Let the inspector log the operations of a client, with the tensors that they are given."""
_ENTRY: Final = re.compile(r"^- runtime_entry:\n((?: .*\n?)*)", re.MULTILINE)
_FIELD: Final = re.compile(r"^ +(\w+): (.*)$", re.MULTILINE)
_TENSOR: Final = re.compile(r"\[(\d+)\]: TensorSpec\((.*?)(?=, \[\d+\]: TensorSpec\(|'?$)")
_NUMBERS: Final = r"\(\[([\d, ]*)\]\)"


@dataclass(frozen=True)
class TensorText:
    """A tensor.

    Attributes:
        shape: of what it holds.
        padded: with what its layout adds.
        layout: "TILE" or "ROW_MAJOR".
        dtype: as ttnn names it, such as "BFLOAT16".
        memory: such as "DRAM_INTERLEAVED".
    """

    shape: tuple[int, ...]
    padded: tuple[int, ...]
    layout: str
    dtype: str
    memory: str


@dataclass(frozen=True)
class LoggedOperation:
    """An operation that a client has asked for.

    Attributes:
        name: such as "MatmulDeviceOperation".
        inputs: its tensors.
    """

    name: str
    inputs: tuple[TensorText, ...]


def inspector_logs(about: Iterable[dict[str, Any]], *names: str) -> Iterator[str]:
    """Text of those of the inspector's logs that a recording's clients have left."""
    for told in about:
        base = told.get("environment", {}).get("TT_METAL_LOGS_PATH") or told.get("directory", "")
        for name in names:
            try:
                yield (Path(base) / "generated" / "inspector" / name).read_text(errors="replace")
            except OSError:
                continue


def _numbers(name: str, text: str) -> tuple[int, ...]:
    found = re.search(name + _NUMBERS, text)
    return tuple(int(part) for part in found[1].split(",") if part.strip()) if found else ()


def _word(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""


def _tensor(text: str) -> TensorText:
    shape, alignment = _numbers("Shape", text), _numbers("Alignment", text)
    units = (1,) * (len(shape) - len(alignment)) + alignment[-len(shape) :] if shape else ()
    memory = (_word(r"buffer_type=BufferType::(\w+)", text), _word(r"memory_layout=TensorMemoryLayout::(\w+)", text))
    return TensorText(
        shape=shape,
        padded=tuple(-(-size // max(unit, 1)) * max(unit, 1) for size, unit in zip(shape, units, strict=True)),
        layout={"Tile": "TILE", "RowMajor": "ROW_MAJOR"}.get(_word(r"config=(\w+?)PageConfig\(", text), ""),
        dtype=_word(r"dtype=DataType::(\w+)", text),
        memory="_".join(part for part in memory if part),
    )


def read_operations(about: Iterable[dict[str, Any]]) -> dict[int, LoggedOperation]:
    """Operations by the host's number; empty where the inspector was not asked for them.

    Args:
        about: of the recording: names the directory in which the client ran.
    """
    found: dict[int, LoggedOperation] = {}
    for text in inspector_logs(about, "mesh_workloads_log.yaml"):
        for entry in _ENTRY.findall(text):
            fields = dict(_FIELD.findall(entry))
            if not fields.get("runtime_id", "").isdigit():
                continue
            inputs = sorted((int(number), one) for number, one in _TENSOR.findall(fields.get("parameters", "")))
            tensors = tuple(_tensor(one) for _, one in inputs)
            found[int(fields["runtime_id"])] = LoggedOperation(fields.get("name", "").strip("'\""), tensors)
    return found
