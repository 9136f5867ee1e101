"""Whether a NoC request is sound: one answer for a tile alone, for a chip, and for its reasons (tile N17 to N19, N22).

`unsound` decides. A tile refuses its requests to itself here (`check`), the chip the others (chip/noc/refusals.py).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.errors import NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import L1_SIZE, LOCAL_RAM_BASE
from bhemu.machine.faults import DONE, REFUSED, fault, open_choice, refuse
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Bool, Int, NocRequestRecord, TileRecord
from bhemu.tile.noc.request import (
    ADDRESS_BITS,
    ATOMIC,
    BLOCK,
    INLINE,
    LONGEST_PACKET,
    MMIO_FIRST,
    READ,
    RESPONSE,
    WORD,
    is_register,
    starts_another,
)

SPLIT_ALIGNMENT: Final = 64
CHECKS_ITSELF: Final = -1
"""Instead of the size of its memory: a node that refuses addresses itself."""

# What `unsound` returns: what is wrong with the bytes
SOUND: Final = 0
WIDTH: Final = 1
"""Not one aligned word of the registers,"""
STARTS: Final = 2
"""CMD_CTRL: another request would start,"""
OUTSIDE: Final = 3
"""or not in the memory;"""
WRONG: Final = 3
SOURCE: Final = 4
"""added to one of these: which bytes,"""
TARGET: Final = 8
RESULT: Final = 12
"""the last of an atomic; or one of"""
NO_BYTES: Final = 16
SPLIT: Final = 17
DIFFER: Final = 18
"""The addresses differ modulo `modulus`,"""
INLINE_L1: Final = 19
"""an open choice is needed,"""
NOT_A_WORD: Final = 20
"""the target of an atomic is not an aligned word of an L1,"""
RESULT_NOT_A_WORD: Final = 21
"""nor is its result."""

LENGTH: Final = fault(
    "noc.length",
    UndefinedBehavior,
    "a NoC request of no bytes",
    remedy="set AT_LEN_BE to the number of bytes",
    rule="tile N17",
)
NOT_SPLIT: Final = fault(
    "noc.split-alignment",
    UndefinedBehavior,
    "a NoC request of {0} bytes between {1:#x} and {2:#x}: what hardware splits into packets begins at multiples of 64",
    remedy="align both addresses to 64 bytes, or send at most 16384 bytes at once",
    rule="tile N17",
)
NOWHERE: Final = fault(
    "noc.nowhere",
    UndefinedBehavior,
    "a NoC request touches {1} bytes at {0:#x}, which are neither all in L1 (below {2:#x}) nor registers (from {3:#x})",
    remedy=f"Tensix tiles have 32-bit addresses: MID is zero, L1 below {L1_SIZE:#x}, "
    f"registers from {LOCAL_RAM_BASE:#x}",
    rule="tile N18",
)
MISALIGNED: Final = fault(
    "noc.alignment",
    UndefinedBehavior,
    "a NoC request from {0:#x} to {1:#x}: the addresses differ modulo {2}",
    remedy="L1 to L1: equal modulo 16; registers: aligned words",
    rule="tile N19",
)
REGISTER_WIDTH: Final = fault(
    "noc.register-width",
    UndefinedBehavior,
    "a NoC request of {1} bytes to or from the register at {0:#x}",
    remedy="registers are accessed as aligned words of 4 bytes",
    rule="tile N18",
)
INLINE_TO_L1: Final = fault(
    "noc.inline-l1",
    NonContractualBehavior,
    "an inline NoC write to L1 ({0:#x}) is not safe on Blackhole (hardware bug)",
    remedy="write from a staged block in L1, or allow open choices to have the enabled bytes written",
    rule="tile N19, E25",
)
ATOMIC_TO_REGISTER: Final = fault(
    "noc.atomic-register",
    UndefinedBehavior,
    "a NoC atomic between {0:#x} and {1:#x}: both must be aligned words of L1",
    remedy="atomics work in the L1 of Tensix and Ethernet tiles",
    rule="tile N22",
)
STARTS_ANOTHER: Final = fault(
    "noc.starts-another",
    Unimplemented,
    "a NoC request writes CMD_CTRL of a network interface ({0:#x}), which would start another request",
    remedy="start requests from a core",
    rule="tile N26",
)


@kernel
def _place(at: Int, tile: Bool, memory: Int, register: Int, address: Int, size: Int) -> Int:
    """What is wrong with bytes of a node; `register`: the address is one of a register, if the node is a tile."""
    if tile and register != 0:
        if size != WORD or address & (WORD - 1):
            return np.int64(at | WIDTH)
        return np.int64(at | STARTS if at == TARGET and starts_another(address) else SOUND)
    if memory == CHECKS_ITSELF or (address >= 0 and address <= memory and size >= 0 and size <= memory - address):
        return np.int64(SOUND)  # the sum of address and size may overflow
    return np.int64(at | OUTSIDE)


@kernel
def modulus(q: NocRequestRecord, tile: Bool, alignment: Int) -> Int:
    """What both addresses of a read or write agree in; the arguments are those of `unsound`."""
    reads = q.kind == READ
    if (q.from_register != 0 and (tile or not reads)) or (q.to_register != 0 and (tile or reads)):
        return np.int64(WORD)
    return np.int64(alignment) if reads else np.int64(BLOCK)


@kernel
def _unsound_copy(t: TileRecord, q: NocRequestRecord, tile: Bool, memory: Int, alignment: Int) -> Int:
    """`unsound` for a read or write (N17 to N19)."""
    source, target, size = np.int64(q.source), np.int64(q.target), np.int64(q.byte_count)
    if size == 0:
        return np.int64(NO_BYTES)
    if (size < 0 or size > LONGEST_PACKET) and (source | target) & (SPLIT_ALIGNMENT - 1):
        return np.int64(SPLIT)
    if q.masked != 0:
        source, target = source & ~(BLOCK - 1), target & ~(BLOCK - 1)
    reads, own = q.kind == READ, np.int64(t.l1_end)
    wrong = _place(SOURCE, tile or not reads, memory if reads else own, q.from_register, source, size)
    if wrong == SOUND:
        wrong = _place(TARGET, tile or reads, own if reads else memory, q.to_register, target, size)
    if wrong == SOUND and (source - target) & (modulus(q, tile, alignment) - 1):
        return np.int64(DIFFER)
    return wrong


@kernel
def _unsound_atomic(t: TileRecord, q: NocRequestRecord, tile: Bool, memory: Int, bits: Int) -> Int:
    """`unsound` for an atomic (N22)."""
    target, back = np.int64(q.target) & bits, np.int64(q.result) & bits
    if not tile or is_register(target) or target & (WORD - 1):
        return np.int64(NOT_A_WORD)
    answers = (q.control & RESPONSE) != 0
    if answers and (is_register(back) or back & (WORD - 1)):
        return np.int64(RESULT_NOT_A_WORD)
    wrong = _place(TARGET, tile, memory, 0, target & ~(BLOCK - 1), BLOCK)
    return _place(RESULT, True, np.int64(t.l1_end), 0, back, WORD) if wrong == SOUND and answers else wrong


@kernel
def unsound(t: TileRecord, q: NocRequestRecord, tile: Bool, memory: Int, alignment: Int, bits: Int) -> Int:
    """SOUND, or why a request of tile `t`, which `check_request` has passed, breaks a rule.

    Args:
        tile: the other end is a tile: it has registers, and an L1 in which atomics work.
        memory: bytes that it has from address 0 on, or CHECKS_ITSELF.
        alignment: what both addresses of a read from it must agree modulo (N19).
        bits: of addresses that an atomic uses: a tile ignores the MID registers in those to itself.
    """
    if q.kind == ATOMIC:
        return _unsound_atomic(t, q, tile, memory, bits)
    if q.kind != INLINE:
        return _unsound_copy(t, q, tile, memory, alignment)
    if tile and q.to_register != 0:
        return _place(TARGET, tile, memory, 1, np.int64(q.target), WORD)
    wrong = _place(TARGET, tile, memory, 0, q.target & ~(BLOCK - 1), BLOCK)
    return np.int64(INLINE_L1) if wrong == SOUND and tile and t.allow_open == 0 else wrong


@kernel
def note_choice(t: TileRecord, q: NocRequestRecord, tile: Bool) -> bool:
    """Note the open choice that a sound request needs; refuses it where there is none."""
    return q.kind != INLINE or not tile or q.to_register != 0 or open_choice(t, INLINE_TO_L1, q.target)


@kernel
def check(t: TileRecord, q: NocRequestRecord) -> AnyInt:
    """DONE when a request of a tile to itself, or of one without a chip, is sound; refuses it otherwise."""
    wrong = unsound(t, q, True, np.int64(t.l1_end), BLOCK, ADDRESS_BITS)
    source, target, size = np.int64(q.source), np.int64(q.target), np.int64(q.byte_count)
    if wrong in (SOUND, INLINE_L1):
        return np.int64(DONE if note_choice(t, q, True) else REFUSED)
    if q.kind == ATOMIC:
        return refuse(t, ATOMIC_TO_REGISTER, target & ADDRESS_BITS, q.result & ADDRESS_BITS)
    if q.kind == INLINE:
        size = np.int64(WORD) if q.to_register != 0 else np.int64(1)
    elif size <= 0:
        return refuse(t, LENGTH)
    elif wrong == SPLIT:
        return refuse(t, NOT_SPLIT, size, source, target)
    elif wrong == DIFFER:
        return refuse(t, MISALIGNED, source, target, modulus(q, True, BLOCK))
    elif q.masked != 0:
        source, target = source & ~(BLOCK - 1), target & ~(BLOCK - 1)
    address = source if wrong & RESULT == SOURCE else target
    if wrong & WRONG == STARTS:
        return refuse(t, STARTS_ANOTHER, address)
    if wrong & WRONG == WIDTH:
        return refuse(t, REGISTER_WIDTH, address, size)
    return refuse(t, NOWHERE, address, size, t.l1_end, MMIO_FIRST)
