"""Where the parts of a kernel's ELF file go, and how its core is started: what a host does (tile B5, B25, T14 to T20).

A segment goes to its address in L1. One that belongs to local RAM goes, when the linker gave it a load address in L1,
there: the start-up code copies it (tile B5). Without one the loader puts it into the core's local RAM, and tells the
reset logic to keep that RAM, which it would clear at release (T16).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import bhemu.checks as checks
from bhemu.errors import MemoryError_, ProgramError
from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.isa.riscv_words import riscv_word, upper
from bhemu.isa.tile_registers import address_of
from bhemu.loader.elf import Executable, Segment
from bhemu.machine.agents import CORE_NAMES, NC, T0, T2, B
from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.state import L1_SIZE, POWER_ON_RESET
from bhemu.tile.reset import CORE_BIT, DEFAULT_PC, KEEP_RAM_BIT

LOCAL_RAM: Final = LOCAL_RAM_BASE
SOFT_RESET: Final = address_of("control", "SOFT_RESET_0")
DISABLE_RESET: Final = address_of("control", "DISABLE_RESET")
RESET_PC_T0: Final = address_of("control", "TRISC0_RESET_PC")
RESET_OVERRIDE_T: Final = address_of("control", "TRISC_RESET_PC_OVERRIDE")
RESET_PC_NC: Final = address_of("control", "NCRISC_RESET_PC")
RESET_OVERRIDE_NC: Final = address_of("control", "NCRISC_RESET_PC_OVERRIDE")
ALL_HELD: Final = POWER_ON_RESET
"""Soft-reset word that holds all five cores (T14)."""

CORE_SYMBOL: Final = "__bhemu_core"
"""`bhemu cc` says with it for which core it linked a file."""
TENSIX_EXTENSION: Final = "xtttensix"
"""Part of the ELF attribute that the vendor's compiler gives code of T cores (tile B5)."""


@dataclass(frozen=True)
class Piece:
    """A part of a program in memory.

    Attributes:
        address: of its first byte: in L1, or from `LOCAL_RAM` on.
        content: what the loader writes; shorter than `size`, or empty, where the program itself fills the rest.
        size: bytes that it takes.
        zeroed: the loader fills what is after `content` with zeros.
        segment: its number among the loadable segments of the file.
    """

    address: int
    content: bytes
    size: int
    zeroed: bool
    segment: int

    @property
    def is_local(self) -> bool:
        """Lies in the core's local RAM."""
        return self.address >= LOCAL_RAM

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(frozen=True)
class Placement:
    """A program and where its parts go.

    Attributes:
        core: number of the core that runs it.
        executable: the program.
        pieces: its parts in memory.
    """

    core: int
    executable: Executable
    pieces: tuple[Piece, ...]

    @property
    def keeps_local_ram(self) -> bool:
        """The loader writes to local RAM, so the release must not clear it (T16)."""
        return any(piece.is_local and piece.content for piece in self.pieces)


def core_number(name: str) -> int:
    """The number of a core, by its name in upper or lower case.

    Raises:
        ProgramError: there is no such core.
    """
    if checks.text(name, "core").upper() not in CORE_NAMES:
        raise ProgramError(f"core {name!r} does not exist", remedy=f"use one of {', '.join(CORE_NAMES)}")
    return CORE_NAMES.index(name.upper())


def guess_core(executable: Executable) -> int:
    """The core that a program is for: as `bhemu cc` recorded it, else the one that starts at its entry, else B.

    Raises:
        ProgramError: compiled for a T core, and nothing says for which.
    """
    recorded = executable.address_of(CORE_SYMBOL)
    if recorded is not None and recorded < len(CORE_NAMES):
        return recorded
    for core, pc in enumerate(DEFAULT_PC):
        if executable.entry == pc:
            return core
    if executable.attributes is not None and TENSIX_EXTENSION in executable.attributes:
        raise ProgramError(
            f"{executable.path} is for a T core, and its entry {executable.entry:#x} does not say for which",
            remedy="give T0=FILE, T1=FILE or T2=FILE, or --core",
        )
    return B


def memories(core: int) -> str:
    """What memory a core's program can lie in, for messages."""
    end = LOCAL_RAM + LOCAL_RAM_SIZE[core] - 1
    local = f"the local RAM of core {CORE_NAMES[core]} {LOCAL_RAM:#010x}..{end:#010x}"
    return f"L1 is 0x00000000..{L1_SIZE - 1:#010x}, {local}"


def is_memory(core: int, address: int) -> bool:
    """An address in L1 or in the core's local RAM, or just after them, as a stack begins."""
    return 0 < address <= L1_SIZE or 0 <= address - LOCAL_RAM <= LOCAL_RAM_SIZE[core]


def place(executable: Executable, core: int) -> Placement:
    """Decide where the segments of a program go.

    Args:
        executable: from `load_elf`.
        core: number of the core that is to run it.

    Raises:
        MemoryError_: a segment lies, or reaches, outside of memory; or the entry lies in nothing that is loaded.
    """
    pieces: list[Piece] = []
    for number, segment in enumerate(executable.segments):
        pieces += _pieces_of(executable, number, segment, core)
    result = Placement(core, executable, tuple(pieces))
    _check_entry(result)
    return result


def _in_l1(address: int, size: int) -> bool:
    return address < L1_SIZE and address + size <= L1_SIZE


def _pieces_of(executable: Executable, number: int, segment: Segment, core: int) -> list[Piece]:
    address, size, content = segment.address, segment.size, segment.content
    in_l1 = _in_l1(address, size)
    if not in_l1 and not (address >= LOCAL_RAM and address + size <= LOCAL_RAM + LOCAL_RAM_SIZE[core]):
        raise MemoryError_(
            f"{executable.path}: segment {number} at {address:#010x}, {size:#x} bytes long, is "
            f"outside of every memory: {memories(core)}",
            remedy="fix the linker script; `bhemu cc` has one that fits",
        )
    image = segment.load_address
    if content and image != address and _in_l1(image, len(content)):
        return [
            Piece(image, content, len(content), False, number),
            Piece(address, b"", size, False, number),
        ]
    return [Piece(address, content, size, True, number)]


def _check_entry(placement: Placement) -> None:
    executable = placement.executable
    entry = executable.entry
    if entry % 4:
        raise MemoryError_(
            f"{executable.path}: the entry {entry:#x} is not a multiple of 4 [tile T21]",
            remedy="align the first instruction to 4 bytes",
        )
    loaded = (piece for piece in placement.pieces if piece.content and not piece.is_local)
    if not any(piece.address <= entry < piece.address + len(piece.content) for piece in loaded):
        raise MemoryError_(
            f"{executable.path}: the entry {entry:#x} is not in code that is loaded into L1, where the cores fetch "
            "instructions [tile T21]",
            remedy="link .text into L1, and name the first instruction with ENTRY(_start)",
        )


def check_apart(new: Placement, others: list[Placement]) -> None:
    """Refuse a program that takes bytes of L1 that another core's program has.

    Raises:
        MemoryError_: they overlap.
    """
    for other in others:
        for a in new.pieces:
            for b in other.pieces:
                if a.is_local or b.is_local or a.address >= b.end or b.address >= a.end:
                    continue
                first, last = max(a.address, b.address), min(a.end, b.end) - 1
                raise MemoryError_(
                    f"{first:#x}..{last:#x} of L1 belongs to two programs: {_whose(new, a)} and {_whose(other, b)}",
                    remedy="link each core's program to a part of L1 of its own, as `bhemu cc --core` does",
                )


def _whose(placement: Placement, piece: Piece) -> str:
    return f"segment {piece.segment} of {placement.executable.path} (core {CORE_NAMES[placement.core]})"


def check_jump(placements: list[Placement]) -> None:
    """Refuse when core B needs a jump at address 0, where it starts (T14), and a program lies there.

    Raises:
        MemoryError_: it does.
    """
    for placement in placements:
        if placement.core != B or placement.executable.entry == 0:
            continue
        end = len(jump_to(placement.executable.entry))
        for other in placements:
            for piece in other.pieces:
                if piece.address < end:
                    raise MemoryError_(
                        f"core B starts at address 0 [tile T14] and needs a jump there to the entry "
                        f"{placement.executable.entry:#x} of {placement.executable.path}, "
                        f"but {_whose(other, piece)} is in the way",
                        remedy="link the entry of B's program to address 0, or leave the first 8 bytes of L1 free",
                    )


def jump_to(entry: int) -> bytes:
    """The code at address 0 that takes core B to its program: `jal x0, entry`; two instructions when that is too far.

    Args:
        entry: byte address in L1.
    """
    if entry < 1 << 20:
        return riscv_word("jal", imm=entry).to_bytes(4, "little")
    t0 = 5
    lui = riscv_word("lui", t0, imm=upper(entry))
    return lui.to_bytes(4, "little") + riscv_word("jalr", rs1=t0, imm=entry).to_bytes(4, "little")


def write_program(placement: Placement, l1: Any, local_ram: Any) -> None:
    """Copy a program into memory.

    Args:
        placement: from `place`.
        l1: uint8 array of L1.
        local_ram: uint8 array of the core's local RAM.
    """
    for piece in placement.pieces:
        memory, at = (local_ram, piece.address - LOCAL_RAM) if piece.is_local else (l1, piece.address)
        if piece.zeroed:
            memory[at : at + piece.size] = 0
        if piece.content:
            memory[at : at + len(piece.content)] = memoryview(piece.content)


def start_pc_registers(core: int, entry: int, override_t: int) -> list[tuple[int, int]]:
    """The stores, (address, value), that make a T core or NC start at `entry` (T14); none for B.

    Args:
        core: number of the core.
        entry: address where it starts.
        override_t: the override register of the T cores as it is.
    """
    if core == B:
        return []
    if T0 <= core <= T2:
        return [(RESET_PC_T0 + 4 * (core - T0), entry), (RESET_OVERRIDE_T, override_t | 1 << (core - T0))]
    return [(RESET_PC_NC, entry), (RESET_OVERRIDE_NC, 1)]


def start_stores(entries: Mapping[int, int]) -> list[tuple[int, int]]:
    """Stores (address, value) that start cores of a tile in which all are held.

    Nothing is loaded before, as the official simulator refuses to load some of these registers.

    Args:
        entries: where each core starts, by number; B starts at 0, whatever is said.
    """
    stores = [(RESET_PC_T0 + 4 * (core - T0), pc) for core, pc in entries.items() if T0 <= core <= T2]
    override = sum(1 << (core - T0) for core in entries if T0 <= core <= T2)
    if override:
        stores.append((RESET_OVERRIDE_T, override))
    if NC in entries:
        stores += [(RESET_PC_NC, entries[NC]), (RESET_OVERRIDE_NC, 1)]
    return [*stores, (SOFT_RESET, ALL_HELD & ~reset_bits(list(entries)))]


def reset_bits(cores: list[int]) -> int:
    """The bits of the soft-reset register that hold these cores (T14)."""
    return sum(1 << int(CORE_BIT[core]) for core in set(cores))


def keep_bit(core: int) -> int:
    """The bit of DISABLE_RESET that keeps a core's local RAM (T16)."""
    return 1 << int(KEEP_RAM_BIT[core])
