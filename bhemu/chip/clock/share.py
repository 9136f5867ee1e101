"""Work that several threads of the host share: each takes the next item until none is left."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.clock.atomic import fetch_add, let_others_run, load, store
from bhemu.machine.kernel import kernel
from bhemu.machine.state import offset_of
from bhemu.machine.types import AnyInt, Int, Table

SHARE_FIELDS: Final = (
    ("threads", "i8"),  # that take part, the one that gives out work included
    ("share_begin", "i8"),  # counts the shares of work that were given out
    ("share_count", "i8"),  # items in the share
    ("share_next", "i8"),  # the next item
    ("share_done", "i8"),  # items of the share that have been run
    ("share_stop", "i8"),  # no more work comes
)
"""Fields of a record whose work is shared; it also has its own `address`."""
NO_WORK: Final = 1 << 40
"""`share_next` while no work is given out: threads that ask get nothing."""


def make_sharing(record: np.dtype[Any], run_item: Any) -> tuple[Any, Any]:
    """How the items of a record are run on several threads: `run_all` and `help_others`, two kernels.

    `run_all(shared, table, count, busy)` runs items 0 to `count` - 1; one after the other when no other thread takes
    part, or when only one item is busy. `help_others(shared, table, begun)` takes part in such work until no more
    comes; `table` must have a code cache that no other thread uses, and `begun` is `share_begin` as it was before the
    work was given out.

    Args:
        record: with SHARE_FIELDS and `address`.
        run_item: a kernel, `run_item(shared, table, k)`; items may run in any order and at the same time.
    """
    to_begin, to_next, to_done = (offset_of(record, f"share_{name}") for name in ("begin", "next", "done"))

    @kernel
    def take_part(shared: Any, table: Table) -> None:
        while True:
            k = fetch_add(shared.address + to_next, 1)
            if k >= shared.share_count:
                return
            run_item(shared, table, k)
            fetch_add(shared.address + to_done, 1)

    @kernel
    def run_all(shared: Any, table: Table, count: Int, busy: Int) -> None:
        if shared.threads <= 1 or busy <= 1:
            for k in range(count):
                run_item(shared, table, k)
            return
        shared.share_count = count
        store(shared.address + to_done, 0)
        store(shared.address + to_next, 0)
        fetch_add(shared.address + to_begin, 1)
        take_part(shared, table)
        while load(shared.address + to_done) < count:
            let_others_run()
        store(shared.address + to_next, NO_WORK)  # who comes late finds nothing, whatever the next share is

    @kernel
    def help_others(shared: Any, table: Table, begun: Int) -> AnyInt:
        while True:
            while load(shared.address + to_begin) == begun:
                let_others_run()
            begun += 1
            if shared.share_stop != 0:
                return 0
            take_part(shared, table)

    return run_all, help_others
