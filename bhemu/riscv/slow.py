"""Instructions outside the inner loop: Zaamo, Zicsr, F, ecall, ebreak, mret (tile T5 to T9, T12)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault("slow.not-built", Unimplemented, "the instruction is not built", remedy="-", rule="tile T1")


@kernel
def slow_core(t, core):
    """Execute the instruction at the core's pc: DONE, pc then at the next one; or WAIT or REFUSED, nothing changed.

    Rounds and retired instructions are counted by the schedule.
    """
    return refuse(t, NOT_BUILT)


def slow_core_entry(t, core, _):
    """`slow_core` for the table of handlers."""
    return slow_core(t, core)
