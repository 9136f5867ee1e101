"""Loads and stores of memory-mapped registers by a core, the host or the coprocessor."""

from __future__ import annotations

from typing import Any

from bhemu import Tile

# What an access leaves behind in the record without being state
_SCRATCH = ("device_value", "device_size", "fault_value", "needs_place", "now_round", "now_agent", "handlers")


class Registers:
    """The registers of a new tile, as each agent finds them in the memory map."""

    def __init__(self) -> None:
        self.tile = Tile()
        self.record: Any = self.tile.record

    def load(self, agent: int, address: int) -> int:
        return self.tile.cores.load(address, agent)

    def store(self, agent: int, address: int, value: int) -> None:
        self.tile.cores.store(address, value, agent)

    def state(self) -> dict[str, bytes]:
        """All that software could observe, by field."""
        return {name: self.record[name].tobytes() for name in self.record.dtype.names if name not in _SCRATCH}
