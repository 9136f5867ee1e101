"""A packer on a bench: named configuration fields, rows of Dst, one PACR at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from bhemu.isa import CONFIG_FIELDS, THREAD_FIELDS
from bhemu.isa.instructions import encode
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor

FP32, FP16, BFP8A, BFP4A, TF32, BF16, BFP8, BFP4, INT32, INT16, FP8, BFP2A, INT8, BFP2 = (*range(12), 14, 15)
L1_BASE = 0x10000
"""Byte address of the output."""


class Bench:
    """Thread 2 packs BF16 rows of sixteen datums to L1_BASE, uncompressed, until told otherwise."""

    def __init__(self, in_format: int = BF16, out_format: int = BF16, *, read_32b: int = 0) -> None:
        self._tiles = new_tiles(1)
        self.tile: Any = self._tiles[0]
        self._coprocessor = Coprocessor(self._tiles)
        self.set(
            ALU_FORMAT_SPEC_REG2_Dstacc=in_format,
            PCK_DEST_RD_CTRL_Read_32b_data=read_32b,
            PCK0_ADDR_CTRL_XY_REG_0_Ystride=(4, 2, 1, 1)[in_format & 3] * 16,
            PACK_COUNTERS_SEC0_pack_reads_per_xy_plane=16,
        )
        self.context(0, In_data_format=in_format, Out_data_format=out_format)
        for i in range(4):
            self.set(**{f"PCK_EDGE_OFFSET_SEC{i}_mask": 0xFFFF})
        self.tile["adc"][:, 2, 4] = 15

    def set(self, **fields: int) -> None:
        """Write Config fields of bank 0."""
        for name, value in fields.items():
            field = CONFIG_FIELDS[name]
            assert 0 <= value < 1 << field.width, name
            word = self.tile["config"][0]
            word[field.word] = (int(word[field.word]) & ~field.mask) | value << field.lsb
        self.tile["config_dirty"] = 0xFFFFFFFF

    def context(self, number: int, **fields: int) -> None:
        """Write fields of a register group; an untouched group packs uncompressed to L1_BASE."""
        group = ("THCON_SEC0_REG1", "THCON_SEC0_REG8", "THCON_SEC1_REG1", "THCON_SEC1_REG8")[number]
        fields = {"Disable_zero_compress": 1, "L1_Dest_addr": L1_BASE // 16 - 1} | fields
        self.set(**{f"{group}_{name}": value for name, value in fields.items()})

    def packer(self, **fields: int) -> None:
        """Write fields of the register group of context 0."""
        self.set(**{f"THCON_SEC0_REG1_{name}": value for name, value in fields.items()})

    def modifier(self, index: int, **fields: int) -> None:
        """Write a pack address modifier of thread 2."""
        for name, value in fields.items():
            field = THREAD_FIELDS[f"ADDR_MOD_PACK_SEC{index}_{name}"]
            self.tile["thread_config"][2, field.word] |= value << field.lsb

    def bf16_row(self, row: int | slice, values: Any) -> None:
        """Put 16-bit BF16 patterns into a row, or rows, of 16-bit cells."""
        v = np.asarray(values, np.uint32)
        self.tile["dst"][row] = (v & 0x8000) | (v & 0x7F) << 8 | (v >> 7) & 0xFF

    def fp16_row(self, row: int | slice, values: Any) -> None:
        """Put FP16 patterns into a row, or rows, of 16-bit cells."""
        v = np.asarray(values, np.uint32)
        self.tile["dst"][row] = (v & 0x8000) | (v & 0x3FF) << 5 | (v >> 10) & 0x1F

    def word_row(self, row: int, values: Any) -> None:
        """Put 32-bit patterns into a row (below 8) of 32-bit cells."""
        v = np.asarray(values, np.uint32)
        self.bf16_row(row, v >> 16)
        self.tile["dst"][row + 8] = v & 0xFFFF

    def pacr(self, **fields: int) -> None:
        """Execute a PACR of thread 2; one interface and Last unless told otherwise."""
        fields = {"ReadIntfSel": 1, "Last": 1} | fields
        self.word(int(encode("PACR", **fields)))

    def word(self, word: int) -> None:
        """Execute one word of thread 2."""
        assert self._coprocessor.push(2, word)
        assert self._coprocessor.drain(2)

    def l1(self, dtype: str, count: int, offset: int = 0) -> Any:
        """`count` elements of L1 from `offset` bytes behind L1_BASE, as a list."""
        start = L1_BASE + offset
        return self.tile["l1"][start : start + count * np.dtype(dtype).itemsize].view(dtype).tolist()
