"""Two machines of this one's kernel: each has a name, network interfaces and a file of hosts of its own.

They share processors, files and process numbers. What goes from one to the other goes through a network cable that
the kernel makes, and mpiexec starts programs on the other one with a program in place of ssh.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

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


class Machines:
    """Two machines, as long as the context lasts.

    Args:
        folder: for the files that they need.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._holders: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Self:
        hosts = self._folder / "hosts"
        addresses = [f"{_NETWORK}.{n + 1}" for n in range(len(NAMES))]
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for address, name in zip(addresses, NAMES, strict=True))]
        hosts.write_text("\n".join(lines) + "\n")
        try:
            for name in NAMES:
                self._hold(name, hosts)
            numbers = [str(holder.pid) for holder in self._holders]
            cable = ["ip", "link", "add", "cable", "netns", numbers[0], "type", "veth"]
            subprocess.run([*cable, "peer", "name", "cable", "netns", numbers[1]], check=True)
            for n, address in enumerate(addresses):
                self.run(n, ["ip", "address", "add", f"{address}/24", "dev", "cable"])
                for interface in ("cable", "lo"):
                    self.run(n, ["ip", "link", "set", interface, "up"])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        agent = self._folder / "agent"
        agent.write_text(
            f'#!/bin/sh\n[ "$1" = {NAMES[1]} ] || exit 1\nshift\nexec {" ".join(self._enter(1))} sh -c "$*"\n'
        )
        agent.chmod(0o700)
        self._agent = str(agent)
        return self

    def _hold(self, name: str, hosts: Path) -> None:
        """A process that a machine lives as long as."""
        command = ["unshare", "--net", "--uts", "--mount", "sh", "-c", _HOLD, name, str(hosts)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"

    def _enter(self, machine: int) -> list[str]:
        return ["nsenter", "--target", str(self._holders[machine].pid), "--net", "--uts", "--mount"]

    def run(self, machine: int, command: Sequence[str]) -> str:
        """What a command prints on a machine, from which mpiexec reaches the other one."""
        environment = os.environ | {"PRTE_MCA_plm_ssh_agent": getattr(self, "_agent", "")}
        done = subprocess.run(
            [*self._enter(machine), *command], check=False, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        for holder in self._holders:
            holder.communicate()  # the end of its input ends it
