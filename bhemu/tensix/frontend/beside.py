"""A cycle in which something is scheduled: the threads' words beside what SFPLOADMACRO has scheduled (math V.7).

This is one function with a place of its own in the table of handlers. Programs without macros never compile it.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.machine.dispatch import NOT_COMPILED
from bhemu.machine.faults import DONE, REFUSED, SCHEDULED, WAIT
from bhemu.machine.state import THREADS
from bhemu.tensix.frontend.fetch import fetch
from bhemu.tensix.frontend.run import EMPTY, issue
from bhemu.tensix.vector.cycle import begin, end
from bhemu.tensix.vector_queue import ALL_THREADS, BEGIN, END


def beside_entry(t, step, table):
    """A cycle of the thread `step`, of all threads, or of none; or the begin or the end of a cycle.

    Returns:
        Of a cycle: DONE when something moved; WAIT; EMPTY when a single thread has no word, before anything happens;
        REFUSED; NOT_COMPILED, and the next call goes on with the same cycle.
    """
    if step == END:
        return end(t, table)
    if step < THREADS and t.gate_full[step] == 0 and not fetch(t, step):
        return EMPTY
    began = WAIT
    scheduled = t.macro_pending != 0
    if scheduled:
        began = begin(t, table)
    if step == BEGIN or began in (REFUSED, NOT_COMPILED):
        return began
    result = began
    first = np.int64(t.macro_resume)
    t.macro_resume = 0
    for thread in range(first, THREADS):
        if thread == step or step == ALL_THREADS:
            status = issue(t, table, thread)
            if status in (REFUSED, NOT_COMPILED):
                t.macro_resume = thread if status == NOT_COMPILED else thread + 1
                return status
            if status in (DONE, SCHEDULED):
                result = DONE
    if scheduled and end(t, table) != DONE:
        return REFUSED
    return result
