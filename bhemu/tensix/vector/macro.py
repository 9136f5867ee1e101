"""SFPLOADMACRO (math V.7)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.tensix.instruction import MISSING, Mode, instruction

NO_MACROS = fault(
    "vector.loadmacro",
    Unimplemented,
    "SFPLOADMACRO (macro {0}): bhemu does not schedule macros yet",
    remedy="write the load and the macro's instructions as plain SFP instructions",
    rule="math V.7",
)


@instruction(Mode("load and scheduled instructions", MISSING, rule="math V.7"))
def SFPLOADMACRO(t, thread, lreg_ind):
    return refuse(t, NO_MACROS, lreg_ind >> 2)
