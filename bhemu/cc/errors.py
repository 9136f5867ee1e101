"""What can go wrong when a kernel is built."""

from __future__ import annotations

from bhemu.errors import BhemuError


class CompileError(BhemuError):
    """The compiler, the assembler or the linker refused the kernel.

    Attributes:
        output: everything that the tool printed.
    """

    def __init__(self, message: str, *, remedy: str | None = None, output: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.output = output


class MissingTool(BhemuError):
    """A compiler, a library or headers that are not installed."""
