"""Libraries to compare with: compiled once, skipped loudly where there is no C compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bhemu.capi import build
from tests.c_programs import compiler_or_skip


def _compiler() -> list[str]:
    return compiler_or_skip("COMPARING WITH A LIBRARY IS NOT TESTED")


def _compile(directory: Path, *options: str) -> Path:
    made = directory / "libfaulty.so"
    source = Path(__file__).with_name("faulty_library.c")
    command = [*_compiler(), "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *options]
    subprocess.run([*command, "-o", str(made), str(source)], check=True)
    return made


@pytest.fixture(scope="session")
def memory_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that has a memory, and goes wrong as FAULT says."""
    return _compile(tmp_path_factory.mktemp("faulty"))


@pytest.fixture(scope="session")
def lacking_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library without pci_config_rd32."""
    return _compile(tmp_path_factory.mktemp("lacking"), "-DWITHOUT_CONFIG")


@pytest.fixture(scope="session")
def own_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bhemu's own."""
    _compiler()
    return build(tmp_path_factory.mktemp("own"))
