"""Counters of the network interfaces that a request moves (tile N20, N24)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa import niu as r
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, NocRequestRecord, TileRecord
from bhemu.tile.interrupts import notice
from bhemu.tile.noc.request import ATOMIC, ID_LSB, INLINE, KINDS, READ, WRITE

FLIT: Final = 64
"""Bytes of a data word of the NoC, which counters count."""
INITIATOR: Final = 0
TARGET: Final = 1
_NONE: Final = -1
_WORD_BITS: Final = 0xFFFFFFFF

# What is counted at either end of a request of a kind that wants a response (1) or does not: packets, and data words.
_WRITE: Final = {
    INITIATOR: (
        ((r.COMMANDS, r.POSTED_WRITES_STARTED, r.POSTED_WRITES_SENT), r.POSTED_WRITE_WORDS),
        ((r.COMMANDS, r.WRITES_STARTED, r.WRITES_SENT), r.WRITE_WORDS),
    ),
    TARGET: (
        ((r.POSTED_WRITES_BEGUN, r.POSTED_WRITES_RECEIVED, _NONE), r.POSTED_WRITE_WORDS_RECEIVED),
        ((r.WRITES_BEGUN, r.WRITES_RECEIVED, r.ACKNOWLEDGEMENTS_SENT), r.WRITE_WORDS_RECEIVED),
    ),
}
_COUNTED: Final = {
    (INITIATOR, READ): 2 * (((r.COMMANDS, r.READS_STARTED, r.READS_SENT), r.READ_WORDS),),
    (INITIATOR, WRITE): _WRITE[INITIATOR],
    (INITIATOR, INLINE): tuple((packets, _NONE) for packets, _ in _WRITE[INITIATOR]),
    (INITIATOR, ATOMIC): (
        ((r.COMMANDS, r.POSTED_ATOMICS_SENT, _NONE), _NONE),
        ((r.COMMANDS, r.ATOMICS_STARTED, r.ATOMICS_SENT), _NONE),
    ),
    (TARGET, READ): 2 * (((r.REQUESTS_ACCEPTED, r.READS_RECEIVED, r.READ_RESPONSES_SENT), r.READ_WORDS_SENT),),
    (TARGET, WRITE): _WRITE[TARGET],
    (TARGET, INLINE): _WRITE[TARGET],
    (TARGET, ATOMIC): (
        ((r.REQUESTS_ACCEPTED, r.POSTED_ATOMICS_RECEIVED, _NONE), _NONE),
        ((r.REQUESTS_ACCEPTED, r.ATOMICS_RECEIVED, r.ATOMIC_RESPONSES_SENT), _NONE),
    ),
}
_ENDS: Final = [[_COUNTED[end, kind] for kind in range(len(KINDS))] for end in (INITIATOR, TARGET)]
_COUNTERS: Final = np.array([[[(*packets, words) for packets, words in row] for row in end] for end in _ENDS], np.int64)
_OF_PACKETS: Final = 3
"""So many counters of a row count packets; the last one counts data words."""
_RESPONSES: Final = np.array(
    [r.READ_RESPONSES, r.WRITE_ACKNOWLEDGEMENTS, r.WRITE_ACKNOWLEDGEMENTS, r.ATOMIC_RESPONSES], np.int64
)


@kernel
def count(t: TileRecord, q: NocRequestRecord, end: Int) -> None:
    """Move the counters of a tile that has started a request (INITIATOR) or has served it (TARGET)."""
    counters = t.niu_counter[q.noc]
    words = np.int64(1) if q.kind == INLINE else (q.byte_count + FLIT - 1) // FLIT
    for i in range(_OF_PACKETS + 1):
        counter = _COUNTERS[end, q.kind, q.answers, i]
        if counter != _NONE:
            counted = np.int64(counters[counter]) + (np.int64(q.packets) if i < _OF_PACKETS else words)
            counters[counter] = np.uint32(counted & _WORD_BITS)


@kernel
def count_responses(t: TileRecord, q: NocRequestRecord, sent: Int, responses: Int) -> None:
    """Responses to a request, if it asks for any, have come to the tile that has started it.

    Args:
        sent: packets that it sends at the same time.
        responses: how many tiles have answered: 1, or the receivers of a multicast.
    """
    if q.answers == 0:
        return
    counters, responses = t.niu_counter[q.noc], responses * q.packets
    counter = _RESPONSES[q.kind]
    counters[counter] = np.uint32((np.int64(counters[counter]) + responses) & _WORD_BITS)
    transaction = (q.tag >> ID_LSB) & (r.TRANSACTION_IDS - 1)
    value = (np.int64(counters[r.OUTSTANDING + transaction]) + sent) & 0xFF
    for _ in range(responses):
        if value == 1:  # back at zero is remembered
            t.niu_rtz[q.noc] = np.uint32(np.int64(t.niu_rtz[q.noc]) | 1 << transaction)
        value = (value - 1) & 0xFF
    counters[r.OUTSTANDING + transaction] = np.uint32(value)
    notice(t)
