"""Kept results of the LLK suite's compiler: the same command gives the same file, and any change compiles again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.llk.cached_compiler import trim, write_launchers

COMPILER = """\
#!/bin/sh
# Stands for the compiler: `-E` puts the header before the source; otherwise the output is the source with a number.
for last do case $before in -o) out=$last ;; -I) header=$last/build.h ;; esac; before=$last; done
text=$(cat)
case " $* " in *" -E "*) cat "$header"; echo "$text"; exit ;; esac
case $text in *error*) echo "file.cpp:1: error" >&2; exit 1 ;; esac
echo run >> "$(dirname "$0")/runs"
cat "$header" > "$out"
echo "$text $(wc -l < "$(dirname "$0")/runs")" >> "$out"
"""


@pytest.fixture
def compile_kernel(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """`compile_kernel(source, header="", option="-O3", run="1")` -> status and output, by the launcher."""
    binaries = tmp_path / "sfpi" / "compiler" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "riscv-tt-elf-g++").write_text(COMPILER)
    (binaries / "riscv-tt-elf-g++").chmod(0o755)
    (binaries / "riscv-tt-elf-nm").write_text("another tool")
    (tmp_path / "sfpi" / "include").mkdir()
    write_launchers(tmp_path / "view", tmp_path / "sfpi", tmp_path / "kept", sys.executable)

    def run(source: str, header: str = "", option: str = "-O3", run: str = "1") -> tuple[int, str]:
        own = tmp_path / f"run{run}"
        own.mkdir(exist_ok=True)
        (own / "build.h").write_text(header)
        launcher = tmp_path / "view" / "compiler" / "bin" / "riscv-tt-elf-g++"
        command: list[str | Path] = [launcher, "-I", own, option, "-x", "c++", "-", "-lc", "-o", own / "k.elf"]
        environment = os.environ | {"RUNNER_TEMP": str(own)}
        done = subprocess.run(command, input=source, text=True, capture_output=True, check=False, env=environment)
        return done.returncode, (own / "k.elf").read_text() if done.returncode == 0 else done.stderr

    return run


def test_a_result_is_kept_by_content(compile_kernel: Callable[..., tuple[int, str]]) -> None:
    first = compile_kernel("int a;", header="// one")
    assert first == (0, "// oneint a; 1\n")
    assert compile_kernel("int a;", header="// one") == first
    assert compile_kernel("int a;", header="// one", run="2") == first  # another folder, the same content


def test_another_source_header_or_option_compiles_again(compile_kernel: Callable[..., tuple[int, str]]) -> None:
    assert compile_kernel("int a;")[1].endswith(" 1\n")
    assert compile_kernel("int b;")[1].endswith(" 2\n")
    assert compile_kernel("int a;", header="// new")[1].endswith(" 3\n")
    assert compile_kernel("int a;", option="-O2")[1].endswith(" 4\n")
    assert compile_kernel("int a;")[1].endswith(" 1\n")


def test_an_error_is_the_compilers_own_each_time(compile_kernel: Callable[..., tuple[int, str]]) -> None:
    for _ in range(2):
        assert compile_kernel("error") == (1, "file.cpp:1: error\n")


def test_other_tools_are_the_compilers(compile_kernel: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    assert (tmp_path / "view/compiler/bin/riscv-tt-elf-nm").read_text() == "another tool"
    assert (tmp_path / "view/include").resolve() == tmp_path / "sfpi" / "include"


def test_the_oldest_results_go_first(tmp_path: Path) -> None:
    for age, name in enumerate("abc"):
        file = tmp_path / name / name
        file.parent.mkdir()
        file.write_bytes(bytes(100))
        os.utime(file, (1000 - age, 1000 - age))
    trim(tmp_path, 250)
    assert {file.name for file in tmp_path.glob("*/*")} == {"a", "b"}
