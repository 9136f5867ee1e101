"""A frame leaves: the command of a transmit queue puts it on the link, with a copy of its bytes (ethernet 2.2).

A frame takes `latency` clocks. Chips therefore need to agree on the time only so often: in a span of at most that many
clocks no chip can see what another one does in it. What a chip sends stays with it until the span is over, so chips can
move side by side (cluster/clock.py).
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np
from numba.np.numpy_support import from_dtype

from bhemu.chip.clock.tiles import l1_address
from bhemu.chip.coordinates import TENSIX_TILES
from bhemu.chip.faults import refuse
from bhemu.errors import MemoryError_
from bhemu.ethernet.failures import loses
from bhemu.ethernet.queues import DATA_FRAME
from bhemu.machine.bytes import move_bytes
from bhemu.machine.codegen import JIT, record_of
from bhemu.machine.faults import DONE, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import allocate, free
from bhemu.machine.types import ChipRecord, Int, NocRequestRecord

FRAME: Final[np.dtype[Any]] = np.dtype(
    [
        ("after", "i8"),  # address of the next frame on the same link, 0 none
        ("sent", "i8"),  # clock in which it has left
        ("arrival", "i8"),  # clock before which it is there
        ("kind", "i8"),  # DATA_FRAME or REGISTER_FRAME
        ("target", "i8"),  # address at the tile
        ("byte_count", "i8"),
        ("spare", "i8", (2,)),
    ]
)
"""What is in front of the bytes of a frame."""
FRAME_BYTES: Final = FRAME.itemsize

NO_MEMORY: Final = fault(
    "links.host-memory",
    MemoryError_,
    "the host has no memory left for a frame of {0} bytes",
    remedy="free some memory, or raise the limit of this process",
    rule="ethernet 2.2",
)

if JIT:
    frame_at = record_of(from_dtype(FRAME))
    """The head of a frame at an address."""

else:

    def frame_at(address: Int) -> Any:
        """The head of a frame at an address."""
        memory: Any = (ctypes.c_uint8 * FRAME_BYTES).from_address(int(address))
        return np.frombuffer(memory, FRAME).view(np.recarray)[0]


@kernel
def send_frame(chip: ChipRecord, index: Int, request: NocRequestRecord, word: Int) -> Any:
    """Status of a request of Ethernet tile `index` to send a frame.

    Args:
        word: address in this process of the word of a register write.
    """
    channel = index - TENSIX_TILES
    size = np.int64(request.byte_count)
    request.responses = 1
    if loses(chip.fault, channel):
        return np.int64(DONE)
    address = np.int64(allocate(FRAME_BYTES + size))
    if address == 0:
        return refuse(chip, NO_MEMORY, size)
    frame = frame_at(address)
    frame.sent = chip.local[index]
    frame.arrival = max(np.int64(chip.local[index]), np.int64(chip.fault.until[channel])) + chip.latency
    frame.kind = request.kind
    frame.target = request.target
    frame.byte_count = size
    own = l1_address(chip, index) + request.source
    move_bytes(address + FRAME_BYTES, own if request.kind == DATA_FRAME else word, size)
    if chip.sent_first[channel] == 0:
        chip.sent_first[channel] = address
    else:
        last = frame_at(chip.sent_last[channel])
        last.after = address
    chip.sent_last[channel] = address
    chip.sent += 1
    return np.int64(DONE)


def drop_frame(chip: Any, tile: int) -> None:
    """Take off the first frame on its way to a tile, and give back its memory."""
    channel = tile - TENSIX_TILES
    address = int(chip.frame_first[channel])
    head: Any = (ctypes.c_uint8 * FRAME_BYTES).from_address(address)
    chip.frame_first[channel] = int(np.frombuffer(head, FRAME)["after"][0])
    free(address)


def drop_frames(chip: Any) -> None:
    """Drop all frames in flight from and to a chip."""
    for first in (chip.frame_first, chip.sent_first):
        for channel in range(len(first)):
            while address := int(first[channel]):
                head: Any = (ctypes.c_uint8 * FRAME_BYTES).from_address(address)
                first[channel] = int(np.frombuffer(head, FRAME)["after"][0])
                free(address)
    chip.sent = 0
