"""GDB at the server of the unmodified tt-exalens 0.4.2, on a core of bhemu (`make test-clients`).

Of what GDB shows, some is tt-exalens' own way: it answers reads of memory with the bytes reversed, so that only single
bytes are right; it does not write registers; and it reports each stop twice. A core pauses after a breakpoint (tile
K42), so GDB sees a trap and not its breakpoint. GDB steps by breakpoints: the first `stepi` goes over two instructions,
and the next is answered by the second report of that stop, and goes over none.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import environment
from tests.clients.test_exalens_debug import SPEND, loop_of

pytestmark = pytest.mark.clients

DEADLINE = 600
"""Seconds: handlers may have to be compiled."""


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def prompt(python: Path, library: Path, elf: Path, tmp_path: Path) -> Iterator[tuple[int, Callable[[str], str]]]:
    """tt-exalens at its prompt, a program running and a GDB server waiting: (port, function that ends it with a
    command and gives the whole output)."""
    port = free_port()
    start = "; ".join([f"run-elf {elf} -r brisc", *SPEND, f"gdb start {port}"])
    command = [str(python.with_name("tt-exalens")), "-s", str(library), "--commands", start]
    log = tmp_path / "exalens.txt"
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            env=environment(library),
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=library.parent,
        )

    def end(last: str) -> str:
        process.communicate(f"{last}\nx\n", timeout=DEADLINE)
        assert process.returncode == 0, log.read_text()
        return log.read_text()

    try:
        # its prompt comes when the server listens; a connection to find out would be the one that it serves
        until = time.monotonic() + DEADLINE
        while f"gdb:{port}" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield port, end
    finally:
        process.kill()
        process.wait()


def test_a_session(prompt: tuple[int, Callable[[str], str]], elf: Path, tmp_path: Path) -> None:
    gdb = shutil.which("gdb-multiarch")
    if gdb is None:
        pytest.skip("GDB IS NOT TESTED: there is no gdb-multiarch")
    port, end = prompt
    loop = loop_of(elf)
    bytes_of_counter = "x/4xb 0x20004"
    script = tmp_path / "script"
    script.write_text(
        f"""\
set pagination off
set confirm off
set sysroot /
set stack-cache off
target extended-remote localhost:{port}
info os processes
attach 1
symbol-file {elf}
echo \\n-- attached\\n
info registers ra sp a0 t0 pc
x/4xb 0x20000
{bytes_of_counter}
info line *$pc
echo \\n-- break\\n
break *{loop[2]:#x}
continue
info registers pc
{bytes_of_counter}
delete
echo \\n-- step\\n
stepi
stepi
info registers pc
echo \\n-- write\\n
set var *(unsigned char *)0x20010 = 0x5a
x/1xb 0x20010
echo \\n-- again\\n
break *{loop[2]:#x}
continue
continue
info registers pc
{bytes_of_counter}
delete
detach
quit
"""
    )
    done = subprocess.run(
        [gdb, "-q", "-nx", "-batch", "-x", str(script)], capture_output=True, text=True, check=False, timeout=DEADLINE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    before, *parts = re.split(r"^-- \w+\n", done.stdout, flags=re.MULTILINE)
    attached, at_break, stepped, written, again = parts
    assert re.search(rf"^1 .* worker +1-2 \(0,0\) +brisc +{elf} ", before, re.MULTILINE), before

    def registers(text: str) -> dict[str, int]:
        return {name: int(value, 16) for name, value in re.findall(r"^(\w+) +(0x\w+)\s", text, re.MULTILINE)}

    def memory(text: str, address: int) -> int:
        found = re.search(rf"^{address:#x}:((?:\s+0x\w\w)+)$", text, re.MULTILINE)
        assert found, text
        return int.from_bytes(bytes(int(byte, 16) for byte in found[1].split()), "little")

    seen = registers(attached)
    assert (seen["a0"], seen["sp"], seen["t0"]) == (0x1234, 0xFFB01FB0, 0), attached
    assert seen["pc"] in loop
    assert memory(attached, 0x20000) == 0x1234
    assert "program.c" in attached
    assert "SIGTRAP" in at_break
    assert registers(at_break)["pc"] == loop[3]
    assert registers(stepped)["pc"] == loop[5], stepped
    assert memory(written, 0x20010) == 0x5A
    assert registers(again)["pc"] == loop[3]
    counts = [memory(text, 0x20004) for text in (attached, at_break, again)]
    assert counts[0] > 0
    assert counts[1] - counts[0] in (0, 1)
    assert counts[2] == counts[1] + 2
    out = end("brxy 0,0 0x20000 5")
    words = re.search(r"0x00020000:\s+(\w+)\s+(\w+)\s+\w+\s+\w+\s+0x00020010:\s+(\w+)", out)
    assert words, out
    assert int(words[1], 16) == 0x1234
    assert int(words[2], 16) >= counts[2]
    assert int(words[3], 16) == 0x5A
