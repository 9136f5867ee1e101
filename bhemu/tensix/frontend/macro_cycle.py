"""A cycle with scheduled instructions: the threads' words, and what SFPLOADMACRO has scheduled (math V.7).

This is one function with a place of its own in the table of handlers. Programs without macros never compile it.
"""

from __future__ import annotations

from bhemu.machine.types import AnyInt, Int, Table, TileRecord
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tensix.frontend.run import fetch_plain, issue, make_macro_cycle
from bhemu.tensix.vector.cycle import begin, end
from bhemu.tensix.vector_queue import BEGIN, END

_cycle = make_macro_cycle(issue, fetch_plain, begin, end)


def macro_cycle_entry(t: TileRecord, step: Int, table: Table) -> AnyInt:
    """A cycle of the thread `step`, of all threads, or of none (`make_macro_cycle`); or its begin or end alone."""
    if step == BEGIN:
        return begin(t, table)
    if step == END:
        return end(t, table)
    return _cycle(t, table, step, NO_LOG)
