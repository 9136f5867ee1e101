"""An unpacker for tests: named configuration, one UNPACR or UNPACR_NOP at a time, cells out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.isa.instructions import encode
from bhemu.isa.registers import field
from bhemu.machine.counters import CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_W, CH1_X, CH1_Y, CH1_Z
from bhemu.machine.state import ALL_CONFIG_DIRTY, new_tiles
from bhemu.tensix.coprocessor import Coprocessor

TILE = 0x4000
"""Byte address of the tile that `Unpacker` sets up."""

FP32, FP16, BFP8A, BFP4A, TF32, BF16, BFP8, BFP4, INT32, INT16, FP8, BFP2A = range(12)
INT8, BFP2 = 14, 15

COUNTING = np.arange(1, 8193, dtype=np.uint16)
"""What `counting` has in L1 from TILE on."""

_COUNTERS = {"x": CH0_X, "y": CH0_Y, "z": CH0_Z, "w": CH0_W, "x1": CH1_X, "y1": CH1_Y, "z1": CH1_Z, "w1": CH1_W}


class Unpacker:
    """One tile after reset whose unpackers read 256-datum planes of INT16 at TILE to Src row 0, contexts 0-7 alike."""

    def __init__(self, unpacker: int = 1, thread: int = 0, *, allow_open: bool = False) -> None:
        self.tiles = new_tiles(1)
        self.t: Any = self.tiles[0]
        self.t["allow_open"] = int(allow_open)
        self.coprocessor = Coprocessor(self.tiles)
        self.unpacker = unpacker
        self.thread = thread
        for which in range(2):
            sec = f"THCON_SEC{which}_"
            self.set(f"{sec}REG0_TileDescriptor_uncompressed", 1)
            self.set(f"{sec}REG0_TileDescriptor_x_dim", 256)
            self.set(f"{sec}REG0_TileDescriptor_y_dim", 1)
            self.set(f"{sec}REG0_TileDescriptor_z_dim", 4)
            for context in range(8):
                self.set(f"{sec}REG2_Disable_zero_compress_cntx{context}", 1)
            for context in range(4):
                self.set(f"{sec}REG5_Tile_x_dim_cntx{context}", 256)
                self.set(f"{sec}REG5_Dest_cntx{context}_address", 64)
        self.formats(INT16)
        self.base(TILE)
        self.set("SRCA_SET_SetOvrdWithAddr", 1)
        self.count(16)

    def set(self, name: str, value: int) -> None:
        """Give a Config or ThreadConfig field a value, as software would; `{}` in the name is the unpacker."""
        found = field(name.format(self.unpacker))
        assert value <= found.mask >> found.lsb, name
        if found.space == "config":
            words = self.t["config"][0]
            self.t["config_dirty"][0] = ALL_CONFIG_DIRTY
        else:
            words = self.t["thread_config"][self.thread]
        words[found.word] = (int(words[found.word]) & ~found.mask) | (value << found.lsb)

    def formats(self, source: int, target: int | None = None) -> None:
        """Input and output format of both unpackers."""
        for which in range(2):
            self.set(f"THCON_SEC{which}_REG0_TileDescriptor_in_data_format", source)
            self.set(f"THCON_SEC{which}_REG2_Out_data_format", source if target is None else target)

    def base(self, address: int, context: int = 0) -> None:
        """Byte address of a context's tile."""
        middle = "REG3_Base" if context == 0 else f"REG{3 + context // 4}_Base_cntx{context}"
        self.set(f"THCON_SEC{{}}_{middle}_address", (address // 16 - 1) & 0xFFFFFFFF)

    def adc(self, thread: int | None = None, **counters: int) -> None:
        """Set counters x, y, z, w of channel 0 and x1 ... w1 of channel 1."""
        row = self.t["adc"][self.thread if thread is None else thread, self.unpacker]
        for name, value in counters.items():
            row[_COUNTERS[name]] = value

    def counter(self, name: str, thread: int | None = None) -> int:
        return int(self.t["adc"][self.thread if thread is None else thread, self.unpacker, _COUNTERS[name]])

    def count(self, datums: int, first: int = 0) -> None:
        """Take datums `first` .. `first + datums - 1` of the plane."""
        self.adc(x=first, x1=first + datums - 1)

    def l1(self, values: Any, dtype: str = "<u2", address: int = TILE) -> None:
        """Put an array of little-endian elements into L1."""
        raw = np.ascontiguousarray(values, dtype).view(np.uint8).reshape(-1)
        self.t["l1"][address : address + len(raw)] = raw

    def issue(self, word: int) -> bool:
        """Push a word and drain the thread; False when it waits."""
        assert self.coprocessor.push(self.thread, word)
        return self.coprocessor.drain(self.thread)

    def unpack(self, **operands: int) -> bool:
        """UNPACR in its multi-context form; operands by name."""
        return self.issue(unpacr(self.unpacker, **operands))

    def nop(self, **operands: int) -> bool:
        """UNPACR_NOP; operands by name."""
        return self.issue(encode("UNPACR_NOP", Unpacker_Select=self.unpacker, **operands))

    def to_dst(self, context: int = 0) -> None:
        """Send a context of unpacker 0 to Dst row 0."""
        self.set(f"THCON_SEC0_REG2_Unpack_if_sel_cntx{context}", 1)
        self.set("SRCA_SET_SetOvrdWithAddr", 0)

    def src(self, bank: int = 0) -> NDArray[np.uint32]:
        """uint32 [64, 16]: cells of the unpacker's register file."""
        return np.array(self.t["srcb" if self.unpacker else "srca"][bank])

    def values(self, bank: int = 0) -> NDArray[np.int64]:
        """int64 [64, 16]: the 16-bit integers that INT16 cells encode (I.2)."""
        cells = self.src(bank).astype(np.int64)
        return ((cells >> 3) & 0xFF00) | (cells & 0xFF)

    def dst32(self, row: int) -> NDArray[np.uint32]:
        """uint32 [16]: the 32-bit values of a logical row of Dst (I.3)."""
        physical = ((row & 0x1F8) << 1) | (row & 7)
        high, low = (self.t["dst"][physical + n].astype(np.uint32) for n in (0, 8))
        bf16 = (high & 0x8000) | ((high & 0xFF) << 7) | ((high >> 8) & 0x7F)
        return np.asarray(bf16 << 16 | low, np.uint32)


def unpacr(unpacker: int, *, y1: int = 0, z1: int = 0, y: int = 0, z: int = 0, **operands: int) -> int:
    """The word of an UNPACR; y1, z1, y, z are the increments. Multi-context form and Last unless said otherwise."""
    settings = {"OvrdThreadId": 1, "Last": 1} | operands
    return encode("UNPACR", Unpack_block_selection=unpacker, Ch1Y=y1, Ch1Z=z1, Ch0Y=y, Ch0Z=z, **settings)


def src_cells(bits: NDArray[Any], kind: int) -> NDArray[np.uint32]:
    """19-bit cells of BF16 or FP16 bits (I.2)."""
    b = bits.astype(np.uint32)
    sign = (b & 0x8000) << 3
    if kind == BF16:
        return np.asarray(sign | ((b & 0x7F) << 11) | ((b >> 7) & 0xFF), np.uint32)
    return np.asarray(sign | ((b & 0x3FF) << 8) | ((b >> 10) & 0x1F), np.uint32)


def dst_cells(bits: NDArray[Any], kind: int) -> NDArray[np.uint16]:
    """16-bit cells of BF16 or FP16 bits (I.2)."""
    b = bits.astype(np.uint32)
    mantissa, width = (0x7F, 7) if kind == BF16 else (0x3FF, 10)
    exponent = (b & 0x7FFF) >> width
    return np.asarray((b & 0x8000) | ((b & mantissa) << (15 - width)) | exponent, np.uint16)


def counting(unpacker: int = 1, **options: bool) -> Unpacker:
    """An unpacker whose tile holds 1, 2, 3, ..."""
    u = Unpacker(unpacker, **options)
    u.l1(COUNTING)
    return u
