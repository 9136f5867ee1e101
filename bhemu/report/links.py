"""What went over the links of several chips, and what happened to them (recording/link_recording.py)."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bhemu.recording.link_recording import COLUMNS
from bhemu.recording.parts import Reader

BINS: Final = 100
"""Spans of time for which the bytes of a link are summed."""
_AT: Final = {name: number for number, name in enumerate(COLUMNS)}


@dataclass
class LinkFigures:
    """One direction of a link.

    Attributes:
        sender, receiver: its ends, as `chip:channel`.
        frames, size: that left, and their bytes.
        begin, end: clocks in which the first left, and before which the last arrives; 0 without any.
        lost: frames that the link has lost.
        events: (clock, what) happened to it; of a link that goes down those of the direction in which it is described.
        sent: bytes that left, by span of time (`Links.bin`).
    """

    sender: str
    receiver: str
    frames: int = 0
    size: int = 0
    begin: int = 0
    end: int = 0
    lost: int = 0
    events: list[tuple[int, str]] = field(default_factory=list)
    sent: list[int] = field(default_factory=lambda: [0] * BINS)


@dataclass
class Links:
    """Both directions of all links.

    Attributes:
        bin: clocks of a span of time, of which the first begins with clock 0.
        directions: in the order of the links.
    """

    bin: int = 1
    directions: list[LinkFigures] = field(default_factory=list)


def read_links(reader: Reader) -> Links:
    """The links of a recording; none, where it has none."""
    found: dict[tuple[str, str], LinkFigures] = {}
    rows: dict[tuple[str, str], list[np.ndarray[Any, Any]]] = defaultdict(list)
    for path in reader.links:
        for told, arrays, _ in reader.frames(path):
            for link in told.get("links", ()):
                a, b = link.split(" - ")
                for ends in ((a, b), (b, a)):
                    found.setdefault(ends, LinkFigures(*ends))
            if told["kind"] == "links":
                for clock, end, other, what, lost in told["events"]:
                    one = found[end, other]
                    one.events.append((clock, what))
                    one.lost = max(one.lost, lost)
                for ends, chosen in _by_direction(arrays["frames"]).items():
                    rows[ends].append(chosen)
    made = {ends: np.concatenate(parts) for ends, parts in rows.items()}
    last = max((int(part[:, _AT["sent"]].max()) for part in made.values()), default=0)
    links = Links(last // BINS + 1, list(found.values()))
    for ends, frames in made.items():
        one, sent, size = found[ends], frames[:, _AT["sent"]], frames[:, _AT["size"]]
        one.frames, one.size = len(frames), int(size.sum())
        one.begin, one.end = int(sent.min()), int(frames[:, _AT["arrival"]].max())
        one.sent = np.bincount(sent // links.bin, size, BINS).astype(np.int64).tolist()
    return links


def _by_direction(frames: np.ndarray[Any, Any]) -> dict[tuple[str, str], np.ndarray[Any, Any]]:
    """Rows of frames by their ends."""
    places = frames[:, : _AT["sent"]]
    return {
        (f"{a}:{b}", f"{c}:{d}"): frames[(places == (a, b, c, d)).all(axis=1)]
        for a, b, c, d in np.unique(places, axis=0).tolist()
    }


def link_lines(links: Links, number: int) -> list[str]:
    """The directions with most bytes, and all to which something has happened, as a table."""
    busy = sorted(links.directions, key=lambda one: -one.size)
    shown = [one for n, one in enumerate(busy) if one.events or (one.frames and n < number)]
    if not shown:
        return []
    lines = [f"{'link':<8}{'to':<8}{'frames':>9}{'bytes':>14}  clocks"]
    for one in shown:
        clocks = f"{one.begin:,} to {one.end:,}" if one.frames else "none left"
        more = "".join(f"; {what} (clock {clock:,})" for clock, what in one.events)
        lines.append(f"{one.sender:<8}{one.receiver:<8}{one.frames:>9,}{one.size:>14,}  {clocks}{more}")
    left = sum(1 for one in busy if one.frames) - sum(1 for one in shown if one.frames)
    return [*lines, f"({left} more)"] if left else lines


def links_as_json(links: Links) -> list[dict[str, Any]]:
    """The same as plain data, with bytes over time: [first clock, bytes] of each span in which something left."""
    return [
        {
            "from": one.sender,
            "to": one.receiver,
            "frames": one.frames,
            "bytes": one.size,
            "begin": one.begin,
            "end": one.end,
            "lost": one.lost,
            "events": [{"clock": clock, "what": what} for clock, what in one.events],
            "span": links.bin,
            "sent": [[n * links.bin, size] for n, size in enumerate(one.sent) if size],
        }
        for one in links.directions
    ]
