"""The programs that are in a tile: names of their code and data."""

from __future__ import annotations

import bhemu.checks as checks
from bhemu.errors import MemoryError_, ProgramError
from bhemu.loader.boot import Placement, core_number
from bhemu.loader.elf import Executable, has_code_at, variable_at
from bhemu.machine.agents import CORE_NAMES, T0, B


class Loaded:
    """Programs by core.

    Attributes:
        placements: in the order of loading; a later program hides what an earlier one of the same core has there.
    """

    def __init__(self) -> None:
        self.placements: list[Placement] = []

    def holding(self, core: int, pc: int) -> Executable | None:
        """The program of a core that has code at a pc."""
        for placement in reversed(self.placements):
            if placement.core == core and has_code_at(placement.executable, pc):
                return placement.executable
        return None

    def describe(self, core: int, pc: int) -> str:
        """A pc for a message: `0x00010 main+0x8 (kernel.c:12)`, or as much of it as is known."""
        executable = self.holding(core, pc)
        text = f"{pc:#07x}"
        if executable is None:
            return text
        known = executable.describe(pc)
        return f"{text}{known[10:]}" if known.startswith("0x") else f"{text} {known}"

    def pusher(self, thread: int, pc: int) -> int:
        """The core that pushed a word from `pc` to a thread: the thread's own, unless only B has code there."""
        own = T0 + thread
        if self.holding(own, pc) is None and self.holding(B, pc) is not None:
            return B
        return own

    def address_of(self, name: str) -> int:
        """The address of a symbol of the loaded programs, by `name` or by `core.name`.

        Raises:
            ProgramError: no program has it, or several have it at different addresses.
        """
        wanted, found = self._addresses(checks.text(name, "name"))
        if not found:
            where = "no loaded program" if wanted is None else f"the program of core {CORE_NAMES[wanted]}"
            verb = "has" if wanted is None else "lacks"
            raise ProgramError(
                f"{where} {verb} a symbol {name!r}", remedy="see `nm` of the file; static names may be gone after -O2"
            )
        if len(set(found.values())) > 1:
            places = ", ".join(f"{core}.{name} is {address:#x}" for core, address in found.items())
            raise ProgramError(f"symbol {name!r} is ambiguous: {places}", remedy=f"say {next(iter(found))}.{name}")
        return next(iter(found.values()))

    def _addresses(self, name: str) -> tuple[int | None, dict[str, int]]:
        """The core that `core.name` names, and the addresses of the symbol by core."""
        core, dot, symbol = name.partition(".")
        wanted = core_number(core) if dot and core.upper() in CORE_NAMES else None
        if wanted is not None:
            name = symbol
        found = {}
        for placement in self.placements:
            address = placement.executable.address_of(name)
            if address is not None and wanted in (None, placement.core):
                found[CORE_NAMES[placement.core]] = address
        return wanted, found

    def owner_of(self, name: str) -> str | None:
        """The core whose program alone has a symbol, given as `name` or `core.name`; None when no core alone has it."""
        found = self._addresses(name)[1]
        return next(iter(found)) if len(found) == 1 else None

    def check_data(self, address: int, size: int, what: str) -> None:
        """Refuse to overwrite the code of a program.

        Raises:
            MemoryError_: [address, address + size) of L1 holds code; `what` begins the message.
        """
        for placement in self.placements:
            for number, segment in enumerate(placement.executable.segments):
                end = segment.address + segment.size
                if segment.executable and address < end and segment.address < address + size:
                    raise MemoryError_(
                        f"{what}: {address:#x}..{address + size - 1:#x} overlaps the code of "
                        f"{placement.executable.path} (core {CORE_NAMES[placement.core]}, segment {number}, "
                        f"{segment.address:#x}..{end - 1:#x})",
                        remedy="choose another address",
                    )

    def name_of_word(self, address: int) -> str:
        """The symbol of the variable that holds an address, or nothing."""
        return variable_at((placement.executable for placement in self.placements), address)
