"""What `bhemu run kernel.elf` says about bad input: one message, status 1 or 2, no output file but the dump."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.cc import MissingTool
from bhemu.cc import compile_kernel as build
from tests.cli.cli_programs import Invoke
from tests.loader.boot_programs import START, store, write_elf
from tests.loader.elf_files import Load, Name, compile_kernel, make_elf


@pytest.fixture
def refused(bhemu: Invoke, tmp_path: Path) -> Any:
    """Run with outputs asked for; assert the refusal's form; return its text and whether the state was dumped."""

    def run(*arguments: object, status: int = 1, dumped: bool = True) -> str:
        folder = tmp_path / "out"
        folder.mkdir(exist_ok=True)
        options = ("--read", f"0x20000:4={folder / 'c.bin'}", "--dump", folder / "state.npz")
        result = bhemu("run", *arguments, *options)
        assert result.exit_code == status, result.stdout + result.stderr
        assert result.stdout == ""
        assert sorted(path.name for path in folder.iterdir()) == (["state.npz"] if dumped else [])
        message = "\n".join(line for line in result.stderr.splitlines() if "compiling" not in line)
        assert message.startswith("bhemu: "), message
        assert message.count("bhemu: ") == 1
        assert "remedy: " in message
        return str(message)

    return run


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    """`kernel(text, address)` -> the ELF file of assembly."""
    return lambda text, address=0, **more: write_elf(tmp_path / "kernel.elf", text, address, **more)


# --- programs that fail ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("core", "text", "words"),
    [
        ("B", "nop\n.word 0xffffffff", ("UndefinedBehavior", "core B", "0x00004 _start+0x4", "0xffffffff")),
        ("T1", "li t0, 0x20001\nsw t0, 0(t0)", ("core T1", "0x0a008 _start+0x8", "0x20001", "misaligned")),
        ("NC", "li t0, 0xffe40000\nsw t0, 0(t0)", ("core NC", "0x12004 _start+0x4", "0xffe40000")),
        ("B", "addi sp, sp, -16\nsw ra, 12(sp)", ("core B", "_start+0x4", "sp is 0xfffffff0, outside of every memory")),
        ("T2", "li t0, 0xffb01000\nsw t0, 0(t0)", ("core T2", "0xffb01000")),
        ("B", "li t0, 0x180000\njr t0", ("core B", "0x180000")),
        ("T0", ".ttinsn 0x00000000\nebreak", ("opcode 0x00", "pushed by core T0", "_start")),
    ],
)
def test_refused_instruction_is_named_and_the_state_dumped(
    refused: Any, kernel: Any, core: str, text: str, words: tuple[str, ...]
) -> None:
    message = refused(kernel(text, START[core]))
    for word in words:
        assert word in message, message


def test_core_that_never_ends_is_a_clock_limit(refused: Any, kernel: Any) -> None:
    message = refused(kernel("loop: addi t0, t0, 1\nj loop"), "--max-clocks", 3000)
    assert message.startswith("bhemu: CycleLimit: not done after 3,000 clocks")
    assert "core B at 0x0000" in message
    assert "_start" in message
    assert "running" in message
    assert "--max-clocks" in message


def test_core_that_waits_for_ever_is_a_deadlock(refused: Any, kernel: Any) -> None:
    names = (Name("flag", 0x20000, 4, kind=1),)
    message = refused(kernel("li t0, 0x20000\nw: lw t1, 0(t0)\nbeqz t1, w\nebreak", names=names))
    assert message.startswith("bhemu: Deadlock: nothing can move")
    assert "core B at 0x00004 _start+0x4: polls 0x20000 flag, which holds 0x0" in message


def test_state_of_a_failed_run_shows_the_instruction_at_fault(refused: Any, kernel: Any, tmp_path: Path) -> None:
    refused(kernel("li t1, 77\n.word 0xffffffff"))
    with np.load(tmp_path / "out" / "state.npz") as state:
        assert state["core_pc"][0] == 4
        assert state["core_x"][0, 6] == 77


def test_source_line_of_a_compiled_kernel_is_named(refused: Any, tmp_path: Path) -> None:
    source = tmp_path / "kernel.c"
    source.write_text("volatile unsigned *nowhere = (unsigned *)0x00200000;\nint main(void) {\n    *nowhere = 1;\n}\n")
    try:
        build([source], tmp_path / "built.elf")
    except MissingTool as error:
        pytest.skip(f"source lines of compiled kernels are NOT tested: {error}")
    message = refused(tmp_path / "built.elf")
    assert "main" in message
    assert "(kernel.c:3)" in message
    assert "kernel.c:3" in message.split("\n  at: ")[1]
    assert "0x200000" in message


# --- files ----------------------------------------------------------------------------------------


def test_missing_file_is_refused(refused: Any, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing.elf", dumped=False)
    assert "no such file" in refused(f"T0={tmp_path / 'missing.elf'}", dumped=False)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"hello", "is not an ELF file"),
        (make_elf()[:60], "is truncated"),
        (make_elf(bits=2), "64-bit"),
        (make_elf(machine=40), "not for RISC-V"),
        (make_elf(kind=1), "relocatable"),
        (make_elf(flags=1), "compressed"),
    ],
)
def test_broken_or_foreign_file_is_refused(refused: Any, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(content)
    assert words in refused(path, dumped=False)


def test_object_file_of_the_compiler_is_refused(refused: Any, tmp_path: Path) -> None:
    assert "relocatable object" in refused(compile_kernel(tmp_path, "-c"), dumped=False)


def test_segment_outside_of_memory_is_refused(refused: Any, tmp_path: Path) -> None:
    path = tmp_path / "kernel.elf"
    path.write_bytes(make_elf((Load(0), Load(0x1000_0000, b"\0" * 8)), entry=0))
    message = refused(path, dumped=False)
    assert "segment 1 at 0x10000000, 0x8 bytes long" in message
    assert "L1 is 0x00000000..0x0017ffff" in message


def test_overlapping_programs_are_refused(refused: Any, tmp_path: Path) -> None:
    first = write_elf(tmp_path / "unpack.elf", store(1), 0x6000)
    second = write_elf(tmp_path / "math.elf", store(1), 0x6004)
    message = refused(f"T0={first}", f"T1={second}", dumped=False)
    assert "unpack.elf" in message
    assert "math.elf" in message
    assert "0x6004" in message


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("T0={k}", "T0={k}"), "core T0 is named twice"),
        (("X7={k}",), "core 'X7', which does not exist"),
        (("{k}", "--core", "B9"), "core 'B9', which does not exist"),
        (("{k}", "T0={k}"), "several programs need the names of their cores"),
        (("T0={k}", "--core", "B"), "--core is for one program without a name"),
        (("{k}", "--until", "main", "--until-word", "0=1"), "exclude each other"),
        (("{k}", "--until-word", "0x20000"), "ADDR=VALUE"),
        (("{k}", "--write", "0x20000"), "--write '0x20000' is not of the form"),
        (("{k}", "--read", "0x20000=c.npy"), "--read '0x20000=c.npy' is neither"),
        (("{k}", "--in", "a=a.npy"), "--in is for Python programs"),
        (("{k}", "--max-cycles", "5"), "--max-cycles is for Python programs"),
        (("{k}", "--kernel", "B={k}"), "--kernel is for --firmware"),
        (("--core", "B"), "no program is given"),
    ],
)
def test_wrong_use_of_the_command_line(refused: Any, kernel: Any, arguments: tuple[str, ...], words: str) -> None:
    path = kernel(store(1))
    assert words in refused(*(text.format(k=path) for text in arguments), status=2, dumped=False)


def test_options_for_elf_files_are_refused_for_python_programs(bhemu: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("x = 1\n")
    result = bhemu("run", path, "--dump", tmp_path / "state.npz")
    assert result.exit_code == 2
    assert "--dump is for ELF files" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--write", "0x17fff0={a}", "do not lie in L1"),
        ("--write", "nothing={a}", "a symbol 'nothing'"),
        ("--write", "0x0={a}", "overlaps the code of"),
        ("--write", "0xffb00000={a}", "lies in local RAM"),
        ("--write", "0x20000={missing}", "no such file"),
        ("--write", "0x20000={a}:bf16:32x32", "has shape 8 x 8"),
        ("--write", "0x20000={a}:u8", "values that u8 cannot hold"),
        ("--write", "0x20000={a}:bf99", "unknown data format"),
        ("--read", "0x17fff0:64={out}", "do not lie in L1"),
        ("--read", "0x20000:32x32:bf16={out}.bin", "saved as .npy"),
        ("--read", "0x20000:30x30:bf16={out}.npy", "30"),
        ("--until", "nothing", "a symbol 'nothing'"),
        ("--until-word", "0x20002=1", "is not a word of L1"),
    ],
)
def test_wrong_places_and_formats_are_refused_before_the_run(
    refused: Any, kernel: Any, tmp_path: Path, option: str, value: str, words: str
) -> None:
    np.save(tmp_path / "a.npy", np.full((8, 8), 300.0, np.float32))
    text = value.format(a=tmp_path / "a.npy", missing=tmp_path / "m.npy", out=tmp_path / "c")
    before = option in ("--until", "--until-word") or ".bin" in value or "30x30" in value
    assert words in refused(kernel(store(1)), option, text, dumped=not before)


# --- firmware -------------------------------------------------------------------------------------


def test_firmware_directory_without_files_is_refused(refused: Any, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    message = refused("--firmware", tmp_path / "set", dumped=False)
    assert "brisc.elf" in message
    assert "no such file" in message
    assert "no such directory" in refused("--firmware", tmp_path / "none", dumped=False)


def test_firmware_does_not_go_with_a_program(refused: Any, kernel: Any, tmp_path: Path) -> None:
    assert "--firmware does not go with a program" in refused(
        kernel(store(1)), "--firmware", tmp_path, status=2, dumped=False
    )
