"""What a chip knows of a node."""

from __future__ import annotations

from typing import Any, Protocol


class NodeMemory(Protocol):
    """What a node holds, as the NoC and the host reach it."""

    def read(self, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of memory, or a register."""

    def write(self, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into memory, or into a register."""

    def snapshot(self) -> Any:
        """Everything that can change."""

    def restore(self, state: Any) -> None:
        """Put it back."""
