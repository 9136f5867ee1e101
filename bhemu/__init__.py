"""bhemu: a bit-exact emulator of Tenstorrent's Blackhole Tensix core.

Example:
    >>> import bhemu
    >>> tile = bhemu.Tile()
    >>> tile.execute(0, "SETDMAREG 0x1234, 6")
    >>> hex(tile.gpr[0, 3])
    '0x1234'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bhemu.errors import BhemuError
    from bhemu.formats import DataFormat
    from bhemu.host.core import Core
    from bhemu.host.program import Program, Tensor, load_program
    from bhemu.host.run import Report, Result, run_program
    from bhemu.host.tile import Snapshot, Tile
    from bhemu.isa.names import Block, Condition, Counters, Semaphore, WhileSemaphore

# Modules are imported when a name is first used, so that the command line starts without the compiler.
_HOME = {
    "BhemuError": "bhemu.errors",
    "Block": "bhemu.isa.names",
    "Condition": "bhemu.isa.names",
    "Core": "bhemu.host.core",
    "Counters": "bhemu.isa.names",
    "DataFormat": "bhemu.formats",
    "Program": "bhemu.host.program",
    "Report": "bhemu.host.run",
    "Result": "bhemu.host.run",
    "Semaphore": "bhemu.isa.names",
    "Snapshot": "bhemu.host.tile",
    "Tensor": "bhemu.host.program",
    "Tile": "bhemu.host.tile",
    "WhileSemaphore": "bhemu.isa.names",
    "load_program": "bhemu.host.program",
    "run_program": "bhemu.host.run",
}

__all__ = [
    "BhemuError",
    "Block",
    "Condition",
    "Core",
    "Counters",
    "DataFormat",
    "Program",
    "Report",
    "Result",
    "Semaphore",
    "Snapshot",
    "Tensor",
    "Tile",
    "WhileSemaphore",
    "load_program",
    "run_program",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'bhemu' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
