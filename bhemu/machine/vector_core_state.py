"""Registers of core T2's vector extension (tile T7): `t.vector_core`."""

from __future__ import annotations

from typing import Final

from bhemu.machine.section import section

VLEN_BYTES: Final = 16
"""Bytes of a vector register (vlenb)."""
VECTOR_REGISTERS: Final = 32
_BYTES: Final = VECTOR_REGISTERS * VLEN_BYTES

# The 32 registers lie one after the other, so the elements of a register group do, too. What is set at reset comes
# first (`_layout` of machine/state.py).
VECTOR_CORE: Final = section(
    (
        ("vl", "u4", ()),
        ("vtype", "u4", ()),
        ("vlenb", "u4", ()),
        ("vxsat", "u4", ()),
        ("vxrm", "u4", ()),
        ("byte", "u1", (_BYTES,)),
    ),
    views=(("half", "byte", "<u2", (_BYTES // 2,)), ("word", "byte", "<u4", (_BYTES // 4,))),
)
