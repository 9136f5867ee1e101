"""GDB itself against the stub."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from bhemu import Machine
from bhemu.debugger.session import DebugSession
from bhemu.gdb.server import GdbServer
from tests.debugger.debug_programs import compile_kernel
from tests.processes import HANG, finished

GDB = "gdb-multiarch"


def run_gdb(folder: Path, *commands: str, core: str = "T1") -> str:
    """What GDB prints for some commands, connected to a tile that runs the kernel on a core."""
    if shutil.which(GDB) is None:
        pytest.skip(f"{GDB} is not installed: the remote stub is NOT tested with GDB")
    path = compile_kernel(folder)
    machine = Machine()
    machine.load(path, core)
    machine.start()
    server = GdbServer(DebugSession(machine), ("127.0.0.1", 0))
    thread = threading.Thread(target=server.serve)
    thread.start()
    arguments = [GDB, "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set confirm off"]
    for command in (f"target remote 127.0.0.1:{server.port}", *commands):
        arguments += ["-ex", command]
    result = finished([*arguments, str(path)], cwd=folder)
    thread.join(HANG)
    server.close()
    assert not thread.is_alive()
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_a_session_with_gdb(tmp_path: Path) -> None:
    text = run_gdb(
        tmp_path,
        "info threads",
        "break main",
        "continue",
        "info registers",
        "stepi",
        "bt",
        "list",
        "break inner if x == 2",
        "continue",
        "bt",
        "finish",
        "print flag",
        "x/4x &results",
        "next",
        "step",
        "monitor semaphores",
    )
    assert 'Thread 3 "T1" (running)' in text
    assert 'Thread 1 "B" (in reset)' in text
    assert 'Thread 3 "T1" hit Breakpoint 1, main () at kernel.c' in text
    assert "<main>" in text
    assert "cfg0" in text
    assert "results[1] = work(3);" in text
    assert "inner (x=x@entry=2) at kernel.c" in text
    assert "in main () at kernel.c" in text
    assert "Value returned is $1 = 5" in text
    assert "$2 = 2" in text
    assert "<results>:" in text
    assert "MATH_PACK" in text
    assert "Cannot" not in text


def test_watchpoints_and_writes_with_gdb(tmp_path: Path) -> None:
    text = run_gdb(
        tmp_path,
        "watch flag",
        "continue",
        "continue",
        "set var flag = 77",
        "print flag",
        "delete",
        "tbreak work",
        "continue",
        "print $pc",
        "set $a0 = 1",
        "thread 1",
        "stepi",
        "x/x 0xffec0000",
        "thread 3",
        "continue",
        "print results",
    )
    assert "Old value = 7\nNew value = 0" in text
    assert "Old value = 0\nNew value = 1" in text
    assert "$1 = 77" in text
    assert "<work>" in text
    assert "has halted: ebreak" in text
    assert "$3 = {125, 1, 0, 0}" in text
    assert "Cannot insert breakpoint" not in text


def test_gdb_steps_backwards(tmp_path: Path) -> None:
    text = run_gdb(
        tmp_path,
        "break inner if x == 3",
        "continue",
        "print x",
        "reverse-stepi",
        "x/i $pc",
        "delete",
        "break inner",
        "reverse-continue",
        "print x",
        "reverse-continue",
        "print x",
        "reverse-continue",
        "reverse-continue",
        "info registers pc",
    )
    assert "$1 = 3" in text
    assert "jal" in text
    assert "$2 = 2" in text
    assert "$3 = 1" in text
    assert "No more reverse-execution history" in text
