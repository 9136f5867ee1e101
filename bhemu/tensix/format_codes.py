"""The 4-bit format codes of configuration fields, as constants of compiled code (I.1); `DataFormat` is their table."""

from __future__ import annotations

from typing import Final

from bhemu.formats import DataFormat

FP32: Final = DataFormat.FP32.code
FP16: Final = DataFormat.FP16.code
BFP8A: Final = DataFormat.BFP8A.code
BFP4A: Final = DataFormat.BFP4A.code
TF32: Final = DataFormat.TF32.code
BF16: Final = DataFormat.BF16.code
BFP8: Final = DataFormat.BFP8.code
BFP4: Final = DataFormat.BFP4.code
INT32: Final = DataFormat.INT32.code
INT16: Final = DataFormat.INT16.code
FP8: Final = DataFormat.FP8_E5M2.code
BFP2A: Final = DataFormat.BFP2A.code
INT8: Final = DataFormat.INT8.code
BFP2: Final = DataFormat.BFP2.code
