"""The wait gate: one latched wait a thread, which words it holds, and when it is over (math Y10, Y11)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.instructions import BY_OPCODE, INSTRUCTIONS
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import thread_field
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int, TileRecord
from bhemu.tensix.vector_queue import is_busy

STALLWAIT: Final = INSTRUCTIONS["STALLWAIT"].opcode
SEMWAIT: Final = INSTRUCTIONS["SEMWAIT"].opcode


def operand(mnemonic: str, name: str) -> tuple[int, int]:
    """(least significant bit, mask) of an operand, for code that reads a stored word."""
    field = next(field for field in INSTRUCTIONS[mnemonic].fields if field.name == name)
    return field.lsb, field.max


# A word's classes: bits 0..8 = B0..B8. Wait words are held by every bit, NOP only by all nine (Y4, Y10).
EVERY_BLOCK: Final = 0x1FF
ALL_NINE: Final = 0x200
DEFAULT_BLOCK: Final = 0x040  # a zero block mask means B6
DEFAULT_CONDITIONS: Final = 0x000F  # a zero condition mask means C0..C3


def _classes() -> np.ndarray[Any, np.dtype[np.int64]]:
    classes = np.zeros(256, np.int64)
    for row in BY_OPCODE:
        if row is not None:
            classes[row.opcode] = ALL_NINE if row.block_rule == "all" else row.block_mask
    return classes


CLASSES: Final = _classes()
"""Gate classes of each opcode, from the instruction table."""

# STALLWAIT conditions that a functional machine can find unmet. Units finish an instruction before the next one
# starts, so the other conditions (work in flight) always hold; only what SFPLOADMACRO has scheduled takes its time.
C5_SRCA_CLEARED: Final = 0x0020
C6_SRCB_CLEARED: Final = 0x0040
C7_SRCA_VALID: Final = 0x0080
C8_SRCB_VALID: Final = 0x0100
C11_SFPU_IDLE: Final = 0x0800

_STALL_CONDITIONS: Final = operand("STALLWAIT", "wait_res")
_SEMAPHORES: Final = operand("SEMWAIT", "sem_sel")
_SEMAPHORE_CONDITION: Final = operand("SEMWAIT", "wait_sem_cond")
_STREAM_TARGET: Final = operand("STREAMWAIT", "target_value")
_STREAM_CONDITION: Final = operand("STREAMWAIT", "target_sel")
_STREAM_SELECT: Final = operand("STREAMWAIT", "wait_stream_sel")

ON_ZERO: Final = 1
ON_MAX: Final = 2


@kernel
def stall_conditions_left(t: TileRecord, conditions: Int) -> Int:
    """The selected STALLWAIT conditions that still hold the wait, as a mask."""
    if conditions == 0:
        conditions = DEFAULT_CONDITIONS
    left = 0
    if (conditions & C5_SRCA_CLEARED) and t.src_owner[0, t.unpack.bank[0]] != 0:
        left |= C5_SRCA_CLEARED
    if (conditions & C6_SRCB_CLEARED) and t.src_owner[1, t.unpack.bank[1]] != 0:
        left |= C6_SRCB_CLEARED
    if (conditions & C7_SRCA_VALID) and t.src_owner[0, t.matrix.bank[0]] != 1:
        left |= C7_SRCA_VALID
    if (conditions & C8_SRCB_VALID) and t.src_owner[1, t.matrix.bank[1]] != 1:
        left |= C8_SRCB_VALID
    if (conditions & C11_SFPU_IDLE) and is_busy(t):
        left |= C11_SFPU_IDLE
    return left


@kernel
def semaphores_left(t: TileRecord, selected: Int, condition: Int) -> Int:
    """The selected semaphores that still hold a SEMWAIT, as a mask (Y11a)."""
    left = 0
    for i in range(8):
        if (selected >> i) & 1:
            value = t.sync.semaphore[i]
            if ((condition & ON_ZERO) and value == 0) or ((condition & ON_MAX) and value >= t.sync.semaphore_max[i]):
                left |= 1 << i
    return left


@kernel
def wait_left(t: TileRecord, thread: Int) -> Int:
    """What still holds the latched wait, as a mask: of a STALLWAIT's conditions or a SEMWAIT's semaphores; or 1."""
    word = np.int64(t.frontend.wait_word[thread])
    opcode = word >> 24
    if opcode == STALLWAIT:
        return stall_conditions_left(t, (word >> _STALL_CONDITIONS[0]) & _STALL_CONDITIONS[1])
    if opcode == SEMWAIT:
        selected = (word >> _SEMAPHORES[0]) & _SEMAPHORES[1]
        return semaphores_left(t, selected, (word >> _SEMAPHORE_CONDITION[0]) & _SEMAPHORE_CONDITION[1])
    return 0 if stream_reached(t, thread, word) else 1


@kernel
def wait_is_over(t: TileRecord, thread: Int) -> bool:
    """True when every selected condition of the latched wait holds in this cycle."""
    return wait_left(t, thread) == 0


def wait_left_entry(t: TileRecord, thread: Int, _: Int) -> Int:
    """`wait_left` for `compile_entry`."""
    return np.int64(wait_left(t, thread))


_PHASE_HIGH: Final = thread_register("STREAMWAIT_PHASE_HI_Val")
_MESSAGES_HIGH: Final = thread_register("STREAMWAIT_NUM_MSGS_HI_Val")
_STREAM_ID: Final = thread_register("STREAM_ID_SYNC_SEC0_BankSel")


@kernel
def stream_reached(t: TileRecord, thread: Int, word: Int) -> Bool:
    """Y11c: the stream's phase (condition 0) or message count (condition 1) has reached the target."""
    by_messages = (word >> _STREAM_CONDITION[0]) & _STREAM_CONDITION[1]
    high = thread_field(t, thread, _MESSAGES_HIGH) if by_messages else thread_field(t, thread, _PHASE_HIGH)
    target = ((word >> _STREAM_TARGET[0]) & _STREAM_TARGET[1]) | (high << 10)
    select = (word >> _STREAM_SELECT[0]) & _STREAM_SELECT[1]
    stream = np.int64(t.thread_config[thread, _STREAM_ID[0] + select]) & _STREAM_ID[2]
    reached = t.stream_messages[stream] if by_messages else t.stream_phase[stream]
    return reached >= target


@kernel(forceinline=True)
def block_mask(wait: Int) -> Int:
    """Block mask of a latched wait word."""
    mask = (wait >> 15) & 0x1FF
    return mask if mask != 0 else DEFAULT_BLOCK


@kernel(forceinline=True)
def is_held(wait: Int, opcode: Int) -> Bool:
    """True when the latched wait holds words of this opcode."""
    mask = block_mask(wait)
    classes = CLASSES[opcode]
    if classes == ALL_NINE:
        return mask == EVERY_BLOCK
    return (mask & classes) != 0
