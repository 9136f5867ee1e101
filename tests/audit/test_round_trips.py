"""Tiles through UNPACR, a register file and PACR, and back in L1 byte by byte, for every pair of formats that is exact.

Each tile has four faces of 256 datums. A face goes to SrcA and on to Dst by MOVA2D (integers by ELWADD with zeros), or
straight to Dst; four PACRs pack it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bhemu.formats import encode as encode_tensor
from bhemu.isa.instructions import encode
from bhemu.machine.compiler import JIT
from tests.tensix.packer_bench import (
    BF16,
    BFP2,
    BFP2A,
    BFP4,
    BFP4A,
    BFP8,
    BFP8A,
    FP8,
    FP16,
    FP32,
    INT8,
    INT16,
    INT32,
    L1_BASE,
    TF32,
    Bench,
)
from tests.tensix.unpacker import TILE, Unpacker

Bytes = NDArray[np.uint8]
MATH = 1
RAW = 4
"""Read_raw of word 18."""
WIDE = 1
UNSIGNED = 2
BFP = (BFP8, BFP4, BFP2, BFP8A, BFP4A, BFP2A)


@dataclass(frozen=True)
class Path:
    """Formats from L1 to L1."""

    l1: int
    unpacked: int
    """Out_data_format of the unpacker."""
    packed_from: int
    """In_data_format of the packer."""
    back: int
    by: str = "MOVA2D"
    """How the datums get into Dst: `MOVA2D`, `ELWADD`, or `` straight from the unpacker."""
    control: int = 0
    """Word 18 of Config."""
    e4m3: int = 0


class Loop:
    """One tile with an unpacker 0 and a packer set up for a path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.unpacker = Unpacker(0)
        packer = Bench(path.packed_from, path.back)
        self.t: Any = self.unpacker.t
        self.t["config"] |= packer.tile["config"]  # their fields are different bits
        self.t["adc"][:, 2] = packer.tile["adc"][:, 2]
        u = self.unpacker
        u.formats(path.l1, path.unpacked)
        u.set("PCK_DEST_RD_CTRL_Read_32b_data", path.control & 1)
        u.set("PCK_DEST_RD_CTRL_Read_unsigned", path.control >> 1 & 1)
        u.set("PCK_DEST_RD_CTRL_Read_int8", path.control >> 2 & 1)
        u.set("ALU_FORMAT_SPEC_REG0_SrcAUnsigned", path.control >> 1 & 1)
        u.set("ALU_ACC_CTRL_Fp32_enabled", int(path.control & 1 and path.by == "MOVA2D"))
        u.set("ALU_ACC_CTRL_INT8_math_enabled", int(path.by == "ELWADD"))
        u.set("ALU_ACC_CTRL_Zero_Flag_disabled_src", 1)  # moves keep denormals
        u.set("THCON_SEC0_REG1_Unp_LF8_4b_exp", path.e4m3)
        u.set("THCON_SEC0_REG1_Pac_LF8_4b_exp", path.e4m3)
        u.set("THCON_SEC0_REG1_Exp_section_size", 4 if path.back in BFP else 0)
        if not path.by:
            u.to_dst()

    def word(self, thread: int, word: int) -> None:
        assert self.unpacker.coprocessor.push(thread, word)
        assert self.unpacker.coprocessor.drain(thread)

    def face_to_dst(self, face: int) -> None:
        """256 datums of a face into Dst rows 0 to 15."""
        u = self.unpacker
        u.adc(x=0, x1=255, z=face)
        assert u.unpack(SetDatValid=int(bool(self.path.by)))
        if self.path.by == "MOVA2D":
            for row in (0, 8):
                self.word(MATH, encode("MOVA2D", src=row, dst=row, instr_mod=2))
        elif self.path.by == "ELWADD":
            self.t["srcb"][...] = 0
            self.t["src_owner"][1] = 1
            self.t["src_format"][1] = INT8
            for row in (0, 8):
                self.word(MATH, encode("SETRWC", rwc_a=row, rwc_d=row, BitMask=0b101))
                self.word(MATH, encode("ELWADD"))
        if self.path.by:
            self.word(MATH, encode("CLEARDVALID", cleardvalid=1))

    def run(self, content: Bytes, size: int) -> Bytes:
        """`size` bytes from L1 after a tile of `content` went through."""
        self.unpacker.l1(content, "u1")
        l1 = self.t["l1"]
        l1[L1_BASE : L1_BASE + size + 16] = 0xEE
        for face in range(4):
            self.face_to_dst(face)
            for row in range(0, 16, 4):
                self.t["adc"][2, 2, 1] = row
                self.word(2, encode("PACR", Last=int(face == 3 and row == 12)))
        assert (l1[L1_BASE + size : L1_BASE + size + 16] == 0xEE).all()
        assert (l1[TILE : TILE + len(content)] == content).all()
        return np.array(l1[L1_BASE : L1_BASE + size])


def reals(seed: int, scale: float = 1.0) -> NDArray[np.float32]:
    """float32 [32, 32] of several magnitudes, with zeros."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((32, 32)) * scale * 2.0 ** rng.integers(-3, 4, (32, 32))
    return np.asarray(np.where(rng.random((32, 32)) < 0.1, 0, values), np.float32)


def host(name: str, seed: int) -> Bytes:
    """A tile that the host has encoded: real numbers, or every integer."""
    values: Any = reals(seed)
    if name in ("FP8_E5M2", "FP8_E4M3"):  # denormals do not survive the packer
        values = np.where(np.abs(values) < 2.0**-6, 0, values)
    if name in ("INT8", "INT16", "INT32"):
        bits = int(name[3:])
        values = np.random.default_rng(seed).integers(-(2 ** (bits - 1)) + 1, 2 ** (bits - 1), (32, 32))
    elif name == "UINT8":
        values = np.random.default_rng(seed).integers(0, 256, (32, 32))
    return np.frombuffer(bytes(encode_tensor(values, name)), np.uint8)


SAME: dict[str, Path] = {
    "FP32": Path(FP32, FP32, FP32, FP32, "", WIDE),
    "TF32": Path(TF32, TF32, TF32, TF32, "", WIDE),
    "INT32": Path(INT32, INT32, INT32, INT32, "", WIDE),
    "BF16": Path(BF16, BF16, BF16, BF16),
    "FP16": Path(FP16, FP16, FP16, FP16),
    "FP8_E5M2": Path(FP8, FP8, FP16, FP8),
    "FP8_E4M3": Path(FP8, FP8, FP16, FP8, e4m3=1),
    "BFP8": Path(BFP8, BFP8, BF16, BFP8),
    "BFP4": Path(BFP4, BFP4, BF16, BFP4),
    "BFP2": Path(BFP2, BFP2, BF16, BFP2),
    "BFP8A": Path(BFP8A, BFP8A, FP16, BFP8A),
    "BFP4A": Path(BFP4A, BFP4A, FP16, BFP4A),
    "BFP2A": Path(BFP2A, BFP2A, FP16, BFP2A),
    "INT8": Path(INT8, INT8, INT8, INT8, "ELWADD", WIDE),
    "UINT8": Path(INT8, INT8, INT8, INT8, "ELWADD", WIDE | UNSIGNED),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SAME)
def test_a_host_encoded_tile_comes_back(name: str, seed: int) -> None:
    """By SrcA, but for the formats that only Dst can hold."""
    content = host(name, seed)
    got = Loop(SAME[name]).run(content, len(content))
    np.testing.assert_array_equal(got, content)
    assert len(set(content.tolist())) > 4


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [n for n, p in SAME.items() if p.by == "MOVA2D"])
def test_a_host_encoded_tile_comes_back_by_unpacking_to_dst(name: str, seed: int) -> None:
    path = SAME[name]
    content = host(name, seed)
    loop = Loop(Path(path.l1, path.unpacked, path.packed_from, path.back, "", path.control, path.e4m3))
    np.testing.assert_array_equal(loop.run(content, len(content)), content)


def patterns(dtype: str) -> NDArray[Any]:
    """Every pattern of 16 bits, or random ones of 32, in tiles of 1024."""
    if dtype == "<u2":
        every = np.arange(0x10000, dtype="<u2").reshape(-1, 1024)
        return every if JIT else every[::16]
    words = np.random.default_rng(9).integers(0, 1 << 32, (8 if JIT else 1, 1024), np.uint32)
    words[0, :8] = [0, 1 << 31, 1, 0x7F800000, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x00800000]
    return words.astype("<u4")


@pytest.mark.parametrize(
    ("path", "dtype"),
    [
        (Path(FP32, FP32, FP32, FP32, "", WIDE), "<u4"),
        (Path(INT32, INT32, INT32, INT32, "", WIDE), "<u4"),
        (Path(FP32, FP32, TF32, TF32, "", WIDE | RAW), "<u4"),
        (Path(BF16, BF16, BF16, BF16, "", RAW), "<u2"),
        (Path(BF16, BF16, BF16, BF16, "MOVA2D", RAW), "<u2"),
        (Path(FP16, FP16, FP16, FP16, "", RAW), "<u2"),
        (Path(FP16, FP16, FP16, FP16, "MOVA2D", RAW), "<u2"),
        (Path(INT16, INT16, INT16, INT16, ""), "<u2"),
        (Path(INT16, INT16, INT16, INT16, "MOVA2D"), "<u2"),
    ],
)
def test_every_bit_pattern_comes_back_where_nothing_rounds(path: Path, dtype: str) -> None:
    """Denormals, NaN, both zeros, integers as they are: Read_raw, or formats that the packer never rounds."""
    loop = Loop(path)
    for tile in patterns(dtype):
        content = np.frombuffer(tile.tobytes(), np.uint8)
        np.testing.assert_array_equal(loop.run(content, len(content)), content)


@pytest.mark.parametrize(("e4m3", "least"), [(0, 4), (1, 8)])
@pytest.mark.parametrize("by", ["", "MOVA2D"])
def test_every_fp8_byte_with_an_exponent_comes_back(by: str, e4m3: int, least: int) -> None:
    """All 256 bytes; those below the least exponent flush to a zero: of E5M2 +0, of E4M3 too."""
    codes = np.tile(np.arange(256, dtype=np.uint8), 4)
    got = Loop(Path(FP8, FP8, FP16, FP8, by, 0, e4m3)).run(codes, 1024)
    np.testing.assert_array_equal(got, np.where(codes & 0x7F >= least, codes, 0))


def test_every_fp8_e5m2_byte_comes_back_raw() -> None:
    codes = np.tile(np.arange(256, dtype=np.uint8), 4)
    np.testing.assert_array_equal(Loop(Path(FP8, FP8, FP8, FP8, "", RAW)).run(codes, 1024), codes)


CROSSING: dict[str, tuple[Path, Path, str]] = {
    "BF16 as FP32": (Path(BF16, BF16, BF16, FP32), Path(FP32, BF16, BF16, BF16), "BF16"),
    "BF16 as TF32": (Path(BF16, BF16, BF16, TF32), Path(TF32, TF32, BF16, BF16, "", WIDE), "BF16"),
    "FP16 as FP32": (Path(FP16, FP16, FP16, FP32), Path(FP32, FP16, FP16, FP16), "FP16"),
    "FP16 as FP32 in wide Dst": (Path(FP16, FP16, FP16, FP32), Path(FP32, FP32, FP32, FP16, "", WIDE), "FP16"),
    "TF32 as FP32": (Path(TF32, TF32, TF32, FP32, "", WIDE), Path(FP32, TF32, TF32, TF32, "MOVA2D", WIDE), "TF32"),
    "BFP8 as BF16": (Path(BFP8, BFP8, BF16, BF16), Path(BF16, BF16, BF16, BFP8), "BFP8"),
    "BFP8 as FP32": (Path(BFP8, BFP8, BF16, FP32), Path(FP32, FP32, FP32, BFP8, "", WIDE), "BFP8"),
    "BFP4 as BFP8": (Path(BFP4, BFP4, BF16, BFP8), Path(BFP8, BFP8, BF16, BFP4), "BFP4"),
    "BFP2 as BFP4": (Path(BFP2, BFP2, BF16, BFP4), Path(BFP4, BFP4, BF16, BFP2), "BFP2"),
    "BFP8A as FP16": (Path(BFP8A, BFP8A, FP16, FP16), Path(FP16, FP16, FP16, BFP8A), "BFP8A"),
    "BFP4A as BFP8A": (Path(BFP4A, BFP4A, FP16, BFP8A), Path(BFP8A, BFP8A, FP16, BFP4A), "BFP4A"),
    "FP8 as FP16": (Path(FP8, FP8, FP16, FP16), Path(FP16, FP16, FP16, FP8), "FP8_E5M2"),
    "FP8 as FP32": (Path(FP8, FP8, FP16, FP32), Path(FP32, FP16, FP16, FP8), "FP8_E5M2"),
}
"""First trip, trip back, format of the tile: a format inside a wider one."""

BYTES = {FP32: 4096, TF32: 4096, BF16: 2048, FP16: 2048, BFP8: 1088, BFP8A: 1088, BFP4: 576}


@pytest.mark.parametrize("name", CROSSING)
def test_a_tile_comes_back_from_a_wider_format(name: str) -> None:
    there, back, tile_format = CROSSING[name]
    content = host(tile_format, 4)
    middle = Loop(there).run(content, BYTES[there.back])
    np.testing.assert_array_equal(Loop(back).run(middle, len(content)), content)
