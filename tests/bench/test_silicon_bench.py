"""`bhemu bench --silicon`: figures in, errors out. The figures here are made up, by the rules that they test."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from bhemu.bench.silicon import MICRO, ONE_CORE, TUNED, Figure, Group, Outcome, compare
from bhemu.bench.silicon_kernels import SfpuKernel, kernel_of
from bhemu.bench.silicon_micro import NotReproduced, slope
from bhemu.bench.silicon_operations import program_of
from bhemu.bench.silicon_plot import plot
from bhemu.errors import ConfigurationError
from bhemu.predict.dispatch import Program
from bhemu.predict.noc import Traffic, cycles

pytestmark = pytest.mark.plain

NOC_COLUMNS = (
    "group,mechanism,pattern,memory,num_transactions,num_subordinates,same_axis,stateful,loopback,noc,size_bytes,"
    "latency_cycles,bytes_per_cycle_by_key,note"
)
MICRO_COLUMNS = (
    "dataset,phase,variant,probe,unit,active_threads,thread,unroll,points(n:cycles),slope_cycles_per_block,"
    "cycles_per_instruction,intercept"
)


def noc_file(folder: Path, latency: float, note: str = "") -> None:
    row = f"2,UNICAST,ONE_TO_ONE,L1,16,0,1,0,0,0,2048,{latency},0,{note}"
    (folder / "noc_latency_blackhole.csv").write_text(f"{NOC_COLUMNS}\n{row}\n")


def estimate() -> float:
    return cycles(Traffic(reads=False, count=16, size=2048, same_axis=True))


def test_an_estimate_is_compared_with_the_measured_figure(tmp_path: Path) -> None:
    noc_file(tmp_path, estimate() * 2)
    (outcome,) = compare(tmp_path, [])
    assert outcome.group == ONE_CORE
    assert outcome.median == pytest.approx(0.5)
    assert not outcome.holds


def test_a_goal_is_met_by_the_median(tmp_path: Path) -> None:
    noc_file(tmp_path, estimate() * 1.01)
    (outcome,) = compare(tmp_path, [])
    assert outcome.holds


def test_a_figure_that_was_not_measured_is_not_compared(tmp_path: Path) -> None:
    noc_file(tmp_path, 1.0, "clamped_copy_of_largest_measured")
    (outcome,) = compare(tmp_path, [])
    assert outcome.compared == []
    assert outcome.why_not["not measured: copied from a smaller size"] == 1
    assert not outcome.holds


def test_a_series_is_executed_in_timed_mode(tmp_path: Path) -> None:
    row = "x.csv,r,t1,rv_mul_dep,RV,1,1,16,2:50 4:116 8:250,33.2,2.1,0"
    unknown = "x.csv,r,t1,rv_unheard_of,RV,1,1,16,2:50 4:116,33.2,2.1,0"
    (tmp_path / "core_microbench_blackhole.csv").write_text(f"{MICRO_COLUMNS}\n{row}\n{unknown}\n")
    (outcome,) = compare(tmp_path, [])
    assert outcome.group == MICRO
    assert [one.predicted for one in outcome.compared] == [pytest.approx(33.2, rel=0.15)]
    assert list(outcome.why_not) == ["the program of probe rv_unheard_of is not known"]


def test_only_chosen_groups_are_compared(tmp_path: Path) -> None:
    noc_file(tmp_path, 100.0)
    assert compare(tmp_path, [TUNED.name]) == []


def test_a_folder_without_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no figures"):
        compare(tmp_path, [])


def test_errors_of_a_group_are_its_median_and_its_90th_percentile() -> None:
    figures = [Figure("g", str(i), 100.0, 100.0 + i) for i in range(11)]
    outcome = Outcome(Group("g", "model", 0.05, 0.05), figures)
    assert outcome.median == pytest.approx(0.05)
    assert outcome.worst == pytest.approx(0.09)
    assert not outcome.holds
    assert math.isnan(Outcome(Group("g", "model")).median)


def test_the_slope_is_that_of_the_best_straight_line() -> None:
    assert slope((1, 2, 3, 4), (12, 14, 16, 18)) == pytest.approx(2)


OPERATION_COLUMNS = (
    "op,shape,dtype,fidelity_or_options,layout_memory,grid,clock_mhz,value,unit,kind,arch_certainty,source,note"
)


def operations_file(folder: Path, *rows: str) -> None:
    (folder / "ops_blackhole.csv").write_text("\n".join((OPERATION_COLUMNS, *rows)) + "\n")


def test_an_operation_is_estimated_in_the_unit_of_its_row(tmp_path: Path) -> None:
    shape = "causal S1024 q128 k128,bfp8_b,32 q heads / 8 kv heads,DRAM,11x10,1350"
    name = "ttnn.transformer.scaled_dot_product_attention"
    operations_file(tmp_path, f"{name},{shape},1,cycles,wall,P100a,,", f"{name},{shape},1,us,wall,P100a,,")
    (outcome,) = compare(tmp_path, [])
    in_cycles, in_us = outcome.compared
    assert in_cycles.predicted == pytest.approx(1350 * in_us.predicted)


def test_an_operation_without_a_model_or_a_number_says_why(tmp_path: Path) -> None:
    operations_file(
        tmp_path,
        "ttnn.unheard_of,[1],,,,,,5,us,k,P150 stated,,",
        'ttnn.gather,"[32,64] idx 32",,native kernel,,,,n/a,us,k,Blackhole CI,,',
        'ttnn.gather,"[32,64] idx 32",,native kernel,,,,28,us,k,uncertain (N300?),,',
    )
    (outcome,) = compare(tmp_path, [])
    assert list(outcome.why_not) == [
        "there is no model of this operation",
        "the file has no measured value",
        "the figure does not say that the card is a Blackhole",
    ]
    assert not outcome.holds


def test_a_program_is_read_from_its_name() -> None:
    found = program_of("all_processors_all_cores_32cb_8g/2048")
    assert found == Program(2048, processors=5, all_cores=True, configured=True, groups=8)
    assert program_of("one_processor_all_cores_128_rta/512").unique_bytes == 512
    assert program_of("5000_kernel_all_cores_all_processors_32_cbs_trace/256").slow_cycles == 5000
    with pytest.raises(NotReproduced):
        program_of("kernel_groups_trace/256")


@pytest.mark.parametrize(
    ("row", "kernel"),
    [
        (("abs_int32", "", "Int32"), SfpuKernel("abs_int32", data_format="Int32", wide=True, copied=False)),
        (("exp", "approx", "Float16_b"), SfpuKernel("exponential", approximate=True)),
        (("addcmul", "32-bit dest", "Bfp8_b"), SfpuKernel("addcmul", "ternary", data_format="Bfp8_b", wide=True)),
        (("sfpu_elwadd", "", "Int32"), SfpuKernel("ADD", "binary", data_format="Int32", wide=True, copied=False)),
    ],
)
def test_a_kernel_is_read_from_its_row(row: tuple[str, str, str], kernel: SfpuKernel) -> None:
    assert kernel_of(*row) == kernel


def test_a_kernel_that_was_measured_within_another_one_is_not_built() -> None:
    with pytest.raises(NotReproduced):
        kernel_of("exp", "SDPA", "Float16_b")


def test_estimates_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    noc_file(tmp_path, 100.0)
    plot(compare(tmp_path, []), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigurationError, match="no figure"):
        plot([], tmp_path / "empty.png")
