"""Words that several threads share: atomic access from compiled code, by address. Plain Python has one thread."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from bhemu.machine.codegen import JIT
from bhemu.machine.kernel import intrinsic
from bhemu.machine.types import AnyInt, Int

_ORDER = "seq_cst"

if JIT:
    _I64 = ir.IntType(64)

    @intrinsic
    def fetch_add(typingctx: Any, address: Int, amount: Int) -> Any:
        """Add to the word at an address; returns what was there."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            pointer = builder.inttoptr(args[0], _I64.as_pointer())
            return builder.atomic_rmw("add", pointer, args[1], _ORDER)

        return types.int64(types.int64, types.int64), codegen

    @intrinsic
    def load(typingctx: Any, address: Int) -> Any:
        """The word at an address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            return builder.load_atomic(builder.inttoptr(args[0], _I64.as_pointer()), _ORDER, 8)

        return types.int64(types.int64), codegen

    @intrinsic
    def store(typingctx: Any, address: Int, value: Int) -> Any:
        """Set the word at an address."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            builder.store_atomic(args[1], builder.inttoptr(args[0], _I64.as_pointer()), _ORDER, 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @intrinsic
    def let_others_run(typingctx: Any) -> Any:
        """Give the processor to another thread that wants it (POSIX sched_yield)."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> AnyInt:
            kind = ir.FunctionType(ir.IntType(32), [])
            name = "sched_yield"
            function = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
            builder.call(function, [])
            return context.get_dummy_value()

        return types.void(), codegen

else:

    def _is_not_needed(*words: Any, **named: Any) -> Any:
        """Plain Python has one thread, which needs none of this."""
        raise NotImplementedError

    fetch_add = load = store = let_others_run = _is_not_needed
