"""Building kernels in tests: skipped, with the reason, where the stock compiler or the LLK headers are missing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bhemu.cc import Kernel, LlkTree, MissingTool, Toolchain, compile_kernel, find_llk, find_toolchain
from bhemu.loader.elf import Executable, load_elf


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    try:
        return find_toolchain()
    except MissingTool as missing:
        pytest.skip(f"NO COMPILER: {missing.message}; {missing.remedy}")


@pytest.fixture(scope="session")
def cxx(toolchain: Toolchain) -> Toolchain:
    try:
        toolchain.cxx_include()
    except MissingTool as missing:
        pytest.skip(f"NO C++ HEADERS: {missing.message}; {missing.remedy}")
    return toolchain


@pytest.fixture(scope="session")
def llk(cxx: Toolchain) -> LlkTree:
    try:
        return find_llk()
    except MissingTool as missing:
        pytest.skip(f"NO LLK HEADERS: {missing.message}; {missing.remedy}")


@pytest.fixture
def build(toolchain: Toolchain, tmp_path: Path) -> Callable[..., tuple[Kernel, Executable]]:
    """`build("int main...", core="T0")` -> kernel and its ELF; `suffix=".cpp"` for another language."""

    def run(source: str, *, suffix: str = ".c", **options: Any) -> tuple[Kernel, Executable]:
        file = tmp_path / f"kernel{suffix}"
        file.write_text(textwrap.dedent(source))
        kernel = compile_kernel([file], tmp_path / "kernel.elf", **options)
        return kernel, load_elf(kernel.path)

    return run
