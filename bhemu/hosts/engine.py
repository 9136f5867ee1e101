"""The leader's side of its workers: processes that mpiexec starts, on this machine and others."""

from __future__ import annotations

import importlib.util
import os
import platform
import select
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bhemu.api.plain_file import pack, unpack
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.chip.snapshot import LAYOUT
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.hosts.leader_host import serve_access
from bhemu.hosts.messages import Ended, read_message, write_message

INSTALL: Final = "pip install 'bhemu[hosts]'"
_ENVIRONMENT: Final = (
    *("PYTHONPATH", "BHEMU_CACHE", "BHEMU_DUMP", "BHEMU_ELF", "BHEMU_TRANSLATE"),
    *("NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK"),
)
"""What workers on other machines take over from this process."""
WORKER: Final = "bhemu.hosts.worker"
"""The module whose `main` is a worker."""
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_START: Final = (
    "import sys; from importlib import import_module; "
    "sys.path.insert(0, sys.argv[4]); import_module(sys.argv[3]).main()"
)
_LOG_END: Final = 2000
_LOOK: Final = 0.2
"""Seconds between two looks at whether mpiexec still runs."""


class WorkerLost(BhemuError):
    """A worker of a cluster has ended, and with it the run.

    Attributes:
        workers: the names of those that have ended, where they are known.
    """

    workers: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkerName:
    """A worker.

    Attributes:
        number: of the worker.
        host: that it runs on.
        process: its number there.
    """

    number: int
    host: str
    process: int

    def __str__(self) -> str:
        return f"worker {self.number} on {self.host} (process {self.process})"


def mpiexec() -> str:
    """The program that starts workers.

    Raises:
        ConfigurationError: it, or mpi4py, is not installed.
    """
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    missing = [] if importlib.util.find_spec("mpi4py") else ["mpi4py"]
    if found is None:
        missing.append("mpiexec of Open MPI")
    if missing or found is None:
        raise ConfigurationError(
            f"a cluster in several processes needs {' and '.join(missing)}, which is not installed",
            remedy=f"{INSTALL}, or use bhemu.Cluster, which needs one process",
        )
    return found


class Workers:
    """Processes of workers.

    Args:
        count: how many.
        hosts: machines, as `name` or `name:workers`, of which the first is this one; None: all on this one.
        host: memory of this machine, for chips that workers have.
        module: whose `main` they run.

    Attributes:
        names: of the workers.

    Raises:
        ConfigurationError: the engine is not installed, or cannot start them.
    """

    def __init__(
        self, count: int, hosts: Sequence[str] | None, host: HostMemory | None = None, module: str = WORKER
    ) -> None:
        program = mpiexec()
        self._host = host or HostMemory()
        self._folder = tempfile.mkdtemp(prefix="bhemu-hosts-")  # of this user alone
        pipes = [os.path.join(self._folder, name) for name in ("commands", "answers")]
        for pipe in pipes:
            os.mkfifo(pipe, 0o600)
        where = ["--host", ",".join(hosts)] if hosts is not None else ["--oversubscribe"]
        passed = [part for name in _ENVIRONMENT if name in os.environ for part in ("-x", name)]
        command = [program, "--with-ft", "ulfm", "--bind-to", "none", *where, *passed, "-n", str(count)]
        environment = dict(os.environ)
        if os.geteuid() == 0:  # mpiexec asks whether that is meant; a container has no other user
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        alone = ["-E"] if sys.flags.ignore_environment else []  # PYTHONPATH is another Python's
        self._log = os.path.join(self._folder, "log")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, sys.executable, *alone, "-c", _START, *pipes, module, _ROOT],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        self._commands = os.open(pipes[0], os.O_RDWR)  # so that it need not be open at the other end yet
        self._answers = os.open(pipes[1], os.O_RDONLY | os.O_NONBLOCK)
        self._end = weakref.finalize(self, _end, self._process, self._commands, self._answers, self._folder)
        self.names: tuple[WorkerName, ...] = ()
        self._greet()
        # The pipes are open now: nothing is left when this process is killed.
        shutil.rmtree(self._folder, ignore_errors=True)

    def _greet(self) -> None:
        kind, first = unpack(self._receive())
        if kind != "hello":
            self.close()
            raise ConfigurationError(
                f"{first} cannot say which worker has ended", remedy=f"use Open MPI 5 or later: {INSTALL}"
            )
        texts = [first, *(other.decode() for other in unpack(self._receive()))]
        names = []
        for number, text in enumerate(texts):
            host, process, layout = text.rsplit(" ", 2)
            names.append(WorkerName(number, host, int(process)))
            if layout != LAYOUT:
                self.close()
                raise ConfigurationError(
                    f"{names[-1]} has another version of bhemu", remedy="install the same version on all machines"
                )
        self.names = tuple(names)

    def ask(self, commands: Mapping[int, tuple[Any, ...]]) -> list[bytes]:
        """Give commands, a name and its arguments each, to workers; returns their answers, in the same order.

        Raises:
            WorkerLost: one has ended; all others have, too, then.
        """
        if not self._end.alive:
            raise WorkerLost("the workers of this cluster have ended", remedy="make a new cluster")
        try:
            write_message(self._commands, pack(tuple((k, pack((name, rest))) for k, (name, *rest) in commands.items())))
            while (told := unpack(self._receive()))[0] == "host":
                write_message(self._commands, serve_access(self._host, told[1]))
            kind, content = told
        except Ended:  # the pipe's other end is closed
            kind, content = "lost", (0,)
        except BaseException:  # interrupted: the answer to come would be taken for that of the next command
            self.close()
            raise
        if kind == "answers":
            return list(content)
        raise self._lost([self.names[number] for number in content] or list(filter(_has_ended, self.names)))

    def _receive(self) -> bytes:
        """The next message of worker 0.

        Raises:
            Ended: it has ended.
            ConfigurationError: it has, before it has said anything.
        """
        while not select.select([self._answers], [], [], _LOOK)[0]:
            if self._process.poll() is not None:
                break
        os.set_blocking(self._answers, True)
        try:
            return read_message(self._answers)
        except Ended:
            if self.names:
                raise
            text = self._said()
            self.close()
            raise ConfigurationError(f"mpiexec could not start the workers:\n{text}", remedy=INSTALL) from None

    def _said(self) -> str:
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()[-_LOG_END:].strip()

    def _lost(self, names: Sequence[WorkerName]) -> WorkerLost:
        who = " and ".join(map(str, names)) or "a worker"
        error = WorkerLost(
            f"{who} {'have' if len(names) > 1 else 'has'} ended",
            remedy="make a cluster of the workers that are left, and restore the last snapshot",
        )
        error.workers = tuple(map(str, names))
        self.close()
        return error

    def close(self) -> None:
        """End the workers."""
        self._end()


def _has_ended(name: WorkerName) -> bool:
    """A worker was on this machine, and is no longer; those of other machines are not seen."""
    if name.host != platform.node():
        return False
    try:
        state = Path(f"/proc/{name.process}/stat").read_text()
    except OSError:
        return True
    return state.rpartition(")")[2].split()[0] == "Z"


def _end(process: subprocess.Popen[bytes], commands: int, answers: int, folder: str) -> None:
    """End workers: worker 0 finds the pipe closed, and ends the others; what does not is ended."""
    os.close(commands)
    os.close(answers)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(folder, ignore_errors=True)
