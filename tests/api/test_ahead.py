"""What a program needs is compiled by several processes, before it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.machine.codegen import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled")

SCRIPT = """
import sys
from bhemu.api import ahead
from bhemu.isa import INSTRUCTIONS
from bhemu.machine.compiler import on_compile
from bhemu.tensix.coprocessor import not_compiled

ahead.os.sched_getaffinity = lambda _: {0, 1}
sys.executable = sys.argv[1]
mine = []
on_compile(mine.append)
opcodes = [INSTRUCTIONS[name].opcode for name in ("NOP", "DMANOP", "SEMGET", "SEMPOST")]
with ahead.Ahead(opcodes) as _:
    started = ahead.threading.active_count() - 1
print(started, len(mine), not_compiled(opcodes)[0])
"""


def compiled_ahead(cache: Path, python: str) -> list[str]:
    """Processes started, functions that this one compiled, and opcodes that are not in the cache afterwards."""
    environment = os.environ | {"BHEMU_CACHE": str(cache), "BHEMU_PROGRESS": "0"}
    command = [sys.executable, "-c", SCRIPT, python]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split(maxsplit=2)


def test_functions_are_compiled_by_this_process_and_another(tmp_path: Path) -> None:
    started, mine, left = compiled_ahead(tmp_path, sys.executable)
    assert started == "1"
    assert int(mine) <= 4
    assert left.strip() == "[]"
    assert compiled_ahead(tmp_path, sys.executable) == ["0", "0", "[]\n"]  # nothing is left to do


def test_process_that_cannot_compile_leaves_it_to_this_one(tmp_path: Path) -> None:
    _, mine, left = compiled_ahead(tmp_path, "/bin/false")
    assert int(mine) == 4 or left.strip() != "[]"  # the part that it was given is compiled when it is needed
    assert int(mine) >= 3


def test_directories_of_the_cache_need_not_be_there(tmp_path: Path) -> None:
    assert compiled_ahead(tmp_path / "of a new" / "home", sys.executable)[0] == "1"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners of files")
def test_nothing_is_compiled_ahead_for_a_cache_that_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert compiled_ahead(tmp_path / "cache", sys.executable)[0] == "0"
