"""Lanes of 16 bits as LLVM vectors: two rows at a time; see bhemu/machine/lanes.py for what they mean."""

# These functions build LLVM code from objects of Numba and llvmlite, which have no annotations.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bhemu.machine._lanes_type import LaneType, row_pointer


def _recut(source_count, source_bits, target_count, target_bits):
    """The same 512 bits cut into other lanes."""

    @intrinsic
    def function(typingctx, a):
        if not isinstance(a, LaneType) or a != LaneType(source_count, source_bits):
            return None
        target = LaneType(target_count, target_bits)

        def codegen(context, builder, sig, args):
            return builder.bitcast(args[0], target.llvm)

        return target(a), codegen

    return function


as_halves = _recut(16, 32, 32, 16)
as_words = _recut(32, 16, 16, 32)


def _pack_rows(first):
    """Of the 32 + 32 halves of two rows of 16 words, every second one from `first`."""

    @intrinsic
    def function(typingctx, a, b):
        source = LaneType(16, 32)
        if a != source or b != source:
            return None
        target = LaneType(32, 16)

        def codegen(context, builder, sig, args):
            low, high = (builder.bitcast(value, target.llvm) for value in args)
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 32), list(range(first, 64, 2)))
            return builder.shuffle_vector(low, high, mask)

        return target(a, b), codegen

    return function


pack_rows = _pack_rows(0)
pack_high_rows = _pack_rows(1)


def _widened_row(first):
    """16 of 32 halves, from `first`, as the high halves of words."""

    @intrinsic
    def function(typingctx, a):
        if not isinstance(a, LaneType) or a != LaneType(32, 16):
            return None
        target = LaneType(16, 32)

        def codegen(context, builder, sig, args):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 16), list(range(first, first + 16)))
            row = builder.shuffle_vector(args[0], ir.Constant(sig.args[0].llvm, ir.Undefined), mask)
            return builder.shl(builder.zext(row, target.llvm), ir.Constant(target.llvm, [16] * 16))

        return target(a), codegen

    return function


first_row_high = _widened_row(0)
second_row_high = _widened_row(16)


@intrinsic
def load_row_pair(typingctx, array, row):
    """Rows `row` and `row + 1` of a 16-bit array, as 32 lanes of 16 bits."""
    if not isinstance(array, types.Array) or array.dtype.bitwidth != 16 or not isinstance(row, types.Integer):
        return None
    target = LaneType(32, 16)

    def codegen(context, builder, sig, args):
        row = context.cast(builder, args[1], sig.args[1], types.intp)
        pointer = row_pointer(context, builder, sig.args[0], args[0], row, 16)
        value = builder.load(builder.bitcast(pointer, target.llvm.as_pointer()))
        value.align = 2
        return value

    return target(array, row), codegen


@intrinsic
def store_row_pair(typingctx, array, row, value):
    """Write 32 lanes of 16 bits as rows `row` and `row + 1` of a 16-bit array."""
    target = LaneType(32, 16)
    if not isinstance(array, types.Array) or array.dtype.bitwidth != 16 or value != target:
        return None

    def codegen(context, builder, sig, args):
        row = context.cast(builder, args[1], sig.args[1], types.intp)
        pointer = row_pointer(context, builder, sig.args[0], args[0], row, 16)
        stored = builder.store(args[2], builder.bitcast(pointer, target.llvm.as_pointer()))
        stored.align = 2
        return context.get_dummy_value()

    return types.void(array, row, value), codegen
