"""Auto TTSync: a store by a T core that waits for its own thread (tile K19)."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.agents import T0, T2
from bhemu.machine.kernel import kernel
from bhemu.tensix.frontend.fetch import is_idle
from bhemu.tensix.windows import CONFIG_BASE, GPR_BASE, GPR_WINDOW

_TRACKING_WORD: Final = 56
_GLOBAL_CONFIG: Final = 0x01
_GPRS: Final = 0x04
_TDMA: Final = 0x08
_INSTRUCTIONS: Final = 0x10


@kernel
def must_wait_for_own_thread(t, agent, address):
    """True when a store must wait until the instructions that the core has pushed have passed their gate (K19 b)."""
    if agent < T0 or agent > T2:
        return False
    tracked = np.int64(t.thread_config[agent - T0, _TRACKING_WORD])
    if (tracked & _INSTRUCTIONS) == 0:
        return False
    if address >= CONFIG_BASE:
        bit = _GLOBAL_CONFIG
    elif address >= GPR_BASE and address < GPR_BASE + GPR_WINDOW:
        bit = _GPRS
    else:
        bit = _TDMA
    return (tracked & bit) != 0 and not is_idle(t, agent - T0)
