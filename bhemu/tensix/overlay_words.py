"""Words of overlay streams that keep what is stored: their slots in `t.stream_word` (tile K50)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import offset_of, registers_of, tile_register
from bhemu.machine.kernel import kernel
from bhemu.machine.state import STREAM_WORDS
from bhemu.machine.types import Bool, Int, TileRecord

STREAMS: Final = region("overlay").size // region("overlay").step
REGISTERS: Final = region("overlay").step // 4
"""Word positions of a stream's 4 KiB window."""


def register_number(name: str) -> int:
    """A register's number: its word in a stream's window."""
    return offset_of("stream", name) // 4


SPACE: Final = register_number("REMOTE_DEST_BUF_SPACE_AVAILABLE")

# Bits that are kept, by register number; their order gives the slots. A store to the buffer's size sets the space, too:
# the slot of that comes first, near the others that firmware uses.
_PLAIN: Final[dict[int, int]] = {SPACE: 0} | {
    offset // 4: bits.mask
    for row in registers_of("stream")
    for bits in row.fields
    if bits.name == "VALUE" or row.offset // 4 == SPACE
    for offset in row.offsets
}


def _slots() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    slots, kept = np.full(REGISTERS, -1, np.int64), np.zeros(REGISTERS, np.int64)
    for slot, (register, mask) in enumerate(_PLAIN.items()):
        slots[register], kept[register] = slot, mask
    return slots, kept


if len(_PLAIN) != STREAM_WORDS:
    raise RuntimeError(f"the state record has {STREAM_WORDS} words a stream, and {len(_PLAIN)} are in use")
SLOT: Final = _slots()[0]
"""Slot of each register, -1 for those that are not plain words."""
KEPT: Final = _slots()[1]


def slot_of(name: str) -> int:
    """Slot of a register that keeps what is stored."""
    return int(SLOT[register_number(name)])


_DEST_START: Final = slot_of("REMOTE_DEST_BUF_START")
_DEST_POINTER: Final = slot_of("REMOTE_DEST_WR_PTR")
_DEST_SIZE: Final = slot_of("REMOTE_DEST_BUF_SIZE")
SPACE_SLOT: Final = int(SLOT[SPACE])
_BUFFER_START: Final = slot_of("BUF_START")
_READ: Final = slot_of("RD_PTR")
_WRITE: Final = slot_of("WR_PTR")
_HEADERS: Final = slot_of("MSG_INFO_PTR")
_HEADERS_WRITE: Final = slot_of("MSG_INFO_WR_PTR")
_SCRATCH: Final = register_number("SCRATCH")
_SCRATCH_END: Final = _SCRATCH + len(tile_register("stream", "SCRATCH").offsets)


@kernel
def _has_scratch(stream: Int) -> Bool:
    """Only streams that can write to DRAM buffers have scratch words: 0 to 3 and 8 to 11."""
    return stream < 4 or (stream >= 8 and stream < 12)


@kernel
def put_word(t: TileRecord, stream: Int, register: Int, value: Int) -> None:
    """Store to a register that has a slot; bits beyond its width are not kept."""
    slot = SLOT[register]
    if register >= _SCRATCH and register < _SCRATCH_END and not _has_scratch(stream):
        return  # the write is ignored, and the word reads as zero
    kept = np.uint32(value & KEPT[register])
    t.stream_word[slot, stream] = kept
    if slot == _DEST_START:
        t.stream_word[_DEST_POINTER, stream] = np.uint32(0)
    elif slot == _DEST_SIZE:
        t.stream_word[SPACE_SLOT, stream] = kept
    elif slot == _BUFFER_START:
        t.stream_word[_READ, stream] = np.uint32(0)
        t.stream_word[_WRITE, stream] = np.uint32(0)
    elif slot == _HEADERS:
        t.stream_word[_HEADERS_WRITE, stream] = kept
