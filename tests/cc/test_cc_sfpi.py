"""Kernels built by Tenstorrent's own compiler, which the tests fetch; skipped, with the reason, where pip cannot."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bhemu
from bhemu.cc import CompileError, Kernel, LlkTree, MissingTool, Sfpi, Toolchain, find_sfpi, write_llk_home
from bhemu.cc import sfpi as module
from bhemu.cli.main import app
from bhemu.loader.elf import load_elf
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.compiler import JIT
from tests.vendor_compiler import NoCompiler, vendor_compiler

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "kernels" / "softsign.cpp"
ABSOLUTE = """
#include <bhemu.h>
#include <sfpi.h>
int main() {
    sfpi::vFloat a = sfpi::dst_reg[0];
    v_if (a < 0.0f) { a = -a; }
    v_endif;
    sfpi::dst_reg[0] = a;
    return 0;
}
"""


@pytest.fixture(scope="session")
def sfpi() -> Path:
    try:
        return vendor_compiler()
    except NoCompiler as reason:
        pytest.skip(f"KERNELS OF THE VENDOR'S COMPILER ARE NOT TESTED: {reason}")


@pytest.fixture
def compile_source(sfpi: Path, tmp_path: Path) -> Callable[..., Kernel]:
    """`compile_source("int main...", core="T1")` -> kernel in C++, or with another `suffix`."""

    def run(source: str, *, suffix: str = ".cpp", **options: Any) -> Kernel:
        file = tmp_path / f"kernel{suffix}"
        file.write_text(textwrap.dedent(source))
        return bhemu.compile_kernel([file], tmp_path / "kernel.elf", **({"sfpi": sfpi} | options))

    return run


@pytest.mark.skipif(not JIT, reason="takes long as plain Python")
def test_a_kernel_in_the_vector_language_computes_what_it_says(sfpi: Path, tmp_path: Path) -> None:
    kernel = bhemu.compile_kernel([EXAMPLE], tmp_path / "softsign.elf", core="T1", sfpi=sfpi)
    elf = bhemu.load_elf(kernel.path)
    machine = bhemu.Machine()
    machine.load(elf, "T1")
    x = np.linspace(-2.5, 2.5, 32, dtype=np.float32)
    place = elf.address_of("x") // 4
    machine.tile.record.l1_u32[place : place + 32] = x.view(np.uint32)
    machine.start()
    assert machine.run().reason == "done"
    place = elf.address_of("y") // 4
    y = machine.tile.record.l1_u32[place : place + 32].view(np.float32)
    np.testing.assert_allclose(y, x / (1 + abs(x)), rtol=0, atol=1e-7)


@pytest.mark.parametrize("core", CORE_NAMES)
@pytest.mark.parametrize("suffix", [".c", ".cpp"])
def test_every_core_runs_code_of_both_languages(compile_source: Callable[..., Kernel], core: str, suffix: str) -> None:
    source = """
    #include <bhemu.h>
    #include <string.h>
    const char words[] = "constant";
    static unsigned data[2] = {20, 30};
    BHEMU_L1 unsigned result;
    int main(void) { result = data[0] + data[1] + strlen(words); return 7; }
    """
    kernel = compile_source(source, suffix=suffix, core=core, options=["-fno-builtin"])
    assert kernel.sfpi == module.KNOWN_RELEASE
    elf = load_elf(kernel.path)
    machine = bhemu.Machine()
    machine.load(elf, core)
    machine.start()
    (state,) = machine.run().cores
    assert state.state == "halted"
    assert machine.tile.record.l1_u32[elf.address_of("result") // 4] == 58


def test_llk_headers_in_the_vector_language_compile(compile_source: Callable[..., Kernel], llk: LlkTree) -> None:
    source = """
    #include "ckernel.h"
    #include "ckernel_sfpu_sigmoid.h"
    std::uint32_t unp_cfg_context = 0, pack_sync_tile_dst_ptr = 0, math_sync_tile_dst_index = 0;
    int main() { sfpi::dst_reg[0] = sfpi::abs(sfpi::vFloat(sfpi::dst_reg[0])); return 0; }
    """
    assert compile_source(source, core="T1", llk=llk).core == "T1"


def test_the_compiler_is_found_where_tt_metal_and_its_packages_have_it(
    sfpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_sfpi() is None
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "sfpi").symlink_to(sfpi)
    found = find_sfpi(tmp_path)
    assert found is not None
    assert (found.root, found.release) == (tmp_path / "runtime" / "sfpi", module.KNOWN_RELEASE)
    monkeypatch.setenv("TT_METAL_HOME", str(tmp_path))
    assert find_sfpi() == found
    monkeypatch.delenv("TT_METAL_HOME")
    monkeypatch.setattr(module, "INSTALLED", sfpi)
    assert find_sfpi() == Sfpi(sfpi, module.KNOWN_RELEASE)


def test_the_command_takes_it_where_it_is_unless_a_stock_one_is_named(
    toolchain: Toolchain, sfpi: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.cpp").write_text(ABSOLUTE)
    command = ["cc", str(tmp_path / "k.cpp"), "-o", str(tmp_path / "k.elf"), "--core", "T1"]
    without = CliRunner().invoke(app, command)
    assert without.exit_code == 1
    assert "it needs the vendor's SFPU compiler (sfpi)" in without.stderr
    assert "--sfpi DIR or TT_METAL_HOME" in without.stderr
    named = CliRunner().invoke(app, [*command, "--sfpi", str(sfpi)])
    assert named.stdout == f"{tmp_path / 'k.elf'}: core T1, entry 0xA000, sfpi {module.KNOWN_RELEASE}\n"
    (tmp_path / "runtime").mkdir()
    (tmp_path / "runtime" / "sfpi").symlink_to(sfpi)
    monkeypatch.setenv("TT_METAL_HOME", str(tmp_path))
    assert CliRunner().invoke(app, command).stdout == named.stdout
    stock = CliRunner().invoke(app, [*command, "--gcc", str(toolchain.gcc)])
    assert "it needs the vendor's SFPU compiler (sfpi)" in stock.stderr


def test_a_directory_without_the_compiler_is_refused(compile_source: Callable[..., Kernel], tmp_path: Path) -> None:
    with pytest.raises(MissingTool, match="no compiler/bin/riscv-tt-elf-gcc there"):
        compile_source(ABSOLUTE, sfpi=tmp_path)
    with pytest.raises(MissingTool, match="two compilers are named"):
        compile_source(ABSOLUTE, gcc="riscv64-unknown-elf-gcc")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'riscv-tt-elf-gcc (GCC) 12.2.0'", "is not Tenstorrent's sfpi: it says riscv-tt-elf-gcc"),
        ("echo broken library; exit 1", "does not run:\nbroken library"),
        (
            "[ $1 != --version ] || exec echo '(tenstorrent/sfpi:6.1.0[9])'; echo bad value tt-bh-tensix; exit 1",
            "sfpi 6.1.0 does not build for Blackhole:\nbad value tt-bh-tensix",
        ),
    ],
)
def test_another_compiler_in_its_place_is_refused_with_its_own_words(tmp_path: Path, script: str, message: str) -> None:
    driver = tmp_path / "compiler" / "bin" / "riscv-tt-elf-gcc"
    driver.parent.mkdir(parents=True)
    driver.write_text(f"#!/bin/sh\n{script}\n")
    driver.chmod(0o755)
    with pytest.raises(MissingTool) as refused:
        find_sfpi(tmp_path)
    assert message in refused.value.message
    assert module.KNOWN_RELEASE in str(refused.value.remedy)


def test_a_kernel_that_does_not_compile_shows_file_and_line_and_the_program_goes_on(
    compile_source: Callable[..., Kernel],
) -> None:
    with pytest.raises(CompileError, match=r"kernel\.cpp:5:\d+: error: (?s:.)*no_such") as refused:
        compile_source(ABSOLUTE.replace("sfpi::dst_reg[0];", "sfpi::no_such(0);", 1), core="T1")
    assert "error:" in refused.value.output
    assert compile_source(ABSOLUTE, core="T1").core == "T1"


def test_a_missing_header_is_named_with_what_to_do(compile_source: Callable[..., Kernel]) -> None:
    with pytest.raises(CompileError, match=r"kernel\.cpp:2:\d+: fatal error: absent\.h: No such file") as refused:
        compile_source("\n#include <absent.h>\nint main() {}\n", core="T1")
    assert "-I" in str(refused.value.remedy)
    assert "--llk" in str(refused.value.remedy)


def test_a_kernel_for_another_release_is_told_which_is_known(
    compile_source: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bhemu.cc.build.KNOWN_RELEASE", "9.0.0")
    with pytest.raises(CompileError) as refused:
        compile_source(ABSOLUTE.replace("sfpi::dst_reg[0];", "sfpi::of_tomorrow(0);", 1), core="T1")
    assert refused.value.remedy is not None
    assert f"this is sfpi {module.KNOWN_RELEASE}, and 9.0.0 is known to work" in refused.value.remedy


def test_views_have_a_link_to_the_compiler_and_headers_as_they_are(sfpi: Path, llk: LlkTree, tmp_path: Path) -> None:
    found = find_sfpi(sfpi)
    assert found is not None
    home = write_llk_home(tmp_path / "view", llk, found)
    assert (home / "tests" / "sfpi").resolve() == sfpi.resolve()
    assert os.access(home / "tests" / "sfpi" / "compiler" / "bin" / "riscv-tt-elf-g++", os.X_OK)
    assert (home / "tt_llk_blackhole").is_symlink()
