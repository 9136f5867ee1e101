"""Words of vector instructions, and random programs of them for core T2 with what they should compute (tile T7)."""

from __future__ import annotations

import random

import numpy as np

from bhemu.isa.riscv_vector import VECTOR_BY_NAME, VECTOR_INSTRUCTIONS, VectorInstruction
from tests.riscv.vector_model import Model, Vector

MULTIPLIER_CODES = {1.0: 0, 2.0: 1, 4.0: 2, 8.0: 3, 0.25: 6, 0.5: 7}
SIZE_CODES = {1: 0, 2: 1, 4: 2}


def vector(name: str, vd: int = 0, vs2: int = 0, number: int = 0, *, masked: bool = False) -> int:
    """Word of an instruction by its name; `number` is vs1, a scalar register or an immediate."""
    row = VECTOR_BY_NAME[name]
    word = row.match | vd << 7 | (vs2 << 20 & ~row.mask) | ((number & 31) << 15 & ~row.mask)
    return word | (0 if masked else 1 << 25 & ~row.mask)


def vtype(size: int, multiplier: float) -> int:
    """SEW in bytes and LMUL as vtype has them."""
    return SIZE_CODES[size] << 3 | MULTIPLIER_CODES[multiplier]


def vsetvli(rd: int, rs1: int, kind: int) -> int:
    """Word of vsetvli."""
    return 0x7057 | rd << 7 | rs1 << 15 | kind << 20


def vsetivli(rd: int, available: int, kind: int) -> int:
    """Word of vsetivli."""
    return 0xC0007057 | rd << 7 | available << 15 | kind << 20


def access(
    store: bool,
    width: int,
    register: int,
    base: int,
    *,
    mode: int = 0,
    number: int = 0,
    fields: int = 1,
    masked: bool = False,
) -> int:
    """Word of a load or store: width in bytes; mode 0 unit, 1 and 3 indexed, 2 strided; number: lumop, vs2 or rs2."""
    code = {1: 0, 2: 5, 4: 6}[width]
    unmasked = 0 if masked else 1 << 25
    opcode = 0x27 if store else 0x07
    return (fields - 1) << 29 | mode << 26 | unmasked | number << 20 | base << 15 | code << 12 | register << 7 | opcode


INTEGER = [row for row in VECTOR_INSTRUCTIONS if row.match >> 12 & 7 not in (1, 5)]
"""Forms without floating-point operands."""


class Generator:
    """Random sound instructions of integer vectors, each with what it does to a model.

    Args:
        seed: of all choices.
        v, x: state at the beginning.
        vxrm: rounding mode of fixed-point instructions.
    """

    def __init__(self, seed: int, v: np.ndarray[tuple[int], np.dtype[np.uint8]], x: list[int], vxrm: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(v, x, vxrm)
        self.words: list[int] = []

    def configure(self) -> None:
        """A vset with a random SEW, LMUL and AVL."""
        size = self.random.choice((1, 2, 4))
        multiplier = self.random.choice([m for m in MULTIPLIER_CODES if m >= size / 4])
        available = self.random.choice((0, 1, 3, 8, 13, 17, 31))
        self.words.append(vsetivli(0, available, vtype(size, multiplier)))
        if self.random.random() < 0.4:  # x9 holds more than the longest vector
            available = 1000
            self.words.append(vsetvli(0, 9, vtype(size, multiplier)))
        self.model.configure(size, multiplier, available)

    def group(self, multiplier: float, *others: tuple[int, float]) -> int | None:
        """The first register of a group that touches none of the others."""
        length = max(int(multiplier), 1)
        free = [
            first
            for first in range(0, 32, length)
            if all(first + length <= o or o + max(int(m), 1) <= first for o, m in others)
        ]
        return self.random.choice(free) if free and multiplier <= 8 else None

    def _second(self, form: str, size: int, number: int) -> tuple[Vector, Vector]:
        """The second operand, unsigned and signed."""
        model = self.model
        if form in ("vv", "wv", "vvm", "v.v"):
            return model.get(number, size), model.get(number, size, signed=True)
        value = model.x[number] if form in ("vx", "wx", "vxm", "v.x") else (number ^ 16) - 16
        low = value & ((1 << 8 * size) - 1)
        signed = low - (1 << 8 * size) if low >> (8 * size - 1) else low
        return np.full(model.vl, low, np.int64), np.full(model.vl, signed, np.int64)

    def step(self) -> str | None:
        """Append one instruction; returns its name, or None when the choice was none that is sound."""
        model, row = self.model, self.random.choice(INTEGER)
        masked = self.random.random() < 0.4
        return self._execute(row, masked) if model.vl or self.random.random() < 0.2 else None

    def _execute(self, row: VectorInstruction, masked: bool) -> str | None:
        model, form, name = self.model, row.form, row.name
        base = name.rsplit(".", 1)[0] if form not in ("v", "none", "r", "x.s", "x.m", "s.x") else name
        size, multiplier = model.size, model.multiplier
        wide = base.startswith("vw") or form[0] == "w"
        if wide and (size == 4 or multiplier > 4):
            return None
        masked = masked and row.mask >> 25 & 1 == 0
        # The destination shares registers with no source: what may overlap is tested by name elsewhere.
        spared: list[tuple[int, float]] = [(0, 1.0)] if masked or form.endswith("m") else []
        first_multiplier = 2 * multiplier if form[0] == "w" else multiplier
        if form == "mm" or base in ("vmsbf.m", "vmsof.m", "vmsif.m", "viota.m") or form in ("x.s", "x.m"):
            first_multiplier = 1.0
        if base.startswith(("vzext", "vsext")):
            factor = int(base[-1])
            if size < factor or multiplier / factor < 0.125:
                return None
            first_multiplier = multiplier / factor
        if form == "r":
            first_multiplier = float(base[3])
        vs2 = self.group(first_multiplier)
        number = self.random.randrange(32)
        index_multiplier = multiplier
        if form in ("vv", "wv", "vvm", "v.v"):
            index_multiplier = 2 * multiplier / size if base == "vrgatherei16" else multiplier
            if index_multiplier < 0.125:
                return None
            chosen = self.group(index_multiplier)
            if chosen is None:
                return None
            number = chosen
        if vs2 is None:
            return None
        spared.append((vs2, first_multiplier))
        if form in ("vv", "wv", "vvm", "v.v"):
            spared.append((number, index_multiplier))
        elif form in ("vs", "mm", "vm"):
            spared.append((number, 1.0))
        to_multiplier = 2 * multiplier if base.startswith("vw") and form not in ("vs",) else multiplier
        if base.startswith("vm") and base not in (
            "vmul",
            "vmulh",
            "vmulhu",
            "vmulhsu",
            "vmin",
            "vminu",
            "vmax",
            "vmaxu",
        ):
            to_multiplier = multiplier if base in ("vmerge", "vmadd", "vmacc", "vmv.s.x", "vmv.v") else 1.0
        if form == "r":
            to_multiplier = float(base[3])
        if form == "vs":
            to_multiplier = 1.0
        vd = self.group(to_multiplier, *spared)
        if form in ("x.s", "x.m"):
            vd = self.random.randrange(10, 32)
        if vd is None:
            return None
        active = model.mask() if masked else np.ones(model.vl, bool)
        model.masked = masked
        self.words.append(vector(name, vd, vs2, number, masked=masked))
        self._apply(row, base, vd, vs2, number, active)
        return name

    def _apply(self, row: VectorInstruction, base: str, vd: int, vs2: int, number: int, active: np.ndarray) -> None:
        model, form, size = self.model, row.form, self.model.size
        unsigned_immediate = np.full(model.vl, number, np.int64)
        two = self._second(form, size, number)
        if base.startswith(("vsll", "vsrl", "vsra", "vssrl", "vssra", "vnsrl", "vnsra", "vnclip")) and form[-1] == "i":
            two = (unsigned_immediate, unsigned_immediate)

        def second(signed: bool) -> Vector:
            return two[1 if signed else 0]

        if form == "vs":
            model.reduction(base, vd, vs2, number, active)
        elif form == "mm":
            model.logic(base, vd, vs2, number)
        elif form == "r":
            count = 16 * int(base[3])
            model.v[vd * 16 : vd * 16 + count] = model.v[vs2 * 16 : vs2 * 16 + count]
        elif base == "vcompress":
            model.compress(vd, vs2, number)
        elif base.startswith("vslide"):
            amount = number if form == "vi" else model.x[number]
            model.slide(base, vd, vs2, amount, active)
        elif base.startswith("vrgather"):
            width = 2 if base == "vrgatherei16" else size
            scalar = number if form == "vi" else model.x[number]
            indices = model.get(number, width) if form == "vv" else np.full(model.vl, scalar, np.int64)
            model.gather(vd, vs2, indices, active)
        elif base.startswith(("vzext", "vsext")):
            model.extend(vd, vs2, int(base[-1]), base.startswith("vs"), active)
        elif base in ("vmsbf.m", "vmsif.m", "vmsof.m"):
            model.mask_to_mask(base, vd, vs2, active)
        elif base == "viota.m":
            model.iota(vd, vs2, active)
        elif base == "vid.v":
            model.put(vd, size, np.arange(model.vl), active)
        elif form in ("x.s", "x.m", "s.x"):
            self._scalar(base, vd, vs2, number, active)
        elif base == "vmv.v":
            model.put(vd, size, second(False), np.ones(model.vl, bool))
        elif base.startswith("vw"):
            model.widening(base + (".w" if form[0] == "w" else ""), vd, vs2, second, active)
        elif base.startswith("vn") and form[0] == "w":
            model.narrowing(base, vd, vs2, second, active)
        else:
            model.each(base, vd, vs2, second, active)

    def _scalar(self, base: str, vd: int, vs2: int, number: int, active: np.ndarray) -> None:
        model = self.model
        if base == "vmv.s.x":
            if model.vl:
                first = np.arange(model.vl) == 0
                model.put(vd, model.size, np.full(model.vl, model.x[number]), first)
            return
        if base == "vmv.x.s":
            result = int(model.get(vs2, model.size, signed=True, count=1)[0])
        else:
            found = model.mask(vs2) & active
            result = int(found.sum()) if base == "vcpop.m" else int(np.argmax(found)) if found.any() else -1
        model.x[vd] = result & 0xFFFFFFFF
