"""The window through which T cores access Dst (tile K45 to K47)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault("dst_window.not-built", Unimplemented, "the Dst window is not built", remedy="-", rule="tile K45")


@kernel
def dst_load(t, thread, offset, size):
    return refuse(t, NOT_BUILT), np.int64(0)


@kernel
def dst_store(t, thread, offset, value, size):
    return refuse(t, NOT_BUILT)
