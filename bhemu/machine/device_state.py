"""State of the devices around the coprocessor in a tile: reset, mailboxes, buffers, interrupts, NIUs (tile K, N13).

Fields are appended to those of machine/state.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.tile_registers import bit_of, offset_of
from bhemu.machine.agents import CORES
from bhemu.machine.noc_state import NOC_REQUEST, REQUESTS

MAILBOX_WORDS: Final = 4
"""Words that the four mailboxes of one writer hold together (K14)."""
PCBUF_WORDS: Final = 16

DEVICE_FIELDS: list[tuple[str, str | np.dtype[Any], tuple[int, ...]]] = [
    # --- control, debug and status (K31) ------------------------------------------------------------------------------
    ("soft_reset", "u4", ()),
    ("reset_pc", "u4", (5,)),  # by core; B has none
    ("reset_pc_override", "u4", (5,)),
    ("disable_reset", "u4", ()),
    ("wall_clock_latch", "u4", ()),
    ("clock_read", "i8", (CORES,)),  # what each core has read last of the clock (machine/wall_clock.py)
    ("control_word", "u4", (0x400,)),  # plain words of the block, by offset / 4
    ("watchdog_start", "i8", ()),  # clock at which the watchdog had the value of its register (K56)
    ("debug_read", "u4", ()),  # what CREG_RDDATA shows (K12)
    ("debug_l1_pointer", "i8", ()),  # where the debug bus writes its next sample, in units of 16 bytes (K36)
    # --- RISC debug interface of B, T0, T1, T2 (K42) ------------------------------------------------------------------
    ("debug_dr", "u4", (4, 18)),  # debug registers as software has written them
    ("debug_cause", "i4", (4,)),  # bits of the status register that say why the core is paused
    ("debug_hits", "i4", (4,)),  # watchpoints that the instruction in progress hits, one bit each
    ("debug_half_step", "i4", (4,)),  # 1: one of the two step commands of an instruction has been given
    ("debug_watch", "i4", (5,)),  # [core] other than 0: executes one instruction a turn, watched by a debugger
    ("debug_read_valid", "i4", ()),
    ("debug_read_value", "u4", ()),
    # --- timestamp events (K31) ---------------------------------------------------------------------------------------
    ("timestamp_control", "u4", ()),  # TIMESTAMP_DUMP_CNTL, with bits 0 and 1 inverted: they are set at reset
    ("timestamp_position", "u4", (2,)),  # units of 16 bytes written to each buffer
    ("timestamp_flags", "u4", ()),  # full 0, 1 and overflow 4, 5 of buffer 0 and 1, as the status register has them
    ("timestamp_word", "u4", (4,)),  # what has not filled 16 bytes yet
    ("timestamp_count", "i4", ()),
    ("timestamp_size", "i4", ()),  # words of the events in there, 0 none
    # --- mailboxes: first index writer, second reader; B, T0, T1, T2 (K13) --------------------------------------------
    ("mailbox_word", "u4", (4, 4, MAILBOX_WORDS)),
    ("mailbox_head", "i4", (4, 4)),
    ("mailbox_count", "i4", (4, 4)),
    # --- PCBufs, by thread (K16) --------------------------------------------------------------------------------------
    ("pcbuf_word", "u4", (3, PCBUF_WORDS)),
    ("pcbuf_head", "i4", (3,)),
    ("pcbuf_count", "i4", (3,)),
    ("pcbuf_waiting", "i4", (3,)),  # the T core waits in a pop
    # --- words that core B pushes to a thread, after the MOP expander (K2) --------------------------------------------
    # --- interrupt controller (K22); first index 0 = B, 1 = NC --------------------------------------------------------
    ("pic_enable", "u4", (2, 2)),  # [core, software / hardware]
    ("pic_handling", "u4", (2,)),
    ("pic_next", "i4", (2,)),  # where the round robin continues
    ("pic_software", "u4", (32,)),  # value of each software IRQ, 0 = not raised
    ("pic_hardware", "u4", (4,)),
    ("pic_handler", "u4", (36,)),
    # --- network interfaces (N13), by NoC -----------------------------------------------------------------------------
    ("niu_initiator", "u4", (2, 4, 14)),  # words 0x00 to 0x34 of each initiator
    ("noc_request", NOC_REQUEST, (REQUESTS,)),  # [4 * NoC + initiator], [FRAMES + queue]: machine/noc_state.py
    ("noc_pending", "i4", ()),  # 1 + the request that the chip has to carry out before the tile moves on, 0 none
    ("noc_connected", "i4", ()),  # 1: there is a chip around the tile
    ("niu_counter", "u4", (2, 64)),
    ("niu_rtz", "u4", (2,)),  # ids whose outstanding counter has returned to zero (N24)
    ("niu_config", "u4", (2, 0x20)),  # words 0x100 to 0x17f of the first page, as far as they are plain
    ("niu_place", "u4", (2, 2)),  # [NoC, NODE_ID / ENDPOINT_ID], set by `place_niu`
]

# --- where a tile is on the two NoCs (N1, N7, N10 to N12) -------------------------------------------------------------
COLUMNS: Final = 17
ROWS: Final = 12
LONE_TILE: Final = (1, 2)
"""Physical place of a tile that belongs to no chip: the first Tensix tile."""
TENSIX_TYPE: Final = 0x0100
_TRANSLATE: Final = 1 << bit_of("niu", "NIU_CFG_0", "TRANSLATE")
_RAW_ROWS: Final = 0x3
"""Rows in which x is not translated (N7)."""
_OTHER_COLUMNS: Final = (0, 8, 9)
_OTHER_ROWS: Final = (0, 1)
"""Columns and rows without Tensix tiles: they take no multicasts (N21)."""
_ETHERNET_X: Final = (1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11)
_X_TABLE: Final = (*range(COLUMNS), 0, 9, 2, *_ETHERNET_X)
"""Physical x of each translated x on a chip without faults; 17 and 18 are DRAM, 19 PCIe, 20 to 31 Ethernet (N7)."""
_Y_TABLE: Final = (*range(ROWS), 0, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6, 0, 1, 3, 9, 5, 7, 2, 0)
"""The same for y: 12 to 23 DRAM, 24 PCIe, 25 Ethernet, 26 to 29 L2CPU, 30 Security."""
_ENTRIES_OF_WORD: Final = 6
_ENTRY_BITS: Final = 5
TABLE_WORDS: Final = 6


def _config_word(name: str) -> int:
    """Word of `niu_config` that holds a register."""
    return (offset_of("niu", name) - offset_of("niu", "NIU_CFG_0")) // 4


NIU_CFG_0: Final = _config_word("NIU_CFG_0")
ROUTER_CFG_1: Final = _config_word("ROUTER_CFG_1")
ROUTER_CFG_3: Final = _config_word("ROUTER_CFG_3")
X_TABLE: Final = _config_word("X_TABLE")
Y_TABLE: Final = _config_word("Y_TABLE")
ID_LOGICAL: Final = _config_word("ID_LOGICAL")
COLUMN_MASK: Final = _config_word("COLUMN_MASK")
ROW_MASK: Final = _config_word("ROW_MASK")
RTZ_CONFIG: Final = _config_word("RTZ_CFG")
RTZ_CLEAR: Final = _config_word("RTZ_CLR")


def _table(entries: tuple[int, ...], last: int, noc: int) -> list[int]:
    """Words of a translation table; NoC 1 counts from the other end (N7)."""
    table = [0] * TABLE_WORDS
    for i, entry in enumerate(entries):
        value = last - entry if noc else entry
        table[i // _ENTRIES_OF_WORD] |= value << _ENTRY_BITS * (i % _ENTRIES_OF_WORD)
    return table


def place_niu(tile: Any, x: int, y: int, index: int, endpoint_type: int = TENSIX_TYPE) -> None:
    """Give both network interfaces of a tile what a chip without faults has after its boot (N7, N10 to N12).

    Args:
        tile: the tile's record.
        x: physical column on NoC 0, 0 to 16.
        y: physical row, 0 to 11.
        index: number of the tile among those of its kind.
        endpoint_type: bits 23:8 of ENDPOINT_ID (N12).
    """
    for noc in range(2):
        own_x, own_y = (COLUMNS - 1 - x, ROWS - 1 - y) if noc else (x, y)
        first = 0 if noc else 1 << 28  # moves along x before y
        tile["niu_place"][noc] = (
            first | ROWS << 19 | COLUMNS << 12 | own_y << 6 | own_x,
            noc << 24 | endpoint_type << 8 | index,
        )
        columns = [COLUMNS - 1 - c if noc else c for c in _OTHER_COLUMNS]
        rows = [ROWS - 1 - r if noc else r for r in _OTHER_ROWS]
        words = tile["niu_config"][noc]
        words[NIU_CFG_0] = _TRANSLATE
        words[ROUTER_CFG_1] = sum(1 << c for c in columns)
        words[ROUTER_CFG_3] = sum(1 << r for r in rows)
        words[X_TABLE : X_TABLE + TABLE_WORDS] = _table(_X_TABLE, COLUMNS - 1, noc)
        words[Y_TABLE : Y_TABLE + TABLE_WORDS] = _table(_Y_TABLE, ROWS - 1, noc)
        words[ID_LOGICAL] = y << 6 | x
        words[ROW_MASK] = _RAW_ROWS
