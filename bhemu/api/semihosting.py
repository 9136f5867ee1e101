"""Services that a program on core B asks the host for with `ecall` (tile H26)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from bhemu.errors import UndefinedBehavior
from bhemu.loader.boot import LOCAL_RAM
from bhemu.machine.agents import B
from bhemu.machine.core_state import HALT_ECALL, HALTED, LOCAL_RAM_SIZE
from bhemu.machine.state import L1_SIZE

CLOSE: Final = 57
WRITE: Final = 64
FSTAT: Final = 80
EXIT: Final = 93
BRK: Final = 214
STAT_BYTES: Final = 112
LARGEST_STATUS: Final = 255
_STANDARD_STREAMS: Final = (0, 1, 2)
_A0, _A1, _A2, _A7 = 10, 11, 12, 17


def _to_streams(stream: int, content: bytes) -> None:
    target = sys.stdout if stream == 1 else sys.stderr
    target.write(content.decode("utf-8", "replace"))
    target.flush()


class Semihosting:
    """Serves `ecall` of core B: write, exit, brk, fstat and close.

    Args:
        write: called with 1 (output) or 2 (errors) and the bytes that the program writes; default: the process's own.

    Attributes:
        status: what the program gave `exit`, None until then.
    """

    def __init__(self, write: Callable[[int, bytes], None] = _to_streams) -> None:
        self._write = write
        self.status: int | None = None

    def serve(self, record: Any) -> bool:
        """Serve core B if it is halted at an `ecall`; True when it resumes.

        Raises:
            UndefinedBehavior: there is no such service, or its arguments are impossible; the core stays halted.
        """
        if record.core_state[B] != HALTED or record.core_halt_reason[B] != HALT_ECALL or self.status is not None:
            return False
        registers = record.core_x[B]
        number, a0, a1, a2 = (int(registers[i]) for i in (_A7, _A0, _A1, _A2))
        result = 0
        if number == EXIT:
            if a0 > LARGEST_STATUS:
                raise _refused(f"exit with status {a0}", f"use 0 to {LARGEST_STATUS}")
            self.status = a0
            return False
        if number == WRITE:
            if a0 not in (1, 2):
                raise _refused(f"write to file {a0}", "write to 1 (output) or 2 (errors)")
            self._write(a0, bytes(_buffer(record, a1, a2)))
            result = a2
        elif number == FSTAT:
            if a0 not in _STANDARD_STREAMS:
                raise _refused(f"fstat of file {a0}", "only files 0, 1 and 2 exist")
            _buffer(record, a1, STAT_BYTES)[:] = 0
        elif number == CLOSE:
            if a0 not in _STANDARD_STREAMS:
                raise _refused(f"close of file {a0}", "only files 0, 1 and 2 exist")
        elif number != BRK:
            raise _refused(
                f"ecall number {number}",
                f"there are write {WRITE}, exit {EXIT}, brk {BRK}, fstat {FSTAT} and close {CLOSE} (number in a7)",
            )
        registers[_A0] = result
        return True


def _buffer(record: Any, address: int, size: int) -> Any:
    """The program's buffer, in L1 or in B's local RAM."""
    if address + size <= L1_SIZE:
        return record.l1[address : address + size]
    at = address - LOCAL_RAM
    if at >= 0 and at + size <= LOCAL_RAM_SIZE[B]:
        return record.core_ram[B, at : at + size]
    raise _refused(f"a buffer of {size} bytes at {address:#x}", "buffers lie in L1 or in core B's local RAM")


def _refused(what: str, remedy: str) -> UndefinedBehavior:
    return UndefinedBehavior(f"semihosting: {what} is not served [tile H26]", remedy=remedy)
