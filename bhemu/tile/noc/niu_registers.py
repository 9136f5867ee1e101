"""Where the registers of a network interface are, and their bits (tile N13, N14, N20)."""

from __future__ import annotations

from typing import Final

INITIATORS: Final = 4
INITIATOR_BYTES: Final = 0x800

# Offsets in an initiator's page; the first INITIATOR_WORDS words keep what is stored
TARGET_LO: Final = 0x00
TARGET_MID: Final = 0x04
TARGET_HI: Final = 0x08
RETURN_LO: Final = 0x0C
RETURN_MID: Final = 0x10
RETURN_HI: Final = 0x14
PACKET_TAG: Final = 0x18
CTRL: Final = 0x1C
LENGTH: Final = 0x20
LENGTH_HIGH: Final = 0x24
DATA: Final = 0x28
EXCLUDE: Final = 0x2C
INITIATOR_WORDS: Final = 14
"""Up to SEC_CTRL at 0x34."""
CMD_CTRL: Final = 0x40
NODE_ID: Final = 0x44
ENDPOINT_ID: Final = 0x48
FIFO_STATUS_FIRST: Final = 0x64
FIFO_STATUS_END: Final = 0x6C

# Offsets in the first page alone
CLEAR_OUTSTANDING: Final = 0x60
CONFIG_FIRST: Final = 0x100
CONFIG_END: Final = 0x180
COUNTERS_FIRST: Final = 0x200
COUNTERS: Final = 62
COUNTERS_END: Final = COUNTERS_FIRST + 4 * COUNTERS
RTZ_NUMBER: Final = 0x378
RTZ_SOURCE: Final = 0x37C

# Bits of RTZ_CFG (N24)
RTZ_ENABLES: Final = 0xFFFF
RTZ_KEEPS_ON_READ: Final = 1 << 28

TRANSACTION_IDS: Final = 16

# Counters (N20): of the initiator,
ATOMIC_RESPONSES: Final = 0
WRITE_ACKNOWLEDGEMENTS: Final = 1
READ_RESPONSES: Final = 2
READ_WORDS: Final = 3
COMMANDS: Final = 4
READS_SENT: Final = 5
ATOMICS_SENT: Final = 6
POSTED_ATOMICS_SENT: Final = 7
WRITE_WORDS: Final = 8
POSTED_WRITE_WORDS: Final = 9
WRITES_SENT: Final = 10
POSTED_WRITES_SENT: Final = 11
WRITES_STARTED: Final = 12
POSTED_WRITES_STARTED: Final = 13
READS_STARTED: Final = 14
ATOMICS_STARTED: Final = 15
OUTSTANDING: Final = 16
# and of the responder.
ATOMIC_RESPONSES_SENT: Final = 48
ACKNOWLEDGEMENTS_SENT: Final = 49
READ_RESPONSES_SENT: Final = 50
READ_WORDS_SENT: Final = 51
REQUESTS_ACCEPTED: Final = 52
READS_RECEIVED: Final = 53
ATOMICS_RECEIVED: Final = 54
POSTED_ATOMICS_RECEIVED: Final = 55
WRITE_WORDS_RECEIVED: Final = 56
POSTED_WRITE_WORDS_RECEIVED: Final = 57
WRITES_RECEIVED: Final = 58
POSTED_WRITES_RECEIVED: Final = 59
WRITES_BEGUN: Final = 60
POSTED_WRITES_BEGUN: Final = 61
