"""The part of the hazard check for circular buffers: what a core does with pages that it has not waited for.

A buffer has two counters of 16 bits in the registers of a stream (K51): pages received, which the producer changes, and
pages acknowledged, which the consumer changes. A core knows of the other side what it has loaded last.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bhemu.analysis.check_noc import NocCheck
from bhemu.analysis.hazard import BUFFERS, Place, Reports
from bhemu.analysis.loops import slack
from bhemu.analysis.tile_events import CORE, PACKER, UNPACKER, Pages, Touch
from bhemu.recording.circular_buffers import CircularBuffer
from bhemu.recording.core_log import Array

_RANGE: Final = 1 << 16
_HALF: Final = _RANGE // 2


@dataclass
class _Known:
    """What a core knows of a counter.

    Attributes:
        count: pages since the counters were emptied, as far as the core has waited; None: it has not looked.
        place: where it looked.
    """

    count: int
    place: Place | None = None


@dataclass
class _Ring:
    """One buffer's counters; pages count on beyond 16 bits.

    Attributes:
        received, acked: pages; None: the recording has begun after the last emptying.
        known_received, known_acked: by core.
        pushed, popped: where pages were handed over last.
        consumers, producers: cores that pop or push pages in the program.
    """

    received: int | None = None
    acked: int | None = None
    known_received: dict[int, _Known] = field(default_factory=dict)
    known_acked: dict[int, _Known] = field(default_factory=dict)
    pushed: Place | None = None
    popped: Place | None = None
    consumers: set[int] = field(default_factory=set)
    producers: set[int] = field(default_factory=set)


@dataclass
class BufferCheck:
    """Circular buffers of one tile.

    Args:
        reports: where hazards go.
        noc: requests that are under way.
    """

    reports: Reports
    noc: NocCheck
    _rings: dict[int, _Ring] = field(default_factory=dict)
    _buffers: dict[int, CircularBuffer] = field(default_factory=dict)
    _rows: Array | None = None
    _first: int = 0

    def begin(self, buffers: Iterable[CircularBuffer], pages: Iterable[Pages]) -> None:
        """A program begins.

        Args:
            buffers: that it has.
            pages: all that it does with counters, to know who is at which end.
        """
        self._buffers = {buffer.number: buffer for buffer in buffers}
        for ring in self._rings.values():
            ring.consumers, ring.producers = set(), set()
        for event in pages:
            if event.stored and event.value:
                ring = self._ring(event.stream)
                (ring.producers if event.received else ring.consumers).add(event.core)

    def rows(self, rows: Array, first: int) -> None:
        """The rows of the cores around the part that is read next.

        Args:
            rows: of parts of the program that follow each other, with nothing left out between them.
            first: row among them with which the part begins.
        """
        self._rows, self._first = rows, first

    def forget(self) -> None:
        """Something was left out: nothing is known of the counters until they are emptied again."""
        for ring in self._rings.values():
            ring.received = ring.acked = ring.pushed = ring.popped = None
            ring.known_received, ring.known_acked = {}, {}

    def _ring(self, stream: int) -> _Ring:
        return self._rings.setdefault(stream, _Ring())

    # --- counters -----------------------------------------------------------------------------------------------------

    def counted(self, event: Pages) -> None:
        """A counter was loaded or stored."""
        ring = self._ring(event.stream)
        if not event.stored:
            self._loaded(ring, event)
            return
        before = ring.received if event.received else ring.acked
        step = _RANGE if before is None else (event.value - before) % _RANGE
        if event.value == 0 and (before is None or step >= min(_HALF, self._pages(event.stream) + 1)):
            self._emptied(ring, received=event.received)
        elif before is None or step >= _HALF:
            return  # not how a buffer is used
        elif event.received:
            self._push(ring, event, before + step)
        else:
            self._pop(ring, event, before + step)

    def _pages(self, stream: int) -> int:
        buffer = self._buffers.get(stream)
        return buffer.pages if buffer is not None else _HALF

    def _emptied(self, ring: _Ring, *, received: bool) -> None:
        if received:
            ring.received, ring.known_received, ring.pushed = 0, {}, None
        else:
            ring.acked, ring.known_acked, ring.popped = 0, {}, None

    def _loaded(self, ring: _Ring, event: Pages) -> None:
        now = ring.received if event.received else ring.acked
        if now is None:
            return
        count = now - (now - event.value) % _RANGE
        known = ring.known_received if event.received else ring.known_acked
        last = known.get(event.core)
        if last is not None and count <= last.count:
            return
        other = ring.acked if event.received else ring.received
        if self._rows is not None and other is not None and event.row >= 0:
            # A wait may find more than it has waited for.
            here = count - other if event.received else self._pages(event.stream) - (other - count)
            count -= slack(self._rows, self._first + event.row, here) or 0
        if last is None or count > last.count:
            known[event.core] = _Known(count, event.place)

    def _push(self, ring: _Ring, event: Pages, count: int) -> None:
        buffer = self._buffers.get(event.stream)
        known = ring.known_acked.get(event.core, _Known(0))
        if buffer is not None:
            if ring.acked is not None and count > known.count + buffer.pages:
                self.reports.add(
                    BUFFERS,
                    "tile K51",
                    f"pushes {count - known.count - buffer.pages} pages more of circular buffer {event.stream} than it "
                    f"has reserved: its consumer may still read them",
                    known.place or ring.popped or event.place,
                    event.place,
                    "cb_reserve_back before cb_push_back",
                )
            for pending in self.noc.reads:
                if pending.request.core == event.core and self._holds(
                    buffer, pending.begin, pending.end, ring.received or 0, count
                ):
                    self.reports.add(
                        BUFFERS,
                        "tile K51, N20",
                        f"pushes a page of circular buffer {event.stream} before the NoC read into it has ended",
                        pending.place,
                        event.place,
                        f"noc_async_read_barrier on NoC {pending.request.noc} before cb_push_back",
                    )
        ring.received, ring.pushed = count, event.place

    def _pop(self, ring: _Ring, event: Pages, count: int) -> None:
        buffer = self._buffers.get(event.stream)
        known = ring.known_received.get(event.core, _Known(0))
        if ring.received is not None and count > known.count:
            self.reports.add(
                BUFFERS,
                "tile K51",
                f"pops {count - known.count} pages more of circular buffer {event.stream} than it has waited for",
                known.place or ring.pushed or event.place,
                event.place,
                "cb_wait_front before cb_pop_front",
            )
        if buffer is not None:
            for pending in self.noc.writes:
                if (
                    pending.leaving
                    and pending.request.core == event.core
                    and self._holds(buffer, pending.begin, pending.end, ring.acked or 0, count)
                ):
                    self.reports.add(
                        BUFFERS,
                        "tile K51, N20",
                        f"pops a page of circular buffer {event.stream} before the NoC write of it has left",
                        pending.place,
                        event.place,
                        f"noc_async_writes_flushed or noc_async_write_barrier on NoC {pending.request.noc} before "
                        "cb_pop_front",
                    )
        ring.acked, ring.popped = count, event.place

    @staticmethod
    def _holds(buffer: CircularBuffer, begin: int, end: int, first: int, behind: int) -> bool:
        """Bytes lie in one of the pages `first` to `behind` - 1."""
        for page in range(first, min(behind, first + buffer.pages)):
            at = buffer.address + page % buffer.pages * buffer.page_size
            if begin < at + buffer.page_size and at < end:
                return True
        return False

    # --- pages --------------------------------------------------------------------------------------------------------

    def touched(self, touch: Touch) -> None:
        """An agent accesses L1: in a buffer only pages that it has waited for, or reserved."""
        found: list[tuple[str, Place, str, str]] = []
        for number, buffer in self._buffers.items():
            if not (buffer.address <= touch.begin and touch.end <= buffer.end):
                continue
            ring = self._rings.get(number)
            if ring is None or ring.received is None or ring.acked is None:
                return
            wrong = self._wrong(ring, buffer, touch)
            if wrong is None:
                return  # a buffer that lies on others: what one of them allows is right
            found.append(wrong)
        for message, first, missing, rule in found[:1]:
            self.reports.add(BUFFERS, rule, message, first, touch.place, missing)

    def _wrong(self, ring: _Ring, buffer: CircularBuffer, touch: Touch) -> tuple[str, Place, str, str] | None:
        """What is wrong with an access to a buffer; None: nothing, or nothing that can be known."""
        assert ring.received is not None
        assert ring.acked is not None
        if touch.writes:
            if touch.core not in ring.producers or touch.who == UNPACKER:
                return None
            known = ring.known_acked.get(touch.core, _Known(0))
            page = _page(buffer, touch.end - 1, ring.received)
            if page < known.count + buffer.pages:
                return None
            first = known.place or ring.popped or ring.pushed
            text = f"writes a page of circular buffer {buffer.number} that it has not reserved"
            return (text, first, "cb_reserve_back before the write", "tile K51") if first is not None else None
        if touch.core not in ring.consumers or touch.who == PACKER:
            return None
        if touch.core in ring.producers and touch.who == CORE:
            return None  # at both ends: it may look at what it is writing
        known = ring.known_received.get(touch.core, _Known(0))
        page = _page(buffer, touch.end - 1, ring.acked)
        if page < known.count:
            return None
        first = known.place or ring.pushed or ring.popped
        text = f"reads a page of circular buffer {buffer.number} that it has not waited for"
        return text, first or touch.place, "cb_wait_front before the read", "tile K51"


def _page(buffer: CircularBuffer, address: int, first: int) -> int:
    """Number of the page at an address, counted on from page `first`."""
    place = (address - buffer.address) // buffer.page_size
    return first + (place - first) % buffer.pages
