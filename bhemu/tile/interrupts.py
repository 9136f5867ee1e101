"""Interrupts of cores B and NC (tile K22 to K24)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault(
    "interrupts.not-built", Unimplemented, "the interrupt controller is not built", remedy="-", rule="tile K22"
)


@kernel
def pic_load(t, agent, offset):
    return refuse(t, NOT_BUILT), np.int64(0)


@kernel
def pic_store(t, agent, offset, value):
    return refuse(t, NOT_BUILT)


@kernel
def take_interrupt(t, core):
    """Let the core enter the handler of an interrupt that is raised and enabled, if there is one."""
