"""`bhemu cc` on the command line: arguments in a compiler's order, and its exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bhemu.cc import Toolchain
from bhemu.loader.elf import load_elf
from tests.cli.cli_programs import invoke


def cc(*arguments: object) -> Any:
    return invoke("cc", *arguments)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "k.c"
    file.write_text("int main(void) { return VALUE; }")
    return file


def test_compiler_options_pass_through(toolchain: Toolchain, source: Path, tmp_path: Path) -> None:
    target = tmp_path / "k.elf"
    result = cc(
        "-O3", "-fno-builtin", "-DVALUE=5", source, "--core", "t1", "-o", target, "--verbose", "-Wl,-Map=/dev/null"
    )
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{target}: core T1, entry 0xA000\n"
    compiling, linking = (line for line in result.stderr.splitlines() if "k.c" in line or "-Map" in line)
    assert "-O3 -fno-builtin -DVALUE=5 -c" in compiling
    assert "-O3" not in linking
    assert load_elf(target).entry == 0xA000


def test_everything_behind_two_dashes_passes_through(toolchain: Toolchain, source: Path, tmp_path: Path) -> None:
    result = cc("--text", "0x20000", "-o", tmp_path / "k.elf", "--", "-DVALUE=5", source)
    assert result.exit_code == 0, result.output
    assert load_elf(tmp_path / "k.elf").entry == 0x20000


def test_a_missing_compiler_is_one_message_and_status_1(source: Path, tmp_path: Path) -> None:
    result = cc(source, "-o", tmp_path / "k.elf", "--gcc", "no-such-gcc")
    assert result.exit_code == 1
    assert result.stderr.count("bhemu:") == 1
    assert "MissingTool" in result.stderr
    assert "apt install gcc-riscv64-unknown-elf" in result.stderr


def test_an_error_in_the_source_has_status_1(toolchain: Toolchain, source: Path, tmp_path: Path) -> None:
    result = cc(source, "-o", tmp_path / "k.elf")
    assert result.exit_code == 1
    assert "k.c does not compile" in result.stderr
    assert "VALUE" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "no source is given"),
        (["k.c"], "no output file is given"),
        (["k.c", "-o"], "-o needs a value"),
        (["k.c", "-o", "a", "-o", "b"], "-o is given twice"),
        (["k.c", "-c", "-o", "a"], "-c gives no kernel"),
        (["k.c", "-o", "a", "--text", "here"], "--text 'here' is not a number"),
        (["k.c", "-o", "a", "--llk-core", "sfpu"], "--llk-core 'sfpu' is not part"),
        (["k.c", "-o", "a", "--llk-core", "math", "--core", "B"], "math runs on T1"),
        (["k.c", "--print-header", "fields"], "--print-header does nothing else"),
        (["--print-header", "registers"], "no header is called 'registers'"),
    ],
)
def test_wrong_use_has_status_2(arguments: list[str], reason: str) -> None:
    result = cc(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_headers_can_be_printed() -> None:
    assert "#define TTI_SEMINIT(" in cc("--print-header", "instructions").stdout
    assert "#define ALU_FORMAT_SPEC_REG_SrcA_val_MASK 0xF\n" in cc("--print-header", "fields").stdout
    assert "bhemu_wall_clock" in cc("--print-header", "bhemu").stdout
