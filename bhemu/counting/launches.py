"""When a program runs on a tile, seen between any two clocks: by the mailboxes of tt-metal's firmware in L1 (tile B3).

Without that firmware a program is over when all T cores, or all cores, are held in soft reset again (tile T14): other
clients, such as the LLK suite, load the next program then.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.loader.firmware_layout import GO, FirmwareLayout, read_layouts
from bhemu.machine.agents import T0, T2
from bhemu.machine.state import POWER_ON_RESET, TILE, offset_of
from bhemu.tile.reset import CORE_BIT

Array = np.ndarray[Any, Any]

_T_CORES: Final = int((1 << CORE_BIT[T0 : T2 + 1]).sum())
_JAL: Final = 0x6F


def jump_target(word: int) -> int | None:
    """Where `j target` at address 0 leads; None for any other instruction."""
    return jump_offset(word) if word & 0xFFF == _JAL else None


def jump_word(target: int) -> int:
    """`j target` at address 0, for a target below 1 MiB."""
    return _JAL | (target >> 12 & 0xFF) << 12 | (target >> 11 & 1) << 20 | (target >> 1 & 0x3FF) << 21


def jump_offset(word: int) -> int | None:
    """Bytes from a `jal` to where it leads; None for any other instruction."""
    if word & 0x7F != _JAL:
        return None
    offset = (word >> 21 & 0x3FF) << 1 | (word >> 20 & 1) << 11 | (word >> 12 & 0xFF) << 12 | (word >> 31) << 20
    return offset - (word >> 31 << 21)


class Launches:
    """Follows the go signals of tiles, or their soft reset.

    Args:
        tiles: records of the chip's tiles.
        indices: of those that are followed.

    Attributes:
        layout: of the firmware that runs on them; None: no firmware that is known.
    """

    def __init__(self, tiles: Array, indices: list[int]) -> None:
        self.layout: FirmwareLayout | None = None
        self._tiles = tiles
        self._resets = tiles["soft_reset"]
        self._words = tiles["l1_u32"]
        self._bytes = tiles["l1"]
        self._indices = np.array(indices, np.int64)
        self._layouts = {layout.entry["B"]: layout for layout in read_layouts()}
        self._jump = -1
        self._running = np.zeros(len(indices), bool)
        self._had_t_cores = np.zeros(len(indices), bool)
        self._pointer = np.zeros(len(indices), np.int64)

    def look(self) -> tuple[list[int], list[int]]:
        """(tiles on which a program has begun since the last look, tiles on which one has ended), by their indices."""
        if not len(self._indices):
            return [], []
        jump = int(self._words[self._indices[0], 0])
        if jump != self._jump:
            self._jump = jump
            known, self.layout = self.layout, self._layouts.get(jump_target(jump) or -1)
            if self.layout is not known:
                self._running[:] = False
        layout = self.layout
        if layout is None:
            held = self._resets[self._indices]
            t_cores_run, any_runs = held & _T_CORES != _T_CORES, held & POWER_ON_RESET != POWER_ON_RESET
            self._had_t_cores = (self._had_t_cores | t_cores_run) & any_runs
            return self._changed(t_cores_run | any_runs & ~self._had_t_cores, self._pointer)
        which = self._words[self._indices, layout.go_index >> 2].astype(np.int64) & 7
        signals = self._bytes[self._indices, layout.go_messages + layout.go_signal + 4 * which]
        running = signals == GO
        return self._changed(running, self._words[self._indices, layout.launch_read_pointer >> 2].astype(np.int64))

    def words(self) -> Array:
        """int64 [n]: addresses in memory of the 32-bit words that the next `look` depends on: it sees nothing else."""
        if not len(self._indices):
            return self._indices
        l1 = offset_of(TILE, "l1")
        places = [np.array([l1])]
        layout = self.layout
        if layout is None:
            places.append(np.array([offset_of(TILE, "soft_reset")]))
        else:
            which = self._words[self._indices, layout.go_index >> 2].astype(np.int64) & 7
            signals = layout.go_messages + layout.go_signal + 4 * which & ~3
            places += [np.array([l1 + layout.go_index]), l1 + signals, np.array([l1 + layout.launch_read_pointer])]
        tiles = self._tiles.ctypes.data + self._indices * self._tiles.strides[0]
        return np.concatenate([tiles + place for place in places])

    def _changed(self, running: Array, pointer: Array) -> tuple[list[int], list[int]]:
        again = self._running & (pointer != self._pointer)  # its end was not seen
        begun, ended = running & (~self._running | again), self._running & (~running | again)
        self._running, self._pointer = running, pointer
        return self._indices[begun].tolist(), self._indices[ended].tolist()
