"""PCBufs, manual TTSync and the semaphore window (tile K16 to K21)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault("sync_window.not-built", Unimplemented, "the sync window is not built", remedy="-", rule="tile K16")


@kernel
def sync_load(t, core, address):
    return refuse(t, NOT_BUILT), np.int64(0)


@kernel
def sync_store(t, core, address, value):
    return refuse(t, NOT_BUILT)
