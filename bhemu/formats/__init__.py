"""Numbers and tiles on the host: NumPy in, L1 bytes out, and back.

Example:
    >>> import numpy as np
    >>> from bhemu.formats import decode, encode
    >>> a = np.arange(1024, dtype=np.float32).reshape(32, 32)
    >>> bool((decode(encode(a, "fp32"), "fp32", a.shape) == a).all())
    True
"""

from bhemu.formats.data_format import TILE_SHAPES, DataFormat, TileShape
from bhemu.formats.dump import Face, TileView, read_tile, render_tile, show_tile
from bhemu.formats.interchange import as_numpy, as_torch
from bhemu.formats.layout import datum_index, pad_to_tiles, padded_shape, tilize, untilize
from bhemu.formats.tensor import Interpretation, Rounding, decode, encode, tensor_size

__all__ = [
    "TILE_SHAPES",
    "DataFormat",
    "Face",
    "Interpretation",
    "Rounding",
    "TileShape",
    "TileView",
    "as_numpy",
    "as_torch",
    "datum_index",
    "decode",
    "encode",
    "pad_to_tiles",
    "padded_shape",
    "read_tile",
    "render_tile",
    "show_tile",
    "tensor_size",
    "tilize",
    "untilize",
]
