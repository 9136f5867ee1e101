"""Register files as decoded NumPy arrays: what a notebook shows.

`cells` is always the hardware's own bits, writable; the other properties are copies decoded to numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.errors import AssemblyError, ConfigurationError
from bhemu.isa.registers import CONFIG_FIELDS, FIRST_SHARED_WORD, THREAD_FIELDS, RegisterField, field
from bhemu.machine.config_access import UNITS_OF_ENTRY, UNITS_OF_WORD
from bhemu.machine.dst import DST_ROWS, LOW_HALF, bf16_of_cell, high_row
from bhemu.machine.kernel import plain

Array = np.ndarray[Any, Any]

FP32_ENABLED: Final = "ALU_ACC_CTRL_Fp32_enabled"
_VIEWS: Final = ("bf16", "fp16", "fp32", "int32")

INT8_ENABLED: Final = "ALU_ACC_CTRL_INT8_math_enabled"


def bf16_cells_to_float(cells: Array) -> Array:
    """Dst cells {sign 15, mantissa 14:8, exponent 7:0} as float32 (rules I.2)."""
    c = cells.astype(np.uint32)
    bits: Array = plain(bf16_of_cell)(c) << 16
    return bits.view(np.float32)


def fp16_cells_to_float(cells: Array) -> Array:
    """Dst cells {sign 15, mantissa 14:5, exponent 4:0} as float32; exponent 31 is an ordinary number (rules I.1)."""
    c = cells.astype(np.int64)
    exponent, mantissa = c & 0x1F, c >> 5 & 0x3FF
    value = np.where(exponent == 0, 0.0, np.ldexp(1024.0 + mantissa, exponent - 25))
    return np.where(c & 0x8000, -value, value).astype(np.float32)


def check_value(known: RegisterField, value: int) -> None:
    """Raise AssemblyError unless `value` fits into the field."""
    if not 0 <= checks.integer(value, known.name) < 1 << known.width:
        raise AssemblyError(
            f"{known.name} = {value} does not fit in {known.width} bits",
            remedy=f"use a value from 0 to {(1 << known.width) - 1:#x}",
        )


class DstView:
    """The destination register file.

    `cells` is uint16 [1024, 16], raw; `valid` is uint8 [1024], the row-valid flags. `np.asarray(tile.dst)` decodes in
    the view that the matrix unit is configured for.
    """

    def __init__(self, record: Any) -> None:
        self._record = record

    @property
    def cells(self) -> Array:
        """uint16 [1024, 16] physical rows of raw cells (writable)."""
        return self._record["dst"]  # type: ignore[no-any-return]

    @property
    def valid(self) -> Array:
        """uint8 [1024] row-valid flags; an invalid row reads as zero (writable)."""
        return self._record["dst_valid"]  # type: ignore[no-any-return]

    def _read16(self) -> Array:
        return np.where(self.valid[:, None] != 0, self.cells, 0)

    @property
    def bits32(self) -> Array:
        """uint32 [512, 16]: the 32-bit view, permutation undone (rules I.3)."""
        high = plain(high_row)(np.arange(DST_ROWS // 2))
        top = plain(bf16_of_cell)(self.cells[high].astype(np.uint32))
        bits = top << 16 | self.cells[high + LOW_HALF]
        return np.where(self.valid[high][:, None] != 0, bits, 0).astype(np.uint32)

    @property
    def bf16(self) -> Array:
        """float32 [1024, 16]: 16-bit rows read as BF16."""
        return bf16_cells_to_float(self._read16())

    @property
    def fp16(self) -> Array:
        """float32 [1024, 16]: 16-bit rows read as FP16."""
        return fp16_cells_to_float(self._read16())

    @property
    def fp32(self) -> Array:
        """float32 [512, 16]: 32-bit rows read as FP32."""
        return self.bits32.view(np.float32)

    @property
    def int32(self) -> Array:
        """int32 [512, 16]: 32-bit rows read as sign-magnitude integers."""
        bits = self.bits32
        magnitude = (bits & 0x7FFFFFFF).astype(np.int64)
        return np.where(bits >> 31, -magnitude, magnitude).astype(np.int32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        config = ConfigView(self._record)
        if config[INT8_ENABLED]:
            values = self.int32
        elif config[FP32_ENABLED]:
            values = self.fp32
        else:
            values = self.bf16
        return values if dtype is None else values.astype(dtype)

    def plot(self, rows: slice = slice(0, 64), *, view: str | None = None, ax: Any = None) -> Any:
        """Draw rows with matplotlib.

        Args:
            rows: of the view: 1024 rows of 16 bits, or 512 of 32.
            view: `bf16`, `fp16`, `fp32` or `int32`; by default what the matrix unit is configured for.
            ax: matplotlib's axes to draw on; new ones by default.

        Returns:
            The axes.

        Raises:
            ConfigurationError: matplotlib is not installed, or there is no such view.
        """
        from bhemu.pictures.plot import matrix

        return matrix(self._in_view(view)[checks.instance(rows, "rows", slice)], "Dst", ax=ax)

    def _in_view(self, view: str | None) -> Array:
        if view is None:
            return np.asarray(self)
        if checks.text(view, "view") not in _VIEWS:
            raise ConfigurationError(f"Dst has no view {view!r}", remedy=f"use one of {', '.join(_VIEWS)}")
        return np.asarray(getattr(self, view))

    def _repr_html_(self) -> str:
        from bhemu.pictures.html import heading, picture

        valid = np.flatnonzero(self.valid)
        values = np.asarray(self)
        last = (int(valid[-1]) + 1 if len(valid) else 16) * len(values) // len(self.valid)
        return heading(repr(self)[1:-1]) + picture(
            values[: max(16, -(-last // 16) * 16)], title="Dst, up to the last valid row"
        )

    def __repr__(self) -> str:
        return f"<Dst: {int(self.valid.sum())} of 1024 rows valid>"


class SrcView:
    """SrcA or SrcB: two banks of 64 rows of 16 cells of 19 bits."""

    def __init__(self, record: Any, file: int) -> None:
        self._record = record
        self._file = file

    @property
    def cells(self) -> Array:
        """uint32 [2, 64, 16] raw cells {sign 18, mantissa 17:8, exponent 7:0} (writable)."""
        return self._record["srcb" if self._file else "srca"]  # type: ignore[no-any-return]

    @property
    def owner(self) -> tuple[str, str]:
        """Who owns bank 0 and bank 1: `unpacker` or `matrix`."""
        first, second = (("unpacker", "matrix")[int(o)] for o in self._record["src_owner"][self._file])
        return first, second

    @property
    def formats(self) -> tuple[int, int]:
        """Implied data format code of bank 0 and bank 1 (rules U11)."""
        first, second = (int(f) for f in self._record["src_format"][self._file])
        return first, second

    def bank(self, index: int) -> Array:
        """float32 or int32 [64, 16]: bank 0 or 1, decoded by its implied format."""
        index = checks.integer(index, "bank", 0, 1)
        cells = self.cells[index].astype(np.int64)
        sign, mantissa, exponent = cells >> 18 & 1, cells >> 8 & 0x3FF, cells & 0xFF
        code = self.formats[index]
        if code == 14:  # INT8: the magnitude is in the mantissa field
            value: Array = np.where(exponent != 0, mantissa, 0)
            return np.where(sign != 0, -value, value).astype(np.int32)
        if code in (1, 2, 3, 10, 11):  # five exponent bits; exponent 31 is an ordinary number
            value = np.where(exponent == 0, 0.0, np.ldexp(1024.0 + mantissa, (exponent & 0x1F) - 25))
            return np.where(sign != 0, -value, value).astype(np.float32)
        bits: Array = (sign << 31 | exponent << 23 | mantissa << 13).astype(np.uint32)
        return bits.view(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        values = self.bank(int(self._record["matrix"]["bank"][self._file]))
        return values if dtype is None else values.astype(dtype)

    def plot(self, bank: int | None = None, *, ax: Any = None) -> Any:
        """Draw a bank with matplotlib, by default the matrix unit's next one; returns the axes.

        Raises:
            ConfigurationError: matplotlib is not installed.
        """
        from bhemu.pictures.plot import matrix

        values = np.asarray(self) if bank is None else self.bank(bank)
        return matrix(values, f"Src{'AB'[self._file]}", ax=ax)

    def _repr_html_(self) -> str:
        from bhemu.pictures.html import heading, picture

        banks = "".join(heading(f"bank {n}") + picture(self.bank(n)) for n in (0, 1))
        return heading(repr(self)[1:-1]) + banks

    def __repr__(self) -> str:
        return f"<Src{'AB'[self._file]}: banks owned by {self.owner[0]}, {self.owner[1]}>"


class ConfigView(Mapping[str, int]):
    """Configuration fields by name: `config["THCON_SEC0_REG1_Out_data_format"]`; assigning writes the field at once.

    Args:
        record: the tile.
        bank: config bank for fields of Config.
        thread: thread for fields of ThreadConfig.
    """

    def __init__(self, record: Any, bank: int = 0, thread: int = 0) -> None:
        self._record = record
        self._bank = checks.integer(bank, "bank", 0, 1)
        self._thread = checks.integer(thread, "thread", 0, 2)

    def __getitem__(self, name: str) -> int:
        known = field(checks.text(name, "name"))
        if known.space == "thread":
            word = int(self._record["thread_config"][self._thread, known.word])
        else:
            bank = 0 if known.word >= FIRST_SHARED_WORD else self._bank
            word = int(self._record["config"][bank, known.word])
        return (word & known.mask) >> known.lsb

    def __setitem__(self, name: str, value: int) -> None:
        known = field(checks.text(name, "name"))
        check_value(known, value)
        if known.access == "pulse" or known.name.startswith("STATE_RESET_EN"):
            raise AssemblyError(f"{name} acts when its word is written", remedy="execute a WRCFG to its word")
        keep = ~known.mask
        if known.space == "thread":
            entries = self._record["thread_config"]
            entries[self._thread, known.word] = int(entries[self._thread, known.word]) & keep | int(value) << known.lsb
            self._record["config_dirty"] |= np.uint32(UNITS_OF_ENTRY[known.word])
            return
        shared = known.word >= FIRST_SHARED_WORD
        bank = 0 if shared else self._bank
        words = self._record["config"]
        words[bank, known.word] = int(words[bank, known.word]) & keep | int(value) << known.lsb
        for touched in (0, 1) if shared else (bank,):
            self._record["config_dirty"][touched] |= np.uint32(UNITS_OF_WORD[known.word])

    def __contains__(self, name: object) -> bool:
        return name in CONFIG_FIELDS or name in THREAD_FIELDS

    def __iter__(self) -> Iterator[str]:
        yield from CONFIG_FIELDS
        yield from THREAD_FIELDS

    def __len__(self) -> int:
        return len(CONFIG_FIELDS) + len(THREAD_FIELDS)

    def for_bank(self, bank: int) -> ConfigView:
        """The same fields in config bank 0 or 1."""
        return ConfigView(self._record, bank, self._thread)

    def for_thread(self, thread: int) -> ConfigView:
        """The same fields as thread 0, 1 or 2 has them in its ThreadConfig."""
        return ConfigView(self._record, self._bank, thread)

    def __repr__(self) -> str:
        return f"<Config bank {self._bank}, thread {self._thread}: {len(self)} fields>"
