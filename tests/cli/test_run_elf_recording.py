"""`bhemu run kernel.elf --trace`, `--profile`, `--timing`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bhemu.cc import MissingTool
from bhemu.cc import compile_kernel as build
from tests.cli.cli_programs import Invoke
from tests.loader.boot_programs import START, write_elf
from tests.loader.elf_files import Name

PUSHER = """
    li a0, 0x20000
poll: lw a1, 0(a0)
    beqz a1, poll
    .ttinsn 0x45000000
    .ttinsn 0x45000000
    ebreak
"""
POSTER = """
    li t0, 100
loop: addi t0, t0, -1
    bnez t0, loop
    li a0, 0x20000
    li a1, 1
    sw a1, 0(a0)
    ebreak
"""


@pytest.fixture
def programs(tmp_path: Path) -> tuple[str, str]:
    names = (Name("work", START["T1"] + 8, 8),)
    math = write_elf(tmp_path / "math.elf", PUSHER, START["T1"], names=names)
    return f"B={write_elf(tmp_path / 'brisc.elf', POSTER)}", f"T1={math}"


def test_a_trace_for_perfetto(bhemu: Invoke, programs: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert bhemu("run", *programs, "--trace", path).exit_code == 0
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["name"] for event in events if event["ph"] == "X"}
    assert {"_start", "polls L1 0x20000", "push SETDMAREG", "SETDMAREG"} <= names


def test_a_trace_as_text(bhemu: Invoke, programs: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    assert bhemu("run", *programs, "--trace", path).exit_code == 0
    lines = path.read_text().splitlines()
    assert sum(".ttinsn SETDMAREG" in line for line in lines) == 2
    assert any("[0x20000] = 0x1" in line for line in lines)


def test_a_run_that_fails_leaves_its_trace(bhemu: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    kernel = write_elf(tmp_path / "kernel.elf", "li a0, 5\n.word 0xffffffff")
    assert bhemu("run", kernel, "--trace", path).exit_code == 1
    assert path.read_text().splitlines()[-1].endswith("a0 = 0x5")


def test_the_profile_is_part_of_the_report(bhemu: Invoke, programs: tuple[str, str]) -> None:
    plain = bhemu("run", *programs).stdout
    report = bhemu("run", *programs, "--profile").stdout
    assert "core T1: functions" not in plain
    for part in ("core T1: functions", "_start", "work", "core T1: polls", "0x20000 in L1, at 0x0a004"):
        assert part in report
    assert "modelled time" not in report


def test_timing_covers_cores_and_coprocessor(bhemu: Invoke, programs: tuple[str, str]) -> None:
    report = bhemu("run", *programs, "--timing").stdout
    assert "a core executes one instruction a round" in report
    assert "cycles at least" in report
    assert "modelled time: 2 cycles" in report
    assert "core T1: functions" not in report


def test_both_as_json(bhemu: Invoke, programs: tuple[str, str]) -> None:
    report = json.loads(bhemu("run", *programs, "--profile", "--timing", "--json").stdout)
    cores = {core["name"]: core for core in report["profile"]["cores"]}
    assert {name: core["instructions"] for name, core in cores.items()} == {
        core["name"]: core["retired"] for core in report["cores"]
    }
    assert report["timing"]["cycles"] == 2
    assert report["timing"]["words_left_out"] == 0


def test_recording_does_not_change_the_run(bhemu: Invoke, programs: tuple[str, str], tmp_path: Path) -> None:
    plain = json.loads(bhemu("run", *programs, "--json").stdout)
    recorded = json.loads(bhemu("run", *programs, "--json", "--trace", tmp_path / "t.json", "--profile").stdout)
    for key in ("cores", "clocks", "retired", "ended"):
        assert recorded[key] == plain[key]


def test_source_lines_of_a_compiled_kernel(bhemu: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text(
        "static volatile int *const out = (int *)0x20000;\n"
        "__attribute__((noinline)) int square(int x) { return x * x; }\n"
        "int main(void) {\n"
        "    for (int i = 0; i < 10; i++)\n"
        "        out[i] = square(i);\n"
        "    return 0;\n"
        "}\n"
    )
    kernel = tmp_path / "kernel.elf"
    try:
        build([source], kernel, core="B")
    except MissingTool as missing:
        pytest.skip(str(missing))
    path = tmp_path / "trace.json"
    report = bhemu("run", kernel, "--profile", "--trace", path).stdout
    assert "square" in report
    assert "kernel.c:2" in report
    events = json.loads(path.read_text())["traceEvents"]
    calls = [event for event in events if event["name"] == "square"]
    assert len(calls) == 10
    assert calls[0]["args"]["source"].endswith("kernel.c:2")
    assert any(event.get("cat") == "line" and event["name"] == "kernel.c:5" for event in events)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dump", "same.npz", "--trace", "same.npz"), "two options write the same file"),
    ],
)
def test_refusals(bhemu: Invoke, programs: tuple[str, str], arguments: tuple[str, ...], message: str) -> None:
    result = bhemu("run", *programs, *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
