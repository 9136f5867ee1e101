"""A tile with compiled programs on its cores: load ELF files, start the cores, run to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.errors import BhemuError, CycleLimit, Deadlock, ProgramError
from bhemu.host import boot
from bhemu.host.elf import Executable, load_elf
from bhemu.host.loaded import Loaded
from bhemu.host.semihosting import Semihosting
from bhemu.host.stuck import can_move, explain_all, is_stuck, pc_of, waiting_threads
from bhemu.host.summary import CoreSummary, MachineResult, summarize
from bhemu.host.tile import Tile
from bhemu.machine.agents import CORE_NAMES, CORES, B
from bhemu.machine.core_state import ASLEEP, BLOCKED, HALTED, IN_RESET, LOCAL_RAM_SIZE
from bhemu.machine.dispatch import RUN_CORE
from bhemu.machine.state import L1_SIZE
from bhemu.tensix.coprocessor import ensure_place
from bhemu.tile.cores import CODE

Array = np.ndarray[Any, Any]

DEFAULT_CLOCKS: Final = 10_000_000
CHUNK: Final = 1 << 14
"""Clocks between two looks at whether anything can still move."""
POLLED_CHUNK: Final = 32
LONGEST_POLLED_CHUNK: Final = 4096
"""The same when the host waits for a condition or serves `ecall`: 1/64 of the clocks so far, between these limits."""
SP: Final = 2
LOADS_AND_STORES: Final = (0x03, 0x23)


class Machine:
    """A tile whose cores run ELF files.

    Example:
        machine = bhemu.Machine()
        machine.load("brisc.elf", "B")
        machine.load("math.elf", "T1")
        machine.tile.write_tensor(0x21000, operand, "bf16")
        machine.start()
        print(machine.run().clocks, machine.tile.read_tensor(0x22000, (32, 32), "bf16"))

    Attributes:
        tile: memory and registers.
    """

    def __init__(self, tile: Tile | None = None, *, allow_open: bool = False) -> None:
        """
        Args:
            tile: whose cores to use, all of them in reset; by default a new one.
            allow_open: of a new tile: use the recommended choice where no source settles what silicon does.
        """
        self.tile = Tile(allow_open=allow_open) if tile is None else tile
        self._loaded = Loaded()
        self._interrupted = False
        self.tile.cores.describe = self._loaded.describe
        self.tile.cores.pusher = self._loaded.pusher

    # --- loading and starting -------------------------------------------------------------------------------------

    def load(self, program: Executable | str | Path, core: str | None = None) -> str:
        """Put a program into memory for a core, in place of an earlier program of that core; the core is held in reset.

        Args:
            program: an ELF file.
            core: B, T0, T1, T2 or NC; None takes the core that the file is for: see `guess_core`.

        Returns:
            The name of the core.

        Raises:
            ProgramError: the file cannot be run.
            MemoryError_: it does not fit into memory, or overlaps the program of another core.
        """
        executable = program if isinstance(program, Executable) else load_elf(program)
        number = boot.guess_core(executable) if core is None else boot.core_number(core)
        placement = boot.place(executable, number)
        others = [known for known in self._loaded.placements if known.core != number]
        boot.check_apart(placement, others)
        boot.check_jump([*others, placement])
        self.hold(CORE_NAMES[number])
        boot.write_program(placement, self.tile.l1, self.tile.cores[number].local_ram)
        self._loaded.placements = [*others, placement]
        return CORE_NAMES[number]

    @property
    def programs(self) -> dict[str, Executable]:
        """Loaded programs by core."""
        return {CORE_NAMES[placement.core]: placement.executable for placement in self._loaded.placements}

    @property
    def executables(self) -> list[tuple[str, Executable]]:
        """(core, program) of all programs whose names are known, the latest first; a core may have several."""
        return [(CORE_NAMES[known.core], known.executable) for known in reversed(self._loaded.placements)]

    def hold(self, *cores: str) -> None:
        """Put cores into reset; without names, all of them."""
        bits = boot.reset_bits([boot.core_number(name) for name in cores]) if cores else boot.ALL_HELD
        word = self.tile.cores.load(boot.SOFT_RESET)
        if word | bits != word:
            self.tile.cores.store(boot.SOFT_RESET, word | bits)

    def start(self, *cores: str) -> None:
        """Release cores from reset, all in the same clock; without names, all that have a program.

        Raises:
            ProgramError: a core has no program.
        """
        tile = self.tile.cores
        placements = {placement.core: placement for placement in self._loaded.placements}
        numbers = [boot.core_number(name) for name in cores] or sorted(placements)
        if not numbers:
            raise ProgramError("no core has a program", remedy="load one: machine.load('kernel.elf')")
        keep = tile.load(boot.DISABLE_RESET)
        for number in numbers:
            if number not in placements:
                raise ProgramError(
                    f"core {CORE_NAMES[number]} has no program",
                    remedy=f"load one: machine.load('kernel.elf', '{CORE_NAMES[number]}')",
                )
            placement = placements[number]
            entry = placement.executable.entry
            if number == B and entry != 0:
                self._write_l1(0, boot.jump_to(entry))
            override = tile.load(boot.RESET_OVERRIDE_T)
            for address, value in boot.start_pc_registers(number, entry, override):
                tile.store(address, value)
            keep &= ~boot.keep_bit(number)
            if placement.keeps_local_ram:
                keep |= boot.keep_bit(number)
        if keep != tile.load(boot.DISABLE_RESET):
            tile.store(boot.DISABLE_RESET, keep)
        ensure_place(RUN_CORE)
        tile.store(boot.SOFT_RESET, tile.load(boot.SOFT_RESET) & ~boot.reset_bits(numbers))

    def _write_l1(self, address: int, content: bytes) -> None:
        self.tile.l1[address : address + len(content)] = memoryview(content)

    # --- names ----------------------------------------------------------------------------------------------------

    def add_symbols(self, executable: Executable, core: str) -> None:
        """Name the code of a core by a file that was loaded by other means, without loading it."""
        self._loaded.placements.append(boot.Placement(boot.core_number(core), executable, ()))

    def executable_at(self, core: int, pc: int) -> Executable | None:
        """The program of a core that has code at a pc; of several the one that was loaded last."""
        return self._loaded.holding(core, pc)

    def describe(self, core: int, pc: int) -> str:
        """A pc for a message: `0x00010 main+0x8 (kernel.c:12)`, or as much of it as is known."""
        return self._loaded.describe(core, pc)

    def address_of(self, name: str) -> int:
        """The address of a symbol of the loaded programs, by `name` or by `core.name`.

        Raises:
            ProgramError: no program has it, or several have it at different addresses.
        """
        return self._loaded.address_of(name)

    def owner_of(self, name: str) -> str | None:
        """The core whose program alone has a symbol, given as `name` or `core.name`; None when there is none such."""
        return self._loaded.owner_of(name)

    def check_data(self, address: int, size: int, what: str) -> None:
        """Refuse a write to L1 that would overwrite code.

        Raises:
            MemoryError_: it would; `what` begins the message.
        """
        self._loaded.check_data(address, size, what)

    # --- running --------------------------------------------------------------------------------------------------

    @property
    def clocks(self) -> int:
        """Clocks of the tile since it was made; while a core stands at a breakpoint, those of that core."""
        record = self.tile.record
        if self._interrupted:
            return int(record.core_round[record.stopped_core]) - int(record.free_rounds)
        return int(record.clock)

    def run(
        self,
        *,
        max_clocks: int = DEFAULT_CLOCKS,
        until: str | int | Callable[[], bool] | None = None,
        semihosting: Semihosting | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> MachineResult:
        """Let the started cores run until all are done, or until a condition is true.

        A core is done when it has halted (ebreak) or goes round in a loop that reads nothing, such as `j .`.

        Args:
            max_clocks: give up after so many clocks of the tile.
            until: end the run when any core reaches this symbol (`main` or `T1.main`) or address; or when the function,
                which is called every 32 clocks, in long runs every 4,096, returns True.
            semihosting: serves `ecall` of core B.
            progress: called now and then with the clocks that have passed.

        Raises:
            BhemuError: an instruction was refused: category, core, pc, symbol and line say which.
            Deadlock: nobody can move, and somebody waits.
            CycleLimit: not done within `max_clocks`.
        """
        record = self.tile.record
        condition = until if callable(until) else None
        places = [] if until is None or callable(until) else [self._instruction(until)]
        if not self._out_of_reset():
            raise ProgramError("no core is out of reset", remedy="call machine.start() first")
        polled = condition is not None or semihosting is not None
        start, limit = self.clocks, self.clocks + max_clocks
        ended = self.clocks
        try:
            with self._breakpoints(places):
                while True:
                    if condition is not None and condition():
                        return self._result("until", self.clocks - start, semihosting)
                    if self.clocks >= limit:
                        raise self._limit(max_clocks)
                    chunk = CHUNK
                    if polled:
                        chunk = min(max(self.clocks - start >> 6, POLLED_CHUNK), LONGEST_POLLED_CHUNK)
                    before = self._accounts()
                    if self._advance(min(chunk, limit - self.clocks), places):
                        return self._result("until", self.clocks - start, semihosting)
                    if progress is not None:
                        progress(self.clocks - start)
                    if before != self._accounts():
                        ended = self._last_move()
                    if semihosting is not None:
                        if self._serve(semihosting):
                            self.tile.cores[B].resume()
                            continue
                        if semihosting.status is not None:
                            return self._result("exit", self.clocks - start, semihosting)
                    if not can_move(record):
                        if condition is not None and condition():
                            return self._result("until", self.clocks - start, semihosting)
                        self._check_not_stuck(ended - start)
                        return self._result("done", ended - start, semihosting)
        except BhemuError as error:
            self._locate(error)
            raise

    def _out_of_reset(self) -> list[int]:
        return [core for core in range(CORES) if self.tile.record.core_state[core] != IN_RESET]

    def _instruction(self, where: str | int) -> int:
        address = self.address_of(where) if isinstance(where, str) else where
        if address % 4 or not 0 <= address < L1_SIZE:
            raise ProgramError(
                f"{where if isinstance(where, str) else ''} {address:#x} is no instruction in L1".strip(),
                remedy="name a function, or a multiple of 4 below 0x180000",
            )
        return address

    @contextmanager
    def _breakpoints(self, places: list[int]) -> Iterator[None]:
        """Cores stop before they execute the instructions at these addresses."""
        code = CODE[0]
        saved = int(code.breakpoint_count)
        for number, place in enumerate(places, saved):
            code.breakpoint[number] = place >> 2
            code.word[place >> 2, 0] = 0
        code.breakpoint_count = saved + len(places)
        try:
            yield
        finally:
            code.breakpoint_count = saved
            for place in places:
                code.word[place >> 2, 0] = 0

    def _advance(self, clocks: int, places: list[int]) -> bool:
        """Let clocks pass; True when a core stands at one of the places."""
        cores, record = self.tile.cores, self.tile.record
        if self._interrupted:  # a run ended at a breakpoint: its last clocks are not over
            self._interrupted = False
            record.core_skip_breakpoint[record.stopped_core] = 1
            clocks = 0
        stopped = cores.advance(clocks)
        while stopped is not None:
            if int(record.core_pc[stopped]) in places:
                self._interrupted = True
                return True
            record.core_skip_breakpoint[stopped] = 1
            stopped = cores.advance(0)
        return False

    def _serve(self, semihosting: Semihosting) -> bool:
        try:
            return semihosting.serve(self.tile.record)
        except BhemuError as error:
            raise self.tile.cores.located(error, B, pc_of(self.tile.record, B)) from None

    def _accounts(self) -> tuple[int, int]:
        """What changes when anybody moves."""
        record = self.tile.record
        return int(record.core_retired.sum()), int(record.issued.sum())

    def _last_move(self) -> int:
        """The clock in which the last agent moved, once nobody can move any more."""
        record = self.tile.record
        moment = int(record.tensix_round)
        for core in self._out_of_reset():
            state = record.core_state[core]
            if state == ASLEEP:
                moment = max(moment, int(record.poll_since[core]))
            elif state == HALTED:
                moment = max(moment, int(record.core_round[core]) + 1)
            elif state == BLOCKED:
                moment = max(moment, int(record.core_round[core]))
        return min(moment, int(record.round_goal)) - int(record.free_rounds)

    def _check_not_stuck(self, clocks: int) -> None:
        record = self.tile.record
        stuck = [core for core in self._out_of_reset() if is_stuck(record, core)]
        if not stuck and not waiting_threads(record):
            return
        calls = [core for core in stuck if record.core_state[core] == HALTED]
        if calls:
            remedy = "run with semihosting, which serves core B; ebreak ends a program without it"
        elif stuck:
            remedy = "let somebody write what is waited for; a wait for the host ends with `until`"
        else:
            remedy = "let another thread do what is waited for, or reset the coprocessor's state first"
        raise Deadlock(f"nothing can move after {clocks:,} clocks\n{self.explain()}", remedy=remedy)

    def explain(self) -> str:
        """Who does what or waits for what: a line for each core out of reset and each thread that holds words."""
        return explain_all(self.tile.record, self.describe, self._loaded.name_of_word, self._loaded.pusher)

    def _limit(self, clocks: int) -> CycleLimit:
        return CycleLimit(
            f"not done after {clocks:,} clocks\n{self.explain()}",
            remedy="allow more with max_clocks (--max-clocks), end the program with ebreak or `j .`, "
            "or say what to wait for (--until, --until-word)",
        )

    def _locate(self, error: BhemuError) -> None:
        """Add the source line of the core's instruction at fault, and the cause where it is the stack pointer."""
        if error.core is None or error.pc is None or error.file is not None:
            return
        word, sp = self._word_at(error.pc), int(self.tile.record.core_x[error.core, SP])
        if word & 0x7F in LOADS_AND_STORES and word >> 15 & 31 == SP and not boot.is_memory(error.core, sp):
            error.remedy = (
                f"sp is {sp:#010x}, in no memory: let the start-up code set it, for example to the end of local RAM, "
                f"{boot.LOCAL_RAM + LOCAL_RAM_SIZE[error.core]:#010x}; {boot.memories(error.core)}"
            )
        executable = self._loaded.holding(error.core, error.pc)
        line = executable.line_at(error.pc) if executable is not None else None
        if line is not None:
            error.file, error.line = Path(line.file), line.line

    def _word_at(self, pc: int) -> int:
        return int(self.tile.record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0

    # --- what it did ----------------------------------------------------------------------------------------------

    def _result(self, reason: str, clocks: int, semihosting: Semihosting | None) -> MachineResult:
        status = semihosting.status if semihosting is not None else None
        return MachineResult(reason, clocks, status, self.summary())

    def summary(self) -> tuple[CoreSummary, ...]:
        """The cores out of reset as they stand."""
        return tuple(summarize(self.tile, self._loaded, core) for core in self._out_of_reset())
