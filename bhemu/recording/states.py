"""What is kept of a tile's registers and L1 at the end of a part: enough to draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bhemu.formats import DataFormat
from bhemu.isa.registers import config
from bhemu.machine.config_access import config_bank, config_field
from bhemu.machine.kernel import plain
from bhemu.machine.state import L1_SIZE, TILE

Array = np.ndarray[Any, Any]

_UNPACK, _PACK = 0, 2
_WORD: Final = 0xFFFFFFFF
_TILES: Final = (
    ("unpacked 0", _UNPACK, "THCON_SEC0_REG3_Base_address", "THCON_SEC0_REG0_TileDescriptor_in_data_format"),
    ("unpacked 1", _UNPACK, "THCON_SEC1_REG3_Base_address", "THCON_SEC1_REG0_TileDescriptor_in_data_format"),
    ("packed", _PACK, "THCON_SEC0_REG1_L1_Dest_addr", "THCON_SEC0_REG1_Out_data_format"),
)
"""(what, thread, field of the address in units of 16 bytes minus 1, field of the format)."""
L1_TILE: Final = "L1 "
"""Begins the name of a tile in L1: `L1 packed 0x20000 BF16`."""


def format_of(code: int) -> DataFormat | None:
    """The first format with a hardware code."""
    return next((known for known in DataFormat if known.code == code), None)


_NAMES: Final = ("dst", "dst_valid", "srca", "srcb", "src_format", "src_owner", "config")


def check_state(state: Mapping[str, Array]) -> None:
    """Refuse arrays that `state_of` does not make.

    Raises:
        ValueError: these are not all of them, or there is one of another type or shape.
    """
    for name in _NAMES:
        kind = TILE[name]
        if name not in state or (state[name].dtype, state[name].shape) != (kind.base, kind.shape):
            raise ValueError(f"{name} of a state is not that of a tile")
    for name, array in state.items():
        if name not in _NAMES and not (name.startswith(L1_TILE) and array.dtype == np.uint8 and array.ndim == 1):
            raise ValueError(f"a state has {name!r}")


def state_of(record: Any) -> dict[str, Array]:
    """Arrays by name.

    Args:
        record: of the tile.

    Returns:
        `dst` uint16 [1024, 16] and `dst_valid`, `srca` and `srcb` uint32 [2, 64, 16], `src_format`, `src_owner`,
        `config` uint32 [2, 224], as the record has them; and the bytes of the tiles in L1 that the addresses of
        unpackers and packer say, in their formats.
    """
    found = {name: np.array(record[name]) for name in _NAMES}
    for what, thread, address_field, format_field in _TILES:
        bank = plain(config_bank)(record, thread)
        at = ((int(plain(config_field)(record, bank, config(address_field))) + 1) & _WORD) * 16
        known = format_of(int(plain(config_field)(record, bank, config(format_field))) & 0xF)
        if known is not None and 16 < at <= L1_SIZE - known.tile_bytes():
            found[f"{L1_TILE}{what} {at:#x} {known.name}"] = np.array(record["l1"][at : at + known.tile_bytes()])
    return found
