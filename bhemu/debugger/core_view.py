"""Reading and writing memory in the address space of a core, without side effects in the tile."""

from __future__ import annotations

from typing import Final

from bhemu.api.tile import Tile
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.debugged_tile import DebuggedTile
from bhemu.errors import BhemuError
from bhemu.isa.memory_map import LOCAL_RAM_BASE, region
from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORE_NAMES, CORES, NC, B
from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.state import L1_SIZE

_MAILBOXES: Final = region("mailbox")
_SYNC: Final = region("pcbuf")
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
ADDRESS_SPACE: Final = 1 << 32


def is_local(core: int, address: int, size: int) -> bool:
    """True for bytes of a core's local RAM, by their address in its address space."""
    return address >= LOCAL_RAM_BASE and address + size <= LOCAL_RAM_BASE + LOCAL_RAM_SIZE[core]


def _check_core(core: int) -> None:
    if not 0 <= core < CORES:
        raise DebugError(f"core {core} does not exist", remedy=f"use 0 to {CORES - 1}: {', '.join(CORE_NAMES)}")


def _check_register(core: int, address: int) -> None:
    """Refuse a load that would pop a value, or that would wait."""
    takes = core != NC and (address in _MAILBOXES or (address in _SYNC and (core == B or address not in _SEMAPHORES)))
    if takes:
        raise DebugError(
            f"a load from {address:#x} takes a word out of a mailbox or PCBuf, or waits",
            remedy="`info mailboxes` shows their contents",
        )


def read(tile: Tile | DebuggedTile, core: int, address: int, size: int) -> bytes:
    """Bytes as a core finds them: L1, its local RAM, or registers; registers by whole words.

    Nothing changes in the tile: loads of registers are made on the tile as it will be put back.

    Raises:
        DebugError: nothing can be read there, or a load would pop a value.
    """
    _check_core(core)
    if size <= 0:
        return b""
    if address >= 0 and address + size <= L1_SIZE:
        return tile.l1[address : address + size].tobytes()
    if is_local(core, address, size):
        at = address - LOCAL_RAM_BASE
        return tile.cores[core].local_ram[at : at + size].tobytes()
    if address < L1_SIZE or address + size > ADDRESS_SPACE:
        raise DebugError(
            f"{size} bytes at {address:#x} are not all in one memory",
            remedy=f"L1 ends at {L1_SIZE - 1:#x}, local RAM of core {CORE_NAMES[core]} begins at {LOCAL_RAM_BASE:#x}",
        )
    first, end = address & ~3, (address + size + 3) & ~3
    if end - first > 4096:
        raise DebugError(f"{size} bytes of registers at once", remedy="read at most 4096")
    for place in range(first, end, 4):
        _check_register(core, place)
    before = tile.snapshot()
    try:
        words = [tile.cores.load(place, core).to_bytes(4, "little") for place in range(first, end, 4)]
    except BhemuError as error:
        raise DebugError(f"{address:#x} cannot be read: {error.message}", remedy=error.remedy) from None
    finally:
        tile.restore(before)
    return b"".join(words)[address - first : address - first + size]


def write(tile: Tile | DebuggedTile, core: int, address: int, content: bytes) -> None:
    """Write bytes as a core does; to registers as stores of words, with all that they do.

    Raises:
        DebugError: nothing can be written there, or not in this size.
    """
    _check_core(core)
    size = len(content)
    if address >= 0 and address + size <= L1_SIZE:
        tile.l1[address : address + size] = memoryview(content)
        return
    if is_local(core, address, size):
        at = address - LOCAL_RAM_BASE
        tile.cores[core].local_ram[at : at + size] = memoryview(content)
        return
    if address % 4 or size % 4 or address < L1_SIZE or address + size > ADDRESS_SPACE:
        raise DebugError(
            f"{size} bytes at {address:#x} cannot be written",
            remedy="write to L1, to local RAM, or whole aligned words to registers",
        )
    for at in range(0, size, 4):
        word = int.from_bytes(content[at : at + 4], "little")
        try:
            tile.cores.store(address + at, word, core)
        except BhemuError as error:
            raise DebugError(f"{address + at:#x} cannot be written: {error.message}", remedy=error.remedy) from None
