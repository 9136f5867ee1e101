"""Libraries to replay streams on: compiled once, skipped loudly where there is no C compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bhemu.capi import build
from tests.c_programs import compiler_or_skip


@pytest.fixture(scope="session")
def small_chip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with a memory and an engine (small_chip.c)."""
    compiler = compiler_or_skip("REPLAYS OF CLIENTS ARE NOT TESTED")
    made = tmp_path_factory.mktemp("small") / "small_chip.so"
    source = Path(__file__).with_name("small_chip.c")
    command = [*compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(made), str(source)]
    subprocess.run(command, check=True)
    return made


@pytest.fixture(scope="session")
def own_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bhemu's own."""
    return build(tmp_path_factory.mktemp("own"))
