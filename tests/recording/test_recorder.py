"""The recorder keeps what was executed, compiled and as plain Python alike."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bhemu
from bhemu.isa.instructions import encode
from bhemu.programs.load import load_program
from bhemu.programs.run import run_program
from bhemu.recording import Recorder
from bhemu.recording import log as column
from bhemu.recording.recorder import ROWS

SCRIPT = """
import bhemu
from bhemu.recording import Recorder
tile = bhemu.Tile()
recorder = Recorder()
recorder.attach(tile)
tile.record.src_owner[:] = 1
tile.config["PCK0_ADDR_CTRL_XY_REG_0_Ystride"] = 32
tile.execute(1, ["SETC16 1, 512", "SETRWC BitMask=15, rwc_d=4", "MOVA2D instr_mod=2, dst=4", "REPLAY 0, 2, 0, 1",
                 "NOP", "SETRWC", "REPLAY 0, 2, 0, 0"])
tile.execute(2, ["SETADCXY CntSetMask=4, Ch0_Y=3, BitMask=15", "SETDMAREG 5, 24", "SETC16 0, 1", "WRCFG 12, 0, 69"])
print(recorder.log().rows.tolist())
"""


def printed(**environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=os.environ | environment, check=True
    )
    return result.stdout


def test_the_log_is_the_same_compiled_and_as_plain_python() -> None:
    compiled = printed()
    assert compiled == printed(NUMBA_DISABLE_JIT="1")
    assert compiled.count("[") == 10  # nine words reached the gate


def test_rows_hold_the_state_that_the_instruction_found() -> None:
    tile = bhemu.Tile()
    recorder = Recorder()
    recorder.attach(tile)
    tile.execute(1, ["SETC16 1, 512", "SETRWC BitMask=15, rwc_d=4", "SETRWC BitMask=15", "SETC16 0, 1", "RDCFG 4, 1"])
    rows = recorder.log().rows
    assert rows[:, column.DST].tolist() == [0, 512, 516, 512, 512]
    assert rows[:, column.BANK].tolist() == [0, 0, 0, 0, 1]
    assert rows[:, column.CLOCK].tolist() == [0, 1, 2, 3, 4]


def test_a_run_longer_than_the_buffer_is_kept_whole() -> None:
    tile = bhemu.Tile()
    recorder = Recorder()
    recorder.attach(tile)
    word = encode("SETRWC", BitMask=1, rwc_a=1)
    count = ROWS + 100 if os.environ.get("NUMBA_DISABLE_JIT") != "1" else 50
    for _ in range(count):
        tile.coprocessor.push(1, word)
        tile.coprocessor.drain(1)
    rows = recorder.log().rows
    assert len(rows) == count
    assert (rows[:, column.WORD] == word).all()
    np.testing.assert_array_equal(rows[:, column.PUSH], np.arange(1, count + 1))


@pytest.mark.parametrize("example", ["add1", "matmul", "datacopy", "eltwise"])
def test_a_recorded_program_takes_the_cycles_of_a_plain_one_and_executes_in_the_same_order(example: str) -> None:
    path = Path(__file__).parents[2] / "examples" / f"{example}.py"
    plain = run_program(load_program(path))
    watched = run_program(load_program(path), recorder=Recorder())
    assert watched.report.cycles == plain.report.cycles
    assert watched.tile.snapshot() == plain.tile.snapshot()
