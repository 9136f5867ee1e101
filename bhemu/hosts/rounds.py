"""Rounds: workers move through a span side by side, and exchange frames and clock horizons between two of them.

The spans are those in which chips of one process move (cluster/clock.py), so the results are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bhemu.errors import BhemuError
from bhemu.hosts.part import Part


@dataclass(frozen=True)
class Horizon:
    """What a worker tells the others between two spans.

    Attributes:
        time: clocks that have passed on all of its chips.
        still: nothing of it can be seen by another chip before the end, unless something arrives.
        stopped: it has refused something, or cannot go on.
    """

    time: int
    still: bool
    stopped: bool


Exchange = Callable[[Horizon, Mapping[int, bytes]], tuple[Sequence[Horizon], Sequence[bytes]]]
"""Gives a horizon and batches of frames, by chip, to the others; returns the horizons of all, and what has come."""


def pass_clocks(part: Part, end: int, exchange: Exchange) -> BhemuError | None:
    """Let clocks pass on the chips of a worker while the others do the same.

    Args:
        part: its chips.
        end: clocks that have passed then.
        exchange: with the others.

    Returns:
        What a chip has refused. Then all workers stop at the end of that span.
    """
    refusal: BhemuError | None = None
    part.prepare()
    while True:
        batches = part.take_out()
        still = not batches and part.is_still(end)
        horizons, arrived = exchange(Horizon(part.time, still, refusal is not None), batches)
        for batch in arrived:
            part.put_in(batch)
        first = min(horizon.time for horizon in horizons)
        if first >= end or any(horizon.stopped for horizon in horizons):
            break
        goal = end if all(horizon.still for horizon in horizons) else min(end, first + part.latency)
        try:
            part.run_to(goal)
        except BhemuError as error:
            refusal = error
    part.arrive()
    return refusal


def settle(part: Part, exchange: Exchange) -> None:
    """What chips have sent to those of other workers is on its way there: before copies, and before waits are told."""
    _, arrived = exchange(Horizon(part.time, False, False), part.take_out())
    for batch in arrived:
        part.put_in(batch)
