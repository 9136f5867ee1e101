"""The result of a run of compiled programs, core by core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bhemu.api.blocked import is_idle_for_ever, pc_of
from bhemu.loader.boot import LOCAL_RAM
from bhemu.loader.loaded import Loaded
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.core_state import HALTED
from bhemu.tile.cores import HALT_REASONS, STATES, Cores

EXIT_CODE: Final = "__bhemu_exit_code"
HALT: Final = "__bhemu_halt"
"""Symbols of the start-up code of `bhemu cc`: what main returned, and the ebreak after it."""


@dataclass(frozen=True)
class CoreSummary:
    """A core at the end of a run.

    Attributes:
        name: B, T0, T1, T2 or NC.
        state: `halted`, `idle` (in an endless loop), `polling`, `blocked` or `running`.
        why: of a halted core: `ebreak`, `ecall`, `debugger` or `refused`; else empty.
        pc: address of its next instruction; of a core halted by ebreak or ecall, that instruction's.
        place: the same as symbol and source line.
        retired: instructions that it has executed since the machine was made.
        exit_code: what `main` of a program built by `bhemu cc` has returned, None before that.
    """

    name: str
    state: str
    why: str
    pc: int
    place: str
    retired: int
    exit_code: int | None


@dataclass(frozen=True)
class MachineResult:
    """How a run ended.

    Attributes:
        reason: `done` (all cores halted or idle forever), `until` (the condition came true) or `exit` (semihosting).
        clocks: of the tile that the run took.
        status: exit status of a program that called `exit` through semihosting, else None.
        cores: those out of reset.
    """

    reason: str
    clocks: int
    status: int | None
    cores: tuple[CoreSummary, ...]

    def _repr_html_(self) -> str:
        from bhemu.api.html import cores_html

        return cores_html(f"{self.reason} after {self.clocks:,} clocks", self.cores)


def summarize(cores: Cores, loaded: Loaded, core: int) -> CoreSummary:
    """The state of a core after a run.

    Args:
        cores: of its tile.
        loaded: the programs of the tile.
        core: its number.
    """
    record = cores.record
    state, pc = int(record.core_state[core]), pc_of(record, core)
    halted = state == HALTED
    return CoreSummary(
        CORE_NAMES[core],
        "idle" if is_idle_for_ever(record, core) else STATES[state],
        HALT_REASONS[int(record.core_halt_reason[core])] if halted else "",
        pc,
        loaded.describe(core, pc),
        int(record.core_retired[core]),
        _exit_code(cores, loaded, core, pc) if halted else None,
    )


def _exit_code(cores: Cores, loaded: Loaded, core: int, pc: int) -> int | None:
    """What main has returned, of a core that is at the end of the start-up code."""
    executable = loaded.holding(core, pc)
    if executable is None or executable.address_of(HALT) != pc:
        return None
    address = executable.address_of(EXIT_CODE)
    if address is None:
        return None
    memory, at = (cores.record.l1, address) if address < LOCAL_RAM else (cores[core].local_ram, address - LOCAL_RAM)
    return int.from_bytes(memory[at : at + 4].tobytes(), "little", signed=True)
