"""The buffer of a timed chip's NoC: 64-bit integers. Figures first, then what is busy until when, then parked requests.

Times of links, interfaces and banks are in 64ths of a cycle.
"""

from __future__ import annotations

from typing import Final

from bhemu.chip.coordinates import HEIGHT, WIDTH
from bhemu.chip.nodes.kinds import CLOCKED
from bhemu.chip.nodes.state import CHANNELS
from bhemu.machine.noc_state import NOC_REQUEST
from bhemu.timed.figures import Figures

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

# --- counts -----------------------------------------------------------------------------------------------------------

REQUESTS: Final = 8
"""Requests that took time."""
BYTES: Final = 9
WAITED: Final = 10
"""64ths of a cycle for which requests waited for links, interfaces and banks."""
AT_ONCE: Final = 11
"""Requests that took no time, or whose data were seen before their time."""
FIGURES: Final = Figures(16)
"""Figures of isa/silicon.py that the buffer has, in 64ths."""

HOP: Final = FIGURES.place("noc.hop")
CROSSING: Final = FIGURES.place("noc.crossing")
ENDPOINT: Final = FIGURES.place("noc.endpoint")
ENDPOINT_READ: Final = FIGURES.place("noc.endpoint.read")
PACKET: Final = FIGURES.place("noc.packet")
PACKET_LONG: Final = FIGURES.place("noc.packet.long")
READ_LONG: Final = FIGURES.place("noc.read.packet.long")
BANK: Final = FIGURES.place("dram.bank")
BANK_LONG: Final = FIGURES.place("dram.bank.long")
BANK_REQUEST: Final = FIGURES.place("dram.request")
BANK_READ: Final = FIGURES.place("dram.access.read")
BANK_WRITE: Final = FIGURES.place("dram.access.write")
PATH_FIXED: Final = FIGURES.place("noc.multicast.fixed")
PATH_HOP: Final = FIGURES.place("noc.multicast.hop")
PATH_OUTSIDE: Final = FIGURES.place("noc.multicast.outside")
FIRST_HOP: Final = FIGURES.place("noc.multicast.first.hop")
FIRST_OUTSIDE: Final = FIGURES.place("noc.multicast.first.outside")
FIRST_ROW: Final = FIGURES.place("noc.multicast.first.row")
TOGETHER: Final = FIGURES.place("noc.multicast.together")

# --- what is busy until when ------------------------------------------------------------------------------------------

TILES: Final = len(CLOCKED)
NODES: Final = WIDTH * HEIGHT
PLACE: Final = FIGURES.end
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
PATH: Final = PARKED + TILES
"""By link, in the order of LINK: until when the path of a multicast keeps it from other multicasts."""
OPEN: Final = PATH + OUT - LINK
"""By NoC and node: 1 while its last multicast was linked, so that the next one has its path already."""
NODE: Final = OPEN + 2 * NODES
"""By NoC and tile: its node."""

# --- events -----------------------------------------------------------------------------------------------------------

EVENTS: Final = 1 << 14
BLOCKS: Final = 1 << 11
BLOCK_BYTES: Final = 1 << 14
"""Data of longer requests are seen at once."""
RECORD_WORDS: Final = NOC_REQUEST.itemsize // 8
# OTHER: the receiver's tile; of a multicast -1 on NoC 0, -2 on NoC 1. FIRST, END: raw places of its corners.
CYCLE, ORDER, WHAT, TILE, NUMBER, OTHER, FIRST, END, BLOCK, ANSWERED, ANSWERS, RECORD = range(12)
"""Words of an event. ANSWERED: cycle of the answers; ANSWERS: how many. RECORD: a copy of the request's record."""
EVENT_WORDS: Final = RECORD + RECORD_WORDS
ARRIVES: Final = 0
"""WHAT: a request's data change the receiver,"""
ANSWER: Final = 1
"""or its sender counts the answers."""
HEAP: Final = NODE + 2 * TILES
FREE: Final = HEAP + EVENTS
FREE_BLOCKS: Final = FREE + EVENTS
EVENT: Final = FREE_BLOCKS + BLOCKS
SAVED: Final = EVENT + EVENTS * EVENT_WORDS
"""A record that gives its place to that of an event for a while."""
LIMIT: Final = SAVED + RECORD_WORDS
"""By tile: cycle that it must not pass, as something arrives then."""
SIZE: Final = LIMIT + TILES
