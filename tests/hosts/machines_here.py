"""Two machines of this one's kernel: each has a name, network interfaces and a file of hosts of its own.

They share processors, files and process numbers. What goes from one to the other goes through a network cable that
the kernel makes, and mpiexec starts programs on the other one with a program in place of ssh.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

NAMES = ("here", "there")
_NETWORK = "10.177.0"
_HOLD = 'mount --bind "$1" /etc/hosts && hostname "$0" && echo ready && exec cat'


def machines_are_missing() -> str:
    """Why there cannot be two machines; empty: there can."""
    missing = [tool for tool in ("ip", "nsenter", "unshare", "mount", "hostname") if shutil.which(tool) is None]
    if missing:
        return f"needs {', '.join(missing)}"
    made = subprocess.run(["unshare", "--net", "--uts", "--mount", "true"], check=False, capture_output=True, text=True)
    return f"this user may not make a network: {made.stderr.strip()}" if made.returncode else ""


@dataclass(frozen=True)
class Machines:
    """Two machines.

    Attributes:
        enter: what stands in front of a command that is to run on a machine, for each.
        agent: the program that mpiexec has in place of ssh; it reaches the second one.
    """

    enter: tuple[tuple[str, ...], ...]
    agent: Path

    def run(self, machine: int, *command: str) -> str:
        """What a command prints on a machine."""
        environment = os.environ | {"PRTE_MCA_plm_ssh_agent": str(self.agent)}
        done = subprocess.run(
            [*self.enter[machine], *command], check=False, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def two_machines(folder: Path) -> Iterator[Machines]:
    """Two machines, as long as the context lasts; the folder is for the files that they need."""
    addresses = [f"{_NETWORK}.{n + 1}" for n in range(len(NAMES))]
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in zip(addresses, NAMES, strict=True))]
    hosts = folder / "hosts"
    hosts.write_text("\n".join(lines) + "\n")
    with ExitStack() as stack:
        numbers = [stack.enter_context(_hold(name, hosts)) for name in NAMES]
        machines = Machines(
            tuple(("nsenter", "--target", number, "--net", "--uts", "--mount") for number in numbers), folder / "agent"
        )
        cable = ["ip", "link", "add", "cable", "netns", numbers[0], "type", "veth"]
        subprocess.run([*cable, "peer", "name", "cable", "netns", numbers[1]], check=True)
        for n, address in enumerate(addresses):
            machines.run(n, "ip", "address", "add", f"{address}/24", "dev", "cable")
            for interface in ("cable", "lo"):
                machines.run(n, "ip", "link", "set", interface, "up")
        there = f'exec {" ".join(machines.enter[1])} sh -c "$*"'
        machines.agent.write_text(f'#!/bin/sh\n[ "$1" = {NAMES[1]} ] || exit 1\nshift\n{there}\n')
        machines.agent.chmod(0o700)
        yield machines


@contextmanager
def _hold(name: str, hosts: Path) -> Iterator[str]:
    """The number of a process that a machine lives as long as; the end of its input ends it."""
    command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", _HOLD, name, str(hosts)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        yield str(holder.pid)
