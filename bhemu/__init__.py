"""bhemu: a bit-exact emulator of Tenstorrent's Blackhole Tensix core.

Example:
    >>> import bhemu
    >>> tile = bhemu.Tile()
    >>> tile.execute(0, "SETDMAREG 0x1234, 6")
    >>> hex(tile.gpr[0, 3])
    '0x1234'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bhemu import numerics
    from bhemu.chip.coordinates import Harvesting
    from bhemu.chip.dma import HostMemory
    from bhemu.errors import BhemuError
    from bhemu.formats import DataFormat
    from bhemu.host.chip import Chip
    from bhemu.host.chip_report import ChipResult
    from bhemu.host.chip_snapshot import ChipSnapshot
    from bhemu.host.core import Core
    from bhemu.host.elf import Executable, load_elf
    from bhemu.host.load import load_program
    from bhemu.host.machine import Machine
    from bhemu.host.program import Program
    from bhemu.host.run import Report, Result, run_program
    from bhemu.host.summary import MachineResult
    from bhemu.host.tensors import Tensor
    from bhemu.host.tile import Snapshot, Tile
    from bhemu.isa.names import Block, Condition, Counters, Semaphore, WhileSemaphore

__all__ = [
    "BhemuError",
    "Block",
    "Chip",
    "ChipResult",
    "ChipSnapshot",
    "Condition",
    "Core",
    "Counters",
    "DataFormat",
    "Executable",
    "Harvesting",
    "HostMemory",
    "Machine",
    "MachineResult",
    "Program",
    "Report",
    "Result",
    "Semaphore",
    "Snapshot",
    "Tensor",
    "Tile",
    "WhileSemaphore",
    "load_elf",
    "load_program",
    "numerics",
    "run_program",
]

# Names are fetched on first use, so that `import bhemu.formats` does not pull in the compiler.
_HOMES = {
    "BhemuError": "bhemu.errors",
    "DataFormat": "bhemu.formats",
    "Chip": "bhemu.host.chip",
    "ChipResult": "bhemu.host.chip_report",
    "ChipSnapshot": "bhemu.host.chip_snapshot",
    "Harvesting": "bhemu.chip.coordinates",
    "HostMemory": "bhemu.chip.dma",
    "Core": "bhemu.host.core",
    "Program": "bhemu.host.program",
    "Tensor": "bhemu.host.tensors",
    "Executable": "bhemu.host.elf",
    "load_elf": "bhemu.host.elf",
    "Machine": "bhemu.host.machine",
    "MachineResult": "bhemu.host.summary",
    "load_program": "bhemu.host.load",
    "Report": "bhemu.host.run",
    "Result": "bhemu.host.run",
    "run_program": "bhemu.host.run",
    "Snapshot": "bhemu.host.tile",
    "Tile": "bhemu.host.tile",
    "Block": "bhemu.isa.names",
    "Condition": "bhemu.isa.names",
    "Counters": "bhemu.isa.names",
    "Semaphore": "bhemu.isa.names",
    "WhileSemaphore": "bhemu.isa.names",
}


def __getattr__(name: str) -> Any:
    if name == "numerics":  # a module, which binds itself to the package
        return importlib.import_module("bhemu.numerics")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bhemu' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
