"""Mailboxes between the cores (tile K13 to K15)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault, refuse
from bhemu.machine.kernel import kernel

NOT_BUILT = fault("mailbox.not-built", Unimplemented, "the mailbox is not built", remedy="-", rule="tile K14")


@kernel
def mailbox_load(t, core, other, offset):
    return refuse(t, NOT_BUILT), np.int64(0)


@kernel
def mailbox_store(t, core, other, offset, value):
    return refuse(t, NOT_BUILT)
