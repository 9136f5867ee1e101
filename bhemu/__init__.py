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
    from bhemu.api.chip import Chip
    from bhemu.api.chip_report import ChipResult
    from bhemu.api.chip_snapshot import ChipSnapshot
    from bhemu.api.cluster import Cluster
    from bhemu.api.cluster_snapshot import ClusterSnapshot
    from bhemu.api.machine import Machine
    from bhemu.api.summary import MachineResult
    from bhemu.api.tile import Snapshot, Tile
    from bhemu.cc import Kernel, compile_kernel
    from bhemu.chip.coordinates import Harvesting
    from bhemu.chip.pcie.host_memory import HostMemory
    from bhemu.client.attached import attach
    from bhemu.errors import BhemuError
    from bhemu.formats import DataFormat
    from bhemu.hosts.cluster import SpreadCluster
    from bhemu.isa.names import Block, Condition, Counters, Semaphore, WhileSemaphore
    from bhemu.loader.elf import Executable, load_elf
    from bhemu.programs.load import load_program
    from bhemu.programs.program import Program
    from bhemu.programs.run import Report, Result, run_program
    from bhemu.programs.tensors import Tensor
    from bhemu.programs.thread_core import Core

__all__ = [
    "BhemuError",
    "Block",
    "Chip",
    "ChipResult",
    "ChipSnapshot",
    "Cluster",
    "ClusterSnapshot",
    "Condition",
    "Core",
    "Counters",
    "DataFormat",
    "Executable",
    "Harvesting",
    "HostMemory",
    "Kernel",
    "Machine",
    "MachineResult",
    "Program",
    "Report",
    "Result",
    "Semaphore",
    "Snapshot",
    "SpreadCluster",
    "Tensor",
    "Tile",
    "WhileSemaphore",
    "attach",
    "compile_kernel",
    "load_elf",
    "load_program",
    "numerics",
    "run_program",
]

# Names are fetched on first use, so that `import bhemu.formats` does not pull in the compiler.
_HOMES = {
    "BhemuError": "bhemu.errors",
    "DataFormat": "bhemu.formats",
    "Chip": "bhemu.api.chip",
    "ChipResult": "bhemu.api.chip_report",
    "ChipSnapshot": "bhemu.api.chip_snapshot",
    "Cluster": "bhemu.api.cluster",
    "ClusterSnapshot": "bhemu.api.cluster_snapshot",
    "Harvesting": "bhemu.chip.coordinates",
    "SpreadCluster": "bhemu.hosts.cluster",
    "HostMemory": "bhemu.chip.pcie.host_memory",
    "Core": "bhemu.programs.thread_core",
    "Program": "bhemu.programs.program",
    "Tensor": "bhemu.programs.tensors",
    "Executable": "bhemu.loader.elf",
    "load_elf": "bhemu.loader.elf",
    "Kernel": "bhemu.cc",
    "compile_kernel": "bhemu.cc",
    "Machine": "bhemu.api.machine",
    "MachineResult": "bhemu.api.summary",
    "load_program": "bhemu.programs.load",
    "Report": "bhemu.programs.run",
    "Result": "bhemu.programs.run",
    "run_program": "bhemu.programs.run",
    "Snapshot": "bhemu.api.tile",
    "Tile": "bhemu.api.tile",
    "attach": "bhemu.client.attached",
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
