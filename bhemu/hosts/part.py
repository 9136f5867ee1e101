"""The chips of a cluster that one worker has: their clocks, and the frames from and to those of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from bhemu.api.chip import Chip
from bhemu.api.cluster_run import name_chip
from bhemu.api.links import DeviceWiring
from bhemu.chip.links.send import FRAME, FRAME_BYTES
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.cluster.clocks import ClusterClocks
from bhemu.cluster.frames import AFTER, append, take
from bhemu.cluster.join import ELSEWHERE, join
from bhemu.cluster.topology import End, Topology
from bhemu.errors import BhemuError

Locate = Callable[[BhemuError, int, Chip], None]
_PLACE: Final = np.dtype([("chip", "<i8"), ("channel", "<i8")])
"""In front of each frame of a batch: where it goes to."""
_BYTE_COUNT: Final = FRAME.fields["byte_count"][1] - AFTER  # type: ignore[index]


class Part:
    """Some of the chips of a cluster, in this process.

    Args:
        topology: the whole system.
        numbers: of the chips that are here.
        settings: of each; see `bhemu.Chip`.
        host: memory of the host that they reach.
        locate: says in a refusal where it was.

    Attributes:
        chips: by number.
        wiring: their ends of links.
        latency: clocks of a span, in which no chip can see what another one does in it.
        refusing: number of the chip that has refused something last.
    """

    def __init__(
        self,
        topology: Topology,
        numbers: Sequence[int],
        settings: dict[str, Any],
        host: HostMemory | None = None,
        locate: Locate = name_chip,
    ) -> None:
        described = [topology.chips[number] for number in numbers]
        self.topology = topology
        self.chips = {
            number: Chip(harvesting=chip.harvesting, identity=chip.identity, host=host, **settings)
            for number, chip in zip(numbers, described, strict=True)
        }
        self.devices = [chip.device for chip in self.chips.values()]
        self.wiring = DeviceWiring(self.devices, topology, numbers)
        join(self.devices, topology, numbers)
        self._clocks = ClusterClocks(self.devices, topology, settings.get("threads", 1))
        self.latency = int(self._clocks.record.span)
        self.refusing = 0
        self._locate = locate
        self._ends = {
            (end.chip, self._tile(end)): (other.chip, self._peer(end))
            for end, other in topology.ends.items()
            if end.chip in self.chips and other.chip not in self.chips
        }

    def _tile(self, end: End) -> int:
        return self.chips[end.chip].ethernet[end.channel].node.index

    def _peer(self, end: End) -> int:
        return int(self.chips[end.chip].device.record.peer_channel[self._tile(end)])

    # --- time -------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed on all chips that are here."""
        return min(device.time for device in self.devices)

    def prepare(self) -> None:
        """Before clocks pass."""
        for chip in self.chips.values():
            chip.prepare()

    def is_still(self, end: int) -> bool:
        """Nothing on a chip proceeds before a clock, and nothing is on its way to one or from one."""
        return all(_is_still(device.record, end) for device in self.devices)

    def run_to(self, goal: int) -> None:
        """Let clocks pass on all chips up to the end of a span.

        Raises:
            BhemuError: an instruction was refused; the message says on which chip.
        """
        try:
            self._clocks.advance(max(goal - self.time, 0))
        except BhemuError as error:
            self.refusing = list(self.chips)[self._clocks.refusing]
            self._locate(error, self.refusing, self.chips[self.refusing])
            raise

    def arrive(self) -> None:
        """After clocks have passed."""
        for chip in self.chips.values():
            chip.touch_exposed()

    def forget(self) -> None:
        """The chips are in another state."""
        self._clocks.forget()

    # --- frames -----------------------------------------------------------------------------------------------------

    def take_out(self) -> dict[int, bytes]:
        """Batches of what chips have sent to those of other workers, by the number of the chip that is to get it."""
        batches: dict[int, list[bytes]] = {}
        for (number, tile), (other, channel) in self._ends.items():
            record: Any = self.chips[number].device.record
            if record.sent_first[tile]:
                place = np.array((other, channel), _PLACE).tobytes()
                for frame in take(record, tile):
                    batches.setdefault(other, []).extend((place, frame))
        for device in self.devices:
            device.record.sent = sum(1 for first in device.record.sent_first if first)
        return {other: b"".join(parts) for other, parts in batches.items()}

    def put_in(self, batch: bytes) -> None:
        """What chips of another worker have sent is on its way to those that are here.

        Raises:
            ValueError: it is not a batch for these chips.
        """
        position = 0
        while position < len(batch):
            head = batch[position : position + _PLACE.itemsize + FRAME_BYTES - AFTER]
            if len(head) < _PLACE.itemsize + FRAME_BYTES - AFTER:
                raise ValueError("a batch of frames ends in the middle of one")
            number, channel = map(int, np.frombuffer(head, _PLACE, 1)[0])
            start = position + _PLACE.itemsize
            size = int.from_bytes(batch[start + _BYTE_COUNT : start + _BYTE_COUNT + 8], "little")
            position = start + FRAME_BYTES - AFTER + size
            record: Any = self.chips[number].device.record if number in self.chips else None
            if record is None or not 0 <= channel < len(record.peer_number) or position > len(batch):
                raise ValueError(f"a frame of {size} bytes for tile {channel} of chip {number}, which is not here")
            if record.peer_number[channel] != ELSEWHERE:
                raise ValueError(f"a frame for tile {channel} of chip {number}, whose partner is not elsewhere")
            append(record, channel, [batch[start:position]])


def _is_still(record: Any, end: int) -> bool:
    if record.active_count or (record.fault.count and record.fault.event["clock"][0] < end):
        return False
    return not (np.any(record.frame_first) or np.any(record.sent_first))
