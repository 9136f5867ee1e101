"""The C library with its chips in several processes (BHEMU_WORKERS, BHEMU_HOSTS): clients see what one process shows.

Most of it needs mpi4py and Open MPI, and is skipped without: `make test-hosts` installs both.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bhemu.capi.settings import Settings, read_settings
from bhemu.capi.spread import SpreadSystem
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.topology import load_topology
from bhemu.errors import ConfigurationError
from bhemu.hosts import engine
from tests.capi.library_client import PRELUDE, Ended, built, run_client
from tests.capi.test_library_links import ENDS, REFUSES
from tests.chip.noc_programs import DATA, READ, WRITE, at, request
from tests.hosts.engine_here import needs_engine
from tests.processes import started, wait_until
from tests.riscv.rv_asm import assemble

SYSTEM = """
name: trio
latency: 64
chips:
  - {board_id: [0x440, 1], asic_location: 0}
  - {board_id: [0x440, 1], asic_location: 1}
  - {board_id: [0x440, 2], asic_location: 0}
links:
  - 0:2 - 1:9
  - 0:3 - 1:8
  - 0:4 - 2:4
failures:
  - {link: 0:2 - 1:9, at: 900, retrain: 200}
  - {link: 0:3 - 1:8, at: 1500, lose: 1}
"""
PCIE = 1 << 28  # bit 60 of an address


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with three chips."""
    return built(tmp_path_factory.mktemp("trio"), SYSTEM)


def copies(chip: int) -> list[int]:
    """A program: 64 bytes of L1 go into memory of the host at a place of the chip's own, and back; 40 times."""
    host, place = at(19, 24), 0x777  # in place of this comes s10
    text = f"li s11, 40\nli s10, {0x1000 * (chip + 1):#x}\nagain:\n"
    text += request(ctrl=WRITE, target=DATA, target_hi=at(1, 2), back=place, back_mid=PCIE, back_hi=host, length=64)
    text += request(
        ctrl=READ, target=place, target_mid=PCIE, target_hi=host, back=DATA + 64, back_hi=at(1, 2), length=64
    )
    text = text.replace(f"li t0, {place:#x}\n", "mv t0, s10\n")
    text += "addi s10, s10, 64\naddi s11, s11, -1\nbeqz s11, end\nj again\nend: j end"
    return [int(word) for word in np.frombuffer(assemble(text), np.uint32)]


MEMORY = """
import hashlib, random
memory = bytearray(0x8000)
@READ
def give(address, pointer, size):
    ctypes.memmove(pointer, bytes(memory[address : address + size]), size)
@WRITE
def take(address, pointer, size):
    memory[address : address + size] = ctypes.string_at(pointer, size)
lib.libttsim_set_pci_dma_mem_callbacks(give, take)
"""
BUSY = """
draw = random.Random(7)
for chip, program in enumerate(PROGRAMS):
    write(at(chip, 1, 2, 0x20000), bytes(draw.randrange(256) for _ in range(128)))
    write(at(chip, 1, 2, 0), struct.pack(f"<{len(program)}I", *program))
    put(at(chip, 1, 2, 0xFFB121B0), 0x47000)
seen = hashlib.sha256()
for turn in range(150):
    for _ in range(draw.randrange(4)):
        send(draw.choice((2, 3, 4)), draw.randrange(1 << 30))
    clock(draw.choice((1, 1, 1, 5, 40, 200)))
    for chip, channel in ((1, 9), (1, 8), (2, 4)):
        seen.update(read(tile(chip, channel, 0x30000), 4))
    for chip in range(3):
        seen.update(read(at(chip, 1, 2, 0x20000), 128))
        seen.update(read(at(chip, 1, 2, 0xFFB30000), 4))
    seen.update(memory)
print("seen", seen.hexdigest(), [hex(config_read(n << 3, 0x14)) for n in range(4)])
clock(3000)
print(hashlib.sha256(memory).hexdigest(), memory.count(0))
exit_()
"""


def steady(ended: Ended) -> str:
    """What a client's run says that is the same on any machine."""
    assert ended.status == 0, ended.out + ended.errors
    return re.sub(r"[0-9.]+ seconds, .*", "", ended.out)


@needs_engine
@pytest.mark.rule("ethernet 2.2", "tile N27")
@pytest.mark.parametrize("workers", ["1", "2", "3"])
def test_a_client_sees_what_it_sees_of_one_process(trio: Path, workers: str) -> None:
    """At each clock: memory of the chips, registers, what has come over links, and the client's own memory."""
    script = MEMORY + ENDS + f"PROGRAMS = {[copies(chip) for chip in range(3)]}" + BUSY
    alone = steady(run_client(trio, script, BHEMU_PROCESS="client"))
    spread = steady(run_client(trio, script, BHEMU_WORKERS=workers, BHEMU_THREADS=workers))
    assert spread == alone
    assert "seen " in alone
    filled = int(alone.splitlines()[1].split()[1])
    assert filled < 0x8000 - 3 * 40 * 60  # each chip has written


@needs_engine
def test_hosts_may_be_named(trio: Path) -> None:
    ended = run_client(
        trio, ENDS + "send(4, 9); clock(80); print(word(tile(2, 4, 0x30000))); exit_()", BHEMU_HOSTS="localhost:2"
    )
    assert steady(ended).splitlines()[0] == "9"


@needs_engine
@pytest.mark.parametrize("refusal", ["end", "stop"])
def test_what_is_refused_reads_as_of_one_process(trio: Path, refusal: str, tmp_path: Path) -> None:
    """A core's instruction, with its place and the dump; where the process lives, writes that nothing takes, too."""
    script = ENDS + REFUSES + "put(BAR0 + STRIDE + 0x1FD00000, 1); put(BAR0 + 0x1FD00000, 1); word(BAR0); exit_()"
    told = []
    for how in ({"BHEMU_PROCESS": "own"}, {"BHEMU_WORKERS": "2"}):
        dump = tmp_path / "state.npz"
        ended = run_client(trio, script, BHEMU_REFUSAL=refusal, BHEMU_DUMP=str(dump), **how)
        assert ended.status == (refusal == "end")
        assert dump.exists()
        dump.unlink()
        told.append(sorted(re.sub(r"[0-9.]+ seconds, .*", "", ended.out).splitlines()))
    assert told[0] == told[1]
    assert any("chip 1: " in line for line in told[0])


WORKERS = """
import os, signal, time
def children(pid):
    try:
        return [int(child) for child in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []
def below(pid):
    found = children(pid)
    return found + [one for child in found for one in below(child)]
def workers():
    "Numbers of the processes that have the chips."
    return [pid for pid in below(os.getpid()) if b"spread_worker" in open(f"/proc/{pid}/cmdline", "rb").read()
            and b"mpiexec" not in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")[0]
            and b"prterun" not in open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")[0]]
"""


@needs_engine
@pytest.mark.parametrize("call", ["clock(100000); word(at(0, 1, 2, 0))", "word(at(2, 1, 2, 0))"])
def test_a_worker_that_dies_ends_the_run_with_its_name(trio: Path, call: str) -> None:
    script = WORKERS + ENDS + "clock(100); word(at(2, 1, 2, 0)); victim = workers()[-1]; print(victim);"
    ended = run_client(
        trio, script + f"os.kill(victim, signal.SIGKILL); {call}; print('not reached')", BHEMU_WORKERS="2"
    )
    assert ended.status == 1
    victim = ended.out.splitlines()[0]
    assert re.search(rf"ERROR: .*: worker [01] on .* \(process {victim}\) has ended", ended.out)
    assert "not reached" not in ended.out


@needs_engine
@pytest.mark.parametrize("end", ["exit_()", "os._exit(5)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_workers_end_with_the_client(trio: Path, end: str) -> None:
    """Whether it ends them, ends itself, or is killed; nothing of theirs is left."""
    script = WORKERS + ENDS + "clock(100); word(at(2, 1, 2, 0)); print(*below(os.getpid()), flush=True);"
    command = [sys.executable, "-c", PRELUDE.format(library=str(trio)) + script + end]
    with started(command, env=os.environ | {"BHEMU_WORKERS": "2"}, stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        processes = [Path("/proc", number) for number in client.stdout.readline().split()]
        assert len(processes) >= 4  # the leader, mpiexec, two workers
        wait_until(lambda: not any(map(is_there, processes)), "processes to end")


def is_there(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"BHEMU_WORKERS": "none"}, "BHEMU_WORKERS is 'none'"),
        ({"BHEMU_ENGINE": "ray", "BHEMU_WORKERS": "2"}, "BHEMU_ENGINE is not a variable of bhemu"),
        ({"BHEMU_WORKERS": "2", "BHEMU_PROCESS": "client"}, "BHEMU_WORKERS needs a process under Python"),
        ({"BHEMU_HOSTS": "here", "BHEMU_PROCESS": "client"}, "BHEMU_HOSTS needs a process under Python"),
        (
            {"BHEMU_WORKERS": "2", "BHEMU_TIME": "silicon"},
            "BHEMU_TIME is 'silicon', and BHEMU_WORKERS is '2': processes",
        ),
        (
            {"BHEMU_WORKERS": "2", "BHEMU_RECORD": "out"},
            "BHEMU_WORKERS and BHEMU_RECORD are both set: a recording needs",
        ),
        ({"BHEMU_HOSTS": "a", "BHEMU_DEBUG": "socket"}, "BHEMU_HOSTS and BHEMU_DEBUG are both set: a debugger needs"),
        ({"BHEMU_WORKERS": "2", "TTSIM_SEMIHOSTING": "1"}, "BHEMU_WORKERS and TTSIM_SEMIHOSTING are both set"),
    ],
)
def test_what_cannot_be_is_refused_by_name(trio: Path, environment: dict[str, str], reason: str) -> None:
    ended = run_client(trio, "init(); print('not reached')", **environment)
    assert ended.status == 1
    assert f"ConfigurationError: libttsim_init: {reason}" in ended.out or reason in ended.out.splitlines()[0]
    assert "not reached" not in ended.out


@needs_engine
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"BHEMU_WORKERS": "4"}, "4 workers, and trio has 3 chips"),
        ({"BHEMU_WORKERS": "2", "BHEMU_HOSTS": "localhost:2"}, "workers and hosts are given"),
        ({"BHEMU_HOSTS": "a:b"}, "host 'a:b'"),
    ],
)
def test_workers_that_cannot_be_are_refused(trio: Path, environment: dict[str, str], reason: str) -> None:
    ended = run_client(trio, "init(); print('not reached')", **environment)
    assert ended.status == 1
    assert f"ConfigurationError: libttsim_init: {reason}" in ended.out


def test_without_the_engine_the_package_to_install_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(engine.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("BHEMU_WORKERS", "2")
    settings: Settings = read_settings()
    with pytest.raises(ConfigurationError, match="needs mpi4py and mpiexec of Open MPI") as refusal:
        SpreadSystem(load_topology("p300"), settings, HostMemory(), print)
    assert "pip install 'bhemu[hosts]'" in str(refusal.value.remedy)
    assert "unset BHEMU_WORKERS" in str(refusal.value.remedy)
