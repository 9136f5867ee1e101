"""A NoC request: what an initiator's registers said when a store to CMD_CTRL started it, and its progress.

`t.noc_request[4 * NoC + initiator]`; `t.noc_request[FRAMES + queue]` is what a transmit queue of an Ethernet tile sends
over its link, which goes the same way (ethernet 2.2). Only requests in which another node takes part go through the
states; what a tile does with itself ends within the store (tile/noc/transfer.py).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

FRAMES: Final = 8
"""Number of requests of both NoCs."""
REQUESTS: Final = FRAMES + 3

# `state`
IDLE: Final = 0
PENDING: Final = 1
"""The store that has started it has not ended; the chip carries the request out (chip/noc)."""
ENDED: Final = 2
"""It was carried out or refused, as `status` says; the store ends next."""

NOC_REQUEST: Final[np.dtype[Any]] = np.dtype(
    [
        ("state", "i8"),
        ("status", "i8"),  # when it has ended: DONE, WAIT (nothing has changed), REFUSED
        ("responses", "i8"),  # how many tiles have answered
        ("agent", "i8"),  # that made the store,
        ("started", "i8"),  # and the round in which it did
        ("noc", "i8"),
        ("kind", "i8"),  # READ, WRITE, INLINE or ATOMIC of tile/noc/request.py, or a frame (ethernet/queues.py)
        ("control", "i8"),  # CTRL
        ("tag", "i8"),  # PACKET_TAG
        ("own", "i8"),  # coordinate field of the own end as software wrote it,
        ("other", "i8"),  # and of the other end; of a multicast both corners
        ("end", "i8"),  # raw coordinate (y << 6 | x) on this NoC of the other end, or of a multicast's second corner
        ("start", "i8"),  # and of its first corner
        ("source", "i8"),  # address from which data come: of the other end in a read, of the own end in a write
        ("target", "i8"),  # and to which they go; an inline write and an atomic change what is there
        ("result", "i8"),  # address at the own end that gets an atomic's result
        ("length", "i8"),  # AT_LEN_BE: bytes, a mask of bytes, or an atomic's code
        ("byte_count", "i8"),  # bytes that a read or write touches, from its addresses on
        ("packets", "i8"),  # more than one where a read or a write is longer than a packet (N17)
        ("answers", "i8"),  # 1: a read, or a request that is not posted: it gets a response
        ("masked", "i8"),  # 1: a write of selected bytes to memory; addresses count from a multiple of 16 (N19)
        ("from_register", "i8"),  # 1: `source` is the address of a register, if its end is a tile,
        ("to_register", "i8"),  # 1: and so is `target`
        ("operand", "i8"),  # AT_DATA
        ("word", "i8"),  # the same, or a word in flight from or to a register
        ("exclude", "i8"),  # BRCST_EXCLUDE
    ]
)
"""Addresses and lengths are the 64 bits of two registers, as signed numbers.

Names that NumPy's scalars have themselves (`size`, `data`, `round`) would hide a field in plain Python.
"""
