"""Work that several threads of the host share.

Items are dealt out in parts, one a thread. A thread runs its own part first, then what is left of the others'. So an
item mostly stays on the same thread from one share of work to the next, and what it touches in that processor's caches.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.machine.atomic import fetch_add, let_others_run, load, store
from bhemu.machine.kernel import kernel
from bhemu.machine.state import offset_of
from bhemu.machine.types import AnyInt, Int, Table

MOST_PARTS: Final = 32
_LINE: Final = 8
"""Words of a cache line: a counter that one thread changes often is not beside another's."""
SHARE_FIELDS: Final = (
    ("threads", "i8"),  # that take part, the one that gives out work included
    ("share_begin", "i8"),  # counts the shares of work that were given out
    ("share_count", "i8"),  # items in the share
    ("share_joined", "i8"),  # counts the threads that have begun to help
    ("share_done", "i8"),  # items of the share that have been run
    ("share_next", "i8", (MOST_PARTS, _LINE)),  # [part, 0]: items of the part that have been taken
    ("share_stop", "i8"),  # no more work comes
    ("share_alone", "i8"),  # 1: the thread that gives out work does all of it for now
    ("share_leaves", "i8"),  # so often a helper looks for work before it leaves, to be called again; 0: it stays
    ("share_late", "i8"),  # counts the shares in which a thread came back late with an item
)
"""Fields of a record whose work is shared; it also has its own `address`."""
_LOOKS: Final = 4000
"""How often a helper that is to stay looks for work before it yields: some microseconds, in which most shares begin."""
_LATE_LOOKS: Final = 600_000
"""How often the thread that gives out work looks for the end of a share before it yields: some 250 us."""
_NO_WORK: Final = 1 << 40
"""`share_next` between two shares: threads that ask get nothing."""


def make_sharing(record: np.dtype[Any], run_item: Any) -> tuple[Any, Any]:
    """How the items of a record are run on several threads: `run_all` and `help_others`, two kernels.

    `run_all(shared, table, count, busy)` runs items 0 to `count` - 1; one after the other when no other thread takes
    part, or when only one item is busy. `help_others(shared, table, begun)` takes part in such work until no more
    comes, or has not come for a while (`share_leaves`); `table` must have a code cache that no other thread uses, and
    `begun` is `share_begin` as it was before the work was given out. Between two shares it reads these fields and
    nothing else.

    Args:
        record: with SHARE_FIELDS and `address`.
        run_item: a kernel, `run_item(shared, table, k)`; items may run in any order and at the same time.
    """
    to_begin, to_next, to_done, to_joined = (
        offset_of(record, f"share_{name}") for name in ("begin", "next", "done", "joined")
    )
    next_bytes = 8 * _LINE

    @kernel
    def take_part(shared: Any, table: Table, own: Int) -> None:
        parts: Int = min(np.int64(shared.threads), np.int64(MOST_PARTS))
        done = 0
        for i in range(parts):
            part = (own + i) % parts
            while True:
                taken = fetch_add(shared.address + to_next + part * next_bytes, 1)
                k = part * shared.share_count // parts + taken
                if k >= (part + 1) * shared.share_count // parts:
                    break
                run_item(shared, table, k)
                done += 1
        fetch_add(shared.address + to_done, done)

    @kernel
    def run_all(shared: Any, table: Table, count: Int, busy: Int) -> None:
        if shared.threads <= 1 or shared.share_alone != 0 or busy <= 1:
            for k in range(count):
                run_item(shared, table, k)
            return
        shared.share_count = count
        store(shared.address + to_done, 0)
        parts: Int = min(np.int64(shared.threads), np.int64(MOST_PARTS))
        for part in range(parts):
            store(shared.address + to_next + part * next_bytes, 0)
        fetch_add(shared.address + to_begin, 1)
        take_part(shared, table, 0)
        looks = 0
        while load(shared.address + to_done) < count:
            looks += 1
            if looks > _LATE_LOOKS:
                let_others_run()
        if looks > _LATE_LOOKS:
            shared.share_late += 1
        for part in range(parts):  # who comes late finds nothing, whatever the next share is
            store(shared.address + to_next + part * next_bytes, _NO_WORK)

    @kernel
    def help_others(shared: Any, table: Table, begun: Int) -> AnyInt:
        own = fetch_add(shared.address + to_joined, 1) % max(np.int64(shared.threads) - 1, 1) + 1
        while True:
            looks = 0
            while load(shared.address + to_begin) == begun:
                looks += 1
                leaves = np.int64(shared.share_leaves)
                if leaves != 0:
                    if looks > leaves:
                        return 0
                elif looks > _LOOKS:
                    let_others_run()
            begun = load(shared.address + to_begin)
            if shared.share_stop != 0:
                return 0
            take_part(shared, table, own)

    return run_all, help_others
