"""Calls of the simulator's C interface, and what comes of them (tile H1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

INIT: Final = "init"
EXIT: Final = "exit"
CONFIG_READ: Final = "pci_config_rd32"
CONFIG_WRITE: Final = "pci_config_wr32"
READ: Final = "pci_mem_rd_bytes"
WRITE: Final = "pci_mem_wr_bytes"
CLOCK: Final = "clock"
PREFIX: Final = "libttsim_"
NAMES: Final = (INIT, EXIT, CONFIG_READ, CONFIG_WRITE, READ, WRITE, CLOCK)
"""Functions that a client calls, without the prefix."""

_MESSAGE: Final = re.compile(r"^\[(\d+)\] ERROR: (\w+): (\w+)(?:: (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ended:
    """A side does not answer any more.

    Attributes:
        how: `refused`, `killed`, `ended` (without a message) or `silent` (no answer in time).
        category: the interface's name of the refusal (H20).
        text: the message, or what else is known.
        clock: the simulated time that the message names.
    """

    how: str
    category: str = ""
    text: str = ""
    clock: int | None = None

    def __str__(self) -> str:
        if self.how == "refused":
            at = "" if self.clock is None else f" at clock {self.clock:,}"
            return f"refuses{at}: {self.category}: {self.text}"
        return self.text


Outcome = bytes | Ended
"""Bytes that a call returns, none for most calls; or the end."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        name: one of `NAMES`.
        a: PCI address, or bus, device and function; of CLOCK the number of clocks.
        b: of configuration space the offset.
        size: bytes that READ asks for.
        content: bytes of WRITE; of CONFIG_WRITE four.
        host: (address, bytes) of the host's memory that the chip reads in this call, as a recorder has seen it.
        host_writes: (address, bytes) that the chip writes to the host's memory in this call, likewise.
        answer: what came of a recorded call; None where that is not known.
    """

    name: str
    a: int = 0
    b: int = 0
    size: int = 0
    content: bytes = b""
    host: tuple[tuple[int, bytes], ...] = ()
    host_writes: tuple[tuple[int, bytes], ...] = ()
    answer: Outcome | None = None

    def __str__(self) -> str:
        if self.name == CLOCK:
            return f"{PREFIX}clock({self.a:,})"
        if self.name == CONFIG_READ:
            return f"{PREFIX}{self.name}(bdf {self.a:#x}, offset {self.b:#x})"
        if self.name == CONFIG_WRITE:
            return (
                f"{PREFIX}{self.name}(bdf {self.a:#x}, offset {self.b:#x}, {int.from_bytes(self.content, 'little'):#x})"
            )
        if self.name in (READ, WRITE):
            return f"{PREFIX}{self.name}({self.a:#x}, {self.size or len(self.content):,} bytes)"
        return f"{PREFIX}{self.name}()"


def read(address: int, size: int = 4) -> Call:
    """Read bytes at a PCI address."""
    return Call(READ, address, size=size)


def write(address: int, content: bytes | int) -> Call:
    """Write bytes, or a 32-bit word, to a PCI address."""
    return Call(WRITE, address, content=content.to_bytes(4, "little") if isinstance(content, int) else content)


def clock(clocks: int) -> Call:
    """Let clocks pass."""
    return Call(CLOCK, clocks)


def parse_message(output: str) -> Ended | None:
    """The refusal in what a library has printed before it ended the process (H20)."""
    found = list(_MESSAGE.finditer(output))
    if not found:
        return None
    last = found[-1]
    text = (last[4] or "") + output[last.end() :].rstrip()
    return Ended("refused", last[2], f"{last[3]}: {text}" if text else last[3], int(last[1]))
