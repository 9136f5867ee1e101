"""Logs written by hand, so that a test says exactly which words follow each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.analysis.hazard import HAZARD, Hazard
from bhemu.isa.assembler import assemble_program
from bhemu.recording import log as column
from bhemu.recording.log import Log, Note

BOTH_BANKS_FULL = 0b1111 << 4
"""All source banks belong to the matrix unit."""


def log_of(*lines: tuple[int, str] | tuple[int, str, dict[int, int]] | Note, owners: int = 0) -> Log:
    """A log of instructions, given as (thread, assembly text or a word 0x.., [columns]).

    Args:
        lines: in the order of execution; several instructions of one text share thread and columns; a Note takes its
            place among them.
        owners: ownership of the source banks at the start.
    """
    rows: list[list[int]] = []
    notes: list[Note] = []
    for at, item in enumerate(lines):
        if isinstance(item, Note):
            notes.append(Note(len(rows), item.push, item.thread, item.kind, item.values, item.line))
            continue
        thread, text = item[0], item[1]
        columns: dict[int, int] = item[2] if len(item) == 3 else {}
        for word in [int(text, 16)] if text.startswith("0x") else assemble_program(text):
            row = [0] * column.COLUMNS
            row[column.CLOCK] = len(rows)
            row[column.THREAD], row[column.WORD], row[column.LINE] = thread, word, at + 1
            row[column.OWNERS] = owners
            for which, value in columns.items():
                row[which] = value
            rows.append(row)
    array: Any = np.array(rows, np.int64).reshape(len(rows), column.COLUMNS)
    return Log(array, ([], [], []), notes)


def certain(found: list[Hazard]) -> list[Hazard]:
    """Hazards without notes."""
    return [hazard for hazard in found if hazard.severity == HAZARD]
