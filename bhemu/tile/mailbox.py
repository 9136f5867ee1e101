"""Mailboxes: FIFOs of words from each of cores B, T0, T1, T2 to each of them (tile K13 to K15).

Core c pushes with a store to window j into the mailbox from c to j; a load there pops the mailbox from j to c. NC, the
NoC and the coprocessor have none: the memory map shows them nothing here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.tile_registers import offset_of
from bhemu.machine.device_state import MAILBOX_WORDS
from bhemu.machine.faults import DONE, WAIT
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

_PARTNERS: Final = 4
_STATUS_BIT: Final = offset_of("mailbox", "MAILBOX_STATUS")


@kernel
def mailbox_load(t: TileRecord, core: Int, other: Int, offset: Int) -> Any:
    """(status, value) of a load by core `core` from the mailbox that core `other` fills (K14).

    Address bit 2 alone decides, whatever the rest of the offset: clear pops and waits for a word, set asks whether
    there is one. Core numbers are those of machine/agents.py.
    """
    count = np.int64(t.mailbox_count[other, core])
    if offset & _STATUS_BIT:
        return DONE, np.int64(1 if count != 0 else 0)
    if count == 0:
        return WAIT, np.int64(0)
    head = np.int64(t.mailbox_head[other, core])
    t.mailbox_head[other, core] = (head + 1) % MAILBOX_WORDS
    t.mailbox_count[other, core] = count - 1
    return DONE, np.int64(t.mailbox_word[other, core, head])


@kernel
def mailbox_store(t: TileRecord, core: Int, other: Int, offset: Int, value: Int) -> Any:
    """Status of a push by core `core` to the mailbox of core `other`, at any offset of its window (K14).

    It waits while the four mailboxes that the core fills hold four words together.
    """
    held = np.int64(0)
    for reader in range(_PARTNERS):
        held += np.int64(t.mailbox_count[core, reader])
    if t.simulator_order != 0 and t.mailbox_count[core, other] != 0:
        return WAIT  # one word in each mailbox (E42)
    if held >= MAILBOX_WORDS:
        return WAIT
    count = np.int64(t.mailbox_count[core, other])
    at = (np.int64(t.mailbox_head[core, other]) + count) % MAILBOX_WORDS
    t.mailbox_word[core, other, at] = np.uint32(value)
    t.mailbox_count[core, other] = count + 1
    return DONE
