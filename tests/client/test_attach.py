"""A debugger attached to a running client: the client gets what it gets without one."""

from __future__ import annotations

import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bhemu
import bhemu.client.attached
from bhemu.cli.main import app
from bhemu.client.entry import Overseer
from bhemu.client.gate import Gate
from bhemu.client.server import listen
from bhemu.debugger.breakpoints import DebugError
from bhemu.errors import ConfigurationError
from tests.client.running_client import BASE, COUNTER, GOAL, RESULT, result_without_debugger, running
from tests.processes import HANG, wait_until

GDB = "gdb-multiarch"


def value(text: str) -> int:
    """The number in `a0 0x0000000a (10)`."""
    return int(text.split()[1], 16)


def word(debug: bhemu.client.attached.Attached, address: int) -> int:
    """A word of L1 of tile 1-2."""
    return int(debug.tile(1, 2).record.l1_u32[address // 4])


def test_a_session_from_attaching_to_the_end_of_the_client(tmp_path: Path, library: Path) -> None:
    (tmp_path / "plain").mkdir()
    expected = result_without_debugger(tmp_path / "plain", library)
    with running(tmp_path, library) as client:
        assert stat.S_IMODE(client.socket.stat().st_mode) == 0o600
        with bhemu.attach(client.socket) as debug:
            assert "when its program runs" in debug.command("break work core B")
            stop = debug.command("continue")
            assert "breakpoint 1" in stop
            assert "work" in stop
            assert value(debug.command("info registers a0")) == 0
            debug.command("stepi 5")
            assert "work" in debug.command("bt")
            assert value(debug.command("info registers a0")) == 1
            assert word(debug, COUNTER) == 1
            assert "counter: add-symbol-file" in debug.command("files")
            for _ in range(3):
                debug.command("continue")
            at = debug.command("info registers a0")
            debug.command("reverse-continue")
            debug.command("reverse-stepi 3")
            with pytest.raises(DebugError, match="cannot be changed"):
                debug.command("set $a0 = 5")
            debug.command("delete")
            assert "the present" in debug.command("continue")
            assert debug.command("info registers a0") == at
            assert "sw a0, 0(a1)" in debug.command(f"last-write *{COUNTER:#x}")
            debug.command("tile 2,2")
            assert "by no core or thread of this tile" in debug.command(f"last-write *{BASE:#x}")
            debug.command("quit")
        printed = client.wait()
    assert "ended" in printed
    result = next(line for line in printed.splitlines() if line.startswith("result"))
    assert result in expected
    assert not client.socket.exists()


def test_watchpoint_sees_what_the_client_writes(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client, bhemu.attach(client.socket) as debug:
        debug.command("until 1000")
        debug.command(f"watch *{GOAL:#x}")
        assert "0x00000000 -> 0x00000001" in debug.command("continue")
        assert "a NoC request, the mover, or the host" in debug.command(f"last-write *{GOAL:#x}")
        clock = debug.command("print $clock")
        debug.command("delete")
        debug.command("reverse-stepi 40")
        assert word(debug, GOAL) == 0
        assert "the present" in debug.command("continue")
        assert debug.command("print $clock") == clock
        assert word(debug, GOAL) == 1
        debug.command(f"watch *{RESULT:#x}")
        assert "sw a0, 32(a1)" in debug.command("continue") + debug.command(f"last-write *{RESULT:#x}")


def test_client_that_is_killed_while_a_debugger_is_attached(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client, bhemu.attach(client.socket) as debug:
        debug.command("until 30")
        client.process.kill()
        client.process.wait()
        with pytest.raises(DebugError, match="client") as raised:
            debug.command("continue")
        assert "has ended" in raised.value.message
        wait_until(lambda: not client.socket.exists(), "socket removed")


def test_client_that_ends_while_the_chip_runs(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client, bhemu.attach(client.socket) as debug:
        with pytest.raises(DebugError, match="the client has ended its chip"):
            debug.command("continue")
        assert "ended" in client.wait()


def test_debugger_that_ends_lets_the_client_go_on(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client:
        debug = bhemu.attach(client.socket)
        debug.command("until 30")
        debug.close()
        assert "ended" in client.wait()


def test_what_cannot_be_debugged_is_refused_by_name(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client:
        with pytest.raises(DebugError, match="9-9 is not a Tensix tile"):
            bhemu.attach(client.socket, tiles=[(9, 9)])
        with bhemu.attach(client.socket) as debug:
            with pytest.raises(DebugError, match="another debugger is attached"):
                bhemu.attach(client.socket)
            with pytest.raises(DebugError, match="9-9 is not a Tensix tile"):
                debug.command("tile 9,9")
            with pytest.raises(DebugError, match="does not match L1"):
                debug.command(f"file {client.elf}")
            (tmp_path / "text.elf").write_text("no ELF file")
            with pytest.raises(DebugError, match="is not an ELF file for the cores"):
                debug.command(f"file {tmp_path / 'text.elf'}")
            with pytest.raises(DebugError, match="no_such_function"):
                debug.command("break no_such_function")
            with pytest.raises(DebugError, match="there is no command"):
                debug.command("frobnicate")
            debug.command("until 30")
            assert "counter" in debug.command(f"file {client.elf}")
    with pytest.raises(DebugError, match="no client can be debugged there"):
        bhemu.attach(tmp_path / "nothing.sock")


def test_a_socket_in_use_is_refused_and_one_that_is_dead_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    first = listen(path)
    with pytest.raises(ConfigurationError, match="another client waits for its debugger"):
        listen(path)
    first.close()
    listen(path).close()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="is there already, and not a socket"):
        listen(tmp_path / "file")
    with pytest.raises(ConfigurationError, match="more than 100 bytes"):
        listen(tmp_path / ("x" * 100))
    with pytest.raises(ConfigurationError, match="no socket can be made"):
        listen(tmp_path / "no" / "such.sock")


@pytest.mark.parametrize(
    ("variable", "text"), [("BHEMU_RECORD", "out"), ("TTSIM_SEMIHOSTING", "1"), ("BHEMU_DEBUG_WAIT", "2")]
)
def test_settings_that_do_not_go_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, text: str
) -> None:
    monkeypatch.setenv("BHEMU_DEBUG", str(tmp_path / "a.sock"))
    monkeypatch.setenv(variable, text)
    with pytest.raises(ConfigurationError, match=variable):
        Overseer().host(bhemu.HostMemory())
    assert not (tmp_path / "a.sock").exists()


def test_command_line_debugs_a_client(tmp_path: Path, library: Path) -> None:
    with running(tmp_path, library) as client:
        command = [sys.executable, "-m", "bhemu", "debug", "--attach", str(client.socket), "--batch"]
        lines = ("break work core B", "continue", "info registers a0", "threads", "quit")
        for line in lines:
            command += ["-c", line]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
        assert done.returncode == 0, done.stderr
        assert "breakpoint 1" in done.stdout
        assert "a0 0x00000000" in done.stdout
        assert "ended" in client.wait()


def test_gdb_debugs_a_core_of_a_running_client(tmp_path: Path, library: Path) -> None:
    if shutil.which(GDB) is None:
        pytest.skip(f"{GDB} is not installed: attaching GDB to a running client is NOT tested")
    with running(tmp_path, library) as client:
        command = [sys.executable, "-m", "bhemu", "debug", "--attach", str(client.socket), "--gdb", ":0"]
        for line in ("break work core B", "continue", "delete"):
            command += ["-c", line]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as front:
            assert front.stderr is not None
            port = next(line for line in front.stderr if "target remote" in line).rpartition(":")[2].strip(" '\n")
            gdb = [GDB, "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "set confirm off"]
            asked = (
                f"target remote 127.0.0.1:{port}",
                "print $pc",
                "break done",
                "stepi",
                "stepi",
                "reverse-stepi",
                "print $a0",
                "continue",
                "continue",
                "print $a0",
                "detach",
            )
            for line in asked:
                gdb += ["-ex", line]
            done = subprocess.run([*gdb, str(client.elf)], capture_output=True, text=True, timeout=HANG, check=False)
            text = done.stdout + done.stderr
            front.wait(HANG)
        assert "0x6008" in text
        assert "$2 = 1" in text
        assert "from here on the client goes on" in text
        assert "Breakpoint 1," in text
        assert "$3 = 350" in text
        assert "ended" in client.wait()


def test_port_in_use_is_refused_before_anything_is_attached(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["debug", "--attach", str(tmp_path / "no.sock"), "--gdb", f":{port}"])
    assert isinstance(done.exception, DebugError) or done.exit_code != 0
    assert f"cannot listen on 127.0.0.1:{port}" in f"{done.exception} {done.output}"


def test_calls_that_were_kept_are_forgotten_beyond_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bhemu.client.gate.LOG_LIMIT", 1000)
    forgotten: list[bool] = []
    gate = Gate(lambda: True)
    gate.attach()
    gate.on_overflow = lambda: forgotten.append(True)
    for number in range(20):
        gate._keep(number, "config_write", (0, 0, number))
    assert forgotten
    assert gate._size <= 1000
