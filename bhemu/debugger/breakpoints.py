"""Breakpoints on a core's program: what the user asked for, and the marks in the code cache that stop a core.

The code cache belongs to the whole process, so marks are there only while a session lets its tile run (`CodeMarks`),
and a core that must not stop at a marked address is taken over it by the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from bhemu.checks import checked
from bhemu.errors import BhemuError
from bhemu.isa.riscv import NUMBER, is_ttinsn
from bhemu.machine.agents import CORE_NAMES, CORES, T0, T2
from bhemu.machine.state import L1_SIZE
from bhemu.riscv.decode import TTINSN
from bhemu.riscv.translator import forget
from bhemu.tile.cores import CODE

ALL_CORES: Final = frozenset(range(CORES))
FUSED: Final = 4
"""Adjacent `.ttinsn` that a T core pushes in one round (tile T11)."""
NO_FUSING: Final = 1 << 18
"""Bit of cfg0 that switches this off."""


class DebugError(BhemuError):
    """A debugger was asked for something that is not there."""


@checked
@dataclass
class Breakpoint:
    """A place or a kind of instruction at which cores, or threads of the coprocessor, stop.

    Attributes:
        number: by which the user names it; internal ones have numbers below 0.
        text: what the user asked for.
        address: of the instruction before which a core stops; None for those below.
        mnemonic: of RISC-V instructions before which a core stops; None for the other kinds.
        opcode: of a Tensix instruction after whose execution the tile stops; None for the other kinds.
        cores: numbers of the cores that stop.
        threads: Tensix threads, for `opcode`.
        condition: stops only when it returns True; None stops always.
        is_private: the condition reads nothing but the registers of the core that is about to stop.
        ignore: how many more times it is skipped.
        hits: how often it was reached with its condition true.
        copies: further addresses, of a function that the compiler has inlined.
    """

    number: int
    text: str
    address: int | None = None
    mnemonic: str | None = None
    opcode: int | None = None
    cores: frozenset[int] = ALL_CORES
    threads: frozenset[int] = frozenset((0, 1, 2))
    condition: Callable[[int], bool] | None = None
    condition_text: str = ""
    is_private: bool = False
    enabled: bool = True
    temporary: bool = False
    ignore: int = 0
    hits: int = 0
    copies: tuple[int, ...] = ()

    @property
    def addresses(self) -> tuple[int, ...]:
        """All addresses before which a core stops."""
        return self.copies if self.address is None else (self.address, *self.copies)

    def describe(self) -> str:
        """The line that `info breakpoints` shows."""
        state = "" if self.enabled else ", disabled"
        once = ", once" if self.temporary else ""
        if self.opcode is None:
            who = "" if self.cores == ALL_CORES else ", " + " ".join(CORE_NAMES[c] for c in sorted(self.cores))
        else:
            who = "" if len(self.threads) == 3 else ", thread " + " ".join(str(t) for t in sorted(self.threads))
        condition = f", if {self.condition_text}" if self.condition_text else ""
        ignored = f", skipped {self.ignore} more times" if self.ignore else ""
        times = "once" if self.hits == 1 else f"{self.hits} times"
        return f"{self.number}: {self.text}{who}{condition}{once}{state}{ignored}; reached {times}"


@dataclass
class CodeMarks:
    """The places that cores stop at, and the numbers of instructions (`bhemu.riscv.decode`)."""

    places: set[int] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, breakpoints: Iterable[Breakpoint], record: Any) -> CodeMarks:
        """What has to be marked for these breakpoints.

        A T core pushes up to four adjacent `.ttinsn` in one round and cannot stop between them (tile T11): the
        instructions in front of such a breakpoint are marked as well.
        """
        marks = cls()
        for item in breakpoints:
            if item.mnemonic is not None:
                marks.numbers.add(number_of(item.mnemonic))
            for address in item.addresses:
                marks.places.add(address >> 2)
                for before in range(FUSED):
                    at = address - 4 * before
                    if at < 0 or not is_ttinsn(int(record.l1_u32[at >> 2])):
                        break
                    marks.places.add(at >> 2)
        if len(marks.places) > len(CODE[0].breakpoint):
            raise DebugError(
                f"{len(marks.places)} addresses would have to be watched for breakpoints, and "
                f"{len(CODE[0].breakpoint)} can be",
                remedy="delete or disable some; a breakpoint among adjacent .ttinsn takes up to four",
            )
        return marks

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The marks are in the code cache as long as the context lasts."""
        code = CODE[0]
        try:
            code.breakpoint_count = len(self.places)
            code.breakpoint[: len(self.places)] = sorted(self.places)
            code.breakpoint_number[list(self.numbers)] = 1
            self._decode_again()
            yield
        finally:
            code.breakpoint_count = 0
            code.breakpoint_number[:] = 0
            self._decode_again()

    def _decode_again(self) -> None:
        if self.numbers or self.places:
            forget(CODE)
        keys = CODE[0].key
        if self.numbers:
            keys[:] = 0
        else:
            keys[list(self.places)] = 0


def number_of(mnemonic: str) -> int:
    """The number of a RISC-V mnemonic in compiled code or `.ttinsn`."""
    return TTINSN if mnemonic == ".ttinsn" else NUMBER[mnemonic]


def is_pushed_with(record: Any, core: int, first: int, address: int) -> bool:
    """True when a T core at the `.ttinsn` at `first` pushes the one at `address` in the same round (tile T11)."""
    if not T0 <= core <= T2 or not first < address < first + 4 * FUSED or address >= L1_SIZE:
        return False
    if int(record.core_cfg0[core]) & NO_FUSING or record.debug_watch[core] or record.simulator_order:
        return False
    return all(is_ttinsn(int(record.l1_u32[at >> 2])) for at in range(first, address + 4, 4))
