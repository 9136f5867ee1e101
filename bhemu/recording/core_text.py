"""A text trace of a tile with RISC-V cores: a line for each instruction of a core and each word of the coprocessor."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final

import numpy as np

from bhemu.isa.assembler import disassemble
from bhemu.isa.riscv import FLOAT_NAMES, REGISTER_NAMES, disassemble_riscv
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.origin import pc_of_line
from bhemu.machine.state import L1_SIZE
from bhemu.recording import core_columns as column
from bhemu.recording import log as tensix_column
from bhemu.recording.core_figures import writes_float, writes_register
from bhemu.recording.core_log import CoreLog, Step, device_name, is_t_core, steps, wait_name
from bhemu.tensix.coprocessor import THREAD_NAMES

_PLACE: Final = 40
_TEXT: Final = 34
HEADING: Final = (
    f"# {'clock':>8} {'round':>8}  {'who':<7} {'pc':>7}  {'place':<{_PLACE}}  {'instruction':<{_TEXT}}  effect"
)


def effect(step: Step) -> str:
    """What an instruction did: `a0 = 0x5`, `[0x20000] = 0x4d`, `a1 = 0x1 from semaphore 1 (MATH_PACK)`."""
    parts = []
    if step.kind == column.PUSHES:
        if is_t_core(step.core) or step.core == 0:
            parts.append(f"to the {device_name(step.core, 0, pushes=True)}")
    elif step.value is not None:
        parts.append(_written(step))
    if step.rounds and step.kind in (column.INSTRUCTION, column.DEVICE, column.PUSHES):
        name = wait_name(step.core, step.address or 0, pushes=step.address is None)
        parts.append(f"after {step.rounds:,} rounds blocked on {name}")
    return ", ".join(parts)


def _written(step: Step) -> str:
    where = "" if step.address is None else _where(step)
    if not writes_register(step.word):
        return f"{where} = {(step.value or 0) & ((1 << 8 * step.size) - 1):#x}"
    number = step.word >> 7 & 31
    register = FLOAT_NAMES[number] if writes_float(step.word) else REGISTER_NAMES[number]
    return f"{register} = {step.value:#x}" + (f" from {where}" if where else "")


def _where(step: Step) -> str:
    address = step.address or 0
    name = device_name(step.core, address)
    return f"[{address:#x}]" if step.kind != column.DEVICE and address < L1_SIZE else f"[{address:#x}] {name}"


def describe(step: Step) -> tuple[str, str]:
    """(instruction or what happened in its place, effect) of a row."""
    text = disassemble_riscv(step.word, step.pc)
    if step.kind == column.POLL:
        reads = "nothing" if step.address is None else _where(step)
        turns = step.rounds // step.length if step.length else 0
        return "polls", f"{turns:,} turns of {step.length} instructions, {step.rounds:,} rounds, reading {reads}"
    if step.kind == column.GAVE_UP:
        name = wait_name(step.core, step.address or 0, pushes=step.address is None)
        return text, f"not executed: blocked on {name} for {step.rounds:,} rounds"
    if step.kind == column.RESTARTED:
        return "starts here", ""
    return text, effect(step)


def _source(log: CoreLog, core: int, pc: int) -> str:
    line = log.names.line(core, pc)
    return "" if line is None else f"{line.file.rpartition('/')[2]}:{line.line}"


def _core_lines(log: CoreLog) -> Iterator[tuple[int, int, str]]:
    """(round, place in the round, text) of what the cores did."""
    starts = log.rows[(log.rows[:, column.WHO] >> 4 & 0xF) != column.MOVED][:, column.ROUND]
    clocks = log.clock_of(starts).tolist()
    for clock, step in zip(clocks, steps(log), strict=True):
        text, what = describe(step)
        place, source = log.names.place(step.core, step.pc), _source(log, step.core, step.pc)
        place = f"{place} {source}".strip()
        line = f"{clock:>10} {step.round:>8}  {CORE_NAMES[step.core]:<7} {step.pc:#07x}  {place:<{_PLACE}}  "
        yield step.round, step.core, (line + f"{text:<{_TEXT}}  {what}").rstrip()


def _tensix_lines(log: CoreLog) -> Iterator[tuple[int, int, str]]:
    rows = log.tensix.rows
    clocks = log.clock_of(rows[:, tensix_column.CLOCK]) if len(rows) else np.zeros(0, np.int64)
    for clock, row in zip(clocks.tolist(), rows.tolist(), strict=True):
        thread, line = row[tensix_column.THREAD], row[tensix_column.LINE]
        at, place, pc = "", "", pc_of_line(line)
        if pc is not None:
            core = log.names.pusher(thread, pc)
            at = f"{pc:#07x}"
            place = f"{log.names.place(core, pc)} {_source(log, core, pc)}".strip()
        start = f"{clock:>10} {row[tensix_column.CLOCK]:>8}  {THREAD_NAMES[thread]:<7} {at:>7}  {place:<{_PLACE}}  "
        yield row[tensix_column.CLOCK], CORES + thread, start + disassemble(row[tensix_column.WORD])


def text_lines(log: CoreLog) -> Iterator[str]:
    """The lines of a text trace, without line ends, in the order of execution (tile rule T34).

    Columns: clock of the tile, round, core or thread, pc (of a word of the coprocessor where it was pushed), symbol and
    source line, instruction, effect. Within a clock there are as many rounds as the coprocessor keeps moving.
    """
    yield HEADING
    if log.dropped or log.tensix_dropped:
        left_out = f"{log.dropped:,} rows of the cores and {log.tensix_dropped:,} of the coprocessor"
        yield f"# the first are left out: {left_out}"
    for _, _, line in heapq.merge(_core_lines(log), _tensix_lines(log), key=lambda item: item[:2]):
        yield line
