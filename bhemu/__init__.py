"""bhemu: a bit-exact emulator of Tenstorrent's Blackhole Tensix core.

Example:
    >>> import bhemu
    >>> tile = bhemu.Tile()
    >>> tile.execute(0, "SETDMAREG 0x1234, 6")
    >>> hex(tile.gpr[0, 3])
    '0x1234'
"""

from bhemu.errors import BhemuError
from bhemu.formats import DataFormat
from bhemu.host.core import Core
from bhemu.host.program import Program, Tensor, load_program
from bhemu.host.run import Report, Result, run_program
from bhemu.host.tile import Snapshot, Tile
from bhemu.isa.names import Block, Condition, Counters, Semaphore, WhileSemaphore

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
