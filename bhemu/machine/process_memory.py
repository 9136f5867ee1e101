"""Words at addresses of this process, pages of it, and calls of functions of the host, from compiled code."""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir
from numba import types

from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic
from bhemu.machine.types import AnyInt, Int

HOST_CALL = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32)
"""A function of the host: most move bytes between its memory, at an address, and this process; 0 when it has."""

_c: Any = ctypes.CDLL(None)
_c.calloc.restype = ctypes.c_void_p
_c.calloc.argtypes = (ctypes.c_size_t, ctypes.c_size_t)
_c.free.argtypes = (ctypes.c_void_p,)


def allocate_from_python(size: int) -> int:
    """Address of new memory that holds zeros, 0 when there is none; `free` gives it back."""
    return _c.calloc(1, size) or 0


if JIT:
    _I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)

    @intrinsic
    def load_u32(typingctx: Any, address: Int) -> Any:
        """The 32-bit word at an address of this process, aligned or not."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            word = builder.load(builder.inttoptr(args[0], _I32.as_pointer()), align=1)
            return builder.zext(word, _I64)

        return types.int64(types.int64), codegen

    @intrinsic
    def store_u32(typingctx: Any, address: Int, value: Int) -> Any:
        """Set the 32-bit word at an address of this process, aligned or not."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            word = builder.trunc(args[1], _I32)
            builder.store(word, builder.inttoptr(args[0], _I32.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @intrinsic
    def allocate(typingctx: Any, size: Int) -> Any:
        """Address of new memory that holds zeros (C's calloc), 0 when there is none."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            kind = ir.FunctionType(_I8.as_pointer(), [_I64, _I64])
            function = builder.module.globals.get("calloc") or ir.Function(builder.module, kind, "calloc")
            return builder.ptrtoint(builder.call(function, [ir.Constant(_I64, 1), args[0]]), _I64)

        return types.int64(types.int64), codegen

    @intrinsic
    def release(typingctx: Any, address: Int) -> Any:
        """Give back what `allocate` has given (C's free)."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            kind = ir.FunctionType(ir.VoidType(), [_I8.as_pointer()])
            function = builder.module.globals.get("free") or ir.Function(builder.module, kind, "free")
            builder.call(function, [builder.inttoptr(args[0], _I8.as_pointer())])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    @intrinsic
    def call_host(typingctx: Any, function: Int, address: Int, pointer: Int, size: Int) -> Any:
        """What a HOST_CALL at an address of this process returns."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            kind = ir.FunctionType(_I32, [_I64, _I8.as_pointer(), _I32])
            function = builder.inttoptr(args[0], kind.as_pointer())
            pointer = builder.inttoptr(args[2], _I8.as_pointer())
            return builder.sext(builder.call(function, [args[1], pointer, builder.trunc(args[3], _I32)]), _I64)

        return types.int64(types.int64, types.int64, types.int64, types.int64), codegen

else:

    def load_u32(address: Int) -> AnyInt:
        """The 32-bit word at an address of this process, aligned or not."""
        return int.from_bytes(ctypes.string_at(int(address), 4), "little")

    def store_u32(address: Int, value: Int) -> None:
        """Set the 32-bit word at an address of this process, aligned or not."""
        ctypes.memmove(int(address), (int(value) & 0xFFFFFFFF).to_bytes(4, "little"), 4)

    def allocate(size: Int) -> AnyInt:
        """Address of new memory that holds zeros (C's calloc), 0 when there is none."""
        return allocate_from_python(int(size))

    def release(address: Int) -> None:
        """Give back what `allocate` has given (C's free)."""
        free(int(address))

    def call_host(function: Int, address: Int, pointer: Int, size: Int) -> AnyInt:
        """What a HOST_CALL at an address of this process returns."""
        return HOST_CALL(int(function))(int(address) & (1 << 64) - 1, int(pointer), int(size))


def free(address: int) -> None:
    """Give back what `allocate` has given."""
    _c.free(address)
