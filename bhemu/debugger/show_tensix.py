"""The coprocessor as text: threads and queues, semaphores, mailboxes, register files, configuration by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from bhemu.api.views import FP32_ENABLED, INT8_ENABLED
from bhemu.api.waits import explain_thread, pushed_from
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.isa.assembler import disassemble
from bhemu.isa.names import Semaphore
from bhemu.isa.registers import CONFIG_FIELDS, THREAD_FIELDS, search
from bhemu.machine.agents import CORE_NAMES, T0, B
from bhemu.machine.device_state import MAILBOX_WORDS, PCBUF_WORDS
from bhemu.machine.dst import high_row
from bhemu.machine.frontend_state import FIFO_SLOTS, READY_SLOTS, queued
from bhemu.machine.kernel import plain
from bhemu.machine.state import THREADS
from bhemu.tensix.coprocessor import THREAD_NAMES

SHOWN_WORDS: Final = 8
SHOWN_FIELDS: Final = 40
FACE: Final = 16
_QUEUES: Final = {
    "fifo": "its FIFO",
    "side": "the queue from core B",
    "ready": "the queue behind the expanders",
}
"""Queues of a thread, by their names in the record."""
_MOP_TEMPLATES: Final = ("", "template 0", "template 1")


def _place(session: DebugSession, thread: int) -> Callable[[int], str]:
    """Text for the `line` of a queued word: the pc from which it was pushed."""
    return pushed_from(thread, session.describe, session.tile.cores.pusher)


def tensix(session: DebugSession) -> str:
    """What each thread of the coprocessor is about to execute, and what it waits for."""
    record = session.record
    lines = []
    for thread in range(THREADS):
        name = f"thread {thread} ({THREAD_NAMES[thread]})"
        waits = explain_thread(record, thread, _place(session, thread))
        if waits is None and record.frontend.wait_word[thread]:
            waits = f"the next instruction will be held by {disassemble(int(record.frontend.wait_word[thread]))}"
        if waits is None:
            waits = "no instruction at its gate"
        lines.append(f"{name}: {waits}")
        lines += [f"    {text}" for text in _behind(record, thread)]
        lines.append(f"    {int(record.issued[thread].sum()):,} instructions executed")
    return "\n".join(lines)


def _behind(record: Any, thread: int) -> list[str]:
    """Words in flight to the gate."""
    parts, frontend = [], record.frontend
    if frontend.replay_play_left[thread]:
        at = int(frontend.replay_play_at[thread])
        word = disassemble(int(frontend.replay_buffer[thread, at]))
        parts.append(f"REPLAY plays {int(frontend.replay_play_left[thread])} more, next {word}")
    if frontend.replay_load_left[thread]:
        parts.append(f"REPLAY records {int(frontend.replay_load_left[thread])} more instructions")
    if frontend.mop_active[thread]:
        parts.append(
            f"MOP, {_MOP_TEMPLATES[int(frontend.mop_active[thread])]}: {disassemble(int(frontend.mop_word[thread]))}, "
            f"outer {int(frontend.mop_outer[thread])}, inner {int(frontend.mop_inner[thread])}"
        )
    for prefix, what in _QUEUES.items():
        count = int(frontend[f"{prefix}_count"][thread])
        if count:
            parts.append(f"{count} in {what}")
    return parts


def queues(session: DebugSession, thread: int | None = None) -> str:
    """The words in the FIFOs, disassembled, with the places from which they were pushed."""
    frontend = session.record.frontend
    lines = []
    for number in range(THREADS) if thread is None else (check_thread(thread),):
        place = _place(session, number)
        for prefix, what in _QUEUES.items():
            count, head = int(frontend[f"{prefix}_count"][number]), int(frontend[f"{prefix}_head"][number])
            slots = READY_SLOTS if prefix == "ready" else FIFO_SLOTS
            if count or prefix == "fifo":
                lines.append(f"thread {number} ({THREAD_NAMES[number]}), {what}: {count} of {slots}")
            for at in range(count):
                word, line = queued(frontend, prefix, number, (head + at) % slots)
                lines.append(f"  {at:2}  {disassemble(word)}{place(line)}")
    return "\n".join(lines)


def check_thread(thread: int) -> int:
    """Refuse a thread that does not exist."""
    if not 0 <= thread < THREADS:
        raise DebugError(f"thread {thread} does not exist", remedy="use 0 (unpack), 1 (math) or 2 (pack)")
    return thread


def semaphores(session: DebugSession) -> str:
    """Values and limits of the eight semaphores, and who holds the mutexes."""
    sync = session.record.sync
    names = {member.value: member.name for member in Semaphore}
    lines = [
        f"semaphore {i}: {int(sync.semaphore[i])} of {int(sync.semaphore_max[i])}  {names.get(i, '')}".rstrip()
        for i in range(len(sync.semaphore))
    ]
    held = [f"mutex {i}: thread {int(o) - 1}" for i, o in enumerate(sync.mutex_owner) if o]
    return "\n".join([*lines, *(held or ["no mutex is held"])])


def mailboxes(session: DebugSession) -> str:
    """What the mailboxes and PCBufs hold, oldest word first; nothing is taken out."""
    record = session.record
    lines = []
    for writer in range(4):
        for reader in range(4):
            count, head = int(record.mailbox_count[writer, reader]), int(record.mailbox_head[writer, reader])
            if count:
                words = (int(record.mailbox_word[writer, reader, (head + i) % MAILBOX_WORDS]) for i in range(count))
                lines.append(f"mailbox {CORE_NAMES[writer]} -> {CORE_NAMES[reader]}: {_words(words)}")
    for thread in range(THREADS):
        count, head = int(record.pcbuf_count[thread]), int(record.pcbuf_head[thread])
        if count:
            words = (int(record.pcbuf_word[thread, (head + i) % PCBUF_WORDS]) for i in range(count))
            lines.append(f"PCBuf {CORE_NAMES[B]} -> {CORE_NAMES[T0 + thread]}: {_words(words)}")
    return "\n".join(lines) or "all mailboxes and PCBufs are empty"


def _words(words: Any) -> str:
    return " ".join(f"{word:#x}" for word in words)


def config(session: DebugSession, name: str, index: int | None = None) -> str:
    """A configuration field in both banks (or of all threads), or all fields whose names contain a text.

    Args:
        name: official name, or a part of one.
        index: only this bank or thread.
    """
    exact = name if name in CONFIG_FIELDS or name in THREAD_FIELDS else None
    names = [exact] if exact else [field.name for field in search(name) if name.lower() in field.name.lower()]
    if not names:
        session.tile.config[name]  # refuses, and names near ones
    lines = [f"{each} = {_values(session, each, index)}" for each in names[:SHOWN_FIELDS]]
    if len(names) > SHOWN_FIELDS:
        lines.append(f"and {len(names) - SHOWN_FIELDS} more: say more of the name")
    return "\n".join(lines)


def _values(session: DebugSession, name: str, index: int | None) -> str:
    view = session.tile.config
    if name in THREAD_FIELDS:
        known = range(THREADS)
        values = [view.for_thread(i)[name] for i in known]
        what = "thread"
    else:
        known = range(2)
        values = [view.for_bank(i)[name] for i in known]
        what = "bank"
    if index is not None:
        if index not in known:
            raise DebugError(f"{what} {index} does not exist", remedy=f"use 0 to {len(known) - 1}")
        return f"{values[index]} ({values[index]:#x})"
    if len(set(values)) == 1:
        return f"{values[0]} ({values[0]:#x})"
    return ", ".join(f"{value} ({value:#x}) in {what} {i}" for i, value in enumerate(values))


def dst(session: DebugSession, row: int = 0, rows: int = FACE, how: str | None = None) -> str:
    """Rows of Dst.

    Args:
        row: the first.
        rows: how many.
        how: `raw` 16-bit cells, `bf16`, `fp16`, `fp32` or `int32`; None as the matrix unit is configured.
    """
    view, settings = session.tile.dst, session.tile.config
    if how is None:
        how = "int32" if settings[INT8_ENABLED] else "fp32" if settings[FP32_ENABLED] else "bf16"
    if how not in ("raw", "bf16", "fp16", "fp32", "int32"):
        raise DebugError(f"Dst cannot be shown as {how!r}", remedy="use raw, bf16, fp16, fp32 or int32")
    content = view.cells if how == "raw" else getattr(view, how)
    _check_rows(row, rows, len(content))
    lines = [f"Dst rows {row} to {row + rows - 1} as {how}"]
    valid = view.valid
    for number in range(row, row + rows):
        physical = number if len(content) == len(valid) else plain(high_row)(number)
        note = "" if valid[physical] else "  (not valid: reads as 0)"
        lines.append(f"{number:4} | {_cells(content[number], how == 'raw', 4)}{note}")
    return "\n".join(lines)


def source(session: DebugSession, file: int, bank: int | None = None, *, raw: bool = False) -> str:
    """A bank of SrcA (file 0) or SrcB (file 1): 64 rows, decoded by its implied format or as 19-bit cells."""
    view = session.tile.srcb if file else session.tile.srca
    if bank is None:
        bank = int(session.record.matrix.bank[file])
    if bank not in (0, 1):
        raise DebugError(f"bank {bank} does not exist", remedy="use 0 or 1")
    content = view.cells[bank] if raw else view.bank(bank)
    head = (
        f"Src{'AB'[file]} bank {bank}: owned by the {view.owner[bank]}, implied format code {view.formats[bank]}; "
        f"matrix unit uses bank {int(session.record.matrix.bank[file])}, "
        f"unpacker bank {int(session.record.unpack.bank[file])}"
    )
    rows = [f"{number:4} | {_cells(cells, raw, 5)}" for number, cells in enumerate(content)]
    return "\n".join([head, *rows])


def _check_rows(row: int, rows: int, size: int) -> None:
    if row < 0 or rows < 1 or row + rows > size:
        raise DebugError(f"rows {row} to {row + rows - 1} do not all exist", remedy=f"rows are 0 to {size - 1}")


def _cells(cells: Any, raw: bool, digits: int) -> str:
    if raw:
        return " ".join(f"{int(cell):0{digits}x}" for cell in cells)
    if np.issubdtype(cells.dtype, np.integer):
        return " ".join(f"{int(cell):>11}" for cell in cells)
    return " ".join(f"{float(cell):>10.5g}" for cell in cells)


def lregs(session: DebugSession, register: int | None = None) -> str:
    """LRegs of the vector unit, 32 lanes each, as bits."""
    content = session.record.lregs
    if register is not None and not 0 <= register < len(content):
        raise DebugError(f"LReg {register} does not exist", remedy=f"use 0 to {len(content) - 1}")
    chosen = range(8) if register is None else (register,)
    lines = []
    for number in chosen:
        for lane in range(0, 32, SHOWN_WORDS):
            cells = " ".join(f"{int(word):08x}" for word in content[number, lane : lane + SHOWN_WORDS])
            lines.append(f"LReg{number:<2} lane {lane:2}: {cells}")
    return "\n".join(lines)


def gprs(session: DebugSession, thread: int) -> str:
    """The 64 general registers of a Tensix thread."""
    words = session.record.gpr[check_thread(thread)]
    rows = [f"{at:3}: " + " ".join(f"{int(w):08x}" for w in words[at : at + 8]) for at in range(0, len(words), 8)]
    return "\n".join([f"GPRs of thread {thread} ({THREAD_NAMES[thread]})", *rows])
