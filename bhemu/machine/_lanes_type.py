"""The type of lanes in compiled code; see bhemu/machine/lanes.py for what they mean.

One parametrised Numba type holds `<n x iN>`; N = 1 is a mask. Numba would widen int32 arithmetic to int64, which
defeats the vectoriser; this type keeps the width that is written.
"""

# These functions build LLVM code from objects of Numba and llvmlite, which have no annotations.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core.datamodel import models
from numba.extending import register_model


class LaneType(types.Type):
    """`count` lanes of `bits`-bit integers; bits = 1 is a mask."""

    def __init__(self, count, bits):
        self.count = count
        self.bits = bits
        super().__init__(name=f"Lanes({count}, {bits})")

    @property
    def llvm(self):
        return ir.VectorType(ir.IntType(self.bits), self.count)


@register_model(LaneType)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, fe_type.llvm)


def splat(builder, value, target):
    """An integer of any width in every lane of `target`; lanes pass unchanged."""
    if isinstance(value.type, ir.VectorType):
        return value
    element = ir.IntType(target.bits)
    if value.type.width > element.width:
        value = builder.trunc(value, element)
    elif value.type.width < element.width:
        value = builder.sext(value, element)
    if isinstance(value, ir.Constant):
        return ir.Constant(target.llvm, [value] * target.count)
    one = builder.insert_element(ir.Constant(target.llvm, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), target.count), [0] * target.count)
    return builder.shuffle_vector(one, ir.Constant(target.llvm, ir.Undefined), zeros)


def common_type(a, b):
    """The lane type of a binary operation, or None where the operands do not fit together."""
    if isinstance(a, LaneType) and isinstance(b, LaneType):
        return a if a == b else None
    if isinstance(a, LaneType) and isinstance(b, (types.Integer, types.Boolean)):
        return a
    if isinstance(b, LaneType) and isinstance(a, (types.Integer, types.Boolean)):
        return b
    return None


def row_pointer(context, builder, array_type, array, row, count):
    data = context.make_array(array_type)(context, builder, array).data
    offset = builder.mul(row, ir.Constant(row.type, count))
    return builder.gep(data, [offset])
