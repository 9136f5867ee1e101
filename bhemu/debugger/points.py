"""Making breakpoints and watchpoints from what a user says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from bhemu.api.machine import Machine
from bhemu.api.tile import Tile
from bhemu.api.tile_programs import TilePrograms
from bhemu.checks import checked
from bhemu.debugger import core_view
from bhemu.debugger.breakpoints import ALL_CORES, Breakpoint, DebugError
from bhemu.debugger.expressions import evaluate
from bhemu.debugger.names import CoreScope, Names, near
from bhemu.debugger.runner import Runner
from bhemu.debugger.watchpoints import (
    AccessWatch,
    Watch,
    explain_number,
    explain_rows,
    explain_words,
    register_number,
    rows_of,
)
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS
from bhemu.isa.riscv import RISCV_BY_NAME
from bhemu.machine.agents import CORE_NAMES
from bhemu.machine.state import L1_SIZE, THREADS


@checked
class Points(Names):
    """The breakpoints and watchpoints of a session."""

    def __init__(self, target: Machine | Tile | TilePrograms, runner: Runner | None = None) -> None:
        super().__init__(target, runner)
        self._numbers = 0

    # --- breakpoints ------------------------------------------------------------------------------------------------

    def _next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def break_at(
        self,
        where: str | int,
        *,
        cores: Iterable[str | int] | None = None,
        condition: str | Callable[[int], bool] | None = None,
        temporary: bool = False,
    ) -> Breakpoint:
        """Stop before the instruction at an address, a symbol (`main`, `T1.main`), `file.c:12` or `*expression`.

        A function stops where it begins, and at each place at which the compiler has inlined it.

        Args:
            where: the place.
            cores: that stop there; all by default.
            condition: an expression of the core's registers, or a function of the core's number.
            temporary: for one time.

        Raises:
            BhemuError: there is no such place, core or name in the condition.
        """
        places = self.locate_all(where)
        chosen = ALL_CORES if cores is None else frozenset(self.number_of_core(core) for core in cores)
        text = self.describe_places(min(chosen) if len(chosen) == 1 else self.core, places)
        item = Breakpoint(self._next_number(), text, places[0], cores=chosen, temporary=temporary)
        item.copies = tuple(places[1:])
        if condition is not None:
            self.set_condition(item, condition)
        self.runner.breakpoints.append(item)
        return item

    def set_condition(self, item: Breakpoint, condition: str | Callable[[int], bool] | None) -> None:
        """Give a breakpoint another condition, or none."""
        if isinstance(condition, str):
            text = condition
            scope = CoreScope(self, min(item.cores))
            evaluate(text, scope)  # refuses what cannot be meant
            item.condition = lambda core: bool(evaluate(text, CoreScope(self, core)))
            item.is_private = scope.is_private
            item.condition_text = text
            return
        item.condition = condition
        item.is_private = False
        item.condition_text = "" if condition is None else getattr(condition, "__name__", "a function")

    def break_on(
        self,
        mnemonic: str,
        *,
        cores: Iterable[str | int] | None = None,
        threads: Iterable[int] | None = None,
        temporary: bool = False,
    ) -> Breakpoint:
        """Stop before a RISC-V instruction of a core, or after a Tensix instruction of a thread, by mnemonic.

        Args:
            mnemonic: `mul`, `.ttinsn` or `MVMUL`, say.
            cores: that stop, for RISC-V instructions; all by default.
            threads: Tensix threads 0 to 2; all by default.
            temporary: for one time.

        Raises:
            DebugError: there is no such instruction.
        """
        name = mnemonic.strip()
        if name.lower() in RISCV_BY_NAME or name.lower() == ".ttinsn":
            chosen = ALL_CORES if cores is None else frozenset(self.number_of_core(core) for core in cores)
            item = Breakpoint(
                self._next_number(), f"instruction {name.lower()}", mnemonic=name.lower(), cores=chosen,
                temporary=temporary,
            )  # fmt: skip
        elif name.upper() in INSTRUCTIONS:
            which = frozenset(range(THREADS)) if threads is None else frozenset(threads)
            if not which <= frozenset(range(THREADS)):
                raise DebugError(f"threads {sorted(which)} do not all exist", remedy="use 0, 1 and 2")
            opcode = INSTRUCTIONS[name.upper()].opcode
            item = Breakpoint(self._next_number(), name.upper(), opcode=opcode, threads=which, temporary=temporary)
        else:
            known = {row.lower(): row for row in (*RISCV_BY_NAME, *INSTRUCTIONS)}
            raise DebugError(
                f"no instruction has the mnemonic {mnemonic!r}", remedy=near(name, known, "see `bhemu support`")
            )
        self.runner.breakpoints.append(item)
        return item

    def points(self) -> list[Breakpoint | Watch]:
        """Breakpoints and watchpoints by number."""
        return sorted([*self.runner.breakpoints, *self.runner.watches], key=lambda item: item.number)

    def point(self, number: int) -> Breakpoint | Watch:
        """A breakpoint or watchpoint.

        Raises:
            DebugError: there is no point of this number.
        """
        for item in self.points():
            if item.number == number:
                return item
        raise DebugError(f"there is no breakpoint or watchpoint {number}", remedy="`info breakpoints` lists them")

    def delete(self, number: int | None = None) -> None:
        """Delete a breakpoint or watchpoint, or all."""
        gone = self.points() if number is None else [self.point(number)]
        self.runner.breakpoints = [item for item in self.runner.breakpoints if item not in gone]
        self.runner.watches = [item for item in self.runner.watches if item not in gone]

    # --- watchpoints ------------------------------------------------------------------------------------------------

    def _watch(self, text: str, read: Callable[[], bytes], explain: Callable[[bytes, bytes], str]) -> Watch:
        item = Watch(self._next_number(), text, read, explain)
        self.runner.watches.append(item)
        return item

    def watch_memory(
        self, address: int, size: int = 4, core: str | int | None = None, kind: str = "write", text: str | None = None
    ) -> Watch:
        """Stop after bytes of L1, or of a core's local RAM, have changed; or when a core accesses them.

        Args:
            address: of the first byte.
            size: bytes.
            core: whose local RAM; by default the chosen one's.
            kind: `write` (the contents change, by any agent), `read` (a core loads) or `access` (loads or stores).
            text: what the user calls it.

        Raises:
            DebugError: there is no memory.
        """
        number = self.number_of_core(core)
        if size < 1:
            raise DebugError(f"a range of {size} bytes", remedy="watch 1 byte at least")
        if address < 0 or address + size > L1_SIZE:
            if not core_view.is_local(number, address, size):
                raise DebugError(
                    f"{address:#x} is not memory of core {CORE_NAMES[number]} that can be watched",
                    remedy="watch L1, local RAM, or by name: `watch semaphore 1`, `watch config NAME`, `watch dst`",
                )
            owner: int | None = number
        else:
            owner = None
        text = f"{size} bytes at {address:#x}" if text is None else text
        if kind != "write":
            item: Watch = AccessWatch(self._next_number(), f"{kind} of {text}", self.record, address, size, kind, owner)
            self.runner.watches.append(item)
            return item
        unit = 4 if address % 4 == 0 and size % 4 == 0 else 1
        item = self._watch(
            text,
            lambda: core_view.read(self.tile, number, address, size),
            lambda old, new: explain_words(old, new, address, unit),
        )
        item.address, item.core = address, owner
        return item

    def watch_register(self, name: str, core: str | int | None = None) -> Watch:
        """Stop after a register of a core has changed."""
        number, register = self.number_of_core(core), register_number(name.removeprefix("$"))
        if register is None:
            raise DebugError(f"no register is named {name!r}", remedy="use a0, sp, x5, ...")

        def read() -> bytes:
            return bytes(self.runner.state(number).x[register].tobytes())

        item = self._watch(f"{name} of core {CORE_NAMES[number]}", read, explain_number)
        item.core = number
        return item

    def watch_config(self, name: str, index: int = 0) -> Watch:
        """Stop after a configuration field has changed.

        Args:
            name: official name.
            index: config bank of a field of Config, thread of a field of ThreadConfig.
        """
        if name not in CONFIG_FIELDS and name not in THREAD_FIELDS:
            self.tile.config[name]  # refuses, and names near ones
        view = self.tile.config.for_thread(index) if name in THREAD_FIELDS else self.tile.config.for_bank(index)
        what = "thread" if name in THREAD_FIELDS else "bank"
        return self._watch(f"{name} ({what} {index})", lambda: view[name].to_bytes(4, "little"), explain_number)

    def watch_semaphore(self, index: int) -> Watch:
        """Stop after a semaphore has changed."""
        if not 0 <= index < len(self.record.sync.semaphore):
            raise DebugError(f"semaphore {index} does not exist", remedy="use 0 to 7")
        return self._watch(
            f"semaphore {index}", lambda: self.record.sync.semaphore[index].astype(np.uint32).tobytes(), explain_number
        )

    def watch_file(self, name: str) -> Watch:
        """Stop after cells of `dst`, `srca` or `srcb` have changed, or (for Dst) which rows are valid."""
        files = {"dst": ("dst", 32), "srca": ("srca", 64), "srcb": ("srcb", 64)}
        if name.lower() not in files:
            raise DebugError(f"no register file is named {name!r}", remedy="use dst, srca or srcb")
        field, row_bytes = files[name.lower()]
        cells, valid = self.record[field], self.record["dst_valid"]
        rows = explain_rows({"dst": "Dst", "srca": "SrcA", "srcb": "SrcB"}[field], row_bytes)
        if field != "dst":
            return self._watch(field, cells.tobytes, lambda old, new: _by_bank(rows(old, new)))
        marks = explain_rows("Dst, validity of", 1)
        size = cells.nbytes
        return self._watch(
            field,
            lambda: bytes(cells.tobytes() + valid.tobytes()),
            lambda old, new: (
                rows(old[:size], new[:size]) if old[:size] != new[:size] else marks(old[size:], new[size:])
            ),
        )

    def watch_row(self, name: str, row: int) -> Watch:
        """Stop after a row of `dst`, `srca` or `srcb` has changed; from row 64 on SrcA and SrcB are bank 1.

        Raises:
            DebugError: there is no such row.
        """
        field = name.lower()
        if field not in ("dst", "srca", "srcb"):
            raise DebugError(f"no register file is named {name!r}", remedy="use dst, srca or srcb")
        cells = self.record[field].reshape(-1, 16)
        if not 0 <= row < len(cells):
            raise DebugError(f"{name} has no row {row}", remedy=f"use 0 to {len(cells) - 1}")
        read, explain = rows_of(cells, {"dst": "Dst", "srca": "SrcA", "srcb": "SrcB"}[field], row)
        return self._watch(f"{field} {row}", read, explain)

    def watch(self, predicate: Callable[[Points], Any], text: str = "a function") -> Watch:
        """Stop after the value of a Python function of this session has changed."""
        return self._watch(
            text,
            lambda: repr(predicate(self)).encode(),
            lambda old, new: f"{old.decode()} -> {new.decode()}",
        )

    def watch_expression(self, text: str, core: str | int | None = None) -> Watch:
        """Stop after the value of an expression has changed."""
        scope = CoreScope(self, self.number_of_core(core))
        evaluate(text, scope)
        return self._watch(
            text,
            lambda: (evaluate(text, scope) & 0xFFFFFFFF).to_bytes(4, "little"),
            explain_number,
        )


def _by_bank(text: str) -> str:
    return f"{text} (rows 64 and up are those of bank 1)"
