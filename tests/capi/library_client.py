"""A client of the C library in a child process: text that the child's script begins with, and how it is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bhemu.capi import build
from tests.c_programs import compiler_or_skip
from tests.processes import finished


def built(folder: Path, system: str = "") -> Path:
    """A library in a folder, of one chip or of a described system; the test is skipped where nothing can compile it."""
    compiler_or_skip("THE C LIBRARY IS NOT TESTED")
    if not system:
        return build(folder)
    (folder / "system.yaml").write_text(system)
    return build(folder, chips=str(folder / "system.yaml"))


PRELUDE = '''
import ctypes, struct, sys
sys.stdout.reconfigure(line_buffering=True)  # the library knows nothing of it
lib = ctypes.CDLL({library!r})
u32, u64, ptr = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
lib.libttsim_pci_config_rd32.restype = u32
lib.libttsim_pci_config_rd32.argtypes = [u32, u32]
lib.libttsim_pci_config_wr32.argtypes = [u32, u32, u32]
lib.libttsim_pci_mem_rd_bytes.argtypes = [u64, ptr, u32]
lib.libttsim_pci_mem_wr_bytes.argtypes = [u64, ptr, u32]
lib.libttsim_clock.argtypes = [u32]
lib.libttsim_tile_rd_bytes.argtypes = lib.libttsim_tile_wr_bytes.argtypes = [u32, u32, u64, ptr, u32]
READ = ctypes.CFUNCTYPE(None, u64, ptr, u32)
WRITE = ctypes.CFUNCTYPE(None, u64, ptr, u32)
BAR0, BAR2, BAR4 = 0x1_0000_0000, 0x1_2000_0000, 0x8_0000_0000
CONFIG = BAR0 + 0x1FC00000

init, exit_, clock = lib.libttsim_init, lib.libttsim_exit, lib.libttsim_clock
config_read, config_write = lib.libttsim_pci_config_rd32, lib.libttsim_pci_config_wr32

def read(paddr, size):
    buffer = ctypes.create_string_buffer(max(size, 1))
    lib.libttsim_pci_mem_rd_bytes(paddr, buffer, size)
    return buffer.raw[:size]

def write(paddr, content):
    lib.libttsim_pci_mem_wr_bytes(paddr, content, len(content))

def word(paddr):
    return struct.unpack("<I", read(paddr, 4))[0]

def put(paddr, value):
    write(paddr, struct.pack("<I", value))

def aim(window, x, y, address, *, noc=0, start=None, ordering=0, extra=0):
    """Point a window at an address of a tile; gives the PCI address that leads there."""
    large = window >= 202
    bits, size = (32, 32) if large else (43, 21)
    entry = address >> size | x << bits | y << bits + 6 | noc << bits + 24 | ordering << bits + 27 | extra
    if start:
        entry |= start[0] << bits + 12 | start[1] << bits + 18 | 1 << bits + 26
    for i in range(3):
        put(CONFIG + 12 * window + 4 * i, entry >> 32 * i & 0xFFFFFFFF)
    base = BAR4 + (window - 202 << 32) if large else BAR0 + (window << 21)
    return base + address % (1 << size)

def peek(x, y, address, size=4, **how):
    return read(aim(0, x, y, address, **how), size)

def poke(x, y, address, content, **how):
    write(aim(0, x, y, address, **how), content)

def release_b(program, x=1, y=2, at=0):
    """Core B runs words from an address of L1 on."""
    poke(x, y, at, struct.pack(f"<{{len(program)}}I", *program))
    poke(x, y, 0xFFB121B0, struct.pack("<I", 0x47000))
'''


@dataclass(frozen=True)
class Ended:
    """How the child ended."""

    status: int
    out: str
    errors: str


def run_client(library: Path, script: str, **environment: str) -> Ended:
    """Run a script behind the prelude in a process of its own; variables of bhemu and its clients are those given.

    But for the place of bhemu's cache, and of the simulator.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BHEMU_", "TTSIM_"))}
    kept = {name: os.environ[name] for name in ("BHEMU_CACHE", "BHEMU_PROCESS", "BHEMU_PYTHON") if name in os.environ}
    command = [sys.executable, "-c", PRELUDE.format(library=str(library)) + script]
    done = finished(command, env=clean | kept | environment)
    return Ended(done.returncode, done.stdout, done.stderr)


def pythons(minor: int) -> list[Path]:
    """Pythons 3.minor of this machine that run."""
    name = f"python3.{minor}"
    found = [Path(path)] if (path := shutil.which(name)) else []
    found += sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/{name}"))
    return [
        path for path in found if subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode == 0
    ]


FORKS = '''
import json, os, tempfile

def forked(cases):
    """Run each text in a child forked from here: {name: [status, standard output]} as JSON on standard output."""
    results = {}
    for name, text in cases.items():
        with tempfile.TemporaryFile() as out:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                exec(text, globals())
                os._exit(77)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            results[name] = [status, out.read().decode()]
    print(json.dumps(results))
'''


def run_forked(library: Path, before: str, cases: dict[str, str], **environment: str) -> dict[str, tuple[int, str]]:
    """(status, output) of each case, all forked from one process that has run `before`; 77 when nothing ended it."""
    ended = run_client(library, f"{FORKS}\n{before}\nforked({cases!r})\n", **environment)
    assert ended.status == 0, ended.out + ended.errors
    results = next(line for line in ended.out.splitlines() if line.startswith("{"))
    return {name: (status, out) for name, (status, out) in json.loads(results).items()}
