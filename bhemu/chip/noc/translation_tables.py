"""What the firmware of a card writes to the network interfaces of its tiles (tile N7, N10, N11, N21, E48)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import HEIGHT, WIDTH, Place
from bhemu.chip.nodes.kinds import CLOCKED, KINDS
from bhemu.machine.device_state import (
    ID_LOGICAL,
    ROUTER_CFG_1,
    TABLE_WORDS,
    X_TABLE,
    Y_TABLE,
    place_niu,
)

_ENTRIES: Final = 32
_ENTRIES_OF_WORD: Final = 6
_ENTRY_BITS: Final = 5


def _table_words(entries: list[int], last: int, noc: int) -> list[int]:
    """Words of a translation table; NoC 1 counts from the other end (N7)."""
    words = [0] * TABLE_WORDS
    for i, entry in enumerate(entries):
        words[i // _ENTRIES_OF_WORD] |= (last - entry if noc else entry) << _ENTRY_BITS * (i % _ENTRIES_OF_WORD)
    return words


def program_tables(tiles: np.ndarray[Any, Any], translation: Mapping[Place, Place], closed: tuple[int, ...]) -> None:
    """Give every tile with cores its place, and the coordinate tables that a card's firmware writes (N7, N10, N11).

    Args:
        tiles: records of all of them.
        translation: physical coordinates by translated ones.
        closed: physical columns of Tensix tiles that are off; they take no multicasts.
    """
    xs = [*range(WIDTH), *[0] * (_ENTRIES - WIDTH)]
    ys = [*range(HEIGHT), *[0] * (_ENTRIES - HEIGHT)]
    for (x, y), (to_x, to_y) in translation.items():
        if y >= 2:  # x of rows 0 and 1 is not translated
            xs[x], ys[y] = to_x, to_y
    logical = {to: place for place, to in translation.items()}
    for node in CLOCKED:
        x, y = node.place
        place_niu(tiles[node.tile], x, y, node.index, KINDS[node.kind].endpoint_type)
        for noc in range(2):
            config = tiles[node.tile]["niu_config"][noc]
            config[X_TABLE : X_TABLE + TABLE_WORDS] = _table_words(xs, WIDTH - 1, noc)
            config[Y_TABLE : Y_TABLE + TABLE_WORDS] = _table_words(ys, HEIGHT - 1, noc)
            config[ID_LOGICAL] = logical[x, y][1] << 6 | logical[x, y][0]
            for column in closed:
                config[ROUTER_CFG_1] |= 1 << (WIDTH - 1 - column if noc else column)
