"""Calling an instruction's function from compiled code, through a table of addresses.

The table has 256 addresses, one an opcode; 0 means not compiled yet. With Numba disabled it is a list of Python
functions. One more place holds the function that runs what SFPLOADMACRO has scheduled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic, kernel
from bhemu.machine.types import Int, Table, TileRecord

NOT_COMPILED = 4
"""What `call_handler` returns for an empty place of the table."""
MACRO_CYCLE = 256
"""Place of the function for scheduled instructions; it takes the table instead of a word."""
# Functions of the tile around the coprocessor, filled by the rooms that have them (tensix/coprocessor.py, `provide`)
RUN_CORE = 257
"""A core executes: `run_core(t, core, code cache)`."""
SLOW_CORE = 258
"""One instruction outside the inner loop: `slow_core(t, core, 0)`."""
DEVICE_LOAD = 259
"""A load that is not L1, local RAM or a register of tensix/mmio.py: `device_load(t, agent, address)`."""
DEVICE_STORE = 260
"""The same for a store of `device_value`."""
CODE_CACHE = 261
"""Not a function: the address of the code cache (riscv/decode.py)."""
NOC_START = 262
"""A request of a network interface starts: `start(t, noc, initiator)` (tile/noc/transfer.py)."""
RUN_TURNS = 263
"""Several cores execute, one after the other: `run_turns(t, core, table)`."""
ADVANCE_TILE = 264
"""A tile moves up to its goal: `advance_tile(t, table, how)` (tile/schedule.py)."""
VECTOR_CORE = 265
"""A word of the vector extension: `execute_vector(t, core, word)` (riscv_vector/execute.py)."""
ETHERNET_LOAD = 266
"""A load at an Ethernet tile, as DEVICE_LOAD, which calls it (ethernet/memory_map.py)."""
ETHERNET_STORE = 267
"""The same for a store of `device_value`."""
PLACES = 268

if JIT:

    @intrinsic
    def call_handler(typingctx: Any, table: Table, opcode: Int, t: TileRecord, thread: Int, word: Any) -> Any:
        """Status of the handler at table[opcode], called with the record `t`; NOT_COMPILED for an empty place.

        `table` is the address of the table as an integer.
        """
        if not isinstance(t, types.Record):
            return None
        signature = types.int64(types.int64, types.int64, t, types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            table_value, opcode_value, record, thread_value, word_value = args
            i8, i64 = ir.IntType(8), ir.IntType(64)
            entries = builder.inttoptr(table_value, i64.as_pointer())
            address = builder.load(builder.gep(entries, [opcode_value]))
            known = builder.icmp_unsigned("!=", address, ir.Constant(i64, 0))
            before = builder.block
            with builder.if_then(known, likely=True):
                pointer = builder.bitcast(record, i8.as_pointer())
                kind = ir.FunctionType(i64, [pointer.type, i64, i64])
                status = builder.call(builder.inttoptr(address, kind.as_pointer()), [pointer, thread_value, word_value])
                called = builder.block
            result = builder.phi(i64)
            result.add_incoming(ir.Constant(i64, NOT_COMPILED), before)
            result.add_incoming(status, called)
            return result

        return signature, codegen

    @intrinsic
    def place_value(typingctx: Any, table: Table, place: Any) -> Any:
        """The entry at a place of the table."""
        signature = types.int64(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            entries = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
            return builder.load(builder.gep(entries, [args[1]]))

        return signature, codegen

    @kernel
    def handlers_of(t: TileRecord) -> Any:
        """The table of handlers, for code that is not given it."""
        return np.int64(t.handlers)

    @intrinsic
    def has_handler(typingctx: Any, table: Table, opcode: Int) -> Any:
        """True when the place of the table is filled."""
        signature = types.boolean(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            entries = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
            address = builder.load(builder.gep(entries, [args[1]]))
            return builder.icmp_unsigned("!=", address, ir.Constant(ir.IntType(64), 0))

        return signature, codegen

else:
    PLAIN_TABLE: list[Any] = []
    """The table itself: a record cannot hold it."""

    def place_value(table: Table, place: Any) -> Any:
        """The entry at a place of the table."""
        return table[place]

    def handlers_of(t: TileRecord) -> Any:
        """The table of handlers, for code that is not given it."""
        return PLAIN_TABLE

    def has_handler(table: Table, opcode: Int) -> Any:
        """True when the place of the table is filled."""
        return table[opcode] is not None

    def call_handler(table: Table, opcode: Int, t: TileRecord, thread: Int, word: Any) -> Any:
        """Status of the Python function at table[opcode]; NOT_COMPILED for an empty place."""
        function = table[opcode]
        return NOT_COMPILED if function is None else function(t, thread, word)


@kernel
def call_place(t: TileRecord, table: Table, place: Int, agent: Int, operand: Any) -> Int:
    """Status of the function at a place after the opcodes; NOT_COMPILED asks the host to fill the place."""
    if not has_handler(table, place):
        t.needs_place = place
        return np.int64(NOT_COMPILED)
    return np.int64(call_handler(table, place, t, agent, operand))


@kernel
def access_device(
    t: TileRecord, table: Table, place: Int, agent: Int, address: Int, value: Int, size: Int
) -> tuple[Int, Int]:
    """(status, value) of an access to what surrounds the coprocessor; `place`: DEVICE_LOAD or DEVICE_STORE."""
    t.device_value = value
    t.device_size = size
    return call_place(t, table, place, agent, address), np.int64(t.device_value)
