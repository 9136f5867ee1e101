"""Where the registers of a network interface are, and their bits (tile N13, N14, N20)."""

from __future__ import annotations

from typing import Final

from bhemu.isa.tile_registers import bit_of, bits_of, offset_of, tile_register

((INITIATORS, INITIATOR_BYTES),) = tile_register("niu", "CMD_CTRL").repeat

# Offsets in an initiator's page; the first INITIATOR_WORDS words keep what is stored
TARGET_LO: Final = offset_of("niu", "TARG_ADDR_LO")
TARGET_MID: Final = offset_of("niu", "TARG_ADDR_MID")
TARGET_HI: Final = offset_of("niu", "TARG_ADDR_HI")
RETURN_LO: Final = offset_of("niu", "RET_ADDR_LO")
RETURN_MID: Final = offset_of("niu", "RET_ADDR_MID")
RETURN_HI: Final = offset_of("niu", "RET_ADDR_HI")
PACKET_TAG: Final = offset_of("niu", "PACKET_TAG")
CTRL: Final = offset_of("niu", "CTRL")
LENGTH: Final = offset_of("niu", "AT_LEN_BE")
LENGTH_HIGH: Final = offset_of("niu", "AT_LEN_BE_1")
DATA: Final = offset_of("niu", "AT_DATA")
EXCLUDE: Final = offset_of("niu", "BRCST_EXCLUDE")
INITIATOR_WORDS: Final = offset_of("niu", "SEC_CTRL") // 4 + 1
"""Up to SEC_CTRL."""
CMD_CTRL: Final = offset_of("niu", "CMD_CTRL")
NODE_ID: Final = offset_of("niu", "NODE_ID")
ENDPOINT_ID: Final = offset_of("niu", "ENDPOINT_ID")
FIFO_STATUS_FIRST: Final = offset_of("niu", "CMD_BUF_AVAIL")
FIFO_STATUS_END: Final = offset_of("niu", "CMD_BUF_OVFL") + 4

# Offsets in the first page alone
CLEAR_OUTSTANDING: Final = offset_of("niu", "CLEAR_OUTSTANDING")
CONFIG_FIRST: Final = offset_of("niu", "NIU_CFG_0")
CONFIG_END: Final = offset_of("niu", "RTZ_CLR") + 4
COUNTERS_FIRST: Final = offset_of("niu", "ATOMIC_RESP_RECEIVED")
COUNTERS_END: Final = offset_of("niu", "POSTED_WR_REQ_BEGUN") + 4
COUNTERS: Final = (COUNTERS_END - COUNTERS_FIRST) // 4
RTZ_NUMBER: Final = offset_of("niu", "RTZ_NUM")
RTZ_SOURCE: Final = offset_of("niu", "RTZ_SOURCE")

# Bits of RTZ_CFG (N24)
RTZ_ENABLES: Final = bits_of("niu", "RTZ_CFG", "ENABLES")[1]
RTZ_KEEPS_ON_READ: Final = 1 << bit_of("niu", "RTZ_CFG", "KEEPS_ON_READ")

TRANSACTION_IDS: Final = len(tile_register("niu", "REQS_OUTSTANDING").offsets)


def _counter(name: str) -> int:
    """Number of a counter (N20)."""
    return (offset_of("niu", name) - COUNTERS_FIRST) // 4


# Counters (N20): of the initiator,
ATOMIC_RESPONSES: Final = _counter("ATOMIC_RESP_RECEIVED")
WRITE_ACKNOWLEDGEMENTS: Final = _counter("WR_ACK_RECEIVED")
READ_RESPONSES: Final = _counter("RD_RESP_RECEIVED")
READ_WORDS: Final = _counter("RD_DATA_WORD_RECEIVED")
COMMANDS: Final = _counter("CMD_ACCEPTED")
READS_SENT: Final = _counter("RD_REQ_SENT")
ATOMICS_SENT: Final = _counter("NONPOSTED_ATOMIC_SENT")
POSTED_ATOMICS_SENT: Final = _counter("POSTED_ATOMIC_SENT")
WRITE_WORDS: Final = _counter("NONPOSTED_WR_DATA_WORD_SENT")
POSTED_WRITE_WORDS: Final = _counter("POSTED_WR_DATA_WORD_SENT")
WRITES_SENT: Final = _counter("NONPOSTED_WR_REQ_SENT")
POSTED_WRITES_SENT: Final = _counter("POSTED_WR_REQ_SENT")
WRITES_STARTED: Final = _counter("NONPOSTED_WR_REQ_STARTED")
POSTED_WRITES_STARTED: Final = _counter("POSTED_WR_REQ_STARTED")
READS_STARTED: Final = _counter("RD_REQ_STARTED")
ATOMICS_STARTED: Final = _counter("NONPOSTED_ATOMIC_STARTED")
OUTSTANDING: Final = _counter("REQS_OUTSTANDING")
# and of the responder.
ATOMIC_RESPONSES_SENT: Final = _counter("ATOMIC_RESP_SENT")
ACKNOWLEDGEMENTS_SENT: Final = _counter("WR_ACK_SENT")
READ_RESPONSES_SENT: Final = _counter("RD_RESP_SENT")
READ_WORDS_SENT: Final = _counter("RD_DATA_WORD_SENT")
REQUESTS_ACCEPTED: Final = _counter("REQ_ACCEPTED")
READS_RECEIVED: Final = _counter("RD_REQ_RECEIVED")
ATOMICS_RECEIVED: Final = _counter("NONPOSTED_ATOMIC_RECEIVED")
POSTED_ATOMICS_RECEIVED: Final = _counter("POSTED_ATOMIC_RECEIVED")
WRITE_WORDS_RECEIVED: Final = _counter("NONPOSTED_WR_DATA_WORD_RECEIVED")
POSTED_WRITE_WORDS_RECEIVED: Final = _counter("POSTED_WR_DATA_WORD_RECEIVED")
WRITES_RECEIVED: Final = _counter("NONPOSTED_WR_REQ_RECEIVED")
POSTED_WRITES_RECEIVED: Final = _counter("POSTED_WR_REQ_RECEIVED")
WRITES_BEGUN: Final = _counter("NONPOSTED_WR_REQ_BEGUN")
POSTED_WRITES_BEGUN: Final = _counter("POSTED_WR_REQ_BEGUN")
