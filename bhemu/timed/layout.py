"""The buffer of a tile's timed mode: 64-bit integers, figures first, then the state of cores and units.

Figures are in the buffer, not in the code: the table of figures can be edited without compiling anything.
"""

from __future__ import annotations

from typing import Final

from bhemu.machine.agents import CORES
from bhemu.machine.dst import DST_ROWS
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int
from bhemu.tile.observer import RESERVED
from bhemu.timed.figures import Figures

# --- figures ----------------------------------------------------------------------------------------------------------

FIGURES: Final = Figures(RESERVED)
"""Figures of isa/silicon.py that the buffer has."""

MULTIPLY: Final = FIGURES.place("core.multiply")
DIVIDE_BASE: Final = FIGURES.place("core.divide.base")
DIVIDE_64THS: Final = FIGURES.place("core.divide.64ths")
DIVIDE_LEAST: Final = FIGURES.place("core.divide.least")
DIVIDE_MOST: Final = FIGURES.place("core.divide.most")
DIVIDE_SHORT: Final = FIGURES.place("core.divide.short")
FLOAT: Final = FIGURES.place("core.float")
FLOAT_OTHER: Final = FIGURES.place("core.float.other")
LOAD_LOCAL: Final = FIGURES.place("core.load.local")
LOAD_HIT: Final = FIGURES.place("core.load.l1.hit")
LOAD_MISS: Final = FIGURES.place("core.load.l1.miss")
MISS_BETWEEN: Final = FIGURES.place("core.load.l1.between")
LOAD_SYNC: Final = FIGURES.place("core.load.sync")
LOAD_COPROCESSOR: Final = FIGURES.place("core.load.coprocessor")
LOAD_REGISTERS: Final = FIGURES.place("core.load.registers")
LOAD_OTHER_RAM: Final = FIGURES.place("core.load.other_ram")
LOAD_DST: Final = FIGURES.place("core.load.dst")
ATOMIC: Final = FIGURES.place("core.atomic")
SYSTEM: Final = FIGURES.place("core.system")
STORE_64THS: Final = FIGURES.place("core.store.64ths")
STORE_QUEUE: Final = FIGURES.place("core.store.queue")
MISPREDICTED: Final = FIGURES.place("core.mispredicted")
FETCH_NEXT: Final = FIGURES.place("core.fetch.next")
FETCH_JUMP: Final = FIGURES.place("core.fetch.jump")
PUSH_VISIBLE: Final = FIGURES.place("core.push.visible")
SYNC_SEEN: Final = FIGURES.place("core.sync.seen")
AFTER_MOP: Final = FIGURES.place("tensix.after_mop")
WAIT_SEEN: Final = FIGURES.place("tensix.wait.seen")
DST_AGAIN: Final = FIGURES.place("tensix.dst.again")
UNPACK_ADDRESS: Final = FIGURES.place("tensix.unpack.address")
UNPACK_BYTES: Final = FIGURES.place("tensix.unpack.bytes")
TILIZE_BYTES: Final = FIGURES.place("tensix.unpack.tilize_bytes")
UNPACK_LATENCY: Final = FIGURES.place("tensix.unpack.latency")
PACK_DATUMS: Final = FIGURES.place("tensix.pack.datums")
PACK_LATENCY: Final = FIGURES.place("tensix.pack.latency")
SCALAR_MEMORY: Final = FIGURES.place("tensix.scalar.memory")
MOVER_COPY: Final = FIGURES.place("tensix.mover.copy")
MOVER_ZEROS: Final = FIGURES.place("tensix.mover.zeros")

# --- Tensix instructions, by opcode -----------------------------------------------------------------------------------

OPCODES: Final = 256
TIMES: Final = FIGURES.end
"""By opcode, one word: what is known of it lies together, as many tiles take turns in the processor's caches. The bits
of the word:"""
UNIT_BITS: Final = 0xF
"""What takes it, of `UNIT_NAMES`."""
WAITS_LSB: Final = 4
"""It waits for SrcA's bank; next bit: for SrcB's, of the matrix unit."""
ACCUMULATES: Final = 1 << 6
"""It works on eight rows of Dst and must not follow another on the same rows too soon."""
GUESSED: Final = 1 << 7
"""Its figures are guesses."""
LREG_LSB: Final = 8
"""Four bits; bit n of them: bits 4n+7 to 4n+4 of the word name an LReg that it reads."""
OCCUPANCY_LSB: Final = 16
LATENCY_LSB: Final = 32
CYCLES_BITS: Final = 0xFFFF
"""Of occupancy and latency."""
UNIT_NAMES: Final = ("misc", "scalar", "config", "unpack", "pack", "matrix", "vector", "mover", "sync", "frontend")
MISC, SCALAR, CONFIG, UNPACK, PACK, MATRIX, VECTOR, MOVER, SYNC, FRONTEND = range(len(UNIT_NAMES))

# --- counts -----------------------------------------------------------------------------------------------------------

COUNTS: Final = TIMES + OPCODES
BUSY_CYCLES: Final = COUNTS
"""Cycles for which words occupied their units."""
GUESSED_CYCLES: Final = COUNTS + 1
"""Those of words whose figures are guesses."""
CORE_CYCLES: Final = COUNTS + 2
"""Cycles of the cores: instructions, and what held them."""
CORE_GUESSED: Final = COUNTS + 3
"""Those of instructions whose figures are guesses."""
UNIT_CYCLES: Final = COUNTS + 4
"""By unit, cycles for which words occupied it."""

# --- cores ------------------------------------------------------------------------------------------------------------

CORE_BLOCKS: Final = UNIT_CYCLES + len(UNIT_NAMES)
READY: Final = 0
"""Cycle from which each register can be used: x0 to x31, f0 to f31."""
STORE_LINE: Final = 64
"""The 16 bytes of L1 that the last store went to, -1 none."""
STORE_FREE: Final = 65
"""When the queue of stores is empty, in 64ths of a cycle."""
MISS_FREE: Final = 66
"""Cycle from which the next load may miss the L0 data cache."""
LINES: Final = 67
"""The L0 data cache: four lines, oldest first; -1 none."""
LINE_READY: Final = 71
FETCHED: Final = 75
"""The last 16 bytes that were fetched."""
STARTED: Final = 76
"""Of the instruction that is being executed: its cycle; then its word, pc, address, values of rs1 and rs2."""
WORD: Final = 77
PC: Final = 78
ADDRESS: Final = 79
RS1: Final = 80
RS2: Final = 81
RETIRED: Final = 82
SLEEPS: Final = 83
"""1 while it polls (riscv/poll.py), and is not visited."""
SINCE: Final = 84
"""Cycle in which the turn of the loop that is being recorded began."""
PERIOD: Final = 85
"""Cycles of one turn of the loop in which it sleeps."""
CORE_BUSY: Final = 86
"""Cycles in which the core has started an instruction, or could not start the next one because of it."""
CACHE: Final = 87
"""Instruction cache: 128 sets of two lines of 16 bytes. Each is 1 + the line's number, 0 none; the older one is in the
upper half of the word."""
CACHE_SETS: Final = 128
PREDICTED: Final = CACHE + CACHE_SETS
"""Two-bit counters of branches, by pc, 16 in a word; from 2 on a branch is expected to be taken."""
COUNTERS: Final = 1024
COUNTERS_IN_WORD: Final = 16
CORE_BLOCK: Final = PREDICTED + COUNTERS // COUNTERS_IN_WORD

# --- threads and units ------------------------------------------------------------------------------------------------

NEXT: Final = CORE_BLOCKS + CORES * CORE_BLOCK
"""By thread: cycle from which it may issue its next word."""
WAS_MOP: Final = NEXT + THREADS
"""By thread: 1 when the last word that it took was a MOP."""
LATCHED: Final = WAS_MOP + THREADS
"""By thread: cycle in which its wait was latched."""
ENDED: Final = LATCHED + THREADS
"""By thread, by unit: cycle in which its work there is done."""
UNPACKED: Final = ENDED + THREADS * len(UNIT_NAMES)
"""By thread, by unpacker, likewise."""
UNIT_FREE: Final = UNPACKED + 2 * THREADS
"""By unit: cycle from which it takes the next word."""
UNPACKER_FREE: Final = UNIT_FREE + len(UNIT_NAMES)
BANK_FREE: Final = UNPACKER_FREE + 2
"""By source file and bank: cycle from which an unpacker may fill it; then: from which the matrix unit may use it."""
BANK_VALID: Final = BANK_FREE + 4
DST_BLOCKS: Final = DST_ROWS // 8
DST_FREE: Final = BANK_VALID + 4
"""By eight rows of Dst: cycle from which an instruction of the matrix unit may work on them again."""
LREG_READY: Final = DST_FREE + DST_BLOCKS
LREGS: Final = 16
PUSHED: Final = LREG_READY + LREGS
"""By thread: cycle of the last push."""
LAST_CYCLE: Final = PUSHED + THREADS
"""The last cycle in which the coprocessor had its turn."""
SERVED: Final = LAST_CYCLE + 1
"""By unit: the thread whose word it took last; then the cycle in which a thread has let another one go first since."""
YIELDED: Final = SERVED + len(UNIT_NAMES)
MACRO_CYCLE: Final = YIELDED + len(UNIT_NAMES)
"""The last cycle in which something that SFPLOADMACRO has scheduled was begun."""
SLEEPERS: Final = MACRO_CYCLE + 1
"""How many cores have SLEEPS set."""
LIMIT: Final = SLEEPERS + 1
"""Cycle that the tile must not pass when it is advanced next, as something arrives then; NO_LIMIT: any."""
NO_LIMIT: Final = 1 << 62
SIZE: Final = LIMIT + 1


@kernel
def core_block(core: Int) -> Int:
    """Where the block of a core begins."""
    return CORE_BLOCKS + core * CORE_BLOCK
