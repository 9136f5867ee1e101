"""What goes over the links of a system: each frame, with the clocks in which it left and can arrive (ethernet 2.2, 6).

Frames stay with their sender until a span is over (chip/links/send.py). Who looks after each span has seen them all, so
recording costs nothing inside of compiled code.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bhemu import checks
from bhemu.checks import checked
from bhemu.chip.device import Device
from bhemu.chip.links.send import FRAME
from bhemu.cluster.failures import tile_of_end
from bhemu.cluster.frames import AFTER, chain
from bhemu.cluster.topology import End, Topology
from bhemu.errors import ProgramError
from bhemu.ethernet.queues import DATA_FRAME
from bhemu.files import write_whole


@dataclass(frozen=True)
class FrameSent:
    """A frame.

    Attributes:
        sender, receiver: the ends of its link.
        sent: clock in which it left.
        arrival: clock before which it is there, unless the link fails meanwhile.
        kind: `data` for L1, `register` for one word.
        target: address at the receiver.
        size: bytes.
    """

    sender: End
    receiver: End
    sent: int
    arrival: int
    kind: str
    target: int
    size: int


@checked
class LinkRecording:
    """Frames of a cluster's links, from `Cluster.record_links`. Frames that a link loses at once are not among them.

    Attributes:
        is_over: nothing is recorded any more.
    """

    def __init__(self, devices: Sequence[Device], topology: Topology) -> None:
        self._frames: list[FrameSent] = []
        self._ends = [
            (devices[end.chip].record, tile_of_end(devices[end.chip], end).index, end, other)
            for end, other in topology.ends.items()
        ]
        self._known: dict[End, tuple[int, int, int]] = {}
        self.is_over = False

    def note(self) -> None:
        """Take down what has left since the last time; at least once in each span."""
        for record, channel, end, other in self._ends:
            address = int(record.sent_first[channel])
            if not address:
                continue
            heads = [_head(frame) for frame in chain(address)]
            first, known = (address, int(heads[0]["sent"])), self._known.get(end, (0, 0, 0))
            for head in heads[known[2] if known[:2] == first else 0 :]:
                kind = "data" if head["kind"] == DATA_FRAME else "register"
                numbers = (int(head["sent"]), int(head["arrival"]), kind, int(head["target"]), int(head["byte_count"]))
                self._frames.append(FrameSent(end, other, *numbers))
            self._known[end] = (*first, len(heads))

    def stop(self) -> None:
        """Record no more."""
        self.is_over = True

    @property
    def frames(self) -> tuple[FrameSent, ...]:
        """All frames, in the order in which they left."""
        return tuple(sorted(self._frames, key=lambda frame: frame.sent))

    def save_trace(self, path: str | Path) -> None:
        """Write a trace for Perfetto: each direction of a link is a track, each frame a slice, a clock a microsecond.

        Raises:
            ProgramError: the file cannot be written.
        """
        events: list[dict[str, Any]] = []
        tracks = {key: number for number, key in enumerate(sorted(self._by_direction(), key=str))}
        for (sender, receiver), number in tracks.items():
            name = {"name": f"{sender} to {receiver}"}
            events.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": name})
        for frame in self.frames:
            about = {"address": hex(frame.target), "bytes": frame.size}
            event = {"ph": "X", "name": frame.kind, "ts": frame.sent, "dur": frame.arrival - frame.sent, "pid": 0}
            events.append({**event, "tid": tracks[frame.sender, frame.receiver], "args": about})
        target = checks.path(path)
        try:
            write_whole(target, json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode())
        except OSError as error:
            raise ProgramError(
                f"{target} cannot be written: {error.strerror or error}", remedy="write to another place"
            ) from None

    def _by_direction(self) -> dict[tuple[End, End], list[FrameSent]]:
        found = defaultdict(list)
        for frame in self.frames:
            found[frame.sender, frame.receiver].append(frame)
        return found

    def __str__(self) -> str:
        """A line for each direction of a link: frames, bytes, and when."""
        lines = ["from   to     frames  bytes       clocks"]
        for (sender, receiver), frames in sorted(self._by_direction().items(), key=lambda known: str(known[0])):
            size = sum(frame.size for frame in frames)
            when = f"{frames[0].sent:,} to {max(frame.arrival for frame in frames):,}"
            lines.append(f"{sender!s:<6} {receiver!s:<6} {len(frames):<7,} {size:<11,} {when}")
        return "\n".join(lines)


def _head(frame: bytes) -> Any:
    """The head of a frame, as `chain` gives it."""
    return np.frombuffer(bytes(AFTER) + frame, FRAME, 1)[0]
