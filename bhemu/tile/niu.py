"""Registers of the network interfaces (tile N13 to N24)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault("niu.not-built", Unimplemented, "the NIU is not built", remedy="-", rule="tile N13")


@kernel
def niu_load(t, noc, offset):
    return refuse(t, NOT_BUILT), np.int64(0)


@kernel
def niu_store(t, noc, offset, value):
    return refuse(t, NOT_BUILT)
