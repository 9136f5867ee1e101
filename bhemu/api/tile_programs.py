"""The programs of a tile's cores: load ELF files, start the cores, say where they are and what they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bhemu.api.ahead import Ahead
from bhemu.api.blocked import explain_all, is_stuck, waiting_threads
from bhemu.api.summary import CoreSummary, summarize
from bhemu.api.tile_view import TileView
from bhemu.checks import checked
from bhemu.errors import BhemuError, ProgramError
from bhemu.loader import boot
from bhemu.loader.elf import Executable, load_elf
from bhemu.loader.loaded import Loaded
from bhemu.machine.agents import CORE_NAMES, CORES, B
from bhemu.machine.core_state import ASLEEP, BLOCKED, HALTED, IN_RESET, LOCAL_RAM_SIZE
from bhemu.machine.dispatch import ADVANCE_TILE, DEVICE_LOAD, DEVICE_STORE, RUN_CORE, RUN_TURNS, SLOW_CORE
from bhemu.machine.state import L1_SIZE
from bhemu.tensix.coprocessor import ensure_place, expect

SP: Final = 2
LOADS_AND_STORES: Final = (0x03, 0x23)


CORE_PLACES: Final = (ADVANCE_TILE, RUN_CORE, SLOW_CORE, RUN_TURNS, DEVICE_LOAD, DEVICE_STORE)
"""What most programs of cores need compiled."""


def opcodes_of(placements: Iterable[boot.Placement]) -> set[int]:
    """Opcodes of the Tensix instructions that programs carry as `.ttinsn`."""
    found: set[int] = set()
    for placement in placements:
        for segment in placement.executable.segments:
            if segment.executable:
                size = len(segment.content) // 4 * 4
                words = np.frombuffer(segment.content[:size], "<u4")
                tensix = words[words & 3 != 3]  # T10: rotated left by two bits
                found.update(int(opcode) for opcode in np.unique((tensix >> 26) | (tensix & 3) << 6))
    return found


@checked
class TilePrograms:
    """The programs of a tile.

    Args:
        view: the tile.
    """

    def __init__(self, view: TileView) -> None:
        self._view = view
        self._loaded = Loaded()
        cores = view.untouched()
        cores.describe = self._loaded.describe
        cores.pusher = self._loaded.pusher
        self._record = cores.record

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
        placements = [boot.place(executable, number)]
        self.check(placements)
        self.put(placements)
        return CORE_NAMES[number]

    def _with(self, placements: Sequence[boot.Placement]) -> list[boot.Placement]:
        """The programs once these have replaced earlier ones of the same cores."""
        new = {placement.core: placement for placement in placements}
        return [*(known for known in self._loaded.placements if known.core not in new), *new.values()]

    def check(self, placements: Sequence[boot.Placement]) -> None:
        """Refuse programs that have no room next to each other and those of the other cores.

        Raises:
            MemoryError_: one overlaps another, or the jump to the program of core B.
        """
        wanted = self._with(placements)
        for number, placement in enumerate(wanted):
            boot.check_apart(placement, wanted[:number])
        boot.check_jump(wanted)

    def put(self, placements: Sequence[boot.Placement]) -> None:
        """Write programs that have been checked into memory; their cores are held in reset."""
        wanted = self._with(placements)
        opcodes = opcodes_of(placements)
        expect(opcodes, CORE_PLACES)
        with Ahead(opcodes, CORE_PLACES):
            pass
        self.hold(*(CORE_NAMES[placement.core] for placement in placements))
        cores = self._view.touch()
        for placement in placements:
            boot.write_program(placement, cores.record.l1, cores[placement.core].local_ram)
        self._loaded.placements = wanted

    @property
    def placements(self) -> list[boot.Placement]:
        """The programs that are known, in the order of loading; assigning does not write to memory."""
        return list(self._loaded.placements)

    @placements.setter
    def placements(self, placements: Sequence[boot.Placement]) -> None:
        self._loaded.placements = list(placements)

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
        tile = self._view.touch()
        word = tile.load(boot.SOFT_RESET)
        if word | bits != word:
            tile.store(boot.SOFT_RESET, word | bits)

    def check_start(self, *cores: str) -> list[boot.Placement]:
        """The programs that `start` would start.

        Raises:
            ProgramError: a core has no program.
        """
        placements = {placement.core: placement for placement in self._loaded.placements}
        numbers = [boot.core_number(name) for name in cores] or sorted(placements)
        if not numbers:
            raise ProgramError("no core has a program", remedy="load one first")
        for number in numbers:
            if number not in placements:
                raise ProgramError(
                    f"core {CORE_NAMES[number]} has no program", remedy="load one for it, or do not name it"
                )
        return [placements[number] for number in dict.fromkeys(numbers)]

    def start(self, *cores: str) -> None:
        """Release cores from reset, all in the same clock; without names, all that have a program.

        Raises:
            ProgramError: a core has no program.
        """
        placements = self.check_start(*cores)
        numbers = [placement.core for placement in placements]
        tile = self._view.touch()
        keep = tile.load(boot.DISABLE_RESET)
        for placement in placements:
            number = placement.core
            entry = placement.executable.entry
            if number == B and entry != 0:
                jump = boot.jump_to(entry)
                self._record.l1[: len(jump)] = memoryview(jump)
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
        """The core whose program alone has a symbol, given as `name` or `core.name`; None when no core alone has it."""
        return self._loaded.owner_of(name)

    def check_data(self, address: int, size: int, what: str) -> None:
        """Refuse a write to L1 that would overwrite code.

        Raises:
            MemoryError_: it would; `what` begins the message.
        """
        self._loaded.check_data(address, size, what)

    # --- what the cores do ------------------------------------------------------------------------------------------

    def out_of_reset(self) -> list[int]:
        """Numbers of the cores that are not held."""
        return [core for core in range(CORES) if self._record.core_state[core] != IN_RESET]

    def accounts(self) -> tuple[int, int]:
        """Counts that change when a core or thread proceeds."""
        record = self._record
        return int(record.core_retired.sum()), int(record.issued.sum())

    def last_move(self, now: int) -> int:
        """The clock in which an agent of the tile last proceeded, once none can proceed any more.

        Args:
            now: clocks that have passed.
        """
        record = self._record
        last = int(record.tensix_round)
        for core in self.out_of_reset():
            state = record.core_state[core]
            if state == ASLEEP:
                last = max(last, int(record.poll_since[core]))
            elif state == HALTED:
                last = max(last, int(record.core_round[core]) + 1)
            elif state == BLOCKED:
                last = max(last, int(record.core_round[core]))
        return min(last - int(record.free_rounds), now)

    def what_could_end_it(self) -> str | None:
        """A remedy when an agent waits and none in the tile can proceed; None when all are done."""
        record = self._record
        stuck = [core for core in self.out_of_reset() if is_stuck(record, core)]
        if any(record.core_state[core] == HALTED for core in stuck):
            return "run with semihosting, which serves core B; ebreak ends a program without it"
        if stuck:
            return "let a core or the host write what is waited for; a wait for the host ends with `until`"
        if waiting_threads(record):
            return "let another thread do what is waited for, or reset the coprocessor's state first"
        return None

    def explain(self, polled: Mapping[int, dict[int, int]] | None = None) -> str:
        """What each does or waits for: a line for each core out of reset and each thread that holds words.

        Args:
            polled: words that cores which run poll, by core; see `bhemu.api.polling`.
        """
        loaded = self._loaded
        return explain_all(self._record, self.describe, loaded.name_of_word, loaded.pusher, polled or {})

    def locate(self, error: BhemuError) -> None:
        """Add the source line of the core's instruction at fault, and the cause where it is the stack pointer."""
        if error.core is None or error.pc is None or error.file is not None:
            return
        word, sp = self._word_at(error.pc), int(self._record.core_x[error.core, SP])
        if word & 0x7F in LOADS_AND_STORES and word >> 15 & 31 == SP and not boot.is_memory(error.core, sp):
            error.remedy = (
                f"sp is {sp:#010x}, outside of every memory: set it in the start-up code, for example to the end of "
                f"local RAM, {boot.LOCAL_RAM + LOCAL_RAM_SIZE[error.core]:#010x}; {boot.memories(error.core)}"
            )
        executable = self._loaded.holding(error.core, error.pc)
        line = executable.line_at(error.pc) if executable is not None else None
        if line is not None:
            error.file, error.line = Path(line.file), line.line

    def _word_at(self, pc: int) -> int:
        return int(self._record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0

    def summary(self) -> tuple[CoreSummary, ...]:
        """The cores out of reset, in their present state."""
        return tuple(summarize(self._view.touch(), self._loaded, core) for core in self.out_of_reset())
