"""`bhemu compare` and `bhemu library --record` as users call them: exit status, report, refusals."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bhemu.compare.calls import CONFIG_READ, INIT, READ, Call, Ended, clock, read, write
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.places import aim
from bhemu.compare.trace import TraceWriter, read_trace
from bhemu.machine.compiler import JIT
from tests.capi.library_client import run_client
from tests.cli.cli_programs import invoke as bhemu
from tests.compare.compare_calls import AT, memory_calls
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.riscv.rv_asm import assemble_with_labels

compiled_only = pytest.mark.skipif(not JIT, reason="the library's process compiles")


def trace_of(path: Path, calls: list[Call], *, answers: bool = True) -> Path:
    """A trace of calls with bhemu's answers."""
    ours, writer = ChipSide(), TraceWriter(path)
    for call in calls:
        outcome = ours.call(call)
        writer.call(call, outcome if answers else Ended("unknown"))
    writer.close()
    if not answers:
        lines = [line for line in path.read_text().splitlines() if "refused" not in line]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Core B counts in the word `counter`."""
    text = (
        "_start: lui a0, 0x20\nloop: lw a1, 0(a0)\n addi a1, a1, 1\n sw a1, 0(a0)\n slti a2, a1, 100\n bnez a2, loop\n"
    )
    code, labels = assemble_with_labels(text + "end: j end\n", 0x100)
    names = [*(Name(name, address) for name, address in labels.items()), Name("counter", 0x20000, 4, kind=1)]
    path = tmp_path / "count.elf"
    loads = [Load(0x100, code), Load(0x20000, bytes(4), flags=6)]
    path.write_bytes(make_elf(loads, with_symbols(names), entry=0x100))
    return path


# --- the same ---------------------------------------------------------------------------------------------------------


def test_a_trace_with_its_own_answers(tmp_path: Path) -> None:
    path = trace_of(tmp_path / "trace", memory_calls(100))
    done = bhemu("compare", path)
    assert (done.exit_code, done.stdout) == (0, "the same: 7 calls, 1 answer of 64 bytes compared, 100 clocks\n")


def test_a_trace_on_a_library(tmp_path: Path, memory_library: Path) -> None:
    path = trace_of(tmp_path / "trace", memory_calls(100), answers=False)
    done = bhemu("compare", path, "--library", memory_library, "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert (report["same"], report["calls"], report["answers"], report["clocks"]) == (True, 7, 1, 100)
    assert "difference" not in report


@compiled_only
def test_an_elf_file_on_the_library_of_bhemu(kernel: Path, own_library: Path, tmp_path: Path) -> None:
    value = tmp_path / "value.npy"
    np.save(value, np.array([40], np.uint32))
    record = tmp_path / "trace.gz"
    options = ["--library", own_library, "--write", f"counter={value}", "--every", 50, "--tile", "3-4"]
    done = bhemu("compare", kernel, *options, "--record", record, "--range", "counter:16")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[0].startswith(f"wrote {record}: ")
    assert done.stdout.splitlines()[1].startswith("the same: ")
    answers = [call.answer for call in read_trace(record) if call.size]
    assert len(answers) > 3
    assert answers[-1] == struct.pack("<4I", 100, 0, 0, 0)
    assert bhemu("compare", record, "--quiet").stdout == ""


def test_both_refuse(tmp_path: Path) -> None:
    calls = [*memory_calls(5), read(0x1_0000_0000, 0)]
    path = trace_of(tmp_path / "trace", calls)
    done = bhemu("compare", path)
    assert done.exit_code == 0
    assert "both end it at libttsim_pci_mem_rd_bytes" in done.output
    assert json.loads(bhemu("compare", path, "--json").stdout)["both_end"][0]["category"] == "UndefinedBehavior"


def test_a_program_that_is_only_recorded(tmp_path: Path, kernel: Path) -> None:
    record = tmp_path / "trace"
    done = bhemu("compare", kernel, "--record", record, "--at-end")
    assert (done.exit_code, done.stdout) == (0, f"wrote {record}: {len(read_trace(record))} calls\n")
    assert bhemu("compare", record).exit_code == 0


# --- different --------------------------------------------------------------------------------------------------------


def test_a_difference_is_followed_back(kernel: Path, memory_library: Path) -> None:
    """The memory of this library stays as it is; bhemu's core writes its first number in the fourth clock."""
    done = bhemu("compare", kernel, "--library", memory_library, "--every", 500)
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "different: L1 0x20000 of tile 1-2 (counter)",
        "  bhemu    0x00000001",
        "  library  0x00000000",
        "  before   0x00000000",
    ]
    moment = int(lines[4].split()[2].rstrip(","))
    assert lines[4].endswith(": libttsim_clock(500)")
    store = next(line for line in lines if line.endswith("<- here"))
    assert "sw a1, 0(a0)" in store
    assert "loop+0x8" in store
    assert int(store[:10]) == moment - 1
    assert lines[-1].startswith("cores: B running at ")

    report = json.loads(bhemu("compare", kernel, "--library", memory_library, "--json").stdout)
    begins = report["difference"]["begins"]
    assert (begins["clock"], begins["symbol"], begins["bhemu"], begins["library"]) == (moment, "counter", 1, 0)
    assert report["same"] is False


def test_code_of_a_trace_has_the_names_of_elf_files(kernel: Path, memory_library: Path, tmp_path: Path) -> None:
    record = tmp_path / "trace"
    assert bhemu("compare", kernel, "--record", record).exit_code == 0
    plain = bhemu("compare", record, "--library", memory_library)
    named = bhemu("compare", record, "--library", memory_library, "--elf", f"B={kernel}")
    assert plain.exit_code == named.exit_code == 1
    assert "loop+0x8" not in plain.stdout
    assert "different: L1 0x20000 of tile 1-2 (counter)" in named.stdout
    assert any("loop+0x8" in line and line.endswith("<- here") for line in named.stdout.splitlines())


def test_an_answer_that_a_trace_has_otherwise(tmp_path: Path) -> None:
    path = trace_of(tmp_path / "trace", memory_calls(100))
    path.write_text(path.read_text().replace('"answer":"000102', '"answer":"00ff02'))
    done = bhemu("compare", path)
    assert done.exit_code == 1
    assert f"at L1 {AT + 1:#x} of tile 1-2" in done.output
    assert "trace    ff 02 03" in done.output
    assert "bhemu    01 02 03" in done.output
    assert "1 of 64 bytes differ, from byte 1 on" in done.output


def test_a_library_that_refuses(monkeypatch: pytest.MonkeyPatch, kernel: Path, memory_library: Path) -> None:
    monkeypatch.setenv("FAULT", "refuse")
    monkeypatch.setenv("FAULT_CLOCK", "20")
    monkeypatch.setenv("CATEGORY", "UnimplementedFunctionality")
    done = bhemu("compare", kernel, "--library", memory_library)
    assert done.exit_code == 1
    assert "library  refuses at clock 20: UnimplementedFunctionality: some_function: what it does not" in done.output
    assert "bhemu    goes on" in done.output
    clocks = [int(line[:10]) for line in done.output.splitlines() if " B  " in line and line[:10].strip().isdigit()]
    assert clocks[-1] == 20


@pytest.mark.parametrize(("fault", "moment"), [("crash", 1), ("exit", 777), ("crash", 1000)])
def test_a_library_that_crashes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, memory_library: Path, fault: str, moment: int
) -> None:
    monkeypatch.setenv("FAULT", fault)
    monkeypatch.setenv("FAULT_CLOCK", str(moment + 5))
    path = trace_of(tmp_path / "trace", memory_calls(5, 1000), answers=False)
    done = bhemu("compare", path, "--library", memory_library)
    assert done.exit_code == 1
    assert "different: call 6 after 5 clocks, libttsim_clock(1,000)" in done.stdout
    assert f"  it ends in the clock after {moment + 4:,}\n" in done.stdout


def test_bhemu_refuses(tmp_path: Path, memory_library: Path) -> None:
    setup, memory = aim(0, (1, 2), 0)
    more, registers = aim(1, (1, 2), 0xFFA00000)
    fault = bytes.fromhex("83250500")  # lw a1, 0(a0), where a0 is 0; then words of zeros
    calls = [Call(INIT), *setup, write(memory, fault * 3), *more, write(registers + 0x1121B0, 0x47000), clock(50)]
    path = trace_of(tmp_path / "trace", [*calls, read(memory)], answers=False)
    done = bhemu("compare", path, "--library", memory_library)
    if done.exit_code == 0:
        pytest.fail(done.output)
    assert "bhemu    refuses at clock" in done.output
    assert "library  goes on" in done.output
    assert "lw a1, 0(a0)" in done.output


# --- what cannot be done ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{kernel}"], "there is nothing to compare with"),
        (["{kernel}", "--library", "{missing}"], "no such file"),
        (["{kernel}", "--library", "{kernel}"], "is not a 64-bit little-endian shared object"),
        (["{missing}", "--library", "{library}"], "no such file"),
        (["{kernel}", "{trace}", "--library", "{library}"], "several things"),
        (["B={kernel}", "B={kernel}", "--library", "{library}"], "core B is named twice"),
        (["B={kernel}", "--core", "B", "--library", "{library}"], "--core is for one program"),
        (["X={kernel}", "--library", "{library}"], "core 'X' does not exist"),
        (["{trace}", "--core", "B"], "--core is not for"),
        (["{trace}", "--range", "0:4"], "--range is for programs"),
        (["{trace}", "--at-end"], "--at-end is for programs"),
        (["{trace}", "--write", "0={kernel}"], "--write is not for"),
        (["{kernel}", "--in", "a=a.npy", "--library", "{library}"], "--in is not for"),
        (["{kernel}", "--library", "{library}", "--tile", "8-2"], "is not a Tensix tile"),
        (["{kernel}", "--library", "{library}", "--tile", "x"], "is not a Tensix tile"),
        (["{kernel}", "--library", "{library}", "--also", "0-0"], "--also 0-0 is not a Tensix tile"),
        (["{kernel}", "--library", "{library}", "--also", "1-2"], "is the tile that runs it"),
        (["{trace}", "--also", "1-3"], "--also is for programs"),
        (["{kernel}", "--library", "{library}", "--range", "5"], "not of the form ADDR:BYTES"),
        (["{kernel}", "--library", "{library}", "--range", "nobody:5"], "a symbol 'nobody'"),
        (["{kernel}", "--library", "{library}", "--range", "0x17fff0:17"], "does not lie in L1"),
        (["{kernel}", "--library", "{library}", "--range", "0x180000:1"], "outside of L1"),
        (["{kernel}", "--library", "{library}", "--write", "5"], "not of the form ADDR=FILE"),
        (["{kernel}", "--library", "{library}", "--write", "0x100={kernel}"], "overlaps the code"),
        (["{kernel}", "--library", "{library}", "--write", "0x17fff0={kernel}"], "do not fit into L1"),
        (["{kernel}", "--library", "{library}", "--write", "0={missing}"], "No such file"),
        (["{kernel}", "--library", "{library}", "--record", "{library}"], "would write over the library"),
        (["{kernel}", "--library", "{library}", "--record", "{missing}/x"], "cannot write"),
        (["{silent}"], "nothing to compare"),
        (["{trace}", "--elf", "{kernel}"], "not of the form CORE=FILE"),
        (["{trace}", "--elf", "X={kernel}"], "core 'X' does not exist"),
        (["{trace}", "--elf", "B={missing}"], "no such file"),
        (["{kernel}", "--elf", "B={kernel}", "--library", "{library}"], "--elf is not for"),
    ],
)
def test_no_comparison_can_be_made(
    tmp_path: Path, kernel: Path, memory_library: Path, arguments: list[str], message: str
) -> None:
    places = {
        "kernel": kernel,
        "library": memory_library,
        "missing": tmp_path / "missing",
        "trace": trace_of(tmp_path / "trace", memory_calls(1)),
        "silent": trace_of(tmp_path / "silent", memory_calls(1), answers=False),
    }
    done = bhemu("compare", *(argument.format(**places) for argument in arguments))
    assert done.exit_code == 2, done.output
    assert message in done.output
    assert "remedy:" in done.output


# --- recording clients ------------------------------------------------------------------------------------------------


@compiled_only
def test_a_client_is_recorded(tmp_path: Path, own_library: Path) -> None:
    made = bhemu("library", tmp_path / "recorder", "--record", own_library)
    assert made.exit_code == 0
    recorder = tmp_path / "recorder" / own_library.name
    ended = run_client(
        recorder,
        """
init()
assert config_read(8, 0) == 0xFFFFFFFF
config_write(0, 4, 5)
poke(1, 2, 0x20000, bytes(range(256)) * 40)
assert peek(1, 2, 0x20001, 3) == bytes([1, 2, 3])
clock(7)
sys.stdout.flush()
read(BAR0, 0)
""",
        BHEMU_TRACE=str(tmp_path / "%p.trace"),
    )
    assert ended.status == 1
    assert "UndefinedBehavior" in ended.out
    (trace,) = tmp_path.glob("*.trace")
    assert trace.stem.isdigit()
    calls = read_trace(trace)
    assert [call.name for call in calls[:3]] == [INIT, CONFIG_READ, "pci_config_wr32"]
    assert calls[1].answer == b"\xff\xff\xff\xff"
    assert next(call for call in calls if call.name == READ).answer == bytes([1, 2, 3])
    assert calls[-1] == read(0x1_0000_0000, 0)
    path = tmp_path / "short"
    writer = TraceWriter(path)
    for call in calls[:-1]:
        writer.call(replace(call, answer=None), call.answer if isinstance(call.answer, bytes) else b"")
    writer.close()
    assert bhemu("compare", path).exit_code == 0
    assert bhemu("compare", trace).exit_code == 1
    assert bhemu("compare", trace, "--library", own_library).exit_code == 0  # both refuse


def test_recorders_say_what_is_missing(tmp_path: Path, memory_library: Path) -> None:
    assert bhemu("library", tmp_path / "r", "--record", tmp_path / "missing.so").exit_code == 1
    assert bhemu("library", tmp_path / "r", "--record", memory_library).exit_code == 0
    recorder = tmp_path / "r" / "libttsim_bh.so"
    done = bhemu("library", tmp_path / "r", "--record", recorder)
    assert done.exit_code == 1
    assert "overwritten by its own recorder" in done.output
    for script, environment, message in (
        ("init()", {}, "set BHEMU_TRACE"),
        ("init()", {"BHEMU_TRACE": str(tmp_path / "no" / "trace")}, "cannot be written"),
        ("clock(1)", {"BHEMU_TRACE": str(tmp_path / "trace")}, "is not running"),
    ):
        ended = run_client(recorder, script, **environment)
        assert ended.status == 1
        assert "ERROR: ConfigurationError: libttsim_" in ended.out
        assert message in ended.out
