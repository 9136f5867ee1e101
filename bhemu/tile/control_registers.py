"""The registers of the control, debug and status block, by offset from 0xffb12000 (tile K31).

Names are those of the vendor's header without RISCV_DEBUG_REG_. A register that acts is handled in control.py or the
module that it names; `kind` says what becomes of the others.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import Unimplemented
from bhemu.machine.faults import fault

WORDS: Final = 0x1000 // 4

NOTHING: Final = 0
"""No register: an access is undefined."""
ACTS: Final = 1
"""Handled one by one."""
PLAIN: Final = 2
"""Keeps what is written. Nothing that bhemu models depends on it."""
COUNTER: Final = 3
"""Control word of performance counters: kept, but its bit 0 would start them."""
RESULT: Final = 4
"""Read-only and 0 for ever, because what would count or report here cannot be started."""
REFUSED: Final = 5
"""In the header, but bhemu does not have what it does, or nobody documents it."""

_PERFORMANCE: Final = {
    0x000: "INSTRN_THREAD",
    0x00C: "TDMA_UNPACK",
    0x018: "FPU",
    0x030: "L1_",
    0x0F0: "TDMA_PACK",
}
"""Three words each: reference period, choice of event, control."""

REGISTERS: Final[dict[int, tuple[str, int]]] = {
    **{
        base + 4 * i: (f"PERF_CNT_{n}{i}", COUNTER if i == 2 else PLAIN)
        for base, n in _PERFORMANCE.items()
        for i in range(3)
    },
    0x03C: ("PERF_CNT_ALL", COUNTER),
    0x048: ("DBG_L1_MEM_REG0", PLAIN),
    0x04C: ("DBG_L1_MEM_REG1", PLAIN),
    0x050: ("DBG_L1_MEM_REG2", ACTS),
    0x054: ("DBG_BUS_CTRL", ACTS),
    0x058: ("TENSIX_CREG_READ", ACTS),
    0x05C: ("DBG_RD_DATA", ACTS),
    0x060: ("DBG_ARRAY_RD_EN", PLAIN),
    0x064: ("DBG_ARRAY_RD_CMD", PLAIN),
    0x068: ("DBG_FEATURE_DISABLE", ACTS),
    0x06C: ("DBG_ARRAY_RD_DATA", ACTS),
    0x070: ("CG_CTRL_HYST0", PLAIN),
    0x074: ("CG_CTRL_HYST1", PLAIN),
    0x078: ("TENSIX_CREG_RDDATA", ACTS),
    0x07C: ("CG_CTRL_HYST2", PLAIN),
    0x080: ("RISC_DBG_CNTL_0", ACTS),
    0x084: ("RISC_DBG_CNTL_1", PLAIN),
    0x088: ("RISC_DBG_STATUS_0", ACTS),
    0x08C: ("RISC_DBG_STATUS_1", ACTS),
    0x090: ("TRISC_PC_BUF_OVERRIDE", PLAIN),  # read by the PCBufs (K16)
    0x094: ("DBG_INVALID_INSTRN", REFUSED),
    0x0A0: ("INSTRN_BUF_CTRL0", ACTS),
    0x0A4: ("INSTRN_BUF_CTRL1", PLAIN),
    0x0A8: ("INSTRN_BUF_STATUS", ACTS),
    0x0AC: ("STOCH_RND_MASK0", REFUSED),
    0x0B0: ("STOCH_RND_MASK1", REFUSED),
    0x0B4: ("FPU_STICKY_BITS", ACTS),
    0x0B8: ("ETH_RISC_PREFECTH_CTRL", REFUSED),
    0x0BC: ("ETH_RISC_PREFECTH_PC", REFUSED),
    **{
        0x100 + 8 * i + 4 * half: (f"PERF_CNT_OUT_{'LH'[half]}_{name}", RESULT)
        for i, name in enumerate(("INSTRN_THREAD", "TDMA_UNPACK", "TDMA_PACK", "DBG_L1", "FPU"))
        for half in range(2)
    },
    0x1B0: ("SOFT_RESET_0", ACTS),
    0x1C0: ("BREAKPOINT_CTRL", REFUSED),
    0x1C4: ("BREAKPOINT_STATUS", REFUSED),
    0x1C8: ("BREAKPOINT_DATA", REFUSED),
    0x1D0: ("ECC_CTRL", PLAIN),
    0x1D4: ("ECC_STATUS", RESULT),  # memories of a model have no errors
    0x1E0: ("WATCHDOG_TIMER", PLAIN),
    0x1E4: ("WDT_CNTL", ACTS),
    0x1E8: ("WDT_STATUS", RESULT),
    0x1F0: ("WALL_CLOCK_0", ACTS),
    0x1F4: ("WALL_CLOCK_1", ACTS),
    0x1F8: ("WALL_CLOCK_1_AT", ACTS),
    0x1FC: ("TIMESTAMP_DUMP_CMD", ACTS),
    0x200: ("TIMESTAMP_DUMP_CNTL", ACTS),
    0x204: ("TIMESTAMP_DUMP_STATUS", ACTS),
    0x208: ("TIMESTAMP_DUMP_BUF0_START_ADDR", PLAIN),  # read by debug_timestamp.py
    0x20C: ("TIMESTAMP_DUMP_BUF0_END_ADDR", PLAIN),
    0x210: ("TIMESTAMP_DUMP_BUF1_START_ADDR", PLAIN),
    0x214: ("TIMESTAMP_DUMP_BUF1_END_ADDR", PLAIN),
    0x218: ("PERF_CNT_MUX_CTRL", PLAIN),
    0x21C: ("DBG_L1_READBACK_OFFSET", REFUSED),
    0x220: ("LFSR_HIT_MASK", REFUSED),
    0x224: ("DISABLE_RESET", ACTS),
    0x228: ("TRISC0_RESET_PC", ACTS),
    0x22C: ("TRISC1_RESET_PC", ACTS),
    0x230: ("TRISC2_RESET_PC", ACTS),
    0x234: ("TRISC_RESET_PC_OVERRIDE", ACTS),
    0x238: ("NCRISC_RESET_PC", ACTS),
    0x23C: ("NCRISC_RESET_PC_OVERRIDE", ACTS),
    0x240: ("DEST_CG_CTRL", PLAIN),
    0x244: ("CG_CTRL_EN", PLAIN),
    0x248: ("CG_KICK", PLAIN),
}
"""Name and kind of each register."""


def _kinds() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    kinds = np.zeros(WORDS, np.int64)
    for offset, (_name, kind) in REGISTERS.items():
        kinds[offset // 4] = kind
    return kinds


def _faults(kinds: tuple[int, ...], reason: str, text: str, remedy: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    codes = np.zeros(WORDS, np.int64)
    for offset, (name, kind) in REGISTERS.items():
        if kind in kinds:
            message = text.format(name=name, address=f"{0xFFB12000 + offset:#x}")
            codes[offset // 4] = fault(
                f"control.{reason}.{name}", Unimplemented, message, remedy=remedy, rule="tile K31"
            )
    return codes


KIND: Final = _kinds()
"""What becomes of an access, by offset / 4."""
NOT_BUILT: Final = _faults(
    (REFUSED,),
    "not-built",
    "{name} ({address}) is in the vendor's header, and no source says what it does",
    "leave the register alone",
)
COUNTER_STARTED: Final = _faults(
    (COUNTER,),
    "counter",
    "a store to {name} ({address}) starts performance counters, which bhemu does not have: a functional model knows "
    "no stalls or conflicts to count",
    "leave bit 0 clear; periods and events may be written, and counters stopped",
)
READ_ONLY: Final = _faults(
    (RESULT,),
    "read-only",
    "{name} ({address}) reports, and what a store of {{0:#x}} to it does is not documented",
    "only load from it, or store 0",
)
