"""The state record: everything that one tile holds, as one NumPy structured record (design section 3).

Registers hold hardware bit patterns, never numbers: SrcA / SrcB cells are 19 bits {sign, mantissa, exponent}, Dst cells
the permuted 16 bits, a 32-bit Dst datum two cells (rules I.2, I.3). Compiled code receives the record whole; Python
sees the same memory as a `numpy.record`. A copy of the record is a snapshot of the tile.

All state is declared in the field list below and in the units' sections that it names. Shapes are row-major; `thread`
is 0 unpack, 1 math, 2 pack.
"""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numba.np.numpy_support import from_dtype

from bhemu.isa.memory_map import L1_SIZE as L1_SIZE
from bhemu.isa.tile_registers import bit_of
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.agents import THREADS as THREADS
from bhemu.machine.core_state import CORE_FIELDS, FIRST_POLL_ATTEMPT, LOCAL_RAM, LOCAL_RAM_SIZE
from bhemu.machine.device_state import DEVICE_FIELDS, LONE_TILE, place_niu
from bhemu.machine.ethernet_state import ETHERNET_FIELDS
from bhemu.machine.frontend_state import FRONTEND
from bhemu.machine.matrix_state import MATRIX, PREPARED
from bhemu.machine.packer_state import PACKER
from bhemu.machine.performance_state import PERFORMANCE
from bhemu.machine.section import LINE, section
from bhemu.machine.sync_state import SYNC
from bhemu.machine.unpacker_state import UNPACKERS
from bhemu.machine.vector_core_state import VECTOR_CORE, VLEN_BYTES
from bhemu.machine.vector_state import MACRO, VECTOR

PAGE = 4096

ALL_CONFIG_DIRTY = 0xFFFFFFFF

STREAM_WORDS = 22
"""Words of an overlay stream that hold what software stores (tensix/overlay.py)."""

_FIELDS: list[tuple[str, str | np.dtype[Any], tuple[int, ...]]] = [
    # --- register files -------------------------------------------------------------------------------------------
    ("dst", "u2", (1024, 16)),  # physical rows of raw 16-bit cells
    ("dst_valid", "u1", (1024,)),  # row-valid flag of each physical row (I.3)
    ("srca", "u4", (2, 64, 16)),  # [bank, row, column] 19-bit cells
    ("srcb", "u4", (2, 64, 16)),
    ("lregs", "u4", (17, 32)),  # [register, lane]; 16 is reachable only inside macros (V1)
    ("prng", "u4", (32,)),  # per lane (V4)
    ("gpr", "u4", (THREADS, 64)),
    # --- bank protocol; first index 0 = SrcA, 1 = SrcB ----------------------------------------------------------------
    ("src_owner", "i4", (2, 2)),  # [file, bank]: 0 unpacker, 1 matrix unit
    ("src_format", "i4", (2, 2)),  # [file, bank]: implied data format code (U11, F1)
    # --- configuration --------------------------------------------------------------------------------------------
    ("config", "u4", (2, 224)),  # [bank, word]; words >= 180 are shared and live in bank 0 (I.10)
    ("thread_config", "u2", (THREADS, 68)),
    ("config_dirty", "u4", (2,)),  # [bank]: units whose decoded configuration is stale, one bit a unit
    # --- counters -------------------------------------------------------------------------------------------------
    ("adc", "i4", (THREADS, 3, 16)),  # [thread, unpacker 0 / unpacker 1 / packer, counter], see machine/counters.py
    ("rwc", "i4", (THREADS, 8)),  # [thread, counter]
    # --- memory-mapped registers (tensix/overlay.py, tensix/tdma.py) --------------------------------------------------
    ("stream_messages", "i4", (64,)),  # overlay streams: message count and phase are plain counters
    ("stream_phase", "i4", (64,)),
    ("stream_word", "u4", (STREAM_WORDS, 64)),  # [slot, stream]
    ("stream_running", "i4", (64,)),  # 1 in a phase (tensix/overlay_phases.py, tile K55)
    ("stream_left", "i4", (64,)),  # messages until the phase ends
    ("stream_next", "i4", (64,)),  # words of the next phase's configuration, without its first one
    ("tdma_parameters", "u4", (4,)),  # source, destination, size, direction of the next command (K30)
    ("tdma_base", "u4", (4,)),  # [core B, T0, T1, T2] source base of compact moves
    ("tdma_clock_gates", "u4", ()),  # as loads show it
    ("tdma_hysteresis", "u4", ()),  # as loads show it
    # --- units; fields: machine/..._state.py --------------------------------------------------------------------------
    # As the official simulator orders words (tile E43): expanded when they are pushed, one queue after the expanders,
    # a waiting word holds all others. Every order of that kind is one that silicon may show; recordings need this one.
    ("simulator_order", "i4", ()),
    ("frontend", FRONTEND, ()),
    ("sync", SYNC, ()),
    ("unpack", UNPACKERS, ()),
    ("matrix", MATRIX, ()),
    ("prepared", PREPARED, ()),
    ("pack", PACKER, ()),
    ("vector", VECTOR, ()),
    ("macro", MACRO, ()),
    ("vector_core", VECTOR_CORE, ()),  # vector registers of core T2
    ("performance", PERFORMANCE, ()),
    # --- accounts -------------------------------------------------------------------------------------------------
    ("clock", "i8", ()),
    ("src_epoch", "i8", ()),  # stretch of words that leave Src alone (tensix/src_rows.py); 0 outside the front end
    ("src_fresh", "i4", ()),  # 1: no cell has been written since the tile was made (tensix/src_rows.py); 0: not known
    ("src_compared", "i4", ()),  # 1: some block of `prepared` names such a stretch
    ("cycle_resume", "i4", ()),  # thread at which a cycle resumes that found a handler missing
    ("cycle_moved", "i4", ()),  # and whether a thread before it had moved
    ("issued", "i8", (THREADS, 256)),  # executed words by opcode
    ("fault_code", "i8", ()),  # 0 none; see machine/faults.py
    ("fault_value", "i8", (4,)),
    ("fault_thread", "i4", ()),
    ("fault_word", "u4", ()),
    ("fault_line", "i4", ()),
    ("fault_scheduled", "i4", ()),  # 1: the word is not one of the thread's, SFPLOADMACRO scheduled it
    ("allow_open", "i4", ()),  # the user accepts recommended choices where no source settles a case
    ("open_used", "i8", (16,)),  # fault codes of open cases that were executed, 0 = free slot
    *CORE_FIELDS,
    *DEVICE_FIELDS,
    *ETHERNET_FIELDS,
    ("device_value", "i8", ()),  # of a store to the memory map, and of a load when it has been made
    ("device_size", "i4", ()),  # bytes of that access
    ("needs_place", "i4", ()),  # place of the table of handlers that the host must fill, 0 none
    ("now_round", "i8", ()),  # round and agent of the access in progress; the host's come before all cores (agent -1)
    ("now_agent", "i4", ()),
    ("handlers", "i8", ()),  # address of the table of compiled functions (machine/dispatch.py); no state
]


def offset_of(record: np.dtype[Any], name: str) -> int:
    """Where a field begins in a record, in bytes."""
    return int((record.fields or {})[name][1])  # type: ignore[index]  # of a structured dtype, it is never empty


_LARGE: Final = 1024
"""Bytes from which on a field lies apart from those that the schedule reads."""
_SET_AT_RESET: Final = (
    *(
        "lregs",
        "dst_valid",
        "vector",
        "config_dirty",
        "simulator_order",
        "src_fresh",
        "allow_open",
        "core_cfg0",
        "core_loops_limit",
        "poll_steps",
    ),
    *(
        "soft_reset",
        "noc_connected",
        "niu_config",
        "niu_place",
        "tile_kind",
        "l1_end",
        "handlers",
        "vector_core",
    ),
)
"""Fields that are not zero after reset. These bytes lie in one page: a chip that starts touches no other."""
_FIRST_OF_MACRO: Final = "template"
"""Fields of `macro` before it are for programs with macros. A page begins with it."""
_SELDOM: Final = ("prepared", "dst", "unpack", "macro")
"""Large fields of which a tile whose cores only start and poll touches no more than the end. They lie first."""
_AT_START: Final = ("config", "frontend")
"""Large fields of which such a tile touches the beginning. They come next."""
_RARE: Final = (
    "control_word",
    "stream_phase",
    "stream_running",
    "stream_left",
    "stream_next",
    "open_used",
    "mailbox_head",
    "timestamp_count",
    "timestamp_size",
    "performance",
    "timestamp_word",
    "mailbox_word",
    "pic_software",
    "pic_handler",
    "ethernet",
)
"""Fields that such a tile does not touch, but for the first words of `control_word`. They come last."""


def _layout() -> np.dtype[Any]:
    """What is seldom touched, other large fields, what reset sets, what the cores have, all else, local RAM and L1.

    A page that a chip's tiles touch costs each of them a page fault: they touch few, so what is used lies together.
    What the coprocessor needs for its first words takes two pages from the end of `macro` on, and `issued`, in whose
    last page are those words of streams that firmware uses. The cells of a tile of Dst, or of a bank of Src, are in one
    page; so is what unpackers have decoded for their first contexts. What is read before it is written costs two page
    faults, of which the second one waits for other processors: units write a word of theirs first.
    """
    fields = {field[0]: field for field in _FIELDS}
    seldom = [fields.pop(name) for name in _SELDOM]
    at_start = [fields.pop(name) for name in _AT_START]
    words = [fields.pop(name) for name in ("issued", "stream_word")]
    core_ram = fields.pop("core_ram")
    at_reset = [fields.pop(name) for name in _SET_AT_RESET]
    rare = [fields.pop(name) for name in _RARE]
    of_cores = {name for name, _, _ in CORE_FIELDS}
    large = [field for field in fields.values() if np.dtype((field[1], field[2])).itemsize >= _LARGE]
    others = [field for field in fields.values() if field not in large]
    small = sorted(others, key=lambda field: field[0] not in of_cores)
    # Cores access L1 and their local RAM by bytes, halves and words. The vector unit works on pairs of neighbouring
    # columns of Dst, and on the valid bits of four rows at once.
    views = (
        ("l1_u16", "l1", "<u2", (L1_SIZE // 2,)),
        ("l1_u32", "l1", "<u4", (L1_SIZE // 4,)),
        ("core_ram_u16", "core_ram", "<u2", (CORES, LOCAL_RAM // 2)),
        ("core_ram_u32", "core_ram", "<u4", (CORES, LOCAL_RAM // 4)),
        ("dst_u32", "dst", "<u4", (1024, 8)),
        ("dst_valid_u16", "dst_valid", "<u2", (512,)),
        ("dst_valid_u32", "dst_valid", "<u4", (256,)),
    )
    places = {
        "dst": (PAGE, 0),
        "unpack": (PAGE, 0),
        "macro": (PAGE, -(offset_of(MACRO, _FIRST_OF_MACRO) // LINE * LINE)),
        "srca": (PAGE, 0),
        "issued": (PAGE, 0),
        "lregs": (PAGE, 0),
        "core_ram": (PAGE, 0),
        "l1": (PAGE, 0),
    }
    order = (*seldom, *at_start, *large, *words, *at_reset, *small, *rare, core_ram, ("l1", "u1", (L1_SIZE,)))
    return _apart(section(order, views, places))


def _apart(record: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with a size of an odd number of pages.

    What a chip's tiles have in the same place is then in different sets of a processor's caches and of its translation
    buffers. With a power of two in the size some words of many tiles took each other's places there.
    """
    fields: Any = record.fields or {}
    pages = -(-record.itemsize // PAGE)
    return np.dtype(
        {
            "names": list(fields),
            "formats": [field[0] for field in fields.values()],
            "offsets": [field[1] for field in fields.values()],
            "itemsize": (pages | 1) * PAGE,
        }
    )


TILE: np.dtype[Any] = _layout()
"""The dtype of a tile. `l1`, `l1_u16` and `l1_u32` are views of the same bytes; so are `dst` and `dst_u32`,
`dst_valid`, `dst_valid_u16` and `dst_valid_u32`, `core_ram` and `core_ram_u16` and `core_ram_u32`."""


def state_field(record: Any, name: str) -> Any:
    """A field of a record; one inside of a unit's section is named `section.field`."""
    for part in name.split("."):
        record = record[part]
    return record


_L1_PAGES_OF_FIRMWARE: Final = (0, 3, 4, 5, 6, 7, 10, 11, 12, 19)
"""Pages of L1 that tiles have when ttnn 0.81.1 has opened a device: mailboxes, firmware, tables."""


def _pages_of_firmware() -> tuple[int, ...]:
    """The pages of a record that firmware touches when it starts, and tt-metal when it starts firmware."""
    core_ram = offset_of(TILE, "core_ram")
    parts = [
        (
            offset_of(TILE, "macro") + offset_of(MACRO, _FIRST_OF_MACRO),
            offset_of(TILE, "frontend") + offset_of(FRONTEND, "ready") + 1,
        ),
        *((offset_of(TILE, name), offset_of(TILE, name) + 1) for name in ("stream_word", "issued")),
        *(
            (core_ram + LOCAL_RAM * core, core_ram + LOCAL_RAM * core + int(LOCAL_RAM_SIZE[core]))
            for core in range(CORES)
        ),
        (offset_of(TILE, "lregs"), offset_of(TILE, "control_word") + 1),
    ]
    below = (page for begin, end in parts for page in range(begin // PAGE, (end - 1) // PAGE + 1))
    return (*sorted(below), *(offset_of(TILE, "l1") // PAGE + page for page in _L1_PAGES_OF_FIRMWARE))


FIRMWARE_PAGES: Final = _pages_of_firmware()
"""The C library takes these pages together, before a tile is used (capi/pages.c). Results do not depend on it."""

TILE_TYPE = from_dtype(TILE)
"""The same record as compiled code knows it."""

# LReg constants at reset (V1); 11..14 in the order of FORMAT.md.
_LREG_RESET = {8: 0x3F56594B, 10: 0x3F800000, 11: 0xBF800000, 12: 0x3B000000, 13: 0xBF2CC4C7, 14: 0xBEB08FF9}


POWER_ON_RESET = sum(1 << bit_of("control", "SOFT_RESET_0", name) for name in CORE_NAMES)
"""Soft-reset register at power on: all five cores held (T14)."""


def reset(tiles: np.ndarray[Any, Any], index: int = 0) -> None:
    """Put tile `index` into its reset state. Untouched pages of a fresh allocation stay untouched."""
    tile = tiles[index]
    handlers = tile["handlers"]  # not state: where this process has its compiled functions
    tiles[index : index + 1].view(np.ndarray).view(np.uint8)[: offset_of(TILE, "l1")] = 0
    tile["handlers"] = handlers
    _power_on(tile)


def _power_on(tile: Any) -> None:
    """What is not zero after reset."""
    tile["dst_valid"] = 1
    for register, bits in _LREG_RESET.items():
        tile["lregs"][register] = bits
    tile["lregs"][15] = 2 * np.arange(32)
    for lanes in ("lane_flags", "use_flags", "acting_lanes"):
        tile["vector"][lanes] = 0xFFFFFFFF
    tile["config_dirty"] = ALL_CONFIG_DIRTY
    tile["soft_reset"] = POWER_ON_RESET
    tile["l1_end"] = L1_SIZE
    tile["core_cfg0"] = 16 << 13  # the store merge timer (T12)
    tile["core_loops_limit"] = FIRST_POLL_ATTEMPT
    tile["poll_steps"] = -1
    tile["vector_core"]["vlenb"] = VLEN_BYTES
    place_niu(tile, *LONE_TILE, 0)


def new_tiles(count: int = 1) -> np.ndarray[Any, Any]:
    """`count` tiles after reset, as a record array; L1 pages are taken from the system only when touched."""
    tiles = _pages(count * TILE.itemsize).view(TILE).view(np.recarray)
    for index in range(count):
        _power_on(tiles[index])  # all else is zero already
    return tiles


def _pages(size: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Bytes of zeros, of which a process that forks keeps its own.

    They begin at a page, so that a row of lanes never straddles cache lines (which costs up to 40 %). NumPy asks for
    pages of 2 MiB for large arrays; then every tile of a chip would have all of its L1 in memory.
    """
    if not hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory = np.zeros(size + PAGE, np.uint8)
        start = -memory.ctypes.data % PAGE
        return memory[start : start + size]
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.uint8)
