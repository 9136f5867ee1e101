"""Machine code that several processes compiled works side by side in one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.tensix.coprocessor import ensure_handlers
ensure_handlers(INSTRUCTIONS[name].opcode for name in sys.argv[1:])
"""

CHECK = """
from bhemu.api.tile import Tile
tile = Tile()
tile.execute(0, "SEMINIT 3, 0, 1")
tile.execute(0, "SEMPOST 1")
tile.execute(0, "RMWCIB3 Mask=255, Data=0xA5, CfgRegAddr=1")
tile.execute(0, "SEMPOST 1")
print(int(tile.semaphores[0]), hex(tile.record.config[0, 1]))
"""


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_handler_from_the_cache_is_not_taken_for_one_that_another_process_compiled(tmp_path: Path) -> None:
    """Each is the first that its process compiles, so Numba's own numbering gives all of them the same symbols."""
    environment = {**os.environ, "BHEMU_CACHE": str(tmp_path)}

    def run(script: str, *arguments: str) -> str:
        command = [sys.executable, "-c", script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    for name in ("RMWCIB3", "SEMPOST"):
        run(SCRIPT, name)
    run(SCRIPT, "SEMINIT", "RMWCIB3", "SEMPOST")
    assert run(CHECK) == "2 0xa5000000\n"
    (tmp_path / next(path.name for path in tmp_path.glob("SEMINIT-*"))).unlink()
    assert run(CHECK) == "2 0xa5000000\n"  # SEMINIT is compiled before the others are fetched
