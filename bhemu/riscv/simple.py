"""Simple instructions of a core, which its inner loop executes: their numbers, and what loads, stores and branches do.

Those that compute are in arithmetic.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import LOCAL_RAM_BASE
from bhemu.isa.riscv import NUMBER
from bhemu.machine.agents import CORES
from bhemu.machine.core_state import ASLEEP, LOAD, LOCAL_RAM, STORE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.riscv.arithmetic import WORD, compute, signed
from bhemu.riscv.decode import sign_extend

_N: Final = NUMBER
JAL, JALR, FENCE, FENCE_I = _N["jal"], _N["jalr"], _N["fence"], _N["fence.i"]
BEQ, BNE, BLT, BGE, BLTU, BGEU = _N["beq"], _N["bne"], _N["blt"], _N["bge"], _N["bltu"], _N["bgeu"]
LB, LH, LW, LBU, LHU = _N["lb"], _N["lh"], _N["lw"], _N["lbu"], _N["lhu"]
SB, SH, SW = _N["sb"], _N["sh"], _N["sw"]
# Where an aligned access goes
IN_L1, IN_RAM, NOT_ALIGNED, ELSEWHERE = range(4)

RAM_BASE: Final = LOCAL_RAM_BASE
_IN_RAM_BITS: Final = LOCAL_RAM - 1
"""The bits of an address that say where in a local RAM it is."""
assert LOCAL_RAM_BASE & _IN_RAM_BITS == 0


@kernel(forceinline=True)
def place_of_access(address: Int, size: Int, l1_end: Int, ram_size: Int) -> Int:
    """Where an access of a core goes."""
    if address & (size - 1):
        return np.int64(NOT_ALIGNED)
    if address < l1_end:
        return np.int64(IN_L1)
    return np.int64(IN_RAM if (address - RAM_BASE) & WORD < ram_size else ELSEWHERE)


@kernel(forceinline=True)
def size_of(n: Int) -> Any:
    """Bytes that a load or store accesses."""
    return 4 if n in (LW, SW) else (1 if n in (LB, LBU, SB) else 2)


@kernel
def access_of(t: TileRecord, core: Int, fields: Int) -> Any:
    """(LOAD or STORE, bytes, what is stored, register that is loaded, 1 if its sign is extended) of a load or store."""
    n = fields & 0xFF
    size = size_of(n)
    kind = STORE if n >= SB else LOAD
    value = np.int64(t.core_x[core, (fields >> 24) & 0xFF]) & ((1 << (8 * size)) - 1) if n >= SB else np.int64(0)
    return kind, size, value, (fields >> 8) & 0xFF, 1 if n in (LB, LH) else 0


@kernel(forceinline=True)
def is_watched(t: TileRecord, address: Int) -> Bool:
    """A sleeping core may wait for the word at an address of L1 (poll.py); never False where one does."""
    return (np.int64(t.watch_hash) >> ((address >> 2) & 63)) & 1 != 0


@kernel(seldom=True)
def may_wake(t: TileRecord, address: Int) -> bool:
    """A sleeping core waits for it: `is_watched`, exactly."""
    for core in range(CORES):
        if t.core_state[core] == ASLEEP:
            for i in range(t.watch_count[core]):
                if t.watch_address[core, i] == address & ~3:
                    return True
    return False


@kernel(forceinline=True)
def loaded(n: Int, word: Int, address: Int) -> Int:
    """What a load gets of the word that is at its address."""
    word >>= 8 * (address & 3)
    if n == LW:
        return word
    if n == LBU:
        return word & 0xFF
    if n == LHU:
        return word & 0xFFFF
    return sign_extend(word, 8 if n == LB else 16)


@kernel(forceinline=True)
def load_memory(t: TileRecord, core: Int, n: Int, place: Int, address: Int) -> Int:
    """What a load gets from L1 or the core's own RAM."""
    if place == IN_L1:
        word = np.int64(t.l1_u32[address >> 2])
    else:
        word = np.int64(t.core_ram_u32[core, (address & _IN_RAM_BITS) >> 2])
    return loaded(n, word, address)


@kernel(forceinline=True)
def store_memory(t: TileRecord, core: Int, n: Int, place: Int, address: Int, value: Int) -> None:
    """A store to L1 or the core's own RAM."""
    offset = address & _IN_RAM_BITS
    if n == SW:
        if place == IN_L1:
            t.l1_u32[address >> 2] = np.uint32(value)
        else:
            t.core_ram_u32[core, offset >> 2] = np.uint32(value)
    elif n == SB:
        if place == IN_L1:
            t.l1[address] = np.uint8(value & 0xFF)
        else:
            t.core_ram[core, offset] = np.uint8(value & 0xFF)
    elif place == IN_L1:
        t.l1_u16[address >> 1] = np.uint16(value & 0xFFFF)
    else:
        t.core_ram_u16[core, offset >> 1] = np.uint16(value & 0xFFFF)


@kernel(forceinline=True)
def branches(n: Int, a: Int, b: Int) -> Bool:
    """The condition of a branch holds for two registers."""
    if n == BEQ:
        return a == b
    if n == BNE:
        return a != b
    if n == BLT:
        return signed(a) < signed(b)
    if n == BGE:
        return signed(a) >= signed(b)
    return a < b if n == BLTU else a >= b


@kernel(forceinline=True)
def without_access(n: Int, a: Int, b: Int, immediate: Int, pc: Int) -> Any:
    """(what goes into the register, the pc after it, a branch is taken) of an instruction that accesses no memory."""
    after = pc + 4
    if n >= BEQ and n <= BGEU:
        taken = branches(n, a, b)
        return np.int64(0), pc + immediate if taken else after, taken
    if n == JAL:
        return after, pc + immediate, False
    if n == JALR:
        return after, (a + immediate) & (WORD - 1), False
    return compute(n, a, b, immediate, pc) if n < FENCE else np.int64(0), after, False
