"""Where every agent of a tile is, also inside of a clock; cores are read without waking them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.api.tile import Tile
from bhemu.debugger.debugged_tile import DebuggedTile
from bhemu.debugger.history import History
from bhemu.machine.agents import CORES
from bhemu.machine.core_state import ASLEEP, BLOCKED, HALTED, RUNNING
from bhemu.riscv.teams import NO_ATTEMPT

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CoreState:
    """What a core shows, read without disturbing it.

    Attributes:
        pc: address of the next instruction.
        x: uint32 [32], a copy.
        retired: instructions executed.
    """

    pc: int
    x: Array
    retired: int


class StoppedTile:
    """A tile that may be stopped inside of a clock; the base of a runner."""

    history: History
    """Is told of what the user changes."""

    def __init__(self, tile: Tile | DebuggedTile) -> None:
        self.tile = tile
        self.record: Any = tile.record
        self._inside: tuple[int, int] | None = self._inside_of_a_clock()
        """(round, agent whose turn it is) where the tile is stopped inside of a clock; None between two clocks."""
        self._reported: dict[int, int] = {}
        """Cores stopped at a breakpoint which was reported, and its address."""

    def _inside_of_a_clock(self) -> tuple[int, int] | None:
        """Where the tile is stopped if another caller has let it run to a breakpoint or a refusal."""
        record = self.record
        goal = int(record.round_goal)
        late = [
            (int(record.core_round[core]), core)
            for core in range(CORES)
            if record.core_state[core] == RUNNING and record.core_round[core] < goal
        ]
        if record.tensix_state == RUNNING and record.tensix_round < goal:
            late.append((int(record.tensix_round), CORES))
        if not late:
            return None
        # The rest of that run is given up; an agent that has run ahead waits until the others have caught up.
        record.round_goal = min(late)[0] + 1
        return min(late)

    # --- what is where ----------------------------------------------------------------------------------------------

    def next_round(self, core: int) -> int:
        """The round in which a core has its next turn."""
        if self._inside is None:
            return int(self.record.round_goal)
        current, agent = self._inside
        return current + (1 if core < agent else 0)

    @property
    def clock(self) -> int:
        """Clocks of the tile that have passed completely."""
        record = self.record
        if self._inside is None:
            return int(record.clock)
        return self._inside[0] - int(record.free_rounds)

    def state(self, core: int) -> CoreState:
        """pc, registers and retired instructions of a core; a polling core goes on sleeping."""
        record = self.record
        if record.core_state[core] == ASLEEP:
            passed = max(0, self.next_round(core) - int(record.poll_since[core]))
            step = passed % int(record.poll_length[core])
            x = record.poll_x[core].copy()
            for done in range(step):
                x[record.poll_register[core, done]] = record.poll_value[core, done]
            return CoreState(
                int(record.poll_pc[core, step]),
                x[:32],
                int(record.core_retired[core]) + passed,
            )
        return CoreState(int(record.core_pc[core]), record.core_x[core, :32].copy(), int(record.core_retired[core]))

    def wake(self, core: int) -> None:
        """Let a polling core run from its present state; its program does not notice."""
        record = self.record
        if record.core_state[core] != ASLEEP:
            return
        now = self.state(core)
        record.core_pc[core] = now.pc
        record.core_x[core, :32] = now.x
        record.core_retired[core] = now.retired
        record.core_round[core] = max(self.next_round(core), int(record.poll_since[core]))
        record.core_loops[core] = 0
        record.core_state[core] = RUNNING
        record.sleepers = int((record.core_state == ASLEEP).sum())

    def set_pc(self, core: int, pc: int) -> None:
        """Let a core go on elsewhere."""
        self.history.changed()
        self.wake(core)
        self._give_up_waiting(core)
        self._reported.pop(core, None)
        self.record.core_skip_breakpoint[core] = 0
        self.record.core_pc[core] = pc

    def set_register(self, core: int, register: int, value: int) -> None:
        """Write one of x1 to x31; the next instruction sees it."""
        self.history.changed()
        self.wake(core)
        self._give_up_waiting(core)
        if register:
            self.record.core_x[core, register] = value

    def _give_up_waiting(self, core: int) -> None:
        """A core whose registers were changed retries its instruction; the loop that it was in need not be followed."""
        record = self.record
        record.poll_steps[core] = NO_ATTEMPT
        if record.core_state[core] == BLOCKED:
            record.core_state[core] = RUNNING
            record.core_round[core] = max(int(record.core_round[core]), self.next_round(core))

    def resume(self, core: int) -> None:
        """Let a halted core go on with the instruction at its pc."""
        self.history.changed()
        if self.record.core_state[core] == HALTED:
            self.tile.cores[core].resume()
            self.record.core_round[core] = self.next_round(core)
