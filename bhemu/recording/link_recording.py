"""What goes over the links of a system: each frame, with the clocks in which it left and can arrive (ethernet 2.2, 6).

Frames stay with their sender until a span is over (chip/links/send.py). An observer that looks after
each span has seen them all, so recording costs nothing inside of compiled code. On disk it is a file
beside those of chips (recording/parts.py).
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.chip.device import Device
from bhemu.chip.links.send import FRAME
from bhemu.cluster.failures import RETRAINS_TEXT, tile_of_end
from bhemu.cluster.frames import AFTER, chain
from bhemu.cluster.topology import End, Topology
from bhemu.errors import ProgramError
from bhemu.ethernet.queues import DATA_FRAME
from bhemu.files import write_whole
from bhemu.recording.parts import SUFFIX, Writer

COLUMNS: Final = ("chip", "channel", "to_chip", "to_channel", "sent", "arrival", "is_data", "target", "size")
"""Columns of the rows of frames on disk."""
_IN_MEMORY: Final = 1 << 14
"""Frames from which on those of a recording that goes to a file are written."""
_NO_LIMIT: Final = 1 << 62


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


@dataclass(frozen=True)
class LinkEvent:
    """What happened to a link.

    Attributes:
        clock: at the end of the span in which it was seen.
        end: of the link; the one that sends, where frames are lost.
        other: its other end.
        what: `down`, `up`, `retrains until clock N`, or `lost N frames`, which counts from the link's first clock on.
        lost: frames that `end` has lost by then.
    """

    clock: int
    end: End
    other: End
    what: str
    lost: int


@checked
class LinkRecording:
    """Frames of a cluster's links, from `Cluster.record_links`. Frames that a link loses at once are not among them.

    Args:
        devices: the chips.
        topology: their links.
        writer: gets the frames; None keeps them in memory.

    Attributes:
        is_over: nothing is recorded any more.
    """

    def __init__(self, devices: Sequence[Device], topology: Topology, writer: Writer | None = None) -> None:
        self._frames: list[FrameSent] = []
        self._events: list[LinkEvent] = []
        self._topology = topology
        self._writer = writer
        self._process = os.getpid()
        self._ends = [
            (devices[end.chip].record, tile_of_end(devices[end.chip], end).index, end, other)
            for end, other in topology.ends.items()
        ]
        self._known: dict[End, tuple[int, int, int]] = {}
        self._states = dict.fromkeys(topology.ends, (0, 0, 0))
        self.is_over = False
        self._note_states()

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
        self._note_states()
        if self._writer is not None and len(self._frames) >= _IN_MEMORY:
            self._flush(self._writer)

    def _note_states(self) -> None:
        """Take down which links have failed, or work again."""
        for record, channel, end, other in self._ends:
            fault, clock = record.fault, int(record.time)
            state = (int(fault.down[channel]), int(fault.until[channel]), int(fault.lost[channel]))
            down, until, lost = before = self._states[end]
            if state == before:
                continue
            self._states[end] = state
            said = []
            if (end, other) in self._topology.links:  # the others are the same links from their other ends
                said += [("up", "down")[state[0]]] * (state[0] != down)
                said += [RETRAINS_TEXT.format(state[1])] * (state[1] > until)
            said += [f"lost {state[2]:,} frames"] * (state[2] != lost)
            self._events += [LinkEvent(clock, end, other, what, state[2]) for what in said]

    def stop(self) -> None:
        """Record no more."""
        if self._writer is not None and not self.is_over and self._process == os.getpid():
            self._flush(self._writer)
            self._writer.close()
        self.is_over = True

    def _flush(self, writer: Writer) -> None:
        """Write what is in memory."""
        rows = [
            (
                *(f.sender.chip, f.sender.channel, f.receiver.chip, f.receiver.channel),
                *(f.sent, f.arrival, f.kind == "data", f.target, f.size),
            )
            for f in self._frames
        ]
        events = [[one.clock, str(one.end), str(one.other), one.what, one.lost] for one in self._events]
        array = np.array(rows, np.int64).reshape(-1, len(COLUMNS))
        writer.frame({"kind": "links", "events": events}, {"frames": array})
        self._frames, self._events = [], []

    @property
    def events(self) -> tuple[LinkEvent, ...]:
        """What happened to links, in the order in which it was seen."""
        return tuple(self._events)

    def save(self, directory: str | Path) -> Path:
        """Write it into a directory, beside recordings of its chips, for `bhemu report`; returns the file.

        Raises:
            ProgramError: it cannot be written.
        """
        path = checks.path(directory) / f"links{SUFFIX}"
        frames, events = self._frames, self._events
        try:
            path.unlink(missing_ok=True)
            writer = links_writer(path, self._topology, {})
            self._flush(writer)
            writer.close()
        except OSError as error:
            raise _not_written(path, error) from None
        finally:
            self._frames, self._events = frames, events
        return path

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
            raise _not_written(target, error) from None

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


def links_writer(path: Path, topology: Topology, about: dict[str, Any]) -> Writer:
    """A file for what goes over links.

    Raises:
        OSError: it cannot be written.
    """
    links = [f"{a} - {b}" for a, b in topology.links]
    return Writer(path, about | {"system": topology.name, "links": links}, _NO_LIMIT)


def _not_written(path: Path, error: OSError) -> ProgramError:
    return ProgramError(f"{path} cannot be written: {error.strerror or error}", remedy="write to another place")


def _head(frame: bytes) -> Any:
    """The head of a frame, as `chain` gives it."""
    return np.frombuffer(bytes(AFTER) + frame, FRAME, 1)[0]
