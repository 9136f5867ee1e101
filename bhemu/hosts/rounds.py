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


@dataclass(frozen=True)
class Request:
    """Clocks that are to pass, the same for all workers.

    Attributes:
        start: clocks that have passed on all chips.
        end: clocks that have passed then.
        heard: clock before which all frames have gone to their receivers' workers; None: that is not known.
    """

    start: int
    end: int
    heard: int | None


def pass_clocks(part: Part, request: Request, exchange: Exchange) -> tuple[BhemuError | None, int | None]:
    """Let clocks pass on the chips of a worker while the others do the same.

    Spans end where those of one process do. Workers meet only before a span in which a frame could arrive of which they
    have not heard: a client that lets a few clocks pass at a time does not make them meet each time.

    Args:
        part: its chips.
        request: what is to be done. All workers meet at the same clocks, as they decide by it alone.
        exchange: with the others.

    Returns:
        What a chip has refused, and `heard` as it is now. After a refusal all workers stop where they meet next.
    """
    refusal: BhemuError | None = None
    heard, first, end = request.heard, request.start, request.end
    part.prepare()
    while first < end:
        goal = min(end, first + part.latency)
        if heard is None or goal > heard + part.latency:
            batches = part.take_out()
            still = not batches and part.is_still(end)
            horizons, arrived = exchange(Horizon(part.time, still, refusal is not None), batches)
            for batch in arrived:
                part.put_in(batch)
            heard = first = min(horizon.time for horizon in horizons)
            if any(horizon.stopped for horizon in horizons):
                break
            goal = end if all(horizon.still for horizon in horizons) else min(end, first + part.latency)
        try:
            part.run_to(goal)
        except BhemuError as error:
            refusal = error
        first = goal
    part.arrive()
    return refusal, heard


def settle(part: Part, exchange: Exchange) -> None:
    """What chips have sent to those of other workers is on its way there: before copies, and before waits are told."""
    _, arrived = exchange(Horizon(part.time, False, False), part.take_out())
    for batch in arrived:
        part.put_in(batch)
