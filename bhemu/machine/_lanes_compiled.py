"""Lanes as LLVM vectors; see bhemu/machine/lanes.py for what they mean."""

# These functions build LLVM code from objects of Numba and llvmlite, which have no annotations.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import operator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic

from bhemu.machine._lanes_type import LaneType, common_type, row_pointer, splat


def _binary(op, build, *, compares=False):
    class Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) != 2:
                return None
            common = common_type(*args)
            if common is None or (common.bits == 1 and op not in (operator.and_, operator.or_, operator.xor)):
                return None
            return signature(LaneType(common.count, 1) if compares else common, *args)

    infer_global(op)(Template)

    def lower(context, builder, sig, args):
        common = common_type(*sig.args)
        return build(builder, splat(builder, args[0], common), splat(builder, args[1], common))

    for pair in ((LaneType, LaneType), (LaneType, types.Integer), (types.Integer, LaneType)):
        lower_builtin(op, *pair)(lower)


for _op, _name in (
    (operator.add, "add"),
    (operator.sub, "sub"),
    (operator.mul, "mul"),
    (operator.and_, "and_"),
    (operator.or_, "or_"),
    (operator.xor, "xor"),
    (operator.lshift, "shl"),
    (operator.rshift, "ashr"),
):
    _binary(_op, lambda builder, x, y, name=_name: getattr(builder, name)(x, y))

for _op, _name in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _binary(_op, lambda builder, x, y, name=_name: builder.icmp_signed(name, x, y), compares=True)


def _unary(op, build):
    class Template(AbstractTemplate):
        def generic(self, args, kws):
            if len(args) == 1 and isinstance(args[0], LaneType):
                return signature(args[0], args[0])
            return None

    infer_global(op)(Template)

    @lower_builtin(op, LaneType)
    def lower(context, builder, sig, args):
        return build(builder, args[0])


_unary(operator.invert, lambda builder, x: builder.not_(x))
_unary(operator.neg, lambda builder, x: builder.neg(x))


@intrinsic
def where(typingctx, mask, a, b):
    """`a` in lanes where the mask holds, `b` elsewhere; of two plain integers it makes 32-bit lanes."""
    if not isinstance(mask, LaneType) or mask.bits != 1:
        return None
    common = common_type(a, b)
    if common is None:
        if not isinstance(a, types.Integer) or not isinstance(b, types.Integer):
            return None
        common = LaneType(mask.count, 32)

    def codegen(context, builder, sig, args):
        return builder.select(args[0], splat(builder, args[1], common), splat(builder, args[2], common))

    return common(mask, a, b), codegen


def _two(build):
    @intrinsic
    def function(typingctx, a, b):
        common = common_type(a, b)
        if common is None:
            return None

        def codegen(context, builder, sig, args):
            return build(builder, splat(builder, args[0], common), splat(builder, args[1], common))

        return common(a, b), codegen

    return function


shift_right_logical = _two(lambda b, x, y: b.lshr(x, y))
minimum = _two(lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y))
maximum = _two(lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y))


def _float_function(name):
    """IEEE `fadd` or `fsub`, rounded to nearest even, of lanes that hold binary32 (or, widened, binary64) bits."""

    @intrinsic
    def function(typingctx, a, b):
        common = common_type(a, b)
        if common is None or common.bits < 32:
            return None

        def codegen(context, builder, sig, args):
            element = ir.FloatType() if common.bits == 32 else ir.DoubleType()
            vector = ir.VectorType(element, common.count)
            operands = [builder.bitcast(splat(builder, value, common), vector) for value in args]
            return builder.bitcast(getattr(builder, name)(*operands), common.llvm)

        return common(a, b), codegen

    return function


add_floats = _float_function("fadd")
subtract_floats = _float_function("fsub")


@intrinsic
def to_floats(typingctx, value):
    """Signed integers as binary32 bit patterns, rounded to nearest even."""
    target = LaneType(16, 32)
    if value != target:
        return None

    def codegen(context, builder, sig, args):
        return builder.bitcast(builder.sitofp(args[0], ir.VectorType(ir.FloatType(), 16)), target.llvm)

    return target(value), codegen


@intrinsic
def multiply_add_floats(typingctx, a, b, c):
    """IEEE a * b + c, rounded once to nearest even, of lanes that hold binary32 bit patterns."""
    target = LaneType(16, 32)
    if a != target or b != target or c != target:
        return None

    def codegen(context, builder, sig, args):
        vector = ir.VectorType(ir.FloatType(), 16)
        kind = ir.FunctionType(vector, [vector] * 3)
        callee = cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32")
        return builder.bitcast(builder.call(callee, [builder.bitcast(value, vector) for value in args]), target.llvm)

    return target(a, b, c), codegen


@intrinsic
def less_unsigned(typingctx, a, b):
    """Mask of lanes where a < b, both read as unsigned."""
    common = common_type(a, b)
    if common is None:
        return None

    def codegen(context, builder, sig, args):
        return builder.icmp_unsigned("<", splat(builder, args[0], common), splat(builder, args[1], common))

    return LaneType(common.count, 1)(a, b), codegen


@intrinsic
def opaque(typingctx, a):
    """The same lanes; LLVM does not combine what makes them with what uses them.

    `llvm.arithmetic.fence` takes no instruction. It is one for floats.
    """
    if not isinstance(a, LaneType) or a.bits == 1:
        return None

    def codegen(context, builder, sig, args):
        count = sig.args[0].count * sig.args[0].bits // 32
        vector = ir.VectorType(ir.FloatType(), count)
        name = f"llvm.arithmetic.fence.v{count}f32"
        callee = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector]), name)
        return builder.bitcast(builder.call(callee, [builder.bitcast(args[0], vector)]), args[0].type)

    return a(a), codegen


def _llvm_unary(name, flag=None):
    @intrinsic
    def function(typingctx, a):
        if not isinstance(a, LaneType):
            return None

        def codegen(context, builder, sig, args):
            vector = sig.args[0].llvm
            kinds = [vector] + ([ir.IntType(1)] if flag is not None else [])
            intrinsic_name = f"llvm.{name}.v{sig.args[0].count}i{sig.args[0].bits}"
            callee = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, kinds), intrinsic_name)
            extra = [ir.Constant(ir.IntType(1), flag)] if flag is not None else []
            return builder.call(callee, [args[0], *extra])

        return a(a), codegen

    return function


leading_zeros = _llvm_unary("ctlz", 0)
population_count = _llvm_unary("ctpop")


def _resize(build, source_bits, target_bits):
    @intrinsic
    def function(typingctx, a):
        if not isinstance(a, LaneType) or a.bits != source_bits:
            return None
        target = LaneType(a.count, target_bits)

        def codegen(context, builder, sig, args):
            return build(builder, args[0], target.llvm)

        return target(a), codegen

    return function


widen = _resize(lambda b, x, t: b.sext(x, t), 32, 64)
widen_unsigned = _resize(lambda b, x, t: b.zext(x, t), 32, 64)
narrow = _resize(lambda b, x, t: b.trunc(x, t), 64, 32)
as_integers = _resize(lambda b, x, t: b.zext(x, t), 1, 32)


def _splat_function(count, bits):
    @intrinsic
    def function(typingctx, value):
        if not isinstance(value, (types.Integer, types.Boolean)):
            return None
        target = LaneType(count, bits)

        def codegen(context, builder, sig, args):
            return splat(builder, args[0], target)

        return target(value), codegen

    return function


splat16 = _splat_function(16, 32)
splat32 = _splat_function(32, 32)


def _iota_function(count):
    @intrinsic
    def function(typingctx):
        target = LaneType(count, 32)

        def codegen(context, builder, sig, args):
            return ir.Constant(target.llvm, list(range(count)))

        return target(), codegen

    return function


iota16 = _iota_function(16)
iota32 = _iota_function(32)


def _load_function(count):
    @intrinsic
    def function(typingctx, array, row):
        if not isinstance(array, types.Array) or not isinstance(row, types.Integer):
            return None
        bits = array.dtype.bitwidth
        target = LaneType(count, 32)

        def codegen(context, builder, sig, args):
            row = context.cast(builder, args[1], sig.args[1], types.intp)
            pointer = row_pointer(context, builder, sig.args[0], args[0], row, count)
            vector = ir.VectorType(ir.IntType(bits), count)
            value = builder.load(builder.bitcast(pointer, vector.as_pointer()))
            value.align = bits // 8
            return value if bits == 32 else builder.zext(value, target.llvm)

        return target(array, row), codegen

    return function


load16 = _load_function(16)
load32 = _load_function(32)


@intrinsic
def load16_at(typingctx, array, position):
    """16 elements from flat position `position`, which need not be a multiple of 16."""
    if not isinstance(array, types.Array) or not isinstance(position, types.Integer):
        return None
    bits = array.dtype.bitwidth
    target = LaneType(16, 32)

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.intp)
        pointer = row_pointer(context, builder, sig.args[0], args[0], index, 1)
        vector = ir.VectorType(ir.IntType(bits), 16)
        value = builder.load(builder.bitcast(pointer, vector.as_pointer()))
        value.align = bits // 8
        return value if bits == 32 else builder.zext(value, target.llvm)

    return target(array, position), codegen


def _store_function(count, step):
    @intrinsic
    def function(typingctx, array, row, value):
        if not isinstance(array, types.Array) or not isinstance(value, LaneType) or value.count != count:
            return None
        bits = array.dtype.bitwidth

        def codegen(context, builder, sig, args):
            row = context.cast(builder, args[1], sig.args[1], types.intp)
            pointer = row_pointer(context, builder, sig.args[0], args[0], row, step)
            vector = ir.VectorType(ir.IntType(bits), count)
            content = args[2]
            if bits < sig.args[2].bits:
                content = builder.trunc(content, vector)
            stored = builder.store(content, builder.bitcast(pointer, vector.as_pointer()))
            stored.align = bits // 8
            return context.get_dummy_value()

        return types.void(array, row, value), codegen

    return function


store16 = _store_function(16, 16)
store32 = _store_function(32, 32)
store16_at = _store_function(16, 1)


def _mask_from_bits(count):
    @intrinsic
    def function(typingctx, bits):
        target = LaneType(count, 1)

        def codegen(context, builder, sig, args):
            integer = ir.IntType(count)
            value = args[0]
            if value.type.width > count:
                value = builder.trunc(value, integer)
            elif value.type.width < count:
                value = builder.zext(value, integer)
            return builder.bitcast(value, target.llvm)

        return target(bits), codegen

    return function


mask16 = _mask_from_bits(16)
mask32 = _mask_from_bits(32)


@intrinsic
def mask_bits(typingctx, mask):
    """The mask as an integer, bit n = lane n."""
    if not isinstance(mask, LaneType) or mask.bits != 1:
        return None

    def codegen(context, builder, sig, args):
        value = builder.bitcast(args[0], ir.IntType(sig.args[0].count))
        return builder.zext(value, ir.IntType(64))

    return types.int64(mask), codegen


def _reduce(name):
    @intrinsic
    def function(typingctx, a):
        if not isinstance(a, LaneType) or a.bits == 1:
            return None

        def codegen(context, builder, sig, args):
            lanes = sig.args[0]
            element = ir.IntType(lanes.bits)
            callee = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(element, [lanes.llvm]),
                f"llvm.vector.reduce.{name}.v{lanes.count}i{lanes.bits}",
            )
            value = builder.call(callee, [args[0]])
            return value if lanes.bits == 64 else builder.sext(value, ir.IntType(64))

        return types.int64(a), codegen

    return function


horizontal_sum = _reduce("add")
horizontal_maximum = _reduce("smax")
horizontal_minimum = _reduce("smin")


@intrinsic
def lane(typingctx, a, index):
    """The value of one lane as int64 (sign-extended)."""
    if not isinstance(a, LaneType) or a.bits == 1:
        return None

    def codegen(context, builder, sig, args):
        index = context.cast(builder, args[1], sig.args[1], types.int32)
        value = builder.extract_element(args[0], index)
        return value if sig.args[0].bits == 64 else builder.sext(value, ir.IntType(64))

    return types.int64(a, index), codegen


@intrinsic
def shuffle(typingctx, a, pattern):
    """Lane i of the result is lane pattern[i] of `a`; the pattern is a compile-time tuple of one integer a lane."""
    if not isinstance(a, LaneType) or not isinstance(pattern, types.BaseTuple) or len(pattern) != a.count:
        return None

    def codegen(context, builder, sig, args):
        indices = [
            context.cast(builder, builder.extract_value(args[1], i), sig.args[1][i], types.int32)
            for i in range(a.count)
        ]
        constant = [index for index in indices if isinstance(index, ir.Constant)]
        if len(constant) == a.count:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), a.count), constant)
            return builder.shuffle_vector(args[0], ir.Constant(a.llvm, ir.Undefined), mask)
        result = ir.Constant(a.llvm, ir.Undefined)
        for i, index in enumerate(indices):
            result = builder.insert_element(
                result, builder.extract_element(args[0], index), ir.Constant(ir.IntType(32), i)
            )
        return result

    return a(a, pattern), codegen


@intrinsic
def gather(typingctx, table, indices):
    """table[index] in each lane, of a one-dimensional array of at most 32 bits, zero-extended."""
    if not isinstance(table, types.Array) or not isinstance(indices, LaneType):
        return None

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        target = sig.return_type.llvm
        result = ir.Constant(target, ir.Undefined)
        for i in range(sig.return_type.count):
            place = ir.Constant(ir.IntType(32), i)
            value = builder.load(builder.gep(data, [builder.extract_element(args[1], place)]))
            if value.type.width < target.element.width:
                value = builder.zext(value, target.element)
            result = builder.insert_element(result, value, place)
        return result

    return LaneType(indices.count, 32)(table, indices), codegen
