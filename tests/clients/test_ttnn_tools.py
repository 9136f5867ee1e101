"""The tools that users of tt-metal have, on bhemu: device print, watcher, asserts, inspector; and what reports say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import finished
from tests.ttnn.environment import ROOT, CannotRun, Parts, prepare

pytestmark = pytest.mark.models

KERNELS = Path(__file__).with_name("kernels")
PROGRAM = """
import sys
import ttnn
device = ttnn.open_device(device_id=0)
tile = ttnn.CoreRangeSet([ttnn.CoreRange(ttnn.CoreCoord(0, 0), ttnn.CoreCoord(0, 0))])
def kernel(name, config):
    return ttnn.KernelDescriptor(
        kernel_source=f"{sys.argv[1]}/{name}.cpp", source_type=ttnn.KernelDescriptor.SourceType.FILE_PATH,
        core_ranges=tile, runtime_args=[(ttnn.CoreCoord(0, 0), [int(sys.argv[2])])], config=config)
kernels = [kernel("reader", ttnn.ReaderConfigDescriptor()), kernel("compute", ttnn.ComputeConfigDescriptor())]
one = ttnn.to_device(ttnn.Tensor([1.0] * 1024, [32, 32], ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT), device)
ttnn.generic_op([one, one], ttnn.ProgramDescriptor(kernels=kernels, semaphores=[], cbs=[]))
ttnn.synchronize_device(device)
print("done", flush=True)
ttnn.close_device(device)
"""
DISPATCH = pytest.mark.parametrize("slow", [True, False], ids=["by the host", "by cores"])
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def parts() -> Parts:
    try:
        return prepare()  # the stock compiler cannot compile device print
    except CannotRun as reason:
        pytest.skip(f"TOOLS OF TT-METAL ARE NOT TESTED: {reason}")


@pytest.fixture
def run(parts: Parts, tmp_path: Path) -> Run:
    """`run(mode, before, slow=True, **variables)`: the program in its own folder, behind the words of a command."""

    def start(
        mode: int, before: list[str] | None = None, *, slow: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        settings = parts.environment(slow=slow) | {"TT_METAL_LOGS_PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
        command = [*(before or []), str(parts.python), "-c", PROGRAM, str(KERNELS), str(mode)]
        return finished(command, env=settings | variables, cwd=tmp_path)

    return start


def recorded(out: Path) -> list[str]:
    """The command that records tile 1-2 of a client."""
    return [sys.executable, "-m", "bhemu", "run-client", "--record", str(out), "--tiles", "1-2", "--"]


def failures(out: Path) -> list[dict[str, str]]:
    """Failures of a recording, by `bhemu report --json`."""
    command = [sys.executable, "-m", "bhemu", "report", str(out), "--json"]
    done = finished(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=out)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, str]] = json.loads(done.stdout)["failures"]
    return found


def line_of(file: str, text: str) -> str:
    """`file:line` of the only line of a kernel with a text."""
    lines = (KERNELS / file).read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return f"{file}:{found}"


@DISPATCH
def test_device_print_arrives_from_data_movement_and_compute_cores(run: Run, slow: bool) -> None:
    done = run(0, slow=slow, TT_METAL_DPRINT_CORES="0,0")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for line in ("0:0-0:NC: reader: mode 0 of 4", "0:0-0:TR1: math: mode 0", "0:0-0:TR2: pack: mode 0"):
        assert line in done.stdout.splitlines()


@DISPATCH
def test_the_watcher_goes_along_with_a_program_that_is_all_right(run: Run, tmp_path: Path, slow: bool) -> None:
    done = run(0, slow=slow, TT_METAL_WATCHER="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "attach device 0" in (tmp_path / "generated" / "watcher" / "watcher.log").read_text()


@DISPATCH
def test_a_failed_assert_is_reported_by_the_watcher_and_by_the_report(run: Run, tmp_path: Path, slow: bool) -> None:
    done = run(1, recorded(tmp_path / "out"), slow=slow, TT_METAL_WATCHER="1", TT_METAL_LOGGER_LEVEL="WARNING")
    line = line_of("reader.cpp", "ASSERT(mode != 1)")
    said = done.stdout + done.stderr
    assert f"NCRISC tripped an assert on line {line.partition(':')[2]}" in said
    assert "0xb0e00001" in said  # the ring buffer
    (failure,) = failures(tmp_path / "out")
    assert (failure["code"], failure["line"], failure["kernel"]) == ("DebugAssertTripped", line, "reader")
    assert (failure["core"], failure["place"], failure["waypoint"]) == ("NC", [1, 2], "USER")
    assert "reader" in failure["operation"]


def test_a_request_that_the_watcher_stops_has_its_line_in_the_report(run: Run, tmp_path: Path) -> None:
    done = run(2, recorded(tmp_path / "out"), TT_METAL_WATCHER="1")
    assert "NOC target address overflow" in done.stdout + done.stderr
    (failure,) = failures(tmp_path / "out")
    assert failure["code"] == "DebugSanitizeNocAddrOverflow"
    assert failure["line"] == line_of("reader.cpp", "noc_async_read(")
    assert failure["detail"] == "NoC 0: read of 64 bytes, to 0x20000; the other end is 0x10000000 in 1-2"


def test_an_assert_of_the_low_level_kernels_has_its_line_in_the_report(run: Run, tmp_path: Path) -> None:
    run(3, recorded(tmp_path / "out"), TT_METAL_WATCHER="1", TT_METAL_LLK_ASSERTS="1")
    (failure,) = failures(tmp_path / "out")
    assert (failure["code"], failure["core"]) == ("DebugAssertTripped", "T1")
    assert failure["line"] == line_of("compute.cpp", "LLK_ASSERT(mode")


def test_the_inspector_writes_its_logs_and_the_report_reads_them(run: Run, tmp_path: Path) -> None:
    done = run(0, recorded(tmp_path / "out"), TT_METAL_INSPECTOR="1")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    kernels = (tmp_path / "generated" / "inspector" / "kernels.yaml").read_text()
    assert re.search(r"name: reader\n", kernels)
    command = [sys.executable, "-m", "bhemu", "report", str(tmp_path / "out"), "--json"]
    told = json.loads(finished(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=tmp_path).stdout)
    sources = {kernel["name"]: kernel["source"] for kernel in told["kernels"]}
    assert sources["reader"] == str(KERNELS / "reader.cpp")
