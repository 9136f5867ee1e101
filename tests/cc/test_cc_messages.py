"""What a user reads when a kernel cannot be built: the reason, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bhemu.cc import CompileError, MissingTool, Toolchain, compile_kernel, find_llk, find_toolchain, toolchain
from bhemu.cc.build import split_options
from bhemu.cli.cc import split_arguments

Build = Callable[..., Any]


def test_a_missing_compiler_names_the_package(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text("int main(void) { return 0; }")
    with pytest.raises(MissingTool) as refused:
        compile_kernel([tmp_path / "k.c"], tmp_path / "k.elf", gcc="riscv64-no-such-gcc")
    assert "riscv64-no-such-gcc is not installed" in refused.value.message
    assert "apt install gcc-riscv64-unknown-elf" in str(refused.value.remedy)


def test_a_driver_that_is_no_gcc_is_refused(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text("int main(void) { return 0; }")
    for text in ("exit 1", "echo twelve"):
        driver = tmp_path / "driver"
        driver.write_text(f"#!/bin/sh\n{text}\n")
        driver.chmod(0o755)
        find_toolchain.cache_clear()
        with pytest.raises(MissingTool, match="driver is not GCC") as refused:
            compile_kernel([tmp_path / "k.c"], tmp_path / "k.elf", gcc=str(driver))
        assert "--gcc" in str(refused.value.remedy)


def test_a_missing_c_library_names_the_package(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bhemu.cc.toolchain.PICOLIBC_ROOTS", ())
    find_toolchain.cache_clear()
    try:
        with pytest.raises(MissingTool, match="picolibc-riscv64-unknown-elf"):
            find_toolchain()
    finally:
        find_toolchain.cache_clear()


def test_missing_cxx_headers_matter_to_cxx_only(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "CXX_ROOTS", ())
    build("int main(void) { return 0; }")
    with pytest.raises(MissingTool, match="libstdc\\+\\+-arm-none-eabi-newlib"):
        build("int main() { return 0; }", suffix=".cpp")


def test_a_syntax_error_shows_the_compilers_words(build: Build) -> None:
    with pytest.raises(CompileError, match=r"kernel\.c does not compile\n(?s:.)*expected ';'") as refused:
        build("int main(void) { return 0 }")
    assert "error:" in refused.value.output


def test_a_failed_build_leaves_no_file(build: Build, tmp_path: Path) -> None:
    with pytest.raises(CompileError):
        build("int main(void) { return missing(); }")
    assert not (tmp_path / "kernel.elf").exists()


@pytest.mark.parametrize(
    ("source", "options", "reason", "remedy"),
    [
        ("int other(void) { return 0; }", {}, "undefined reference to `main'", "define main"),
        ("char big[5000]; int main(void) { return big[0]; }", {"core": "T0"}, "LOCAL", "BHEMU_L1"),
        ("char big[3900]; int main(void) { return big[0]; }", {"core": "T0"}, "too little", "BHEMU_L1"),
        (
            "const char big[20000] = {1}; volatile int i; int main(void) { return big[i]; }",
            {"core": "T1"},
            "L1",
            "--text",
        ),
    ],
)
def test_memory_that_does_not_suffice(
    build: Build, source: str, options: dict[str, Any], reason: str, remedy: str
) -> None:
    with pytest.raises(CompileError) as refused:
        build(source, **options)
    assert reason in refused.value.message
    assert remedy in str(refused.value.remedy)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("__atomic_compare_exchange_n(&word, &other, 1, 0, 5, 5)", "uses LR/SC at 0x"),
        ("__atomic_fetch_add(&byte, 1, 5)", "__atomic_fetch_add_1"),
    ],
)
def test_atomics_that_the_cores_lack_are_refused(build: Build, call: str, reason: str) -> None:
    with pytest.raises(CompileError, match=reason) as refused:
        build(f"unsigned char byte; unsigned word, other; int main(void) {{ return {call}; }}")
    assert "__atomic_fetch_add" in str(refused.value.remedy)


def test_whole_word_atomics_are_not(build: Build) -> None:
    build(
        "#include <bhemu.h>\nBHEMU_L1 unsigned w;"
        " int main(void) { return __atomic_fetch_add(&w, 1, __ATOMIC_SEQ_CST) + __atomic_exchange_n(&w, 3, 5); }"
    )


def test_warnings_are_handed_on(build: Build) -> None:
    kernel, _ = build("int main(void) { int unused; return 0; }")
    assert "unused variable" in kernel.warnings


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"core": "T3"}, "no core is called 'T3'"),
        ({"text": 0x6004}, "cannot start at 0x6004"),
        ({"text": 0x180000}, "cannot start at 0x180000"),
        ({"text": 0x17FFF0, "length": 0x20}, "are not in L1"),
    ],
)
def test_places_that_do_not_exist(tmp_path: Path, arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(CompileError, match=reason):
        compile_kernel([tmp_path / "k.c"], tmp_path / "k.elf", **arguments)


def test_sources_that_do_not_exist_or_have_no_language(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="no such file"):
        compile_kernel([tmp_path / "k.c"], tmp_path / "k.elf")
    (tmp_path / "k.rs").write_text("")
    with pytest.raises(CompileError, match=r"no language is known for \.rs"):
        compile_kernel([tmp_path / "k.rs"], tmp_path / "k.elf")


def test_missing_llk_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingTool, match="no tt_llk_blackhole there"):
        find_llk(tmp_path)
    monkeypatch.delenv("BHEMU_LLK", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingTool, match="no LLK headers are installed") as refused:
        find_llk()
    assert "pip install ttnn" in str(refused.value.remedy)


def test_the_installed_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "ttnn"
    (package / "tt_metal" / "tt-llk" / "tt_llk_blackhole" / "llk_lib").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.delenv("BHEMU_LLK", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_llk().root == package / "tt_metal" / "tt-llk"


def test_options_go_where_they_belong() -> None:
    assert split_options(["-O3", "-L", "lib", "-lfoo", "-I", "inc", "-Wl,-Map=x", "-undef", "-u", "name"]) == (
        ["-O3", "-I", "inc", "-undef"],
        ["-L", "lib", "-lfoo", "-Wl,-Map=x", "-u", "name"],
    )
    assert split_arguments(["-O2", "a.c", "-o", "x.elf", "-D", "A", "-include", "h.h", "b.S", "-fno-common"]) == (
        ["a.c", "b.S"],
        "x.elf",
        ["-O2", "-D", "A", "-include", "h.h", "-fno-common"],
    )
    assert split_arguments(["-ox.elf", "a.c"])[1] == "x.elf"
