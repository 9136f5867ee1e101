"""What a wrong or unknown program gets: one base class, one category a kind of refusal.

Every refusal says what is wrong, where (program line, thread, instruction), which value, and what to do instead.
"""

from __future__ import annotations

from pathlib import Path


class BhemuError(Exception):
    """Base of everything that bhemu raises on purpose.

    Args:
        message: what is wrong, with the value at fault.
        remedy: what to do instead, one sentence; shown on its own line.

    Attributes:
        thread, word, line: the Tensix thread, instruction word and program line, where an instruction is at fault.
        core, pc: the RISC-V core and its program counter, where its instruction is at fault.
        tile: coordinates (x, y) of the Tensix tile, on a chip with several.
        file: the program file that `line` counts in.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.thread: int | None = None
        self.word: int | None = None
        self.line: int | None = None
        self.core: int | None = None
        self.pc: int | None = None
        self.tile: tuple[int, int] | None = None
        self.file: Path | None = None

    @property
    def category(self) -> str:
        """The name that the user sees in front of the message."""
        return type(self).__name__

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  remedy: {self.remedy}"


class UndefinedBehavior(BhemuError):
    """Silicon gives no defined result for this."""


class NonContractualBehavior(BhemuError):
    """Silicon does something here, but nothing promises it."""


class Unimplemented(BhemuError):
    """The behaviour is defined, and bhemu does not have it yet."""


class MissingSpecification(BhemuError):
    """No source settles what silicon does (fidelity `open`)."""


class ConfigurationError(BhemuError):
    """Configuration fields contradict each other or the instruction."""


class AssemblyError(BhemuError):
    """A mnemonic, operand or field that does not exist, or a value that does not fit."""


class FormatError(BhemuError):
    """A tensor or a file that the requested tile format cannot hold."""


class MemoryError_(BhemuError):
    """An L1 address out of range, misaligned, or taken by another buffer."""

    @property
    def category(self) -> str:
        return "MemoryError"


class ProgramError(BhemuError):
    """A program file that cannot be loaded or does not declare what it must."""


class Deadlock(BhemuError):
    """No core or thread can proceed, and at least one waits."""


class CycleLimit(BhemuError):
    """The program did not end within the cycles that the user allowed."""
