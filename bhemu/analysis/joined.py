"""The coprocessor's words of parts that follow each other, as one log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.log import Log, Note, Push
from bhemu.recording.parts import Part


def join_words(parts: Sequence[Part]) -> Log:
    """One log of parts of a tile in their order; pushes and rows are counted through."""
    rows, notes = [], []
    pushes: tuple[list[Push], list[Push], list[Push]] = ([], [], [])
    base = parts[0].first_push
    before = 0
    for part in parts:
        log = part.log.tensix
        moved = log.rows.copy()
        for thread in range(THREADS):
            ahead = part.first_push[thread] - base[thread]
            moved[moved[:, column.THREAD] == thread, column.PUSH] += ahead
            known = pushes[thread]
            known += [Push(before, False)] * (ahead - len(known))
            del known[max(ahead, 0) :]
            known += [Push(push.row + before, push.own) for push in log.pushes[thread]]
        rows.append(moved)
        notes += [_moved(note, before, part.first_push[note.thread] - base[note.thread]) for note in log.notes]
        before += len(log.rows)
    return Log(np.concatenate(rows), pushes, notes)


def _moved(note: Note, rows: int, pushes: int) -> Note:
    ready = None if note.ready is None else note.ready + rows
    return replace(note, row=note.row + rows, push=note.push + pushes, ready=ready)
