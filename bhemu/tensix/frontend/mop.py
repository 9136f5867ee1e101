"""The MOP expander: one MOP word becomes the many words of a programmed loop (math Y5 to Y8).

MopCfg is sampled while expanding, a word at a time, as the hardware does.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.kernel import kernel
from bhemu.machine.types import FrontendRecord, Int

NOP_OPCODE: Final = 0x02

IDLE: Final = 0
TEMPLATE0: Final = 1
TEMPLATE1: Final = 2

# MopCfg words (Y6)
FLAGS: Final = 1
B: Final = 2
A0: Final = 3
SKIP_A0: Final = 7
SKIP_B: Final = 8
OUTER: Final = 0
INNER: Final = 1
START: Final = 2
END0: Final = 3
END1: Final = 4
LOOP: Final = 5
LOOP1: Final = 6
LAST_OF_LAST: Final = 7
LAST_OF_INNER: Final = 8

LENGTH_MASK: Final = 0x3FF
"""Bits of the loop lengths of template 1: ten, as LLK's test of MOPs of 1000 x 1000 words needs (tile K6, E10).

Documents know seven, those of Wormhole; the 129 passes of Y8's hardware bug are from there too.
"""

# Phases of template 1
AT_START: Final = 0
AT_BODY: Final = 1
AT_END0: Final = 2
AT_END1: Final = 3

NO_WORD: Final = -1
"""The expansion has ended."""


@kernel
def is_nop(word: Int) -> bool:
    return (word >> 24) == NOP_OPCODE


@kernel
def mop_start(f: FrontendRecord, thread: Int, word: Int, line: Int) -> None:
    """Begin to expand a MOP word."""
    f.mop_word[thread] = np.uint32(word)
    f.mop_line[thread] = line
    f.mop_phase[thread] = 0
    f.mop_inner[thread] = 0
    f.mop_outer[thread] = 0
    if (word >> 23) & 1:
        f.mop_active[thread] = TEMPLATE1
        outer: Int = np.int64(f.mop_config[thread, OUTER]) & LENGTH_MASK
        inner = np.int64(f.mop_config[thread, INNER]) & LENGTH_MASK
        start, end = np.int64(f.mop_config[thread, START]), np.int64(f.mop_config[thread, END0])
        if outer == 1 and inner == 0 and is_nop(start) and not is_nop(end):
            outer = 129  # hardware bug (Y8)
        f.mop_outer[thread] = outer
    else:
        f.mop_active[thread] = TEMPLATE0


@kernel
def mop_next(f: FrontendRecord, thread: Int) -> Int:
    """The next word of the expansion, or NO_WORD when it has ended (the expander is then idle)."""
    if f.mop_active[thread] == TEMPLATE0:
        return _template0(f, thread)
    return _template1(f, thread)


@kernel
def _template0(f: FrontendRecord, thread: Int) -> Int:
    """Y7: pass i takes bit i of the mask; phases 0 A0, 1..3 A1..A3, 4 B, or 0 skip A0, 4 skip B."""
    word = np.int64(f.mop_word[thread])
    last = (word >> 16) & 0x7F
    mask = (word & 0xFFFF) | (np.int64(f.mop_zmask_hi[thread]) << 16)
    flags = np.int64(f.mop_config[thread, FLAGS])
    has_b = flags & 1
    has_a123 = (flags >> 1) & 1
    i = np.int64(f.mop_inner[thread])
    phase: Int = np.int64(f.mop_phase[thread])
    if i > last:
        f.mop_active[thread] = IDLE
        return np.int64(NO_WORD)
    skip = (mask >> i) & 1 if i < 32 else 0
    if phase == 0:
        out = np.int64(f.mop_config[thread, SKIP_A0 if skip else A0])
        phase = 1 if has_a123 and not skip else 4
    elif phase < 4:
        out = np.int64(f.mop_config[thread, A0 + phase])
        phase += 1
    else:
        out = np.int64(f.mop_config[thread, SKIP_B if skip else B])
        phase = 5
    if phase == 4 and not has_b:
        phase = 5
    if phase == 5:
        phase = 0
        f.mop_inner[thread] = i + 1
        if i + 1 > last:
            f.mop_active[thread] = IDLE
    f.mop_phase[thread] = phase
    return out


@kernel
def _template1(f: FrontendRecord, thread: Int) -> Int:
    """Y8: each outer pass is start, the body, end0, end1; `mop_outer` counts the passes that are left."""
    config = f.mop_config
    loop1 = np.int64(config[thread, LOOP1])
    length = np.int64(config[thread, INNER]) & LENGTH_MASK
    if not is_nop(loop1):
        length *= 2
    while f.mop_outer[thread] > 0:
        phase = f.mop_phase[thread]
        if phase == AT_START:
            f.mop_phase[thread] = AT_BODY
            f.mop_inner[thread] = 0
            start = np.int64(config[thread, START])
            if not is_nop(start):
                return start
        elif phase == AT_BODY:
            j = np.int64(f.mop_inner[thread])
            if j >= length:
                f.mop_phase[thread] = AT_END0
                continue
            f.mop_inner[thread] = j + 1
            if j == length - 1:
                return np.int64(config[thread, LAST_OF_LAST if f.mop_outer[thread] == 1 else LAST_OF_INNER])
            if (j & 1) and not is_nop(loop1):
                return loop1
            return np.int64(config[thread, LOOP])
        elif phase == AT_END0:
            end0 = np.int64(config[thread, END0])
            if is_nop(end0):
                f.mop_phase[thread] = AT_START
                f.mop_outer[thread] -= 1
            else:
                f.mop_phase[thread] = AT_END1
                return end0
        else:
            f.mop_phase[thread] = AT_START
            f.mop_outer[thread] -= 1
            end1 = np.int64(config[thread, END1])
            if not is_nop(end1):
                return end1
    f.mop_active[thread] = IDLE
    return np.int64(NO_WORD)
