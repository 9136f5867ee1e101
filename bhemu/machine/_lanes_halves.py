"""Lanes of 16 bits as LLVM vectors: two rows at a time; see bhemu/machine/lanes.py for what they mean."""

# These functions build LLVM code from objects of Numba and llvmlite, which have no annotations.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bhemu.machine._lanes_type import LaneType, row_pointer, splat

_WORDS = LaneType(16, 32)
_HALVES = LaneType(32, 16)


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


def _shuffled(sources, target, order):
    """Halves of one or two values, chosen and recut; an integer counts as a row pair with this number everywhere."""

    @intrinsic
    def function(typingctx, a, b):
        if b != sources or not (a == sources or (sources.bits == 16 and isinstance(a, types.Integer))):
            return None

        def codegen(context, builder, sig, args):
            halves = [builder.bitcast(splat(builder, value, sources), _HALVES.llvm) for value in args]
            chosen = builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(ir.IntType(32), 32), order))
            return builder.bitcast(chosen, target.llvm)

        return target(a, b), codegen

    return function


pack_rows = _shuffled(_WORDS, _HALVES, [*range(0, 64, 2)])
pack_high_rows = _shuffled(_WORDS, _HALVES, [*range(1, 64, 2)])
_QUADS = [32 * row + column for four in range(0, 32, 8) for row in range(2) for column in range(four, four + 8, 2)]
pack_quads = _shuffled(_WORDS, _HALVES, _QUADS)
pack_high_quads = _shuffled(_WORDS, _HALVES, [n + 1 for n in _QUADS])
first_row_words = _shuffled(_HALVES, _WORDS, [8 * (i // 4) + i % 4 + half for i in range(16) for half in (0, 32)])
second_row_words = _shuffled(_HALVES, _WORDS, [8 * (i // 4) + i % 4 + 4 + half for i in range(16) for half in (0, 32)])


@intrinsic
def quads_of_rows(typingctx, pair):
    if pair != _HALVES:
        return None

    def codegen(context, builder, sig, args):
        order = [n // 2 for n in _QUADS]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 32), order)
        return builder.shuffle_vector(args[0], ir.Constant(_HALVES.llvm, ir.Undefined), mask)

    return _HALVES(pair), codegen


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
