"""Tensors of operations in the inspector's log, and in the table that tt-perf-report reads."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from bhemu.report.operations import TimedOperation
from bhemu.report.tensors import TensorText, read_operations
from bhemu.report.zones import ZoneNames, operations_csv
from bhemu.timed.recording import TimedLaunch

pytestmark = pytest.mark.plain

TILED = TensorText((50, 71), (64, 96), "TILE", "BFLOAT8_B", "L1_HEIGHT_SHARDED")
ROWS = TensorText((2, 3, 5, 7, 11), (2, 3, 5, 7, 11), "ROW_MAJOR", "UINT32", "DRAM_INTERLEAVED")


def spec(number: int, shape: str, page: str, alignment: str, dtype: str, buffer: str, layout: str) -> str:
    memory = f"MemoryConfig(memory_layout=TensorMemoryLayout::{layout},buffer_type=BufferType::{buffer})"
    return (
        f"[{number}]: TensorSpec(logical_shape=Shape([{shape}]),tensor_layout=TensorLayout(dtype=DataType::{dtype},"
        f"page_config=PageConfig(config={page}PageConfig(tile=Tile(tile_shape={{32, 32}}))),memory_config={memory},"
        f"alignment=Alignment([{alignment}])))"
    )


def log(tmp_path: Path, *entries: str) -> list[dict[str, Any]]:
    """Write the inspector's log; what a recording says of its client."""
    folder = tmp_path / "generated" / "inspector"
    folder.mkdir(parents=True)
    (folder / "mesh_workloads_log.yaml").write_text("".join(entries))
    return [{"directory": str(tmp_path), "environment": {}}]


def entry(number: str, parameters: str) -> str:
    return (
        f"- runtime_entry:\n    mesh_workload_id: 0\n    runtime_id: {number}\n    name: AddDeviceOperation\n"
        f"    parameters: '{parameters}'\n    trace_id: 4294967295\n"
    )


def test_inputs_are_read_by_the_host_s_number(tmp_path: Path) -> None:
    first = spec(0, "50, 71", "Tile", "32, 32", "BFLOAT8_B", "L1", "HEIGHT_SHARDED")
    second = spec(1, "2, 3, 5, 7, 11", "RowMajor", "1", "UINT32", "DRAM", "INTERLEAVED")
    about = log(tmp_path, entry("3", f"{first}, {second}"), entry("4", second))
    found = read_operations(about)
    assert found[3].name == "AddDeviceOperation"
    assert found[3].inputs == (TILED, ROWS)
    assert found[4].inputs == (ROWS,)


def test_a_log_that_is_damaged_or_not_there_has_no_operations(tmp_path: Path) -> None:
    assert read_operations([{"directory": str(tmp_path)}]) == {}
    about = log(tmp_path, "- runtime_entry:\n", entry("many", ""), entry("5", "something else"))
    assert {number: one.inputs for number, one in read_operations(about).items()} == {5: ()}


def test_the_table_of_operations_has_the_inputs() -> None:
    launch = TimedLaunch((1, 2), 1, 0, 100, 3, (), {}, {}, 0)
    operation = TimedOperation("add", 3, 0, 100, 0, [launch], [], {"math": 1.0}, 0.0, inputs=(TILED, ROWS))
    (row,) = csv.DictReader(io.StringIO(operations_csv([operation], ZoneNames([]))))
    assert [row[f"INPUT_0_{axis}_PAD[LOGICAL]"] for axis in "WZYX"] == ["1[1]", "1[1]", "64[50]", "96[71]"]
    assert [row[f"INPUT_1_{axis}_PAD[LOGICAL]"] for axis in "WZYX"] == ["6[6]", "5[5]", "7[7]", "11[11]"]
    assert (row["INPUT_0_LAYOUT"], row["INPUT_0_DATATYPE"]) == ("TILE", "BFLOAT8_B")
    assert (row["INPUT_0_MEMORY"], row["INPUT_2_MEMORY"]) == ("DEV_0_L1_HEIGHT_SHARDED", "")
