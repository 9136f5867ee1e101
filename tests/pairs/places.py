"""Places of a tile by name, for pairs of program and expectation: set before a program, looked at after it.

| Place | What |
|---|---|
| `gpr[n]` | scalar register of the thread |
| `config.FIELD` | field of Config bank 0, or of the thread's ThreadConfig, by the register map's name |
| `adc.UNIT.COUNTER` | UNIT `unpacker0`, `unpacker1`, `packer`; COUNTER `ch0_x` ... `ch1_w`, carry copy `ch0_x_cr` ... |
| `rwc.COUNTER` | `srca`, `srcb`, `dst`, each with `_cr`, and `fidelity` |
| `srca.F[row][column]` | bank 0; F `bf16`, `tf32`, `fp16`, `int8`; setting it gives the bank to the matrix unit |
| `srca.owner[bank]` | 0 unpackers, 1 matrix unit; `srcb` alike |
| `dst.F[row][column]` | F `bf16`, `fp16`: 16-bit rows; `fp32`, `int32`: 32-bit rows. An invalid row reads as zero |
| `dst.valid[row]` | the row-valid flag |
| `lreg.F[n][lane]` | F `fp32`, `int` (two's complement) |
| `lane.enabled[lane]` | 1 where the vector unit writes; cannot be set |
| `l1.F[address]` | F `u8`, `u16`, `u32`, `bf16`, `fp16`, `fp32`; the values follow each other from the address |
| `semaphore.value[n]`, `semaphore.max[n]` | |
| `mutex.owner[n]` | 0 free, else thread + 1 |
| `mop[n]` | MopCfg word of the thread |
| `waits` | 1 when a word of the thread waits; cannot be set |
| `x.NAME`, `f.NAME` | register of the core (`x.a0`, `f.ft0`); cannot be set |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bhemu import Tile
from bhemu.isa.riscv import FLOAT_NAMES, REGISTER_NAMES
from bhemu.machine import counters

Index = tuple[int, ...]


class PlaceError(ValueError):
    """A place that a tile does not have, or a number that does not fit it."""


@dataclass(frozen=True)
class Format:
    """How the numbers of a place are written: hexadecimal is the bits themselves, all else the value."""

    bits: int
    value_to_bits: Callable[[str], int]
    bits_to_text: Callable[[int], str]

    def parse(self, text: str) -> int:
        """Bits of a number as written.

        Raises:
            PlaceError: it is not a number, or the format cannot hold it exactly.
        """
        try:
            bits = int(text, 16) if text.startswith("0x") else self.value_to_bits(text)
        except ValueError as error:
            raise PlaceError(f"{text!r} is not a number that fits: {error}") from error
        if not 0 <= bits < 1 << self.bits:
            raise PlaceError(f"{text} does not fit {self.bits} bits")
        return bits

    def show(self, bits: int) -> str:
        return f"{self.bits_to_text(bits)} ({bits:#x})"


def floating(exponent_bits: int, mantissa_bits: int) -> Format:
    """Sign, exponent, mantissa. Five exponent bits: 31 is an ordinary exponent (rules I.1)."""
    bias, last = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1

    def value_to_bits(text: str) -> int:
        value = float(text)
        sign = int(math.copysign(1, value) < 0) << exponent_bits + mantissa_bits
        if value == 0:
            return sign
        if math.isinf(value) and exponent_bits == 8:
            return sign | last << mantissa_bits
        fraction, power = math.frexp(abs(value))
        mantissa, exponent = fraction * (2 << mantissa_bits), power - 1 + bias
        if not mantissa.is_integer() or not 0 < exponent < last + (exponent_bits == 5):
            raise ValueError(f"no {exponent_bits} exponent and {mantissa_bits} mantissa bits are exactly this value")
        return sign | exponent << mantissa_bits | int(mantissa) - (1 << mantissa_bits)

    def bits_to_text(bits: int) -> str:
        sign = "-" if bits >> exponent_bits + mantissa_bits else ""
        exponent, mantissa = bits >> mantissa_bits & last, bits & (1 << mantissa_bits) - 1
        if exponent == last and exponent_bits == 8:
            return f"{sign}{'nan' if mantissa else 'inf'}"
        if exponent == 0:
            return f"{sign}{'denormal' if mantissa else '0.0'}"
        return f"{sign}{math.ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits)}"

    return Format(1 + exponent_bits + mantissa_bits, value_to_bits, bits_to_text)


def unsigned(bits: int) -> Format:
    return Format(bits, lambda text: int(text, 0), str)


def sign_magnitude(bits: int) -> Format:
    top = 1 << bits - 1

    def value_to_bits(text: str) -> int:
        value = int(text)
        if abs(value) >= top:
            raise ValueError(f"its magnitude does not fit {bits - 1} bits")
        return (top if value < 0 else 0) | abs(value)

    return Format(bits, value_to_bits, lambda b: str(-(b & top - 1) if b & top else b))


def twos_complement(bits: int) -> Format:
    top = 1 << bits - 1

    def value_to_bits(text: str) -> int:
        value = int(text)
        if not -top <= value < top:
            raise ValueError(f"it is not between {-top} and {top - 1}")
        return value & 2 * top - 1

    return Format(bits, value_to_bits, lambda b: str(b - 2 * top if b & top else b))


BF16, FP16, TF32, FP32 = floating(8, 7), floating(5, 10), floating(8, 10), floating(8, 23)
INT8, SM32, INT32, WORD = sign_magnitude(8), sign_magnitude(32), twos_complement(32), unsigned(32)


@dataclass(frozen=True)
class Place:
    """One element is one number.

    Args:
        format: of the number.
        size: extent of each index.
        get: its bits, from the tile.
        put: nothing where a place cannot be set.
        width: bytes of an element whose index is an address, else 0.
    """

    format: Format
    size: Index
    get: Callable[[Index], int]
    put: Callable[[Index, int], None] | None = None
    width: int = 0


@dataclass(frozen=True)
class Context:
    """Whose registers a name without an owner means."""

    tile: Tile
    thread: int
    core: str | None


def find(name: str, here: Context) -> Place:
    """The place of a name, such as `dst.fp32`.

    Raises:
        PlaceError: there is none.
    """
    first, *rest = name.split(".")
    maker = _MAKERS.get(first)
    if maker is None:
        raise PlaceError(f"no register is called {name!r}; there are {', '.join(sorted(_MAKERS))}")
    return maker(name, rest, here)


def _choose(name: str, rest: list[str], *choices: Any) -> list[Any]:
    """What each part of a name behind the first means, by the tables of what it can be."""
    if len(rest) != len(choices):
        raise PlaceError(f"{name!r} needs {len(choices)} further parts, as in tests/pairs/places.py")
    for part, known in zip(rest, choices, strict=True):
        if part not in known:
            raise PlaceError(f"{name!r}: {part!r} is unknown; there are {', '.join(sorted(known))}")
    return [known[part] for part, known in zip(rest, choices, strict=True)]


def _array(format_: Format, array: Any, *, settable: bool = True) -> Place:
    """Elements of an array of the record."""

    def put(index: Index, bits: int) -> None:
        array[index] = bits

    return Place(format_, array.shape, lambda index: int(array[index]), put if settable else None)


def _gpr(name: str, rest: list[str], here: Context) -> Place:
    _choose(name, rest)
    return _array(WORD, here.tile.gpr[here.thread])


def _config(name: str, rest: list[str], here: Context) -> Place:
    fields = here.tile.config.for_thread(here.thread)
    (field,) = _choose(name, rest, {key: key for key in rest if key in fields}) if rest else _choose(name, rest, {})

    def put(_: Index, value: int) -> None:
        fields[field] = value

    return Place(WORD, (), lambda _: int(fields[field]), put)


_UNITS = {"unpacker0": counters.UNPACKER0, "unpacker1": counters.UNPACKER1, "packer": counters.PACKER}
_ADC = {
    f"ch{channel}_{dimension}{copy}": 4 * channel + place + (counters.CARRY if copy else 0)
    for channel in (0, 1)
    for place, dimension in enumerate("xyzw")
    for copy in ("", "_cr")
}
_RWC = {
    "srca": counters.RWC_A,
    "srca_cr": counters.RWC_A_CR,
    "srcb": counters.RWC_B,
    "srcb_cr": counters.RWC_B_CR,
    "dst": counters.RWC_DST,
    "dst_cr": counters.RWC_DST_CR,
    "fidelity": counters.RWC_FIDELITY,
}


def _one(array: Any, position: int) -> Place:
    return _array(WORD, array[position : position + 1].reshape(()))


def _adc(name: str, rest: list[str], here: Context) -> Place:
    unit, counter = _choose(name, rest, _UNITS, _ADC)
    return _one(here.tile.record["adc"][here.thread, unit], counter)


def _rwc(name: str, rest: list[str], here: Context) -> Place:
    (counter,) = _choose(name, rest, _RWC)
    return _one(here.tile.record["rwc"][here.thread], counter)


# Format, its code, and the bits in front of and behind the mantissa of a 19-bit cell (rules I.2).
_SRC = {"bf16": (BF16, 5), "tf32": (TF32, 4), "fp16": (FP16, 1), "int8": (INT8, 14), "owner": (WORD, -1)}


def _src(name: str, rest: list[str], here: Context) -> Place:
    format_, code = _choose(name, rest, _SRC)[0]
    file = int(name.startswith("srcb"))
    record = here.tile.record
    if code < 0:
        return _array(WORD, record["src_owner"][file])
    cells = record["srcb" if file else "srca"][0]

    def get(index: Index) -> int:
        return _from_src(int(cells[index]), code)

    def put(index: Index, bits: int) -> None:
        cells[index] = _to_src(bits, code)
        record["src_owner"][file, 0] = 1
        record["src_format"][file, 0] = code

    return Place(format_, (64, 16), get, put)


def _to_src(bits: int, code: int) -> int:
    """A 19-bit cell {sign 18, mantissa 17:8, exponent 7:0} from bits in the format's own order."""
    if code == 14:
        return (bits >> 7) << 18 | (bits & 127) << 8 | (16 if bits & 127 else 0)
    exponent_bits, mantissa_bits = {5: (8, 7), 4: (8, 10), 1: (5, 10)}[code]
    sign, exponent = bits >> exponent_bits + mantissa_bits, bits >> mantissa_bits & (1 << exponent_bits) - 1
    return sign << 18 | (bits & (1 << mantissa_bits) - 1) << 18 - mantissa_bits | exponent


def _from_src(cell: int, code: int) -> int:
    sign, mantissa, exponent = cell >> 18, cell >> 8 & 0x3FF, cell & 0xFF
    if code == 14:
        return sign << 7 | mantissa & 127
    exponent_bits, mantissa_bits = {5: (8, 7), 4: (8, 10), 1: (5, 10)}[code]
    bits = sign << exponent_bits + mantissa_bits | exponent << mantissa_bits | mantissa >> 10 - mantissa_bits
    # A cell with bits that the format does not have is outside of its range, and so unlike every number of it.
    return bits if _to_src(bits, code) == cell else 1 << 19 | cell


def _bf16_cell(bits: int) -> int:
    """A Dst cell {sign, mantissa, exponent} from BF16 bits (rules I.2)."""
    return (bits & 0x8000) | (bits & 0x7F) << 8 | bits >> 7 & 0xFF


def _from_bf16_cell(cell: int) -> int:
    return (cell & 0x8000) | (cell & 0xFF) << 7 | cell >> 8 & 0x7F


_DST = {"bf16": BF16, "fp16": FP16, "fp32": FP32, "int32": SM32, "valid": WORD}


def _dst(name: str, rest: list[str], here: Context) -> Place:
    (format_,) = _choose(name, rest, _DST)
    cells, valid = here.tile.dst.cells, here.tile.dst.valid
    if format_ is WORD:
        return _array(WORD, valid)
    wide = format_.bits == 32

    def physical(row: int) -> int:
        return (row & 0x1F8) << 1 | row & 7 if wide else row

    def get(index: Index) -> int:
        row, column = physical(index[0]), index[1]
        if not valid[row]:
            return 0
        cell = int(cells[row, column])
        if format_ is FP16:
            return (cell & 0x8000) | (cell & 0x1F) << 10 | cell >> 5 & 0x3FF
        return _from_bf16_cell(cell) << 16 | int(cells[row + 8, column]) if wide else _from_bf16_cell(cell)

    def put(index: Index, bits: int) -> None:
        row, column = physical(index[0]), index[1]
        valid[row] = 1
        if format_ is FP16:
            cells[row, column] = (bits & 0x8000) | (bits & 0x3FF) << 5 | bits >> 10 & 0x1F
        elif wide:
            cells[row, column] = _bf16_cell(bits >> 16)
            cells[row + 8, column] = bits & 0xFFFF
        else:
            cells[row, column] = _bf16_cell(bits)

    return Place(format_, (512 if wide else 1024, 16), get, put)


def _lreg(name: str, rest: list[str], here: Context) -> Place:
    (format_,) = _choose(name, rest, {"fp32": FP32, "int": INT32})
    return _array(format_, here.tile.lregs)


def _lane(name: str, rest: list[str], here: Context) -> Place:
    _choose(name, rest, {"enabled": None})
    record = here.tile.record
    return Place(
        WORD, (32,), lambda index: (int(record.vector.lane_flags) | ~int(record.vector.use_flags)) >> index[0] & 1
    )


_L1 = {"u8": unsigned(8), "u16": unsigned(16), "u32": WORD, "bf16": BF16, "fp16": FP16, "fp32": FP32}


def _l1(name: str, rest: list[str], here: Context) -> Place:
    (format_,) = _choose(name, rest, _L1)
    width, l1 = format_.bits // 8, here.tile.l1

    def get(index: Index) -> int:
        return int.from_bytes(l1[index[0] : index[0] + width].tobytes(), "little")

    def put(index: Index, bits: int) -> None:
        l1[index[0] : index[0] + width] = list(bits.to_bytes(width, "little"))

    return Place(format_, (len(l1) - width + 1,), get, put, width)


def _semaphore(name: str, rest: list[str], here: Context) -> Place:
    (array,) = _choose(name, rest, {"value": "semaphore", "max": "semaphore_max"})
    return _array(WORD, here.tile.record.sync[array])


def _mutex(name: str, rest: list[str], here: Context) -> Place:
    _choose(name, rest, {"owner": None})
    return _array(WORD, here.tile.record["sync"]["mutex_owner"])


def _mop(name: str, rest: list[str], here: Context) -> Place:
    _choose(name, rest)
    return _array(WORD, here.tile.record["frontend"]["mop_config"][here.thread])


def _waits(name: str, rest: list[str], here: Context) -> Place:
    _choose(name, rest)
    return Place(WORD, (), lambda _: int(here.tile.record["frontend"]["gate_full"][here.thread]))


def _core(name: str, rest: list[str], here: Context) -> Place:
    if here.core is None:
        raise PlaceError(f"{name!r} is a register of a core; say which with .core")
    view = here.tile.cores[here.core]
    names = FLOAT_NAMES if name.startswith("f") else REGISTER_NAMES
    (number,) = _choose(name, rest, {register: i for i, register in enumerate(names)})
    registers = view.f if name.startswith("f") else view.x
    return Place(FP32 if name.startswith("f") else INT32, (), lambda _: int(registers[number]))


_MAKERS: dict[str, Callable[[str, list[str], Context], Place]] = {
    "gpr": _gpr,
    "config": _config,
    "adc": _adc,
    "rwc": _rwc,
    "srca": _src,
    "srcb": _src,
    "dst": _dst,
    "lreg": _lreg,
    "lane": _lane,
    "l1": _l1,
    "semaphore": _semaphore,
    "mutex": _mutex,
    "mop": _mop,
    "waits": _waits,
    "x": _core,
    "f": _core,
}
