"""Processes that work for another one end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

WORKERS = """
import multiprocessing, os, sys, time
from concurrent.futures import ProcessPoolExecutor
from bhemu.machine.processes import end_with_parent

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=end_with_parent) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        time.sleep(600)
"""


def runs(process: int) -> bool:
    """A process is there, and is more than what its parent has not asked about yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.plain
def test_a_worker_ends_when_who_wants_its_results_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        try:
            assert runs(worker)
            parent.kill()
            parent.wait()
            end = time.monotonic() + 60
            while runs(worker) and time.monotonic() < end:
                time.sleep(0.1)
            assert not runs(worker)
        finally:
            if runs(worker):
                os.kill(worker, signal.SIGKILL)
