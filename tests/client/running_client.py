"""A client of the C library that is debugged: its program counts on core B of two tiles, and it polls for the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bhemu.debugger.breakpoints import DebugError
from tests.capi.library_client import PRELUDE
from tests.loader.elf_files import Load, Name, make_elf, with_symbols
from tests.processes import HANG, wait_until
from tests.riscv.rv_asm import assemble_with_labels

BASE = 0x6000
COUNTER, GOAL, RESULT = 0x30000, 0x30010, 0x30020
SOURCE = f"""
        start:  li a1, {COUNTER}
                li a0, 0
        work:   addi a0, a0, 1
                sw a0, 0(a1)
                lw a3, 16(a1)
                beqz a3, work
        done:   sw a0, 32(a1)
        stop:   j stop
"""
SOURCE += "".join(f"        li a{n}, {n}\n" for n in range(8))  # a file is found by some runs of instructions
SCRIPT = """
import time
def released(x, y):
    poke(x, y, BASE, CODE)
    release_b([0x6F | (BASE & 0xFF000) | (BASE >> 1 & 0x3FF) << 21 | (BASE >> 11 & 1) << 20], x, y)
init()
clock(1)
released(1, 2)
released(2, 2)
for turn in range(200):
    clock(7)
    count = struct.unpack("<I", peek(1, 2, COUNTER))[0]
poke(1, 2, GOAL, struct.pack("<I", 1))
while not (result := struct.unpack("<I", peek(1, 2, RESULT))[0]):
    clock(3)
print("result", result, "after", turn)
exit_()
print("ended")
"""


def code() -> tuple[bytes, dict[str, int]]:
    return assemble_with_labels(SOURCE, BASE)


def write_program(path: Path) -> Path:
    """The program as an ELF file."""
    content, labels = code()
    names = [Name("start", BASE, 8, 2), Name("work", labels["work"], 16, 2), Name("done", labels["done"], 40, 2)]
    path.write_bytes(make_elf([Load(BASE, content, flags=7)], with_symbols(names), entry=BASE))
    return path


class Client:
    """A client that runs, or has ended."""

    def __init__(self, folder: Path, library: Path, script: str = SCRIPT, **environment: str) -> None:
        self.socket = folder / "debug.sock"
        self.elf = write_program(folder / "counter.elf")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("BHEMU_", "TTSIM_"))}
        kept = {name: os.environ[name] for name in ("BHEMU_CACHE", "BHEMU_PYTHON") if name in os.environ}
        kept |= {"BHEMU_DEBUG": str(self.socket), "BHEMU_DEBUG_WAIT": "1", "BHEMU_ELF": str(self.elf)}
        names = f"BASE, COUNTER, GOAL, RESULT = {BASE}, {COUNTER}, {GOAL}, {RESULT}\nCODE = {code()[0]!r}\n"
        text = PRELUDE.format(library=str(library)) + names + script
        self.process = subprocess.Popen(
            [sys.executable, "-c", text],
            env=clean | kept | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait(self) -> str:
        """What it has printed, when it has ended."""
        return self.process.communicate(timeout=HANG)[0]

    def wait_for_socket(self) -> None:
        wait_until(lambda: self.socket.exists() or self.process.poll() is not None, "socket")


@contextmanager
def running(folder: Path, library: Path, script: str = SCRIPT, **environment: str) -> Iterator[Client]:
    """A client that waits for its debugger; it has ended when the context has."""
    client = Client(folder, library, script, **environment)
    try:
        client.wait_for_socket()
        yield client
    finally:
        client.process.kill()
        client.process.wait()
        if client.process.stdout is not None:
            client.process.stdout.close()


def result_without_debugger(folder: Path, library: Path) -> str:
    """What a client prints to which nothing is attached."""
    with running(
        folder, library, BHEMU_DEBUG="", BHEMU_DEBUG_WAIT="", BHEMU_PROCESS="own", BHEMU_PACE="exact"
    ) as client:
        return client.wait()


__all__ = ["Client", "DebugError", "result_without_debugger", "running"]
