"""The timed mode of one tile as the host has it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from bhemu.errors import ConfigurationError
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.isa.roles import ROLES
from bhemu.isa.silicon import GUESSED, INSTRUCTION_TIMES, figure
from bhemu.machine.agents import CORES
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, LogAddress, Table
from bhemu.tile.cores import Cores
from bhemu.tile.observer import ENTRY, HOW, PLAIN_OBSERVERS
from bhemu.timed import layout as at
from bhemu.timed.schedule import advance_timed_entry

_ACCUMULATING: Final = ("MVMUL", "DOTPV", "GAPOOL", "GMPOOL", "ELWMUL", "ELWADD", "ELWSUB")


@dataclass(frozen=True, slots=True)
class TimedReport:
    """What a timed run was made of.

    Attributes:
        busy: cycles for which words occupied units of the coprocessor.
        guessed: those of words whose figures are guesses.
        core_busy: cycles of the cores, with what held them.
        core_guessed: those of instructions whose figures are guesses.
        units: cycles by unit.
    """

    busy: int
    guessed: int
    core_busy: int
    core_guessed: int
    units: dict[str, int]

    @property
    def guessed_share(self) -> float:
        """Share of guessed cycles among all, 0 to 1."""
        total = self.busy + self.core_busy
        return (self.guessed + self.core_guessed) / total if total else 0.0


@functools.cache
def timed_entry() -> Entry:
    """The compiled schedule of timed tiles."""
    return compile_entry("advance_timed", advance_timed_entry)


if JIT:

    @kernel
    def buffer_of(log: LogAddress) -> LogAddress:
        """The buffer of a timed tile, by its address."""
        return np.int64(log)

else:

    def buffer_of(log: LogAddress) -> Any:
        """The buffer of a timed tile, by its address."""
        return PLAIN_OBSERVERS[int(log)].buffer  # type: ignore[attr-defined]


class HasCores(Protocol):
    """A tile."""

    @property
    def cores(self) -> Cores:
        """The cores."""


def _times(mnemonic: str) -> int:
    """The word of layout.py with what is known of an instruction."""
    instruction, times = INSTRUCTIONS[mnemonic], INSTRUCTION_TIMES[mnemonic]
    if max(times.occupancy, times.latency) > at.CYCLES_BITS:
        raise ConfigurationError(
            f"{mnemonic} takes more than {at.CYCLES_BITS} cycles", remedy="give its figures in cycles of the Tensix"
        )
    word = at.UNIT_NAMES.index(instruction.unit)
    word |= times.occupancy << at.OCCUPANCY_LSB | times.latency << at.LATENCY_LSB
    word |= at.GUESSED if times.kind == GUESSED else 0
    word |= at.ACCUMULATES if mnemonic in _ACCUMULATING else 0
    for role in ROLES[mnemonic].reads if mnemonic in ROLES else ():
        if role.file == "lreg" and role.operand and not role.unseen and not role.maybe:
            lsb = instruction.field(role.operand).lsb
            word |= 1 << at.LREG_LSB + (lsb >> 2) - 1 if lsb in (4, 8, 12, 16) else 0
    waits = {role.file for role in ROLES[mnemonic].waits} if mnemonic in ROLES else set()
    return word | (("srca" in waits) | ("srcb" in waits) << 1) << at.WAITS_LSB


def new_tile_time() -> np.ndarray[Any, np.dtype[np.int64]]:
    """The buffer of layout.py of a tile in which nothing has happened yet; ENTRY is to be set.

    Raises:
        ConfigurationError: a figure is not a whole number, or too large.
    """
    buffer = np.zeros(at.SIZE, np.int64)
    for name, place in at.FIGURES.places.items():
        value = figure(name).value
        if value != int(value):
            raise ConfigurationError(
                f"{name} = {value} is not whole", remedy="give the figure in a smaller unit, such as 1/64 cycle"
            )
        buffer[place] = int(value)
    for mnemonic, instruction in INSTRUCTIONS.items():
        buffer[at.TIMES + instruction.opcode] = _times(mnemonic)
    buffer[at.MACRO_CYCLE] = -1
    buffer[at.LIMIT] = at.NO_LIMIT
    for core in range(CORES):
        block = at.CORE_BLOCKS + core * at.CORE_BLOCK
        buffer[block + at.STORE_LINE] = -1
        buffer[block + at.LINES : block + at.LINES + 4] = -1
        buffer[block + at.FETCHED] = -1
    return buffer


class SiliconTime:
    """Puts a tile into timed mode; `attach` begins it.

    From then on a clock of the tile is an estimate of a cycle of silicon. Results stay the same for programs whose
    cores and threads do not race.

    Example:
        >>> import bhemu
        >>> from bhemu.timed import SiliconTime
        >>> tile = bhemu.Tile()
        >>> tile.record.l1_u32[0:3] = 0x00A00513, 0x02A54533, 0x00100073  # li a0, 10; div a0, a0, a0; ebreak
        >>> SiliconTime().attach(tile)
        >>> tile.cores.store(0xFFB121B0, 0x47000)  # release core B
        >>> tile.clock(100)
        >>> tile.cores["B"].state
        'halted'
    """

    def __init__(self) -> None:
        self._buffer = new_tile_time()
        self._entry: Entry | None = None
        self.log_address = int(self._buffer.ctypes.data)
        """Of the buffer, for compiled code."""

    @property
    def buffer(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The buffer of layout.py."""
        return self._buffer

    def attach(self, tile: HasCores) -> None:
        """Let the tile run in timed mode from now on.

        Raises:
            ConfigurationError: the tile is being recorded, or keeps the order of the official simulator.
        """
        cores = tile.cores
        if cores.observer is not None:
            raise ConfigurationError(
                "the tile is observed already, by a recorder or by timed mode",
                remedy="record and time in separate runs",
            )
        if int(cores.record.simulator_order):
            raise ConfigurationError(
                "the tile executes words in the order of the official simulator, which has no time",
                remedy="use timed mode with bhemu's own order",
            )
        self._entry = timed_entry()
        self._buffer[ENTRY] = self._entry.address
        if not JIT:
            PLAIN_OBSERVERS[self.log_address] = self
        cores.observe(self)

    def advance(self, target: Any, table: Table, how: Int) -> int:
        """Advance the tile as `bhemu.tile.schedule.advance_tile_entry` does, in timed mode."""
        assert self._entry is not None
        self._buffer[HOW] = how
        return int(self._entry.call(target, table, self.log_address if JIT else self._buffer))

    def restart(self) -> None:
        """The tile has been reset or put into another state: nothing is in progress in its pipelines and units."""
        entry = self._buffer[ENTRY]
        self._buffer[:] = new_tile_time()
        self._buffer[ENTRY] = entry

    def take_away(self) -> None:
        """The buffer never fills."""

    def report(self) -> TimedReport:
        """What the cycles so far were made of."""
        buffer = self._buffer
        units = {name: int(buffer[at.UNIT_CYCLES + number]) for number, name in enumerate(at.UNIT_NAMES)}
        places = (at.BUSY_CYCLES, at.GUESSED_CYCLES, at.CORE_CYCLES, at.CORE_GUESSED)
        busy, guessed, core_busy, core_guessed = (int(buffer[place]) for place in places)
        return TimedReport(busy, guessed, core_busy, core_guessed, units)
