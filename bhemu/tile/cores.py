"""The cores of a tile as the host sees them: clocks in, exceptions out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.errors import BhemuError, UndefinedBehavior
from bhemu.isa.riscv import disassemble_riscv
from bhemu.machine.agents import CORE_NAMES, CORES, NOC, B
from bhemu.machine.compiler import JIT
from bhemu.machine.core_state import ASLEEP, BLOCKED, HALT_DEBUGGER, HALTED, IN_RESET, LOCAL_RAM_SIZE, RUNNING
from bhemu.machine.dispatch import (
    ADVANCE_TILE,
    CODE_CACHE,
    DEVICE_LOAD,
    DEVICE_STORE,
    NOC_START,
    NOT_COMPILED,
    RUN_CORE,
    RUN_TURNS,
    SLOW_CORE,
    VECTOR_CORE,
)
from bhemu.machine.ethernet_state import core_names
from bhemu.machine.faults import DONE, REFUSED, REQUEST_PENDING, WAIT
from bhemu.machine.noc_state import ENDED
from bhemu.machine.origin import pc_of_line
from bhemu.machine.state import L1_SIZE
from bhemu.riscv.decode import new_code_cache
from bhemu.riscv.execute import run_core_entry
from bhemu.riscv.slow import slow_core_entry
from bhemu.riscv.translator import Patience
from bhemu.riscv_vector.execute import execute_vector_entry
from bhemu.tensix.coprocessor import Coprocessor, ensure_place, entry_of, provide, set_value
from bhemu.tensix.frontend.run import OBSERVER_FULL
from bhemu.tile import schedule, turn_ends
from bhemu.tile.memory_map import device_load_entry, device_store_entry
from bhemu.tile.noc.transfer import start
from bhemu.tile.observer import Observer
from bhemu.tile.turns import run_turns_entry

Array = np.ndarray[Any, Any]

CODE: Final = new_code_cache()
"""The code cache of this process."""


class _Moving:
    """In its context compiled code uses that cache: of two Python threads that let cores execute, one waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._patience = Patience()
        self.context: Any = self
        """What to enter. The lock alone, as soon as it is known whether code is translated: it is entered often."""

    @property
    def translates(self) -> bool:
        """The code of the cores is translated, where that can be done (riscv/translator.py)."""
        return self._patience.is_over

    def __enter__(self) -> None:
        self._patience.begin(CODE)
        if self._patience.is_over:
            self.context = self._lock
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._patience.end()
        self._lock.release()


MOVING: Final = _Moving()

provide(RUN_CORE, "run_core", run_core_entry)
provide(SLOW_CORE, "slow_core", slow_core_entry)
provide(VECTOR_CORE, "vector_core", execute_vector_entry)
provide(DEVICE_LOAD, "device_load", device_load_entry)
provide(DEVICE_STORE, "device_store", device_store_entry)
provide(RUN_TURNS, "run_turns", run_turns_entry)
provide(ADVANCE_TILE, "advance_tile", schedule.advance_tile_entry)
provide(NOC_START, "noc_start", start)
set_value(CODE_CACHE, CODE.ctypes.data if JIT else CODE[0])


def ensure_entries() -> None:
    """Compile the entries that advance tiles, or fetch them from the cache: for `bhemu warm`."""
    entry_of("settle_cores", schedule.settle_cores_entry, 2)


STATES: Final = {
    IN_RESET: "in reset",
    RUNNING: "running",
    BLOCKED: "blocked",
    ASLEEP: "polling",
    HALTED: "halted",
}
HALT_REASONS: Final = {0: "", 1: "ebreak", 2: "ecall", 3: "debugger", 4: "refused"}


class CoreView:
    """One core's registers; what is written takes effect with the next instruction."""

    def __init__(self, cores: Cores, number: int) -> None:
        self._cores = cores
        self._record = cores.record
        self.number = number
        self.name = core_names(cores.record)[number]

    @property
    def state(self) -> str:
        """`in reset`, `running`, `blocked` (waits for an access), `polling` or `halted`."""
        return STATES[int(self._record.core_state[self.number])]

    @property
    def halt_reason(self) -> str:
        """Why it is halted: `ebreak`, `ecall`, `debugger`, `refused`; empty otherwise."""
        return HALT_REASONS[int(self._record.core_halt_reason[self.number])]

    @property
    def pc(self) -> int:
        """Address of the instruction that the core executes next."""
        self._cores.settle()
        return int(self._record.core_pc[self.number])

    @pc.setter
    def pc(self, value: int) -> None:
        address = checks.integer(value, "pc", 0, 0xFFFFFFFF)
        self._cores.settle()
        self._record.core_pc[self.number] = address
        self._record.core_request[self.number] = 0

    @property
    def x(self) -> Array:
        """uint32 [32]: integer registers, writable (x0 stays 0 unless it is written here)."""
        self._cores.settle()
        return self._record["core_x"][self.number, :32]  # type: ignore[no-any-return]

    @property
    def f(self) -> Array:
        """uint32 [32]: floating-point registers as bits, writable."""
        return self._record["core_f"][self.number]  # type: ignore[no-any-return]

    @property
    def local_ram(self) -> Array:
        """uint8 [8192 or 4096]: the core's local RAM, which it sees at 0xffb00000; writable."""
        return self._record["core_ram"][self.number, : LOCAL_RAM_SIZE[self.number]]  # type: ignore[no-any-return]

    @property
    def retired(self) -> int:
        """Instructions executed."""
        self._cores.settle()
        return int(self._record.core_retired[self.number])

    def halt(self) -> None:
        """Stop the core as a debugger does; nothing else stops."""
        self._cores.settle()
        if self._record.core_state[self.number] in (RUNNING, BLOCKED):
            self._record.core_state[self.number] = HALTED
            self._record.core_halt_reason[self.number] = HALT_DEBUGGER

    def resume(self) -> None:
        """Resume a halted core at the instruction at pc."""
        record = self._record
        if record.core_state[self.number] == HALTED:
            record.core_state[self.number] = RUNNING
            record.core_halt_reason[self.number] = 0
            record.core_round[self.number] = record.round_goal
            if self.number < len(record.debug_cause):  # core NC has no debug interface (K42)
                record.debug_cause[self.number] = 0

    def __repr__(self) -> str:
        return f"<core {self.name}: {self.state}, pc {self._cores.describe(self.number, self.pc)}>"


class Cores:
    """Drives the five cores of a Tensix tile, and with them its coprocessor; or the two of an Ethernet tile.

    Args:
        coprocessor: of the same tile.
    """

    def __init__(self, coprocessor: Coprocessor) -> None:
        self._coprocessor = coprocessor
        self.record: Any = coprocessor.record
        self.describe: Callable[[int, int], str] = lambda core, pc: f"{pc:#07x}"
        """Names a core's pc in messages, as a symbol and a source line; the loader replaces it."""
        self.pusher: Callable[[int, int], int] = self._likely_pusher
        """Which core pushed a word to a thread from a pc, the thread's own or B; the loader replaces it."""
        self.observer: Observer | None = None
        """The observer of everything that the tile executes; `observe` sets it."""
        self._observed: Callable[[Observer | None], None] = lambda observer: None
        self._run: Callable[[int], int] | None = None
        """What advances the tile without an observer; None: not yet known."""

    @property
    def coprocessor(self) -> Coprocessor:
        """Of the same tile."""
        return self._coprocessor

    def __getitem__(self, core: str | int) -> CoreView:
        """A core by name (`B`, `T0`, `T1`, `T2`, `NC`; of an Ethernet tile `ERISC0`, `ERISC1`) or number."""
        names = core_names(self.record)
        if isinstance(core, str):
            numbers = {name: number for number, name in names.items()}
            if core not in numbers:
                raise UndefinedBehavior(f"core {core!r} does not exist", remedy=f"use one of {', '.join(numbers)}")
            core = numbers[core]
        number = checks.integer(core, "core", 0, CORES - 1)
        if number not in names:
            raise UndefinedBehavior(f"core {number} does not exist", remedy=f"use one of {', '.join(names.values())}")
        return CoreView(self, number)

    def advance(self, clocks: int) -> int | None:
        """Advance the tile by `clocks` clocks; returns the number of a core that is at a breakpoint, or None.

        Call with 0 to continue after a breakpoint with the remaining clocks.

        Raises:
            BhemuError: an instruction of a core or of the coprocessor was refused. A core at fault is halted.
        """
        return self._advance(-max(clocks, 0), schedule.GO_ON)

    def advance_round(self, begin: bool) -> int | None:
        """Let one round pass, for debuggers; see `advance`.

        A round in which the coprocessor executes something takes no time: `record.round_goal` then grows by one more
        than `begin`. The next round belongs to the same clock and is not begun, and `advance(0)` would complete that
        clock.

        Args:
            begin: the clock before is complete.
        """
        return self._advance(schedule.BEGIN_ROUND if begin else schedule.GO_ON_ROUND, schedule.GO_ON_ROUND)

    def _advance(self, how: int, go_on: int) -> int | None:
        coprocessor = self._coprocessor
        if self._run is None:
            ensure_place(ADVANCE_TILE)
            self._run = coprocessor.call_of(ADVANCE_TILE)
        while True:
            with MOVING.context:
                if self.observer is None:
                    status = self._run(how)
                else:
                    status = self.observer.advance(coprocessor.target, coprocessor.table, how)
            how = go_on
            if status == turn_ends.ADVANCED:
                return None
            if self.serve(status) == turn_ends.AT_BREAKPOINT:
                return int(self.record.stopped_core)

    def observe(self, observer: Observer | None) -> None:
        """From now on an observer records what the tile executes; None: no observer."""
        self.observer = observer
        self._observed(observer)

    def serve(self, status: int) -> int:
        """Do what compiled code has stopped for, with a status of `bhemu.tile.turn_ends`; returns the status.

        Raises:
            BhemuError: it has stopped because an instruction was refused.
        """
        coprocessor = self._coprocessor
        if status in (turn_ends.NEEDS_HANDLER, turn_ends.NOC_REQUEST):
            try:
                coprocessor.supply()
            except BhemuError as error:
                raise self._pushed(error) from None
        elif status == OBSERVER_FULL:
            assert self.observer is not None
            self.observer.take_away()
        elif status == turn_ends.CORE_FAULTED:
            raise self._fault()
        elif status == turn_ends.TENSIX_FAULTED:
            raise self._pushed(coprocessor.fault())
        return status

    @property
    def table(self) -> Any:
        """The table of handlers, as entries take it."""
        return self._coprocessor.table

    def connect(self, carry_out: Callable[[int], None], observed: Callable[[Observer | None], None]) -> None:
        """Put a chip around the tile: NoC requests that another node takes part in are no longer refused.

        Args:
            carry_out: carries out a request of the tile, by its number (machine/noc_state.py), and sets its `status`
                and `responses`. WAIT: nothing was changed; the core tries again. BhemuError: the core's instruction is
                refused.
            observed: called with the observer that `observe` sets.
        """
        self.record.noc_connected = 1
        self._observed = observed
        self._coprocessor.carry_out = partial(self._carry_out, carry_out)

    def _carry_out(self, carry_out: Callable[[int], None]) -> None:
        """Have the pending request carried out."""
        number = int(self.record.noc_pending) - 1
        self.record.noc_pending = 0
        request = self.record.noc_request[number]
        try:
            carry_out(number)
        except BhemuError as error:
            self._coprocessor.refusal = error
            request.status = REFUSED
        request.state = ENDED

    def settle(self) -> None:
        """Bring registers and pc of sleeping cores up to date, before they are read."""
        if self.record.sleepers:
            entry_of("settle_cores", schedule.settle_cores_entry, 2).call(
                self._coprocessor.target, self._coprocessor.table, 0
            )

    def load(self, address: int, agent: int = NOC, size: int = 4) -> int:
        """Load from the memory map as an agent of `bhemu.machine.agents`, between two clocks.

        Raises:
            BhemuError: the access was refused, or has to wait.
        """
        record = self.record
        if address < L1_SIZE:
            return int.from_bytes(record.l1[address : address + size].tobytes(), "little")
        self._access(DEVICE_LOAD, agent, address, size)
        return int(record.device_value)

    def store(self, address: int, value: int, agent: int = NOC, size: int = 4) -> None:
        """Store to the memory map; see `load`."""
        record = self.record
        if address < L1_SIZE:
            record.l1[address : address + size] = np.frombuffer(value.to_bytes(size, "little"), np.uint8)
            return
        record.device_value = value
        self._access(DEVICE_STORE, agent, address, size)

    def attempt(self, place: int, agent: int, address: int, size: int = 4, *, now: bool = True) -> int:
        """Make an access to a register; returns DONE or WAIT. A store takes `record.device_value`, a load leaves it.

        Args:
            place: DEVICE_LOAD or DEVICE_STORE.
            now: between two clocks; otherwise in the turn that is in progress.

        Raises:
            BhemuError: the access was refused.
        """
        record = self.record
        if now:
            record.now_round = record.round_goal
            record.now_agent = -1
        ensure_place(place)
        value = int(record.device_value)
        while True:
            record.device_size = size
            record.device_value = value
            status = self._coprocessor.call_place(place, agent, address)
            if status not in (NOT_COMPILED, REQUEST_PENDING):
                break
            self._coprocessor.supply()  # then the access is made again
        if status not in (DONE, WAIT):
            raise self._coprocessor.recorded()
        return status

    def _access(self, place: int, agent: int, address: int, size: int) -> None:
        if address % size:
            raise UndefinedBehavior(
                f"an access of {size} bytes at {address:#x} is not aligned", remedy="align the address"
            )
        if self.attempt(place, agent, address, size) == WAIT:
            raise UndefinedBehavior(
                f"the access to {address:#x} would block; host accesses cannot block",
                remedy="let the tile's clock run first",
            )

    def _fault(self) -> BhemuError:
        """The exception for a core's refused instruction."""
        record = self.record
        core = int(record.fault_core) - 1
        pc = int(record.fault_pc)
        record.fault_core = 0
        error = self._coprocessor.recorded()
        return self.located(error, core, pc)

    def _likely_pusher(self, thread: int, pc: int) -> int:
        """The thread's own core, unless that is held in reset."""
        own = thread + 1
        return B if self.record.core_state[own] == IN_RESET else own

    def _pushed(self, error: BhemuError) -> BhemuError:
        """The error of a Tensix word, with the core and the pc that pushed it instead of the program's line."""
        pc = pc_of_line(error.line or 0)
        if pc is not None:
            error.line = None
            core = self.pusher(int(error.thread or 0), pc)
            error.core, error.pc = core, pc
            error.message += f"\n  pushed by core {CORE_NAMES[core]} at {self.describe(core, pc)}"
        return error

    def located(self, error: BhemuError, core: int, pc: int) -> BhemuError:
        """The same error with core, pc, symbol, line and instruction in front."""
        word = int(self.record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0
        text = disassemble_riscv(word, pc) if pc < L1_SIZE else "no instruction"
        error.core, error.pc = core, pc
        name = core_names(self.record)[core]
        error.message = f"core {name} at {self.describe(core, pc)}: {text}: {error.message}"
        return error
