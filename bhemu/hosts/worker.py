"""A worker's process, which mpiexec starts: it takes commands, and exchanges frames with the others by MPI.

Worker 0 runs on the machine of the leader, and two pipes join the two; it passes on what is for others. What goes over
MPI are buffers of bytes: nothing is pickled.
"""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from bhemu.api.plain_file import pack, unpack
from bhemu.chip.snapshot import LAYOUT
from bhemu.hosts.commands import Worker
from bhemu.hosts.messages import Ended, failure, read_message, write_message
from bhemu.hosts.rounds import Horizon

ENGINE: Final = ("Open MPI", 5)
"""The MPI that tells which process has ended, and since which version."""
_COMMAND, _ANSWER, _ROUND, _FRAMES, _HOST, _HOST_ANSWER = range(1, 7)  # tags
_SPINS: Final = 300
_NAP: Final = 50e-6
_LONG: Final = 2e-3
_PATIENCE: Final = 10.0
"""Seconds that worker 0 waits to be told who has ended."""


class Processes:
    """The workers' processes, as one of them sees the others.

    Args:
        mpi: the module `mpi4py.MPI`.

    Attributes:
        pipes: of commands and answers, by which worker 0 speaks with the leader; None in other workers.
        error: what MPI raises when a process has ended.
        owners: worker of each chip.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self.pipes: tuple[int, int] | None = None
        self.error: type[Exception] = mpi.Exception
        self.comm = mpi.COMM_WORLD
        self.comm.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank: int = self.comm.Get_rank()
        self.count: int = self.comm.Get_size()
        self.owners: Mapping[int, int] = {}
        self._parent = os.getppid()

    def is_wanted(self) -> bool:
        """Mpiexec runs, which has started this process; if it was killed, it could not end this one."""
        return os.getppid() == self._parent

    def wait(self, requests: Sequence[Any]) -> None:
        """Wait for transfers: at first on the processor, then with naps, so that idle workers take none of it."""
        turns = 0
        while not self._mpi.Request.Testall(requests):
            if self.pipes is not None and self.pass_on():
                turns = 0
            turns += 1
            if turns > 100 * _SPINS and not self.is_wanted():
                os._exit(1)
            if turns > _SPINS:
                time.sleep(_NAP if turns < 100 * _SPINS else _LONG)

    def ask_leader(self, content: bytes) -> bytes:
        """Have an access to memory of the leader's host carried out, by worker 0; see `leader_host`."""
        if self.pipes is None:
            self.wait(self.send(content, 0, _HOST))
            return self.receive(0, _HOST_ANSWER)
        commands, answers = self.pipes
        write_message(answers, pack(("host", content)))
        return read_message(commands)

    def pass_on(self) -> bool:
        """Pass on an access of another worker, if one has come; worker 0 looks while it waits for anything."""
        status = self._mpi.Status()
        if not self.comm.Iprobe(self._mpi.ANY_SOURCE, _HOST, status):
            return False
        source = status.Get_source()
        self.wait(self.send(self.ask_leader(self.receive(source, _HOST)), source, _HOST_ANSWER))
        return True

    def send(self, content: bytes, to: int, tag: int) -> list[Any]:
        """Begin to send a message."""
        length = np.array([len(content)], np.int64)
        return [self.comm.Isend(length, to, tag), self.comm.Isend(np.frombuffer(content, np.uint8), to, tag)]

    def receive(self, source: int, tag: int) -> bytes:
        """Wait for a message."""
        length = np.zeros(1, np.int64)
        self.wait([self.comm.Irecv(length, source, tag)])
        content = np.empty(int(length[0]), np.uint8)
        self.wait([self.comm.Irecv(content, source, tag)])
        return content.tobytes()

    def exchange(self, own: Horizon, batches: Mapping[int, bytes]) -> tuple[list[Horizon], list[bytes]]:
        """Tell all others, and hear from them; see `bhemu.hosts.rounds.Exchange`."""
        others = [rank for rank in range(self.count) if rank != self.rank]
        outgoing = dict.fromkeys(others, b"")
        for number, batch in batches.items():
            outgoing[self.owners[number]] += batch
        heads = np.zeros((self.count, 4), np.int64)
        mine = {rank: np.array((own.time, own.still, own.stopped, len(outgoing[rank])), np.int64) for rank in others}
        expected = [self.comm.Irecv(heads[rank], rank, _ROUND) for rank in others]
        sent = [self.comm.Isend(mine[rank], rank, _ROUND) for rank in others]
        sent += [
            self.comm.Isend(np.frombuffer(content, np.uint8), rank, _FRAMES)
            for rank, content in outgoing.items()
            if content
        ]
        self.wait(expected)
        heads[self.rank] = (own.time, own.still, own.stopped, 0)
        come = {rank: np.empty(int(heads[rank, 3]), np.uint8) for rank in others if heads[rank, 3]}
        expected = [self.comm.Irecv(content, rank, _FRAMES) for rank, content in come.items()]
        self.wait(expected + sent)  # a large batch leaves when it is expected: two may wait for each other's
        horizons = [Horizon(int(head[0]), bool(head[1]), bool(head[2])) for head in heads]
        return horizons, [content.tobytes() for content in come.values()]

    def lost(self) -> tuple[int, ...]:
        """Workers that have ended, once that is known."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            group = self.comm.Get_failed()
            if group.Get_size():
                return tuple(self._mpi.Group.Translate_ranks(group, None, self.comm.Get_group()))
            self._mpi.COMM_SELF.Iprobe()  # what others have noticed comes in only while MPI is called
            time.sleep(_LONG)
        return ()


def _handle(worker: Worker, processes: Processes, content: bytes) -> bytes:
    """Carry out a command; returns the answer."""
    try:
        name, arguments = unpack(content)
        if name == "make":
            *arguments, owners = arguments
            processes.owners = dict(enumerate(owners))
        return worker.handle(name, tuple(arguments))
    except processes.error:
        raise
    except Exception:
        return failure(traceback.format_exc())


def _lead(worker: Worker, processes: Processes, commands: int, answers: int) -> None:
    """Worker 0: pass on commands of the leader, and the answers to it, and what others ask it meanwhile."""
    write_message(answers, pack([processes.receive(rank, _ANSWER) for rank in range(1, processes.count)]))
    while True:
        wanted = dict(unpack(read_message(commands)))
        requests = [one for rank, content in wanted.items() if rank for one in processes.send(content, rank, _COMMAND)]
        answered = {0: _handle(worker, processes, wanted[0])} if 0 in wanted else {}
        processes.wait(requests)
        for rank in wanted:
            if rank:
                answered[rank] = processes.receive(rank, _ANSWER)
        write_message(answers, pack(("answers", tuple(answered[rank] for rank in wanted))))


def _follow(worker: Worker, processes: Processes, name: str) -> None:
    """Another worker: commands come from worker 0."""
    processes.wait(processes.send(name.encode(), 0, _ANSWER))
    while True:
        processes.wait(processes.send(_handle(worker, processes, processes.receive(0, _COMMAND)), 0, _ANSWER))


def main(kind: type[Worker] = Worker) -> None:
    """Serve until the leader ends; `sys.argv` has the pipes of commands and answers.

    Args:
        kind: of worker; one that knows more commands.
    """
    from mpi4py import MPI

    processes = Processes(MPI)
    worker = kind(processes.exchange, processes.ask_leader)
    name = f"{platform.node()} {os.getpid()} {LAYOUT}"
    try:
        if processes.rank:
            _follow(worker, processes, name)
        commands = os.open(sys.argv[1], os.O_RDONLY)
        answers = os.open(sys.argv[2], os.O_WRONLY)
        processes.pipes = commands, answers
        vendor, version = MPI.get_vendor()
        if vendor != ENGINE[0] or version[0] < ENGINE[1]:
            write_message(answers, pack(("engine", f"{vendor} {'.'.join(map(str, version))}")))
        else:
            write_message(answers, pack(("hello", name)))
            _lead(worker, processes, commands, answers)
    except MPI.Exception:  # a worker has ended
        processes.comm.Revoke()
        if processes.rank:
            while processes.is_wanted():  # worker 0 tells the leader, which ends all
                time.sleep(1)
            os._exit(1)
        write_message(answers, pack(("lost", processes.lost())))
    except Ended:
        pass
    processes.comm.Abort(0)  # the others wait for commands
