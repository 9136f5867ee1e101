"""Clients that are recorded: what is recorded depends neither on threads nor on the process that has the chip."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.recording.parts import Reader
from tests.capi.library_client import run_client

# addi t0, t0, 1; add t2, t2, t0; sw t2, 0x100(zero); lw t3, 0x100(zero); xor t4, t4, t3; j -20
LOOP = [0x00128293, 0x005383B3, 0x10702023, 0x10002E03, 0x01CECEB3, 0xFEDFF06F]
MANY_TILES = f"""
init()
for x in range(1, 7):
    for y in range(2, 5):
        release_b({LOOP}, x, y)
for _ in range(3):
    clock(2003)
print([peek(x, 2, 0x100).hex() for x in range(1, 7)])
exit_()
"""


def executed(directory: Path) -> dict[Any, tuple[list[Any], list[Any]]]:
    """By tile: all rows, and how often each word of each core was executed."""
    rows: dict[Any, list[Any]] = {}
    counts: dict[Any, Any] = {}
    for part in Reader(directory).parts():
        rows.setdefault(part.place, []).extend(part.log.rows.tolist())
        counted = counts.setdefault(part.place, np.zeros((8, 1 << 19), np.int64))
        np.add.at(counted, (part.log.counts[:, 0], part.log.counts[:, 1]), part.log.counts[:, 2])
    return {
        place: (rows[place], [(*at, int(counts[place][at])) for at in zip(*np.nonzero(counts[place]), strict=True)])
        for place in rows
    }


@pytest.mark.parametrize(("detail", "process"), [("instructions", "own"), ("counters", "own"), ("counters", "client")])
def test_a_recording_is_the_same_on_threads(library: Path, tmp_path: Path, detail: str, process: str) -> None:
    found = []
    for threads in ("1", "3"):
        how = {"BHEMU_DETAIL": detail, "BHEMU_PROCESS": process, "BHEMU_THREADS": threads}
        ended = run_client(library, MANY_TILES, BHEMU_RECORD=str(tmp_path / threads), **how)
        assert ended.status == 0, ended.out
        found.append((ended.out.splitlines()[0], executed(tmp_path / threads)))
    assert found[0] == found[1]
    assert len([place for place, (rows, counts) in found[0][1].items() if counts]) == 18
    assert all(bool(rows) == (detail == "instructions") for rows, counts in found[0][1].values() if counts)
