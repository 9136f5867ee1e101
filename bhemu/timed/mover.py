"""How long the mover is busy with a transfer: started by XMOV, or by a core's command to TDMA-RISC.

Data move when the transfer starts, as in functional mode. The mover is busy for as long as silicon takes, and takes the
next transfer after that. A thread's wait for it, and a core's load of its status, last until it is idle.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.registers import config
from bhemu.isa.tile_registers import address_of
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.config_access import config_bank, config_field
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, TileRecord
from bhemu.tensix.mover import L1_TO_CONFIG, L1_TO_L1, SIZE_BITS
from bhemu.timed import layout as at

COMMAND: Final = address_of("tdma", "COMMAND")
STATUS: Final = address_of("tdma", "STATUS")
"""Of TDMA-RISC (tile K30)."""
_MOVE: Final = 0x40
_COMPACT: Final = 1 << 31
_SIZE: Final = config("THCON_SEC0_REG6_Buffer_size")
_DIRECTION: Final = config("THCON_SEC0_REG6_Transfer_direction")


@kernel
def _cycles(log: LogAddress, units: Int, copies: Bool) -> AnyInt:
    """Cycles of a transfer of a number of 16 bytes."""
    each = load_i64(log, at.MOVER_COPY if copies else at.MOVER_ZEROS)
    return max((units * each + 63) >> 6, np.int64(1))


@kernel
def xmov_cycles(t: TileRecord, log: LogAddress, thread: Int) -> AnyInt:
    """Cycles for which an XMOV of a thread keeps the mover busy."""
    bank = config_bank(t, thread)
    direction = config_field(t, bank, _DIRECTION)
    units = config_field(t, bank, _SIZE) & SIZE_BITS
    return _cycles(log, units, direction in (L1_TO_CONFIG, L1_TO_L1))


@kernel
def start_command(t: TileRecord, log: LogAddress, start: Int, command: Int) -> None:
    """A core has stored a command for TDMA-RISC in a cycle, with its parameters before it."""
    if command & 0xFF != _MOVE:
        return
    if command & _COMPACT:
        cycles = _cycles(log, (command >> 24) & 0x3F, True)
    else:
        direction = np.int64(t.tdma_parameters[3]) & 3
        units = np.int64(t.tdma_parameters[2]) & SIZE_BITS
        cycles = _cycles(log, units, direction in (L1_TO_CONFIG, L1_TO_L1))
    free = at.UNIT_FREE + at.MOVER
    store_i64(log, free, max(load_i64(log, free), start) + cycles)
    store_i64(log, at.BUSY_CYCLES, load_i64(log, at.BUSY_CYCLES) + cycles)
    store_i64(log, at.UNIT_CYCLES + at.MOVER, load_i64(log, at.UNIT_CYCLES + at.MOVER) + cycles)


@kernel
def mover_idle(log: LogAddress) -> AnyInt:
    """Cycle from which the mover is idle, as far as transfers have been started."""
    return load_i64(log, at.UNIT_FREE + at.MOVER)
