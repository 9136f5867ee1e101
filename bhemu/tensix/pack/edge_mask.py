"""Edge masks and the tile position generator (P7, 002.9).

The generator counts datums: X to 16, then Y, which returns to 0 on reaching `pack_reads_per_xy_plane` exactly and
then moves Z (or Z before Y when transposed). It follows the reference, which counts each 16 datums, where the
documents disagree (002.9.2a), and starts at 0 with every newly opened stream.
"""

from __future__ import annotations

from bhemu.machine.kernel import kernel
from bhemu.machine.lanes import mask16, splat16, where
from bhemu.machine.types import AnyInt, Int, PackRecord


@kernel
def advance(pack: PackRecord, count: Int) -> None:
    """Move the position by `count` datums."""
    x = pack.x + count
    while x >= 16:
        x -= 16
        if pack.yz_transposed != 0:
            pack.z = (pack.z + 1) & 0xFF
            turned = pack.z == pack.reads
            if turned:
                pack.z = 0
                pack.y = (pack.y + 1) & 0xFF
        else:
            pack.y = (pack.y + 1) & 0xFF
            turned = pack.y == pack.reads
            if turned:
                pack.y = 0
                pack.z = (pack.z + 1) & 0xFF
        if turned:
            pack.planes += 1
    pack.x = x


@kernel
def _mask_here(pack: PackRecord) -> AnyInt:
    return pack.edge_mask[(pack.z + pack.z_offset) & pack.edge_faces, pack.y & 0xF]


@kernel
def edge_mask(pack: PackRecord, value: Int, column: Int, count: Int) -> AnyInt:
    """Replace the masked datums of columns `column` to `column + count - 1`, and move the position past them."""
    mask = _mask_here(pack)
    split = 16 - pack.x
    advance(pack, count)
    if count > split:  # the position enters the next row inside these datums
        first = ((1 << split) - 1) << column
        mask = (mask & first) | (_mask_here(pack) & ~first)
    return where(mask16(mask), value, splat16(pack.edge_fill))
