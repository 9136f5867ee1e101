"""ELF files as sessions (tile B25)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bhemu.compare.session import CompareError, Session
from bhemu.isa.riscv_words import EBREAK, PARKED
from bhemu.loader import boot
from bhemu.loader.boot import Placement
from bhemu.loader.elf import load_elf
from bhemu.machine.agents import CORE_NAMES, B

HALT: str = "__bhemu_halt"
"""Where a program of `bhemu cc` is after main: at an ebreak."""


def load(programs: Mapping[str | None, str | Path]) -> list[Placement]:
    """Place programs by core; None takes the core that the file is for.

    Raises:
        BhemuError: a file cannot be run, or does not fit, or lies where another does.
    """
    placements: list[Placement] = []
    for name, path in programs.items():
        executable = load_elf(path)
        core = boot.guess_core(executable) if name is None else boot.core_number(name)
        if any(known.core == core for known in placements):
            raise CompareError(f"core {CORE_NAMES[core]} has two programs", remedy="give each core one file")
        placement = boot.place(executable, core)
        boot.check_apart(placement, placements)
        placements.append(placement)
    boot.check_jump(placements)
    return placements


def session(placements: list[Placement]) -> Session:
    """A session that runs programs.

    The ebreak after main, which the official simulator refuses (E4), is replaced by `j .`.

    Raises:
        CompareError: a program needs its local RAM filled, which no window of the host reaches.
    """
    pieces: list[tuple[int, bytes]] = []
    entries = {}
    for placement in placements:
        executable = placement.executable
        if placement.keeps_local_ram:
            raise CompareError(
                f"{executable.path} has data in local RAM that a loader must put there, and the host cannot",
                remedy="link it with a load address in L1 and copy it at the start, as `bhemu cc` does",
            )
        for piece in placement.pieces:
            if piece.is_local:
                continue
            content = piece.content.ljust(piece.size, b"\0") if piece.zeroed else piece.content
            pieces.append((piece.address, _parked(content, piece.address, executable.address_of(HALT))))
        if placement.core == B and executable.entry != 0:
            pieces.append((0, boot.jump_to(executable.entry)))
        entries[placement.core] = executable.entry
    return Session(pieces, entries)


def _parked(content: bytes, address: int, halt: int | None) -> bytes:
    """The bytes with `j .` in place of the ebreak at `halt`."""
    at = -1 if halt is None else halt - address
    if not 0 <= at <= len(content) - 4 or int.from_bytes(content[at : at + 4], "little") != EBREAK:
        return content
    return content[:at] + PARKED.to_bytes(4, "little") + content[at + 4 :]
