"""What a thread's function gets: Python in the place of the thread's RISC-V core.

Instructions go into the thread's FIFO in order and are executed by the machine when their turn comes; the function
runs on until
the FIFO is full or until it waits. Configuration written with `core.config[...]` travels in the same FIFO (as RMWCIB
and SETC16 words), so it takes its place among the instructions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from greenlet import getcurrent

from bhemu.api.views import ConfigView, check_value
from bhemu.checks import checked
from bhemu.errors import AssemblyError, ProgramError
from bhemu.isa.assembler import assemble_program
from bhemu.isa.instruction_table import suggestion
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.isa.registers import RegisterField, field
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT
from bhemu.tensix.frontend.mop import LENGTH_MASK

if TYPE_CHECKING:
    from bhemu.api.tile import Tile
    from bhemu.programs.program import Program
    from bhemu.programs.tensors import Tensor

NOP_WORD: Final = encode("NOP")
ISSUED_BY: Final = {
    "config": ("SETC16", "RMWCIB0", "RMWCIB1", "RMWCIB2", "RMWCIB3"),
    "record": ("REPLAY",),
    "replay": ("REPLAY",),
}
"""Instructions that attributes of `Core` issue, beside those of their own names."""


@checked
class Words:
    """Instruction words without issuing them: `core.word.UNPACR(SetDatValid=1)`, for MOP and REPLAY."""

    def __getattr__(self, mnemonic: str) -> Callable[..., int]:
        if mnemonic not in INSTRUCTIONS:
            raise _unknown(mnemonic)

        def make(*operands: int, **named: int) -> int:
            return encode(mnemonic, *operands, **named)

        setattr(self, mnemonic, make)
        return make


@checked
class Config:
    """Configuration fields by name, as the thread sees and writes them.

    `config["NAME"] = value` issues the instructions that change just this field: RMWCIB for Config, SETC16 for
    ThreadConfig.
    `config["NAME"]` waits until the thread's own instructions are done and reads the field.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    def _view(self) -> ConfigView:
        record = self._core.tile.record
        return ConfigView(record, int(record.thread_config[self._core.thread, 0]) & 1, self._core.thread)

    def __getitem__(self, name: str) -> int:
        field(name)  # a misspelt name is said at once, not after the wait
        self._core.wait_idle()
        return self._view()[name]

    def __setitem__(self, name: str, value: int) -> None:
        self.write({name: value})

    def write(self, values: dict[str, int]) -> None:
        """Write several fields; fields of one word share its instructions."""
        words: dict[tuple[str, int], list[tuple[RegisterField, int]]] = {}
        for name, value in values.items():
            known = field(name)
            number = int(value)
            check_value(known, number)
            if known.access == "pulse":
                raise AssemblyError(
                    f"{name} acts when its word is written and holds nothing", remedy="load a GPR and use WRCFG"
                )
            words.setdefault((known.space, known.word), []).append((known, number))
        for (space, word), parts in words.items():
            mask = data = 0
            for known, number in parts:
                mask |= known.mask
                data |= number << known.lsb
            if space == "thread":
                self._core.wait_idle()
                old = int(self._core.tile.record.thread_config[self._core.thread, word])
                self._core.issue(encode("SETC16", setc16_reg=word, setc16_value=old & ~mask & 0xFFFF | data))
                continue
            for byte in range(4):
                part = mask >> 8 * byte & 0xFF
                if part:
                    self._core.issue(encode(f"RMWCIB{byte}", Mask=part, Data=data >> 8 * byte & 0xFF, CfgRegAddr=word))

    def store(self, values: dict[str, int]) -> None:
        """Write Config fields at once, as the RISC-V core's own stores do, past whatever is still in the FIFO.

        Order them against the thread's instructions with a semaphore or `STALLWAIT(..., Condition.TRISC_CFG)`.
        """
        self._core._mark()
        view = self._view()
        for name, value in values.items():
            if field(name).space == "thread":
                raise AssemblyError(f"{name} is a ThreadConfig field", remedy="only SETC16 writes it: use config[...]")
            view[name] = value
        recorder = self._core.tile.recorder
        if recorder is not None:
            bank = int(self._core.tile.record.thread_config[self._core.thread, 0]) & 1
            words = sorted({bank << 8 | field(name).word for name in values})
            recorder.note(self._core.thread, "store", tuple(words), self._core.line)


@checked
class Core:
    """The RISC-V core of one thread.

    Any mnemonic is a method: `core.UNPACR(SetDatValid=1, Last=1)` issues the instruction; operands by name, or in the
    order of the LLK macros.

    Attributes:
        thread: 0 unpack, 1 math, 2 pack.
        tile: the tile; its state may be read at any time (it is what the machine has reached, not what was issued).
        program: for parameters and dimensions.
        config: configuration fields by name.
        word: makes instruction words without issuing them.
    """

    def __init__(self, tile: Tile, program: Program, thread: int) -> None:
        self.tile = tile
        self.program = program
        self.thread = thread
        self.config = Config(self)
        self.word = Words()
        self.line = 0
        self.tiles_done = 0
        self.polls = 0
        self.waiting_for = ""
        self.waits_for_others = False
        self._ready: Callable[[], bool] | None = None
        self._polled: Callable[[], int] | None = None
        self._file = str(program.path) if program.path else ""
        self._recording: list[int] | None = None
        self._semaphore = tile.record.sync.semaphore

    # --- instructions -----------------------------------------------------------------------------------------------

    def __getattr__(self, mnemonic: str) -> Callable[..., None]:
        if mnemonic.startswith("_"):
            raise AttributeError(mnemonic)
        if mnemonic not in INSTRUCTIONS:
            raise _unknown(mnemonic)

        def issue(*operands: int, **named: int) -> None:
            self.issue(encode(mnemonic, *operands, **named))

        self.__dict__[mnemonic] = issue
        return issue

    def issue(self, instructions: str | int) -> None:
        """Issue an instruction word, or assembly text of one or more lines."""
        self._mark()
        for word in assemble_program(instructions) if isinstance(instructions, str) else (int(instructions),):
            if self._recording is not None:
                self._recording.append(word)
                continue
            self._push(word)

    def _push(self, word: int) -> None:
        coprocessor = self.tile.coprocessor
        while not coprocessor.push(self.thread, word, self.line):
            self._block(self._has_room, "room in its instruction FIFO")

    def _has_room(self) -> bool:
        return bool(self.tile.coprocessor.frontend.fifo_count[self.thread] <= FIFO_PUSH_LIMIT)

    @contextmanager
    def record(self, start: int = 0, *, execute: bool = False) -> Iterator[None]:
        """Record the instructions issued inside the `with` block into the replay buffer (math Y9).

        Args:
            start: first slot, 0..31.
            execute: also execute them while recording.
        """
        if self._recording is not None:
            raise ProgramError("record() inside record()", remedy="a REPLAY word in the buffer is stored, not executed")
        words = self._recording = []
        try:
            yield
        finally:
            self._recording = None
        if not 1 <= len(words) <= 32:
            raise ProgramError(f"record() of {len(words)} instructions", remedy="the replay buffer holds 1 to 32")
        self.REPLAY(start_idx=start, len=len(words), execute_while_loading=int(execute), load_mode=1)
        for word in words:
            self.issue(word)

    def replay(self, start: int, length: int) -> None:
        """Play `length` instructions of the replay buffer from slot `start`."""
        self.REPLAY(start_idx=start, len=length)

    def set_mop_double_loop(
        self,
        *,
        outer: int,
        inner: int,
        loop: int,
        loop1: int = NOP_WORD,
        start: int = NOP_WORD,
        end0: int = NOP_WORD,
        end1: int = NOP_WORD,
        last: int | None = None,
        last_of_inner: int | None = None,
    ) -> None:
        """Program MOP template 1 (math Y8); run it with `core.MOP(mop_type=1)`.

        Args:
            outer: passes of the outer loop, 0 to 1023.
            inner: passes of the inner loop in each of them, 0 to 1023.
            loop: body.
            loop1: second body; the two alternate, twice as many in all.
            start: before the inner loop of each outer pass.
            end0: after it.
            end1: after `end0`.
            last: replaces the last body instruction of the last outer pass (default: `last_of_inner`).
            last_of_inner: replaces the last body instruction of the other passes (default: the body's own).
        """
        for name, count in (("outer", outer), ("inner", inner)):
            if not 0 <= count <= LENGTH_MASK:
                bits = LENGTH_MASK.bit_length()
                raise AssemblyError(
                    f"MOP {name} count {count} does not fit in {bits} bits", remedy=f"use 0 to {LENGTH_MASK}"
                )
        ending = last_of_inner if last_of_inner is not None else (loop if loop1 == NOP_WORD else loop1)
        self._set_mop([outer, inner, start, end0, end1, loop, loop1, ending if last is None else last, ending])

    def set_mop_masked(
        self,
        *,
        a0: int,
        a1: int = NOP_WORD,
        a2: int = NOP_WORD,
        a3: int = NOP_WORD,
        b: int = NOP_WORD,
        skip_a0: int = NOP_WORD,
        skip_b: int = NOP_WORD,
        has_a123: bool = False,
        has_b: bool = False,
    ) -> None:
        """Program MOP template 0 (math Y7); run it with `core.MOP(0, count - 1, mask)`."""
        self._set_mop([0, int(has_b) | int(has_a123) << 1, b, a0, a1, a2, a3, skip_a0, skip_b])

    def _set_mop(self, words: list[int]) -> None:
        self._mark()
        f, thread = self.tile.coprocessor.frontend, self.thread
        self._block(lambda: not f.fifo_count[thread] and not f.mop_active[thread], "its MOP expander to become idle")
        f.mop_config[thread] = words

    # --- waiting and reading ----------------------------------------------------------------------------------------

    def wait_idle(self) -> None:
        """Wait until all that this thread has issued is executed."""
        self._mark()
        f, thread = self.tile.coprocessor.frontend, self.thread

        def idle() -> bool:
            return not (
                f.fifo_count[thread] or f.mop_active[thread] or f.replay_play_left[thread] or f.gate_full[thread]
            )

        self._block(idle, "its own instructions to be executed")

    def wait_until(self, condition: Callable[[], bool], what: str = "a condition of the program") -> None:
        """Wait until `condition()` holds; the machine runs on meanwhile."""
        self._mark()
        self._block(condition, what, others=True)

    def semaphore(self, index: int) -> int:
        """Value of a semaphore, as the RISC-V core reads it; lets the machine run on, so that a loop may poll it."""
        semaphore = self._semaphore
        self._polled = lambda: int(semaphore[index])
        self._poll(f"a change of semaphore {int(index)}")
        return int(semaphore[index])

    def semaphore_post(self, index: int) -> None:
        """Increment a semaphore from the RISC-V core, stopping at 15 (math Y11a)."""
        semaphore = self._semaphore
        semaphore[index] = min(int(semaphore[index]) + 1, 15)
        self._note("post", index)

    def semaphore_get(self, index: int) -> None:
        """Decrement a semaphore from the RISC-V core, stopping at 0 (math Y11a)."""
        semaphore = self._semaphore
        semaphore[index] = max(int(semaphore[index]) - 1, 0)
        self._note("get", index)

    def _note(self, kind: str, index: int) -> None:
        self._mark()
        if self.tile.recorder is not None:
            self.tile.recorder.note(self.thread, kind, (int(index),), self.line)

    def tile_done(self) -> None:
        """Tell the progress display that one more tile is finished."""
        self.tiles_done += 1

    def tensor(self, name: str) -> Tensor:
        """A declared tensor, with its shape and address in this run."""
        known = self.program.tensors.get(name)
        if known is None:
            raise ProgramError(
                f"the program declares no tensor {name!r}",
                remedy=suggestion(name, self.program.tensors, "tensor"),
            )
        return known

    # --- scheduling -------------------------------------------------------------------------------------------------

    def _mark(self) -> None:
        """Remember the program line that is being executed."""
        frame: Any = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._file:
                self.line = frame.f_lineno
                return
            frame = frame.f_back

    def _poll(self, what: str) -> None:
        self._mark()
        self.polls += 1
        self.waiting_for = what
        self.waits_for_others = True
        self._ready = None
        _to_scheduler()

    def _block(self, ready: Callable[[], bool], what: str, *, others: bool = False) -> None:
        while not ready():
            self.waiting_for = what
            self.waits_for_others = others
            self._ready = ready
            _to_scheduler()
        self._ready = None
        self.waiting_for = ""

    def is_ready(self) -> bool:
        """True when the function can go on."""
        return self._ready is None or self._ready()

    def sees(self) -> int:
        """What decides whether the function goes on: whether its condition holds, or the value that it polls."""
        if self._ready is not None:
            return int(self._ready())
        return self._polled() if self._polled is not None else 0


def _to_scheduler() -> None:
    scheduler = getcurrent().parent
    assert scheduler is not None, "a thread function runs under a Schedule"
    scheduler.switch()


def _unknown(mnemonic: str) -> AssemblyError:
    return AssemblyError(f"no instruction {mnemonic!r}", remedy=suggestion(mnemonic, INSTRUCTIONS, "instruction"))
