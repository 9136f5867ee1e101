"""The buffer of a timed chip's NoC: 64-bit integers. Figures first, then what is busy until when, then parked requests.

Times of links, interfaces and banks are in 64ths of a cycle.
"""

from __future__ import annotations

from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH
from bhemu.chip.nodes.kinds import CLOCKED
from bhemu.chip.nodes.state import CHANNELS
from bhemu.machine.noc_state import NOC_REQUEST

PART: Final = 64
"""Parts of a cycle."""
ADDRESS: Final = 0
"""Of this buffer."""
DATA: Final = 1
"""Address of the blocks in which written data wait."""
HEAP_COUNT: Final = 2
FREE_COUNT: Final = 3
BLOCKS_FREE: Final = 4
SEQUENCE: Final = 5
"""Counts events: of two in the same cycle the earlier one comes first."""
TILES_FIRST: Final = 6
"""The tile whose parked requests are being delivered before their time, and other scratch."""

# --- counts -----------------------------------------------------------------------------------------------------------

REQUESTS: Final = 8
"""Requests that took time."""
BYTES: Final = 9
WAITED: Final = 10
"""64ths of a cycle for which requests waited for links, interfaces and banks."""
AT_ONCE: Final = 11
"""Requests that took no time, or whose data were seen before their time."""
_FIGURES: Final = 16
FIGURE_NAMES: Final = (
    "noc.hop",
    "noc.crossing",
    "noc.endpoint",
    "noc.endpoint.read",
    "noc.packet",
    "noc.packet.long",
    "noc.read.packet.long",
    "dram.bank",
    "dram.bank.long",
    "dram.request",
    "dram.access.read",
    "dram.access.write",
    "noc.multicast.fixed",
    "noc.multicast.hop",
    "noc.multicast.outside",
    "noc.multicast.first.hop",
    "noc.multicast.first.outside",
    "noc.multicast.first.row",
)
"""Of isa/silicon.py, in 64ths."""


def _figure(name: str) -> int:
    return _FIGURES + FIGURE_NAMES.index(name)


HOP: Final = _figure("noc.hop")
CROSSING: Final = _figure("noc.crossing")
ENDPOINT: Final = _figure("noc.endpoint")
ENDPOINT_READ: Final = _figure("noc.endpoint.read")
PACKET: Final = _figure("noc.packet")
PACKET_LONG: Final = _figure("noc.packet.long")
READ_LONG: Final = _figure("noc.read.packet.long")
BANK: Final = _figure("dram.bank")
BANK_LONG: Final = _figure("dram.bank.long")
BANK_REQUEST: Final = _figure("dram.request")
BANK_READ: Final = _figure("dram.access.read")
BANK_WRITE: Final = _figure("dram.access.write")
PATH_FIXED: Final = _figure("noc.multicast.fixed")
PATH_HOP: Final = _figure("noc.multicast.hop")
PATH_OUTSIDE: Final = _figure("noc.multicast.outside")
FIRST_HOP: Final = _figure("noc.multicast.first.hop")
FIRST_OUTSIDE: Final = _figure("noc.multicast.first.outside")
FIRST_ROW: Final = _figure("noc.multicast.first.row")

# --- what is busy until when ------------------------------------------------------------------------------------------

TILES: Final = len(CLOCKED)
NODES: Final = WIDTH * HEIGHT
PLACE: Final = _FIGURES + len(FIGURE_NAMES)
"""By tile: its physical place."""
LINK: Final = PLACE + TILES
"""By NoC, node (raw x + WIDTH y) and direction (0 along the row): the link that leaves it."""
OUT: Final = LINK + 2 * NODES * 2
"""By NoC and node: its interface sends."""
IN: Final = OUT + 2 * NODES
BANK_FREE: Final = IN + 2 * NODES
LAST: Final = BANK_FREE + CHANNELS
"""By NoC, sender, receiver: cycle in which the last request arrives; requests of one path stay in order."""
LAST_MANY: Final = LAST + 2 * TILES * TILES
"""By NoC and sender, of multicasts."""
LAST_ANY: Final = LAST_MANY + 2 * TILES
BUSY: Final = LAST_ANY + 2 * TILES
"""64ths of a cycle for which what is busy until LINK .. BANK_FREE say has been busy so far, in the same order."""
PARKED: Final = BUSY + LAST - LINK
"""By tile: requests that it has sent and that have not arrived."""

# --- events -----------------------------------------------------------------------------------------------------------

EVENTS: Final = 1 << 14
BLOCKS: Final = 1 << 11
BLOCK_BYTES: Final = 1 << 14
"""Data of longer requests are seen at once."""
RECORD_WORDS: Final = NOC_REQUEST.itemsize // 8
CYCLE, ORDER, WHAT, TILE, NUMBER, OTHER, FIRST, END, BLOCK, ANSWERED, ANSWERS, RECORD = range(12)
"""Words of an event. ANSWERED: cycle of the answers; ANSWERS: how many. RECORD: a copy of the request's record."""
EVENT_WORDS: Final = RECORD + RECORD_WORDS
ARRIVES: Final = 0
"""WHAT: a request's data change the receiver,"""
ANSWER: Final = 1
"""or its sender counts the answers."""
HEAP: Final = PARKED + TILES
FREE: Final = HEAP + EVENTS
FREE_BLOCKS: Final = FREE + EVENTS
EVENT: Final = FREE_BLOCKS + BLOCKS
SAVED: Final = EVENT + EVENTS * EVENT_WORDS
"""A record that gives its place to that of an event for a while."""
SIZE: Final = SAVED + RECORD_WORDS
