"""The number formats that L1 can hold: names, hardware codes, widths and sizes (rules `I.1`, `I.4`).

`BFP8` and its kin without a suffix are the 8-bit-exponent ("B") family, as in the ISA documentation; `BFP8A` and its
kin are the 5-bit-exponent ("A") family.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

import ml_dtypes
import numpy as np

from bhemu.errors import FormatError

Kind = Literal["float", "bfp", "integer"]
TileShape = tuple[int, int]

TILE_SHAPES: tuple[TileShape, ...] = ((32, 32), (16, 32), (32, 16), (16, 16))
"""Tile shapes (rows, columns) that tensors may be cut into."""

DATUMS_PER_EXPONENT = 16
"""Consecutive datums that share one exponent byte (`I.4`), in both BFP families."""

SECTION_ALIGNMENT = 16
"""Bytes to which the exponent section is rounded up (`I.4`)."""


@dataclass(frozen=True)
class _Spec:
    """One row of table `I.1`. `name` keeps rows that differ in nothing else apart."""

    name: str
    code: int
    bits: int
    kind: Kind
    exponent_bits: int
    mantissa_bits: int
    dtype: np.dtype[Any]
    needs_e4m3_bit: bool = False
    needs_unsigned_bit: bool = False


def _float(name: str, code: int, bits: int, exponent: int, mantissa: int, dtype: Any, *, e4m3: bool = False) -> _Spec:
    return _Spec(name, code, bits, "float", exponent, mantissa, np.dtype(dtype), needs_e4m3_bit=e4m3)


def _bfp(name: str, code: int, bits: int, exponent: int) -> _Spec:
    # BFP8/4/2 unpack to BF16, whose values bfloat16 holds exactly. The A family unpacks to FP16 with exponent 31 as an
    # ordinary exponent (I.5), which reaches 131008 and so needs float32.
    return _Spec(name, code, bits, "bfp", exponent, bits - 1, np.dtype(ml_dtypes.bfloat16 if exponent == 8 else "f4"))


def _integer(name: str, code: int, bits: int, dtype: Any, *, unsigned: bool = False) -> _Spec:
    return _Spec(name, code, bits, "integer", 0, bits - 1, np.dtype(dtype), needs_unsigned_bit=unsigned)


class DataFormat(Enum):
    """A number format of datums in L1.

    Several members share a 4-bit hardware code and differ in a mode bit (`FP8_E4M3`, `UINT8`) or only in how the host
    reads the bits (`UINT16`, `UINT32`, `INT32_RAW`).

    Example:
        >>> DataFormat.parse("Float16_b")
        <DataFormat.BF16>
        >>> DataFormat.BFP8.code, DataFormat.BFP8.tile_bytes()
        (6, 1088)
    """

    FP32 = _float("FP32", 0, 32, 8, 23, np.float32)
    FP16 = _float("FP16", 1, 16, 5, 10, np.float16)
    BFP8A = _bfp("BFP8A", 2, 8, 5)
    BFP4A = _bfp("BFP4A", 3, 4, 5)
    TF32 = _float("TF32", 4, 32, 8, 10, np.float32)
    BF16 = _float("BF16", 5, 16, 8, 7, ml_dtypes.bfloat16)
    BFP8 = _bfp("BFP8", 6, 8, 8)
    BFP4 = _bfp("BFP4", 7, 4, 8)
    INT32 = _integer("INT32", 8, 32, np.int32)
    """Sign-magnitude, -(2**31 - 1) .. 2**31 - 1."""
    UINT32 = _integer("UINT32", 8, 32, np.uint32)
    """Code 8 with the 32 bits carried untouched, read as unsigned."""
    INT32_RAW = _integer("INT32_RAW", 8, 32, np.int32)
    """Code 8 with the 32 bits carried untouched, read as two's complement."""
    INT16 = _integer("INT16", 9, 16, np.int16)
    """Opaque 16 bits; the host reads two's complement."""
    UINT16 = _integer("UINT16", 9, 16, np.uint16)
    """Opaque 16 bits; the host reads unsigned."""
    FP8_E5M2 = _float("FP8_E5M2", 10, 8, 5, 2, ml_dtypes.float8_e5m2)
    FP8_E4M3 = _float("FP8_E4M3", 10, 8, 4, 3, ml_dtypes.float8_e4m3fn, e4m3=True)
    BFP2A = _bfp("BFP2A", 11, 2, 5)
    INT8 = _integer("INT8", 14, 8, np.int8)
    """Sign-magnitude, -127 .. 127."""
    UINT8 = _integer("UINT8", 14, 8, np.uint8, unsigned=True)
    BFP2 = _bfp("BFP2", 15, 2, 8)

    def __repr__(self) -> str:
        return f"<DataFormat.{self.name}>"

    @property
    def code(self) -> int:
        """The 4-bit code of configuration registers and tile descriptors."""
        return self.value.code

    @property
    def bits(self) -> int:
        """Bits of one datum in L1, without its share of an exponent."""
        return self.value.bits

    @property
    def kind(self) -> Kind:
        """`"float"` (one exponent a datum), `"bfp"` (one exponent for 16 datums) or `"integer"`."""
        return self.value.kind

    @property
    def is_bfp(self) -> bool:
        """True if 16 datums share an exponent."""
        return self.value.kind == "bfp"

    @property
    def is_integer(self) -> bool:
        """True for the integer formats."""
        return self.value.kind == "integer"

    @property
    def exponent_bits(self) -> int:
        """Width of the exponent, shared or not; 0 for integers."""
        return self.value.exponent_bits

    @property
    def mantissa_bits(self) -> int:
        """Explicit mantissa bits; for BFP and integers the magnitude bits."""
        return self.value.mantissa_bits

    @property
    def exponent_bias(self) -> int:
        """What is subtracted from the stored exponent; 0 for integers."""
        return (1 << (self.exponent_bits - 1)) - 1 if self.exponent_bits else 0

    @property
    def exponent_family(self) -> Literal["A", "B"] | None:
        """`"A"` for exponents of up to 5 bits, `"B"` for 8 bits, None for integers (`I.1`)."""
        if not self.exponent_bits:
            return None
        return "B" if self.exponent_bits == 8 else "A"

    @property
    def dtype(self) -> np.dtype[Any]:
        """dtype of a decoded tensor."""
        return self.value.dtype

    @property
    def bits_dtype(self) -> np.dtype[Any]:
        """Little-endian unsigned dtype that holds one datum's bits (uint8 for 4- and 2-bit datums)."""
        return np.dtype(f"<u{max(self.bits, 8) // 8}")

    @property
    def needs_e4m3_bit(self) -> bool:
        """True if the unit's `LF8_4b_exp` bit must be 1."""
        return self.value.needs_e4m3_bit

    @property
    def needs_unsigned_bit(self) -> bool:
        """True if the unpacker's `SrcAUnsigned`/`SrcBUnsigned` or the packer's `Read_unsigned` bit must be 1."""
        return self.value.needs_unsigned_bit

    def exponent_section_bytes(self, datums: int) -> int:
        """Bytes of the exponent section in front of `datums` datums; 0 if the format shares no exponent (`I.4`)."""
        if not self.is_bfp:
            return 0
        exponents = -(-datums // DATUMS_PER_EXPONENT)
        return -(-exponents // SECTION_ALIGNMENT) * SECTION_ALIGNMENT

    def datum_section_bytes(self, datums: int) -> int:
        """Bytes of `datums` datums alone, rounded up to a whole byte."""
        return -(-datums * self.bits // 8)

    def tile_bytes(self, tile_shape: TileShape = (32, 32)) -> int:
        """Bytes of one tile in L1, exponent section included. No header is stored (`I.4`).

        Example:
            >>> [DataFormat[name].tile_bytes() for name in ("FP32", "BF16", "BFP8", "BFP4", "BFP2", "INT8")]
            [4096, 2048, 1088, 576, 320, 1024]
        """
        datums = tile_shape[0] * tile_shape[1]
        return self.exponent_section_bytes(datums) + self.datum_section_bytes(datums)

    @classmethod
    def parse(cls, name: str | DataFormat) -> DataFormat:
        """The format of that name, in the spelling of the ISA documents, of the LLK headers, of ttnn or of NumPy.

        Case and the difference between `-`, `_` and a blank do not matter.

        Raises:
            FormatError: unknown name; or `Bfp8`, `Bfp4`, `Bfp2` spelt as the software enumeration spells the A family,
                which the ISA documents use for the B family.

        Example:
            >>> DataFormat.parse("bf16"), DataFormat.parse("Bfp8_b"), DataFormat.parse("uint8")
            (<DataFormat.BF16>, <DataFormat.BFP8>, <DataFormat.UINT8>)
        """
        if isinstance(name, DataFormat):
            return name
        if not isinstance(name, str):
            raise FormatError(
                f"a data format must be a DataFormat or its name, not {type(name).__name__}",
                remedy="pass for example DataFormat.BF16 or 'bf16'",
            )
        spelling = name.strip().rpartition(".")[2]
        if spelling in _AMBIGUOUS:
            raise FormatError(
                f"data format {spelling!r} is ambiguous: software headers mean the A family by it (5-bit shared "
                f"exponent), the ISA documents the B family (8 bits)",
                remedy=f"say '{spelling.lower()}a' for code {cls[spelling.upper() + 'A'].code} "
                f"or '{spelling.lower()}_b' for code {cls[spelling.upper()].code}",
            )
        key = spelling.lower().replace("-", "_").replace(" ", "_")
        found = _NAMES.get(key)
        if found is None:
            close = difflib.get_close_matches(key, _NAMES, n=1, cutoff=0.5)
            hint = f"did you mean {_NAMES[close[0]].name}? " if close else ""
            raise FormatError(
                f"unknown data format {name!r}", remedy=f"{hint}formats: {', '.join(f.name for f in cls)}"
            )
        return found

    @classmethod
    def from_code(cls, code: int, *, e4m3: bool = False, unsigned: bool = False) -> DataFormat:
        """The format of a 4-bit hardware code and the mode bits that matter to it.

        Args:
            code: value of a format field, 0..15.
            e4m3: the unit's `LF8_4b_exp` bit; chooses E4M3 for code 10.
            unsigned: the unit's unsigned bit; chooses UINT8 for code 14.

        Raises:
            FormatError: codes 12 and 13, which are unassigned (`I.1`), and anything outside 0..15.

        Example:
            >>> DataFormat.from_code(10, e4m3=True)
            <DataFormat.FP8_E4M3>
        """
        if code == 10:
            return cls.FP8_E4M3 if e4m3 else cls.FP8_E5M2
        if code == 14:
            return cls.UINT8 if unsigned else cls.INT8
        for member in cls:
            if member.code == code:
                return member
        raise FormatError(
            f"data format code {code} is unassigned", remedy="use a code of 0..11, 14 or 15 (DataFormat lists them)"
        )

    @classmethod
    def from_dtype(cls, dtype: Any) -> DataFormat:
        """The format that keeps a NumPy or ml_dtypes dtype without loss; int32 becomes sign-magnitude `INT32`.

        Raises:
            FormatError: no format of that width and kind exists (float64, int64, bool, ...).

        Example:
            >>> DataFormat.from_dtype("float16")
            <DataFormat.FP16>
        """
        wanted = np.dtype(dtype).newbyteorder("=")
        for member in cls:  # FP32 before TF32, INT32 before INT32_RAW
            if not member.is_bfp and member.dtype == wanted:
                return member
        raise FormatError(
            f"no data format keeps dtype {np.dtype(dtype)} without loss",
            remedy="name the format to convert to, for example 'fp32' or 'int32'",
        )


_AMBIGUOUS = {"Bfp8", "Bfp4", "Bfp2"}

_ALIASES: dict[DataFormat, tuple[str, ...]] = {
    DataFormat.FP32: ("float32", "f32", "single"),
    DataFormat.FP16: ("float16", "f16", "half", "float16_a", "fp16_a"),
    DataFormat.TF32: ("tensorfloat32",),
    DataFormat.BF16: ("bfloat16", "float16_b", "fp16_b"),
    DataFormat.BFP8: ("bfp8_b", "bfp8b", "bfloat8_b"),
    DataFormat.BFP4: ("bfp4_b", "bfp4b", "bfloat4_b"),
    DataFormat.BFP2: ("bfp2_b", "bfp2b", "bfloat2_b"),
    DataFormat.BFP8A: ("bfp8_a",),
    DataFormat.BFP4A: ("bfp4_a",),
    DataFormat.BFP2A: ("bfp2_a",),
    DataFormat.FP8_E5M2: ("lf8", "fp8", "e5m2", "fp8e5m2", "float8_e5m2"),
    DataFormat.FP8_E4M3: ("e4m3", "fp8e4m3", "float8_e4m3", "float8_e4m3fn", "fp8_e4m3fn"),
    DataFormat.INT32: ("i32", "sm32"),
    DataFormat.UINT32: ("u32",),
    DataFormat.INT16: ("i16",),
    DataFormat.UINT16: ("u16",),
    DataFormat.INT8: ("i8", "sm8"),
    DataFormat.UINT8: ("u8",),
}

_NAMES: dict[str, DataFormat] = {member.name.lower(): member for member in DataFormat}
for _member, _aliases in _ALIASES.items():
    for _alias in _aliases:
        _NAMES[_alias] = _member
