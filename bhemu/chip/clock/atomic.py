"""Words that several threads share: atomic access from compiled code, by address. Plain Python has one thread."""

# mypy: ignore-errors

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bhemu.machine.compiler import JIT

_ORDER = "seq_cst"

if JIT:
    _I64 = ir.IntType(64)

    @intrinsic
    def fetch_add(typingctx, address, amount):
        """Add to the word at an address; returns what was there."""

        def codegen(context, builder, signature, args):
            pointer = builder.inttoptr(args[0], _I64.as_pointer())
            return builder.atomic_rmw("add", pointer, args[1], _ORDER)

        return types.int64(types.int64, types.int64), codegen

    @intrinsic
    def load(typingctx, address):
        """The word at an address."""

        def codegen(context, builder, signature, args):
            return builder.load_atomic(builder.inttoptr(args[0], _I64.as_pointer()), _ORDER, 8)

        return types.int64(types.int64), codegen

    @intrinsic
    def store(typingctx, address, value):
        """Set the word at an address."""

        def codegen(context, builder, signature, args):
            builder.store_atomic(args[1], builder.inttoptr(args[0], _I64.as_pointer()), _ORDER, 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @intrinsic
    def let_others_run(typingctx):
        """Give the processor to another thread that wants it (POSIX sched_yield)."""

        def codegen(context, builder, signature, args):
            kind = ir.FunctionType(ir.IntType(32), [])
            name = "sched_yield"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            builder.call(function, [])
            return context.get_dummy_value()

        return types.void(), codegen

else:

    def fetch_add(address, amount):
        """Plain Python has one thread, which needs none of this."""
        raise NotImplementedError

    load = store = let_others_run = fetch_add
