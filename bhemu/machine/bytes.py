"""Moving bytes between addresses of this process, from compiled code."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba import types

from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic

if JIT:

    @intrinsic
    def move_bytes(typingctx: Any, to: Any, source: Any, size: Any) -> Any:
        """Copy `size` bytes between two addresses of this process, which may overlap."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            i8 = ir.IntType(8).as_pointer()
            i64 = ir.IntType(64)
            move = builder.module.declare_intrinsic("llvm.memmove", [i8, i8, i64])
            to, source = (builder.inttoptr(address, i8) for address in args[:2])
            builder.call(move, [to, source, args[2], ir.Constant(ir.IntType(1), 0)])
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    @intrinsic
    def word_of(typingctx: Any, address: Any) -> Any:
        """Number of the word at an aligned address, which is not negative.

        The compiler knows then that it is aligned: an array of words needs no shift.
        """

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.lshr(args[0], ir.Constant(ir.IntType(64), 2), flags=("exact",))

        return types.int64(types.int64), codegen

    @intrinsic
    def record_address(typingctx: Any, record: Any) -> Any:
        """Where a record is in this process."""
        if not isinstance(record, types.Record):
            return None

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.ptrtoint(args[0], ir.IntType(64))

        return types.int64(record), codegen

else:

    def move_bytes(to: Any, source: Any, size: Any) -> None:
        """Copy `size` bytes between two addresses of this process, which may overlap."""
        ctypes.memmove(int(to), int(source), int(size))

    def word_of(address: Any) -> Any:
        """Number of the word at an aligned address, which is not negative."""
        return int(address) >> 2

    def record_address(record: Any) -> Any:
        """Where a record is in this process."""
        return record.__array_interface__["data"][0]
