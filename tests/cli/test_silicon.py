"""Commands about time on silicon: bench --silicon, predict, support --timing, run --timed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.isa.silicon import FIGURES
from tests.cli.cli_programs import Invoke

pytestmark = pytest.mark.plain

NOC_COLUMNS = (
    "mechanism,pattern,memory,num_transactions,num_subordinates,same_axis,stateful,loopback,noc,size_bytes,"
    "latency_cycles,note"
)


def noc_file(folder: Path, latency: float) -> None:
    row = f"UNICAST,ONE_TO_ONE,L1,64,0,1,0,0,0,2048,{latency},"
    (folder / "noc_latency_blackhole.csv").write_text(f"{NOC_COLUMNS}\n{row}\n")


def estimate(bhemu: Invoke) -> float:
    found = bhemu("predict", "noc", "write", "--count", "64", "--size", "2048", "--same-column", "--json")
    return float(json.loads(found.output)["cycles"])


def test_bench_prints_the_error_of_each_group(bhemu: Invoke, tmp_path: Path) -> None:
    noc_file(tmp_path, estimate(bhemu))
    found = bhemu("bench", "--silicon", "--data", tmp_path, "--goals")
    assert found.exit_code == 0
    assert "one to one" in found.output
    assert "met" in found.output


def test_a_goal_that_is_not_met_is_the_exit_status(bhemu: Invoke, tmp_path: Path) -> None:
    noc_file(tmp_path, estimate(bhemu) * 2)
    assert bhemu("bench", "--silicon", "--data", tmp_path).exit_code == 0
    found = bhemu("bench", "--silicon", "--data", tmp_path, "--goals")
    assert found.exit_code == 1
    assert "goals not met: NoC, one to one" in found.stderr


def test_each_figure_is_printed_on_demand(bhemu: Invoke, tmp_path: Path) -> None:
    noc_file(tmp_path, 5000)
    found = bhemu("bench", "--silicon", "--data", tmp_path, "--each")
    assert "measured 5,000" in found.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("bench", "--silicon"),
        ("bench", "--goals"),
        ("bench", "--data", "x"),
        ("bench", "--silicon", "--client", "--data", "x"),
        ("support", "--timing", "--unit", "matrix"),
        ("predict", "noc", "send"),
        ("predict", "noc", "multicast"),
        ("predict", "noc", "read", "--linked"),
        ("predict", "noc", "multicast", "--grid", "11x10", "--everybody"),
        ("predict", "matmul", "64", "64", "64", "--grid", "11"),
        ("run", "x.elf", "--timed", "--profile"),
        ("run", "x.py", "--timed"),
    ],
)
def test_what_does_not_go_together_is_wrong_use(bhemu: Invoke, arguments: tuple[str, ...]) -> None:
    assert bhemu(*arguments).exit_code == 2


def test_an_unknown_data_type_is_refused(bhemu: Invoke) -> None:
    found = bhemu("predict", "matmul", "640", "704", "704", "--dtype", "FLOAT64")
    assert found.exit_code == 1
    assert "BFLOAT16" in found.stderr


def test_support_lists_every_figure_of_time(bhemu: Invoke) -> None:
    names = {row.get("name") for row in json.loads(bhemu("support", "--timing", "--json").output)}
    assert set(FIGURES) <= names
    assert "guessed" in bhemu("support", "--timing").output
