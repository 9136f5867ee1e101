"""Layouts of the intermediate datums, as the packer's stages use them (P6)."""

from __future__ import annotations

from typing import Final

# Layout of an intermediate datum: what the early conversion makes, as the low bits of a 32-bit lane.
KIND_FP32: Final = 0
"""s e8 m23; TF32 is the same with 13 low bits zero."""
KIND_BF16: Final = 1
"""s e8 m7 in 16 bits; E8M6 is the same with one low bit zero."""
KIND_FP16: Final = 2
"""s e5 m10 in 16 bits; E5M7, E5M6 and E5M2 are the same with low bits zero."""
KIND_INT32: Final = 3
KIND_INT16: Final = 4
KIND_INT8: Final = 5
