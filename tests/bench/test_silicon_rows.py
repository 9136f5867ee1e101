"""Files of measured figures that are damaged, or say what is not known: each row is estimated, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.bench.silicon import compare
from bhemu.errors import ConfigurationError

pytestmark = pytest.mark.plain

FILES = {
    "noc_latency_blackhole.csv": (
        "mechanism,pattern,memory,num_transactions,num_subordinates,same_axis,stateful,loopback,noc,size_bytes,"
        "latency_cycles,note",
        "UNICAST,ONE_TO_ONE,L1,16,0,1,0,0,0,2048,700,",
    ),
    "noc_microbench_blackhole.csv": (
        "exp,flow,n_flows,src_noc0_xy,dst_noc0_xy,direction,num_tx,tx_bytes,shared_payload_links,cycles",
        "hops,0,1,1-2,3-2,0,64,4096,0,4516",
    ),
    "dram_microbench_blackhole.csv": ("num_readers,tx_bytes,distinct_banks,agg_bytes_per_cycle", "4,4096,1,45.2"),
    "matmul_p150.csv": (
        "table,M,K,N,trace,grid_x,grid_y,in0_sharded,dtype,fidelity,device_cycles",
        "manual,640,704,704,True,11,10,True,BFLOAT16,HiFi2,13906",
    ),
    "ops_blackhole.csv": (
        "op,shape,dtype,fidelity_or_options,grid,clock_mhz,value,unit,kind,arch_certainty",
        'ttnn.gather,"[32,64] idx 32",,native kernel,,,28.2,us,k,Blackhole CI',
    ),
    "pgm_dispatch_blackhole.csv": ("benchmark,iteration_us", "brisc_only_trace/512,1.86"),
}


def write(folder: Path, name: str, *lines: str) -> None:
    (folder / name).write_text("\n".join(lines) + "\n")


def reasons(folder: Path) -> list[str]:
    return [reason for outcome in compare(folder, []) for reason in outcome.why_not]


@pytest.mark.parametrize("name", FILES)
def test_a_row_with_the_columns_of_the_page_is_estimated(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, *FILES[name])
    (outcome,) = compare(tmp_path, [])
    assert [one.why_not for one in outcome.figures] == [""]
    assert outcome.median < 0.2


@pytest.mark.parametrize("name", FILES)
def test_a_column_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    columns, row = FILES[name]
    first, rest = columns.split(",", 1)
    write(tmp_path, name, rest, row.split(",", 1)[1])
    assert reasons(tmp_path) == [f"{name}, line 2 has no {first}"]


@pytest.mark.parametrize("name", FILES)
def test_a_row_that_ends_early_is_refused_and_the_next_one_is_estimated(tmp_path: Path, name: str) -> None:
    columns, row = FILES[name]
    short = row.rsplit(",", 1)[0]
    write(tmp_path, name, columns, short, row)
    (outcome,) = compare(tmp_path, [])
    assert len(outcome.compared) == 1
    assert list(outcome.why_not) == [f"{name}, line 2 has no {columns.rsplit(',', 1)[1]}"]


@pytest.mark.parametrize("content", ["", "a,b,c\n"])
def test_a_file_without_rows_is_named_and_misses_its_goal(tmp_path: Path, content: str) -> None:
    (tmp_path / "dram_microbench_blackhole.csv").write_text(content)
    (outcome,) = compare(tmp_path, [])
    assert list(outcome.why_not) == ["dram_microbench_blackhole.csv has no rows"]
    assert not outcome.holds


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "matmul_p150.csv").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"matmul_p150\.csv cannot be read"):
        compare(tmp_path, [])


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("noc_latency_blackhole.csv", "UNICAST,ONE_TO_ONE,L3,1,0,1,0,0,0,64,1,", "memory 'L3' is not known"),
        ("noc_latency_blackhole.csv", "UNICAST,HALF_TO_ONE,L1,1,0,1,0,0,0,64,1,", "pattern 'HALF_TO_ONE' is not known"),
        ("noc_latency_blackhole.csv", "UNICAST,ONE_TO_ALL,L1,1,7,1,0,0,0,64,1,", "how 7 cores lie is not known"),
        ("noc_latency_blackhole.csv", "UNICAST,ONE_TO_ONE,L1,0,0,1,0,0,0,64,1,", "num_transactions is 0"),
        ("noc_latency_blackhole.csv", "UNICAST,ONE_TO_ONE,L1,1,0,1,0,0,0,64,nan,", "no measured value"),
        ("noc_microbench_blackhole.csv", "hops,0,1,1-2,east,write,64,4096,0,1", "dst_noc0_xy is 'east'"),
        ("noc_microbench_blackhole.csv", "hops,0,1,1-2,3-2,both,64,4096,0,1", "direction 'both' is not known"),
        ("dram_microbench_blackhole.csv", "few,4096,1,45.2", "num_readers is 'few', not a whole number"),
        ("matmul_p150.csv", "manual,640,704,704,True,0,10,True,BFLOAT16,HiFi2,1", "grid_x is 0"),
        ("matmul_p150.csv", "manual,640,704,704,True,11,10,True,FP32,HiFi2,1", "no figures for FP32"),
        ("ops_blackhole.csv", "ttnn.new,x,,,,,1,us,k,P150", "there is no model of this operation"),
        ("ops_blackhole.csv", 'ttnn.conv2d,"4->8 ch, 9x9, s0",,,,,1,us,k,P150', "the model gives no number"),
        ("pgm_dispatch_blackhole.csv", "nothing,1", "does not say how large the kernels are"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(tmp_path: Path, name: str, row: str, reason: str) -> None:
    write(tmp_path, name, FILES[name][0], row)
    (found,) = reasons(tmp_path)
    assert reason in found
