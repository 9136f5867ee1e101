"""Memory of the leader's host, as chips of workers reach it: each access goes to the leader and back (tile H6, N27)."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from bhemu.api.plain_file import pack, unpack
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import BhemuError
from bhemu.hosts.messages import Refused, answer, failure, refusal, result

AskLeader = Callable[[bytes], bytes]
"""Gives an access to the leader, and waits for its answer."""


def remote_memory(ask: AskLeader, reads: bool, writes: bool) -> HostMemory:
    """Memory of the leader's host, for a worker.

    Args:
        ask: the leader; chips on several threads wait for each other.
        reads, writes: whether the leader has a function for it.
    """
    turn = threading.Lock()

    def access(*arguments: Any) -> Any:
        try:
            with turn:
                return result(ask(pack(arguments)))
        except Refused as refused:
            raise refused.error from None

    def read(address: int, size: int) -> bytes:
        content: bytes = access("read", address, size)
        return content

    def write(address: int, content: bytes) -> None:
        access("write", address, content)

    return HostMemory(read if reads else None, write if writes else None)


def serve_access(host: HostMemory, content: bytes) -> bytes:
    """Carry out an access of a worker; returns the answer for it."""
    try:
        kind, address, value = unpack(content)
        if kind == "read":
            return answer(bytes(host.read(address, value)))
        return answer(host.write(address, value))
    except BhemuError as error:
        return refusal(error)
    except Exception:
        return failure(traceback.format_exc())
