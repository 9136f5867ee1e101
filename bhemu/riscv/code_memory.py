"""Memory for machine code, and entering it.

It is writable or executable, never both: before a region is written its pages are made writable, and executable
afterwards.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types

from bhemu.machine.buffer_memory import load_i64, store_i64, store_u8
from bhemu.machine.compiler import JIT
from bhemu.machine.core_state import LOCAL_RAM_SIZE
from bhemu.machine.dispatch import call_handler
from bhemu.machine.kernel import intrinsic, kernel
from bhemu.machine.state import offset_of
from bhemu.machine.types import AnyInt, Bool, Int, Record, TileRecord
from bhemu.riscv.decode import CODE, TRANSLATED
from bhemu.riscv.translation_state import (
    BLOCK,
    BLOCK_AT,
    CODE_AT,
    CODE_SIZE,
    COUNT,
    CURRENT,
    ENTER_PLACE,
    FAILED,
    FIELDS,
    LOOPS_LEFT,
    NEXT,
    NO_CORE,
    PLACE,
    PREVIOUS,
    RAM_BYTES,
    RANGE,
    REGION,
    REGION_AT,
    SLACK,
    TEAM,
    WATCHED,
    WORD,
)

_NATIVE: Final = offset_of(CODE, "native")
READ_WRITE: Final = 3
READ_EXECUTE: Final = 5
"""Rights of mprotect."""

if JIT:

    @intrinsic
    def _call_system(typingctx: Any, function: Int, address: Int, size: Int, rights: Int) -> Any:
        """What mprotect, at an address, returns."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i32, i64 = ir.IntType(32), ir.IntType(64)
            kind = ir.FunctionType(i32, [i64, i64, i32])
            called = builder.call(
                builder.inttoptr(args[0], kind.as_pointer()), [args[1], args[2], builder.trunc(args[3], i32)]
            )
            return builder.sext(called, i64)

        return types.int64(types.int64, types.int64, types.int64, types.int64), codegen

else:

    def _call_system(function: Int, address: Int, size: Int, rights: Int) -> Any:
        raise NotImplementedError


if JIT:

    @kernel
    def native_table(cache: Int) -> AnyInt:
        """The places of `native` in a code cache, as a table of handlers."""
        return np.int64(cache + _NATIVE)

else:

    def native_table(cache: Int) -> Any:
        """Nothing is translated."""
        return []


@kernel
def protect(c: Record, first: Int, size: Int, writable: Bool) -> Bool:
    """Make pages of the memory writable, or executable; False when the system refuses."""
    rights = READ_WRITE if writable else READ_EXECUTE
    return _call_system(np.int64(c.protect), c.memory + first, size, rights) == 0


@kernel
def write(c: Record, offset: Int, byte: Int) -> None:
    """Set a byte of the memory."""
    store_u8(np.int64(c.memory), np.int64(offset), np.int64(byte))


@kernel
def _set_range(c: Record, number: Int, team: Bool) -> None:
    """Set which code stores may not change: that of the region, and of those where others of the team have stopped."""
    memory = np.int64(c.memory)
    first, end = c.entry[number, RANGE] >> 32, c.entry[number, RANGE] & 0xFFFFFFFF
    if team:
        known = load_i64(memory, CODE_AT)
        end = max(end, known + load_i64(memory, CODE_SIZE))
        first = min(first, known)
    store_i64(memory, CODE_AT, first)
    store_i64(memory, CODE_SIZE, end - first)


@kernel
def set_team(c: Record, core: Int, number: Int, team: Bool) -> None:
    """Before `enter`: whether the core is one of a team (teams.py).

    Args:
        number: of the entry.
    """
    memory = np.int64(c.memory)
    _set_range(c, number, team)
    store_i64(memory, TEAM, 1 if team else 0)
    store_i64(memory, CURRENT, core)
    store_i64(memory, PREVIOUS, NO_CORE)


@kernel
def enter(
    t: TileRecord, c: Record, native: Int, core: Int, number: Int, word: Int, left: Int, slack: Int, loops_left: Int
) -> Any:
    """Execute translated code at the core's pc; returns the pc after it, with STAY, or FAILED.

    Args:
        native: address of `c.native`.
        number: of the entry.
        word: at pc.
        left: rounds to the goal.
        slack: rounds from the horizon to the goal.
        loops_left: jumps backwards that the core may make.
    """
    memory = np.int64(c.memory)
    store_i64(memory, SLACK, slack)
    store_i64(memory, LOOPS_LEFT, loops_left)
    store_i64(memory, RAM_BYTES, LOCAL_RAM_SIZE[core])
    store_i64(memory, WATCHED, np.int64(t.watch_hash))
    store_i64(memory, REGION_AT, c.entry[number, REGION])
    store_i64(memory, BLOCK_AT, c.entry[number, BLOCK])
    result = call_handler(native, ENTER_PLACE, t, core, left)
    if result != FAILED:
        return result
    return _enter_another(t, c, native, core, number, word, left)


@kernel(seldom=True)
def _enter_another(t: TileRecord, c: Record, native: Int, core: Int, number: Int, word: Int, left: Int) -> Any:
    """The code at a place has changed after its first instruction: it may have been translated before."""
    memory = np.int64(c.memory)
    place = c.entry[number, PLACE]
    other = np.int64(c.first[place])
    while other != 0:
        if other != number and c.entry[other, WORD] == word:
            if left < c.entry[other, COUNT]:
                return np.int64(FAILED)
            _set_range(c, other, load_i64(memory, TEAM) != 0)
            store_i64(memory, REGION_AT, c.entry[other, REGION])
            store_i64(memory, BLOCK_AT, c.entry[other, BLOCK])
            result = call_handler(native, ENTER_PLACE, t, core, left)
            if result != FAILED:
                c.instruction[place] = TRANSLATED | (other << 32)
                return result
        other = c.entry[other, NEXT]
    c.instruction[place] = c.entry[number, FIELDS]
    c.heat[place] = 0
    return np.int64(FAILED)
