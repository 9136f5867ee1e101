"""What a refusal of the C library says about the tile at fault, and the state that it leaves behind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from bhemu.api.dump import dump_cores
from bhemu.chip.coordinates import NODES
from bhemu.chip.device import Device
from bhemu.errors import BhemuError
from bhemu.files import write_whole
from bhemu.isa.riscv import disassemble_riscv
from bhemu.loader.elf import Executable, load_elf
from bhemu.machine.ethernet_state import core_names
from bhemu.machine.state import L1_SIZE

DUMP: Final = "BHEMU_DUMP"
"""Environment variable: the `.npz` file that gets the state of the tile at fault."""
ELF: Final = "BHEMU_ELF"
"""Environment variable: ELF files of the programs that run, separated as in PATH, for symbols and source lines."""
_WORD: Final = 4


def _index(error: BhemuError) -> int | None:
    """Number of the record of the tile at fault."""
    return None if error.tile is None else NODES[error.tile].tile


def _executables() -> tuple[list[Executable], list[str]]:
    """(the files that BHEMU_ELF names, what is wrong with the others)."""
    loaded, wrong = [], []
    for name in filter(None, os.environ.get(ELF, "").split(os.pathsep)):
        try:
            loaded.append(load_elf(name))
        except (BhemuError, OSError) as error:
            wrong.append(f"  {ELF}: {str(error).splitlines()[0]}")
    return loaded, wrong


def _holds(executable: Executable, l1: Any, pc: int) -> bool:
    """True when the file has the instruction at pc that memory has there."""
    for segment in executable.segments:
        at = pc - segment.address
        if 0 <= at <= len(segment.content) - _WORD:
            return bool(segment.content[at : at + _WORD] == l1[pc : pc + _WORD].tobytes())
    return False


def fault_place(chip: Device, error: BhemuError) -> list[str]:
    """Lines with tile, core, pc, symbol and instruction, as far as they are known."""
    index = _index(error)
    if index is None or error.tile is None:
        return []
    x, y = error.tile
    line = f"  at: tile {x}-{y}"
    if error.core is None or error.pc is None:
        return [line]
    record: Any = chip.tiles[index]
    line += f", core {core_names(record)[error.core]}, pc {error.pc:#x}"
    if not 0 <= error.pc <= L1_SIZE - _WORD:
        return [line]
    executables, notes = _executables()
    for executable in executables:
        if _holds(executable, record.l1, error.pc):
            line += f", {executable.describe(error.pc)} of {executable.path.name}"
            break
    else:
        if executables:
            notes.append(f"  {ELF}: no file has the instruction that is at {error.pc:#x}")
    word = int(record.l1_u32[error.pc // _WORD])
    return [f"{line}, instruction {disassemble_riscv(word, error.pc)}", *notes]


def write_dump(chip: Device, error: BaseException) -> str:
    """Write the state of the tile at fault into the file that BHEMU_DUMP names; returns what to say about it."""
    index = _index(error) if isinstance(error, BhemuError) else None
    if index is None:
        return f"{DUMP}: no tile is at fault, nothing was written"
    path = Path(os.environ[DUMP])
    try:
        write_whole(path, dump_cores(chip.cores(index)))
    except Exception as failure:  # the message about the refusal matters more
        return f"{DUMP}: cannot write {path}: {failure}"
    return f"state of the tile: {path}"
