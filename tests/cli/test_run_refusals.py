"""What `bhemu run` says about bad input: one message with thread, line and value, status 1 or 2, and no output file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.cli.cli_programs import COPY, Invoke, WriteProgram, line_of


@pytest.fixture
def refused(bhemu: Invoke, tmp_path: Path) -> Any:
    """Run with an output file asked for; assert the refusal's form and that no file appears; return its text."""

    def run(path: Path, *options: object, status: int = 1, out: str = "c") -> str:
        target = tmp_path / "out" / "c.npy"
        target.parent.mkdir(exist_ok=True)
        output = ("--out", f"{out}={target}") if out else ()
        result = bhemu("run", path, *output, *options)
        assert result.exit_code == status, result.stderr
        assert result.stdout == ""
        assert list(target.parent.iterdir()) == []
        message = "\n".join(line for line in result.stderr.splitlines() if "compiling" not in line)
        assert message.startswith("bhemu: "), message
        assert message.count("bhemu: ") == 1
        return str(message)

    return run


# --- the program ---------------------------------------------------------------------------------

DECLARE = 'program.output("c", (32, 32), "bf16")'


@pytest.mark.parametrize(
    ("thread", "name", "wrong", "words"),
    [
        ("unpack", "thread 0 (unpack)", "core.SETDMARG(1, 2)", ("AssemblyError", "'SETDMARG'", "SETDMAREG")),
        ("math", "thread 1 (math)", "core.SEMPOST(sem_sell=1)", ("AssemblyError", "'sem_sell'", "sem_sel")),
        ("pack", "thread 2 (pack)", "core.SEMPOST(sem_sel=256)", ("AssemblyError", "sem_sel", "256", "0..255")),
        ("math", "thread 1 (math)", "core.SEMPOST(sem_sel=-1)", ("AssemblyError", "sem_sel", "-1")),
        ("math", "thread 1 (math)", 'core.issue("SEMPOST sem_sel=")', ("AssemblyError", "sem_sel")),
        ("math", "thread 1 (math)", "core.config['ALU_FORMT'] = 1", ("AssemblyError", "'ALU_FORMT'")),
        ("math", "thread 1 (math)", "core.SEMPOST(sem_sel=0)", ("UndefinedBehavior", "SEMPOST", "sem_sel is 0")),
        ("pack", "thread 2 (pack)", "1 / 0", ("ProgramError", "ZeroDivisionError")),
    ],
)
def test_wrong_line_is_named_with_thread_and_value(
    refused: Any, write_program: WriteProgram, thread: str, name: str, wrong: str, words: tuple[str, ...]
) -> None:
    path = write_program(declare=DECLARE, **{thread: f"core.NOP()\n{wrong}\ncore.NOP()"})
    message = refused(path)
    for word in words:
        assert word in message
    assert f"program.py:{line_of(path, wrong)}, {name}" in message


def test_mistake_at_the_top_of_the_program_is_named_with_its_line(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(declare='program.output("c", (32, 32), "bf15")')
    message = refused(path)
    assert "FormatError" in message
    assert "'bf15'" in message
    assert f"program.py:{line_of(path, 'bf15')}" in message


def test_syntax_error_is_named_with_its_line(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(math="core.NOP(")
    message = refused(path)
    assert "ProgramError" in message
    assert f"program.py:{line_of(path, 'core.NOP(')}" in message


def test_failure_of_the_reference_is_named_with_its_line(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(source=COPY.replace("return a", "return a.no_such_thing"))
    message = refused(path)
    assert "AttributeError" in message
    assert f"program.py:{line_of(path, 'no_such_thing')}" in message


def test_sys_exit_in_a_program_is_refused(refused: Any, write_program: WriteProgram) -> None:
    assert "sys.exit" in refused(write_program(declare=DECLARE, math="import sys\nsys.exit(0)"))


def test_missing_program_is_refused(refused: Any, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing.py")


def test_file_without_a_program_is_refused(refused: Any, write_program: WriteProgram) -> None:
    assert "0 programs" in refused(write_program(source="x = 1\n"))


def test_deadlock_names_every_thread_its_line_and_the_semaphore(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(
        declare=DECLARE,
        math="""
        core.SEMINIT(max_value=1, init_value=0, sem_sel=2)
        core.SEMWAIT(stall_res=0x1FF, sem_sel=2, wait_sem_cond=1)
        core.NOP()
        """,
        pack="core.wait_until(lambda: False, 'a message that never comes')",
    )
    message = refused(path)
    assert message.startswith("bhemu: Deadlock: nothing can move")
    assert f"(line {line_of(path, 'core.NOP')})" in message
    assert f"(line {line_of(path, 'core.SEMWAIT')})" in message
    assert "semaphore 1 (MATH_PACK) is 0 of 1" in message
    assert f"pack: its function (line {line_of(path, 'wait_until')}) waits for a message that never comes" in message
    assert "unpack: its function has ended" in message


ENDLESS = """
while True:
    core.SEMPOST(sem_sel=1)
"""


def test_endless_loop_of_instructions_ends_at_max_cycles(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(declare=DECLARE, math=ENDLESS)
    message = refused(path, "--max-cycles", 5000)
    assert "CycleLimit" in message
    assert "after 5000 cycles" in message
    assert "math: " in message
    assert f"(line {line_of(path, 'SEMPOST')})" in message
    assert "--max-cycles" in message


def test_endless_poll_ends_at_max_cycles(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(declare=DECLARE, pack="while core.semaphore(3) == 0: pass")
    message = refused(path, "--max-cycles", 2000)
    assert "CycleLimit" in message
    assert f"line {line_of(path, 'core.semaphore')}" in message
    assert "semaphore 3" in message


def test_overlapping_buffers_are_named_with_their_ranges(refused: Any, write_program: WriteProgram) -> None:
    path = write_program(
        declare="""
        program.input("a", (32, 32), "bf16", address=0x10000)
        program.output("c", (32, 32), "bf16", address=0x10400)
        """
    )
    message = refused(path)
    assert "MemoryError" in message
    for word in ("tensor c", "0x10400..0x10c00", "overlaps a", "0x10000..0x10800"):
        assert word in message


@pytest.mark.parametrize("address", [0x17FC00, 0x10008])
def test_address_outside_of_l1_or_misaligned_is_refused(
    refused: Any, write_program: WriteProgram, address: int
) -> None:
    path = write_program(declare=f'program.output("c", (32, 32), "bf16", address={address})')
    message = refused(path)
    assert "MemoryError" in message
    assert f"{address:#x}" in message


def test_tensors_that_do_not_fit_are_refused(refused: Any, write_program: WriteProgram) -> None:
    message = refused(write_program(declare='program.output("c", (1024, 1024), "fp32")'))
    assert "MemoryError" in message
    assert str(4 * 1024 * 1024) in message


# --- options and files ---------------------------------------------------------------------------------


def save(path: Path, array: Any) -> Path:
    np.save(path, array)
    return path


def test_shape_that_is_not_whole_tiles_is_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    file = save(tmp_path / "a.npy", np.zeros((33, 64), np.float32))
    message = refused(write_program(source=COPY), "--in", f"a={file}")
    assert "FormatError" in message
    assert "tensor a" in message
    assert "33" in message


def test_wrong_number_of_dimensions_is_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    file = save(tmp_path / "a.npy", np.zeros(1024, np.float32))
    message = refused(write_program(source=COPY), "--in", f"a={file}")
    assert "input a has shape (1024,)" in message


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((32, 32), np.complex64), ("complex64", "BF16")),
        (np.zeros((32, 32), "S3"), ("S3", "BF16")),
        (np.zeros((32, 32), ml_dtypes.bfloat16), ("V2", "bfloat16", "float32")),
    ],
)
def test_dtype_that_the_format_cannot_hold_is_refused(
    refused: Any, write_program: WriteProgram, tmp_path: Path, array: Any, words: tuple[str, ...]
) -> None:
    message = refused(write_program(source=COPY), "--in", f"a={save(tmp_path / 'a.npy', array)}")
    assert "FormatError" in message
    for word in words:
        assert word in message


def test_integers_out_of_range_are_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    file = save(tmp_path / "a.npy", np.full((32, 32), 1000, np.int32))
    message = refused(write_program(source=COPY.replace("bf16", "int8")), "--in", f"a={file}")
    assert "FormatError: input a" in message
    assert "1000" in message


@pytest.mark.parametrize("keep", [3, 9, 40, 128, 500, -1])
def test_truncated_npy_is_refused(refused: Any, write_program: WriteProgram, tmp_path: Path, keep: int) -> None:
    file = save(tmp_path / "a.npy", np.zeros((32, 32), np.float32))
    file.write_bytes(file.read_bytes()[:keep])
    message = refused(write_program(source=COPY), "--in", f"a={file}")
    assert "FormatError" in message
    assert str(file) in message


def test_header_that_promises_more_than_memory_is_refused(
    refused: Any, write_program: WriteProgram, tmp_path: Path
) -> None:
    file = tmp_path / "a.npy"
    with file.open("wb") as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 30, 1 << 30)}
        np.lib.format.write_array_header_1_0(stream, header)
    assert str(file) in refused(write_program(source=COPY), "--in", f"a={file}")


def test_pickled_objects_are_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    file = tmp_path / "a.npy"
    np.save(file, np.array([[{}]], dtype=object), allow_pickle=True)
    assert str(file) in refused(write_program(source=COPY), "--in", f"a={file}")


@pytest.mark.parametrize("content", [b"", b"text\n" * 10])
def test_file_that_is_no_npy_is_refused(
    refused: Any, write_program: WriteProgram, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    assert "is not a .npy file" in refused(write_program(source=COPY), "--in", f"a={tmp_path / 'a.npy'}")


def test_missing_npy_is_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    message = refused(write_program(source=COPY), "--in", f"a={tmp_path / 'missing.npy'}")
    assert "missing.npy: no such file" in message


def test_input_that_the_program_lacks_is_refused(refused: Any, write_program: WriteProgram, tmp_path: Path) -> None:
    message = refused(write_program(source=COPY), "--in", f"b={tmp_path / 'b.npy'}")
    assert "no input 'b'" in message
    assert "its inputs: a" in message


def test_output_that_the_program_lacks_is_refused(refused: Any, write_program: WriteProgram) -> None:
    message = refused(write_program(source=COPY), out="d")
    assert "no output 'd'" in message
    assert "its outputs: c" in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--in", "a.npy"), ("--in 'a.npy'", "name=value")),
        (("--in", "=a.npy"), ("--in '=a.npy'", "name=value")),
        (("--set", "M"), ("--set 'M'", "name=value")),
        (("--in", "a=x.npy", "--in", "a=y.npy"), ("--in names 'a' twice",)),
        (("--set", "M=32", "--set", "M=64"), ("--set names 'M' twice",)),
        (("--out", "c=other.npy"), ("--out names 'c' twice",)),
    ],
)
def test_options_that_cannot_be_meant_are_usage_errors(
    refused: Any, write_program: WriteProgram, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    message = refused(write_program(source=COPY), *options, status=2)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("K=3", ("'K'", "scale, M, N")),
        ("scale=3", ("scale", "'3'", "1, 2")),
        ("M=0", ("M=0", "positive")),
        ("M=33", ("33",)),
        ("M=x", ("M=x",)),
    ],
)
def test_setting_that_the_program_lacks_or_refuses(
    refused: Any, write_program: WriteProgram, setting: str, words: tuple[str, ...]
) -> None:
    message = refused(write_program(source=COPY), "--set", setting)
    for word in words:
        assert word in message


@pytest.mark.parametrize("options", [("--max-cycles", "0"), ("--seed", "-1"), ("--no-such-option",), ()])
def test_wrong_use_of_options_has_status_2(
    bhemu: Invoke, write_program: WriteProgram, options: tuple[str, ...]
) -> None:
    arguments = ("run", write_program(source=COPY), *options) if options else ("run",)
    assert bhemu(*arguments).exit_code == 2


def test_output_folder_is_checked_before_the_run(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    path = write_program(source=COPY.replace("core.tile_done()", f"open({str(tmp_path / 'ran')!r}, 'w').close()"))
    result = bhemu("run", path, "--out", f"c={tmp_path / 'missing' / 'c.npy'}")
    assert result.exit_code == 1
    assert f"no folder {tmp_path / 'missing'}" in result.stderr
    assert not (tmp_path / "ran").exists()


def test_output_to_something_that_is_no_file_is_refused(
    bhemu: Invoke, write_program: WriteProgram, tmp_path: Path
) -> None:
    for target in (tmp_path, Path("/dev/null")):
        result = bhemu("run", write_program(source=COPY), "--out", f"c={target}")
        assert result.exit_code == 1
        assert "is not a plain file" in result.stderr
    assert Path("/dev/null").is_char_device()


def test_two_outputs_into_one_file_are_refused(bhemu: Invoke, write_program: WriteProgram, tmp_path: Path) -> None:
    path = write_program(
        source=COPY.replace(
            "    program.dimension", '    d = program.output("d", ("M",), "bf16")\n    program.dimension', 1
        )
    )
    result = bhemu("run", path, "--out", f"c={tmp_path / 'x'}", "--out", f"d={tmp_path / 'x'}")
    assert result.exit_code == 2
    assert "same file" in result.stderr
