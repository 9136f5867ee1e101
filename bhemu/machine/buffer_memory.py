"""64-bit integers and bytes at an address, for compiled code that fills a buffer of the host.

With Numba disabled the address is the NumPy array itself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic
from bhemu.machine.types import Int, Lanes

if JIT:

    def _place(builder: Any, address: Int, index: Int, bits: int = 64) -> Any:
        return builder.gep(builder.inttoptr(address, ir.IntType(bits).as_pointer()), [index])

    @intrinsic
    def load_i64(typingctx: Any, address: Lanes, index: Int) -> Any:
        """Element `index` of the int64 array at `address`."""
        signature = types.int64(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(_place(builder, *args))

        return signature, codegen

    @intrinsic
    def store_i64(typingctx: Any, address: Lanes, index: Int, value: Int) -> Any:
        """Set element `index` of the int64 array at `address`."""
        signature = types.void(types.int64, types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(args[2], _place(builder, args[0], args[1]))
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def load_u8(typingctx: Any, address: Lanes, index: Int) -> Any:
        """Byte `index` from `address` on."""
        signature = types.int64(types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.zext(builder.load(_place(builder, args[0], args[1], 8)), ir.IntType(64))

        return signature, codegen

    @intrinsic
    def store_u8(typingctx: Any, address: Lanes, index: Int, value: Int) -> Any:
        """Set byte `index` from `address` on to the lowest byte of a value."""
        signature = types.void(types.int64, types.int64, types.int64)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            builder.store(builder.trunc(args[2], ir.IntType(8)), _place(builder, args[0], args[1], 8))
            return context.get_dummy_value()

        return signature, codegen

else:

    def load_i64(address: Lanes, index: Int) -> Any:
        """Element `index` of the array."""
        return int(address[index])

    def store_i64(address: Lanes, index: Int, value: Int) -> None:
        """Set element `index` of the array."""
        address[index] = value

    def load_u8(address: Lanes, index: Int) -> Any:
        """Byte `index` of the array."""
        return int(address[index])

    def store_u8(address: Lanes, index: Int, value: Int) -> None:
        """Set byte `index` of the array to the lowest byte of a value."""
        address[index] = value & 0xFF
