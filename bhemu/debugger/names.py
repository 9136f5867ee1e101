"""What names mean in a session: cores, symbols, source lines, expressions; and memory as a core addresses it."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import bhemu.checks as checks
from bhemu.api.machine import Machine
from bhemu.api.tile import Tile
from bhemu.api.tile_programs import TilePrograms
from bhemu.checks import checked
from bhemu.debugger import core_view
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.expressions import evaluate
from bhemu.debugger.runner import Runner
from bhemu.debugger.watchpoints import register_number
from bhemu.errors import BhemuError, ProgramError
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS
from bhemu.loader.boot import core_number
from bhemu.loader.elf import Executable, has_code_at, variable_at
from bhemu.loader.lines import SourceLine
from bhemu.loader.symbols import Symbol
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.core_state import IN_RESET
from bhemu.machine.state import L1_SIZE


@checked
class Names:
    """A tile with its programs; the base of a session."""

    def __init__(self, target: Machine | Tile | TilePrograms, runner: Runner | None = None) -> None:
        if runner is None:
            machine = target if isinstance(target, Machine) else Machine(checks.instance(target, "target", Tile))
            target, runner = machine, Runner(machine.tile)
        assert isinstance(target, TilePrograms)
        self.machine: TilePrograms = target
        self.runner = runner
        self.tile = runner.tile
        self.record: Any = self.tile.record
        self.poll: Callable[[], bool] | None = None
        """Asked now and then while the tile runs; True interrupts the run."""
        programs = self.machine.programs
        started = [core for core in range(CORES) if self.record.core_state[core] != IN_RESET]
        with_code = [core for core in started if CORE_NAMES[core] in programs]
        self.core = (with_code or started or [0])[0]

    @property
    def clock(self) -> int:
        """Clocks of the tile that have passed completely."""
        return self.runner.clock

    def number_of_core(self, core: str | int | None) -> int:
        """The number of a core by name or number; the chosen one for None.

        Raises:
            BhemuError: there is no such core.
        """
        if core is None:
            return self.core
        if isinstance(core, str):
            return core_number(core)
        if not 0 <= core < CORES:
            raise DebugError(f"core {core} does not exist", remedy=f"use 0 to {CORES - 1}: {', '.join(CORE_NAMES)}")
        return core

    # --- names ------------------------------------------------------------------------------------------------------

    def describe(self, core: int, pc: int) -> str:
        """An address of a core's code: `0x00010 main+0x8 (kernel.c:12)`."""
        return self.machine.describe(core, pc)

    def describe_places(self, core: int, places: list[int]) -> str:
        """The first of some places of a function, and how many more there are."""
        more = f" and {len(places) - 1} more, inlined" if len(places) > 1 else ""
        return self.describe(core, places[0]) + more

    def name_of_word(self, address: int) -> str:
        """The variable that holds an address, as `name+0x4`, or nothing."""
        return variable_at(self.executables(), address)

    def object_named(self, name: str) -> Symbol | None:
        """The variable of that name (`T1.flag` for that of one core), or None."""
        last = name.rpartition(".")[2]
        try:
            address = CoreScope(self, self.core).name_address(name)
        except BhemuError:
            return None
        for executable in self.executables():
            for symbol in executable.symbols:
                if symbol.address == address and symbol.kind == "object" and last in (symbol.name, symbol.display):
                    return symbol
        return None

    def where(self, core: str | int | None = None) -> str:
        """Where a core is."""
        number = self.number_of_core(core)
        return self.describe(number, self.runner.state(number).pc)

    def executables(self, core: int | None = None) -> list[Executable]:
        """All programs; those of a core first."""
        known = self.machine.executables
        own = [executable for name, executable in known if core is not None and name == CORE_NAMES[core]]
        return own + [executable for _, executable in known if executable not in own]

    def own_address_of(self, core: int, name: str) -> int | None:
        """The address of a symbol in the programs of a core, or None."""
        for owner, executable in self.machine.executables:
            address = executable.address_of(name) if owner == CORE_NAMES[core] else None
            if address is not None:
                return address
        return None

    def own_places_of(self, core: int, name: str) -> list[int]:
        """Where a function of a core's programs begins, with the places at which it was inlined; empty: none has it."""
        own = [executable for owner, executable in self.machine.executables if owner == CORE_NAMES[core]]
        return next((places for executable in own if (places := executable.places_of(name))), [])

    def executable_at(self, core: int, address: int) -> Executable | None:
        """The program with code at an address: the core's own, else that of any core."""
        for executable in self.executables(core):
            if has_code_at(executable, address):
                return executable
        return None

    def line(self, core: int) -> SourceLine | None:
        """The source line of a core's pc."""
        pc = self.runner.state(core).pc
        executable = self.executable_at(core, pc)
        return None if executable is None else executable.line_at(pc)

    def address_of(self, name: str) -> int:
        """The address of a symbol.

        Raises:
            DebugError: no program has it; near names are named.
        """
        address = self.own_address_of(self.core, name)
        if address is not None:
            return address
        try:
            return self.machine.address_of(name)
        except ProgramError as error:
            known = {s.display.lower(): s.display for executable in self.executables() for s in executable.symbols}
            raise DebugError(error.message, remedy=near(name, known, error.remedy or "")) from None

    def locate(self, where: str | int) -> int:
        """The address of an instruction: an address, `*expression`, a symbol, or `file.c:12`.

        Raises:
            BhemuError: there is no such place.
        """
        if isinstance(where, int):
            address = where
        elif where.startswith("*"):
            address = evaluate(where[1:], CoreScope(self, self.core))
        elif is_line(where):
            file, _, line = where.rpartition(":")
            return self._address_of_line(file, int(line))
        elif where.isdigit():
            line_now = self.line(self.core)
            if line_now is None:
                raise DebugError(
                    f"core {CORE_NAMES[self.core]} is at no source line, so line {where} of which file?",
                    remedy=f"say file.c:{where}, or *{where} for an address",
                )
            return self._address_of_line(line_now.file, int(where))
        elif where[:2].lower() == "0x":
            address = evaluate(where, CoreScope(self, self.core))
        else:
            address = self.address_of(where)
        if address % 4 or not 0 <= address < L1_SIZE:
            raise DebugError(f"{address:#x} is not an instruction in L1", remedy="use a multiple of 4 below 0x180000")
        return address

    def locate_all(self, where: str | int) -> list[int]:
        """The addresses of a place: as `locate`, and where the compiler has inlined a function.

        Raises:
            BhemuError: there is no such place.
        """
        if isinstance(where, int) or where.startswith("*") or where[:1].isdigit() or is_line(where):
            return [self.locate(where)]
        owner, _, name = where.rpartition(".")
        if owner in CORE_NAMES:
            return self.own_places_of(core_number(owner), name) or [self.locate(where)]
        if own := self.own_places_of(self.core, where):
            return own
        try:
            return [self.locate(where)]
        except BhemuError:
            others = (self.own_places_of(core, where) for core in range(CORES))
            if found := next((places for places in others if places), None):
                return found
            raise

    def source_file(self, name: str) -> str | None:
        """The path, as the compiler recorded it, of a source file that has functions; by the end of its path."""
        for executable in self.executables():
            for symbol in executable.symbols:
                line = executable.line_at(symbol.address) if symbol.kind == "function" else None
                if line is not None and (line.file == name or line.file.endswith(f"/{name}")):
                    return line.file
        return None

    def _address_of_line(self, file: str, line: int) -> int:
        for executable in self.executables(self.core):
            addresses = executable.addresses_of_line(file, line)
            if addresses:
                return addresses[0]
        raise DebugError(
            f"no program has code for line {line} of {file}",
            remedy="compile with -g, and choose a line with a statement; `info line` shows where a core is",
        )

    # --- memory and stack -------------------------------------------------------------------------------------------

    def read_memory(self, address: int, size: int, core: str | int | None = None) -> bytes:
        """Bytes as a core finds them; see `bhemu.debugger.core_view.read`."""
        return core_view.read(self.tile, self.number_of_core(core), address, size)

    def write_memory(self, address: int, content: bytes, core: str | int | None = None) -> None:
        """Write bytes as a core does; see `bhemu.debugger.core_view.write`."""
        self.runner.history.changed()
        core_view.write(self.tile, self.number_of_core(core), address, content)

    def value(self, expression: str, core: str | int | None = None) -> int:
        """The value of an expression; see `bhemu.debugger.expressions`."""
        return evaluate(expression, CoreScope(self, self.number_of_core(core)))


class CoreScope:
    """What names in an expression mean for a core.

    Attributes:
        is_private: nothing was asked for so far but registers of the core.
    """

    def __init__(self, session: Names, core: int) -> None:
        self._session = session
        self._core = core
        self.is_private = True

    def register(self, name: str) -> int:
        """A register of the core, `pc`, `clock` or `core`."""
        session = self._session
        now = session.runner.state(self._core)
        special = {"pc": now.pc, "clock": session.clock, "core": self._core}
        if name in special:
            self.is_private &= name != "clock"
            return special[name]
        number = register_number(name)
        if number is None:
            raise DebugError(f"no register is named ${name}", remedy="use $a0, $sp, $x5, ..., $pc, $clock or $core")
        return int(now.x[number])

    def name_address(self, name: str) -> int:
        """The address of a symbol, of the core's own program first."""
        self.is_private = False
        address = self._session.own_address_of(self._core, name)
        return self._session.address_of(name) if address is None else address

    def name_value(self, name: str) -> int:
        """The value of a variable of 1, 2 or 4 bytes, else the address."""
        self.is_private = False
        if name in CONFIG_FIELDS or name in THREAD_FIELDS:
            return self._session.tile.config[name]
        symbol = self._session.object_named(name)
        if symbol is not None and symbol.size in (1, 2, 4):
            content = core_view.read(self._session.tile, self._core, symbol.address, symbol.size)
            return int.from_bytes(content, "little")
        return self.name_address(name)

    def load(self, address: int) -> int:
        """The word at an address as the core finds it."""
        self.is_private = False
        return int.from_bytes(core_view.read(self._session.tile, self._core, address, 4), "little")


def is_line(where: str) -> bool:
    """A place is `file.c:12`."""
    return ":" in where and where.rpartition(":")[2].isdigit()


def near(name: str, known: dict[str, str], otherwise: str) -> str:
    close = [known[match] for match in get_close_matches(name.lower(), known, n=3)]
    return f"did you mean {' or '.join(close)}?" if close else otherwise
