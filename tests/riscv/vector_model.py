"""A plain NumPy model of the integer vector instructions of core T2 (tile T7), from the V extension's own formulas.

It works on whole vectors, where bhemu works on one element at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Vector = np.ndarray[tuple[int], np.dtype[np.int64]]
VLENB = 16

UNSIGNED = {1: "<u1", 2: "<u2", 4: "<u4"}
SIGNED = {1: "<i1", 2: "<i2", 4: "<i4"}


def _round(value: Vector, shift: Vector, mode: int) -> Vector:
    """The V extension's roundoff: increments by mode 0 rnu, 1 rne, 2 rdn, 3 rod."""
    below = np.where(shift > 0, value >> np.maximum(shift - 1, 0) & 1, 0)
    further = np.where(shift > 1, (value & ((1 << np.maximum(shift - 1, 0)) - 1)) != 0, False)
    last = value >> shift & 1
    r = [below, below & (further | last), 0 * below, (1 - last) & (below | further)][mode]
    return (value >> shift) + np.where(shift > 0, r, 0)


class Model:
    """Vector registers, scalar registers, vl, SEW, LMUL, vxrm and vxsat.

    Attributes:
        v: bytes of the 32 registers.
        x: scalar registers.
    """

    def __init__(self, v: np.ndarray[tuple[int], np.dtype[np.uint8]], x: list[int], vxrm: int) -> None:
        self.v, self.x, self.vxrm, self.vxsat = v.copy(), list(x), vxrm, 0
        self.size, self.vl, self.multiplier = 1, 0, 1.0

    def configure(self, size: int, multiplier: float, available: int) -> None:
        """vset: SEW in bytes, LMUL, AVL."""
        self.size, self.multiplier = size, multiplier
        self.vl = min(available, int(VLENB * multiplier) // size)

    def get(self, register: int, size: int, *, signed: bool = False, count: int | None = None) -> Vector:
        """The first elements of a group."""
        kinds = SIGNED if signed else UNSIGNED
        values = self.v[register * VLENB :].view(kinds[size])[: self.vl if count is None else count]
        return values.astype(np.int64)

    def put(self, register: int, size: int, values: Vector, active: np.ndarray) -> None:
        """Write the active elements."""
        target = self.v[register * VLENB :].view(UNSIGNED[size])[: self.vl]
        target[active] = (values & ((1 << 8 * size) - 1)).astype(UNSIGNED[size])[active]

    def mask(self, register: int = 0) -> np.ndarray:
        """Mask bits of a register, up to vl."""
        bits = np.unpackbits(self.v[register * VLENB : (register + 1) * VLENB], bitorder="little")
        return bits[: self.vl].astype(bool)

    def put_mask(self, register: int, bits: np.ndarray, active: np.ndarray) -> None:
        """Write the active bits of a mask."""
        place = self.v[register * VLENB : (register + 1) * VLENB]
        all_bits = np.unpackbits(place, bitorder="little")
        all_bits[: self.vl][active] = bits[active]
        place[:] = np.packbits(all_bits, bitorder="little")

    def saturate(self, values: Vector, low: int, high: int, active: np.ndarray) -> Vector:
        """Clip, and remember in vxsat that an active element was clipped."""
        clipped = np.clip(values, low, high)
        self.vxsat |= int((clipped != values)[active].any())
        return clipped

    def each(self, name: str, vd: int, vs2: int, second: Callable[[bool], Vector], active: np.ndarray) -> None:
        """An instruction that works on each element; `second` gives vs1 or the scalar, signed or not."""
        bits, size = 8 * self.size, self.size
        a, b, carry = self.get(vs2, size), second(False), self.mask().astype(np.int64)
        sa, sb = self.get(vs2, size, signed=True), second(True)
        old, shift = self.get(vd, size, signed=True), b & (bits - 1)
        everything = (1 << bits) - 1
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        one = np.ones_like(shift)
        whole = np.ones(self.vl, bool)
        plain: dict[str, Callable[[], Vector]] = {
            "vadd": lambda: a + b,
            "vsub": lambda: a - b,
            "vrsub": lambda: b - a,
            "vminu": lambda: np.minimum(a, b),
            "vmin": lambda: np.minimum(sa, sb),
            "vmaxu": lambda: np.maximum(a, b),
            "vmax": lambda: np.maximum(sa, sb),
            "vand": lambda: a & b,
            "vor": lambda: a | b,
            "vxor": lambda: a ^ b,
            "vsll": lambda: a << shift,
            "vsrl": lambda: a >> shift,
            "vsra": lambda: sa >> shift,
            "vmul": lambda: sa * sb,
            "vmulh": lambda: sa * sb >> bits,
            "vmulhsu": lambda: sa * b >> bits,
            "vmulhu": lambda: np.array([int(x) * int(y) >> bits for x, y in zip(a, b, strict=True)], np.int64),
            "vmacc": lambda: old + sa * sb,
            "vnmsac": lambda: old - sa * sb,
            "vmadd": lambda: old * sb + sa,
            "vnmsub": lambda: sa - old * sb,
            "vaaddu": lambda: _round(a + b, one, self.vxrm),
            "vaadd": lambda: _round(sa + sb, one, self.vxrm),
            "vasubu": lambda: _round(a - b, one, self.vxrm),
            "vasub": lambda: _round(sa - sb, one, self.vxrm),
            "vssrl": lambda: _round(a, shift, self.vxrm),
            "vssra": lambda: _round(sa, shift, self.vxrm),
            "vsaddu": lambda: self.saturate(a + b, 0, everything, active),
            "vsadd": lambda: self.saturate(sa + sb, low, high, active),
            "vssubu": lambda: self.saturate(a - b, 0, everything, active),
            "vssub": lambda: self.saturate(sa - sb, low, high, active),
            "vsmul": lambda: self.saturate(_round(sa * sb, one * (bits - 1), self.vxrm), low, high, active),
        }
        compares: dict[str, Callable[[], np.ndarray]] = {
            "vmseq": lambda: a == b,
            "vmsne": lambda: a != b,
            "vmsltu": lambda: a < b,
            "vmslt": lambda: sa < sb,
            "vmsleu": lambda: a <= b,
            "vmsle": lambda: sa <= sb,
            "vmsgtu": lambda: a > b,
            "vmsgt": lambda: sa > sb,
        }
        with np.errstate(over="ignore"):
            if name in plain:
                self.put(vd, size, plain[name](), active)
            elif name in compares:
                self.put_mask(vd, compares[name](), active)
            elif name == "vmerge":
                self.put(vd, size, np.where(self.mask(), b, a), whole)
            elif name == "vadc":
                self.put(vd, size, a + b + carry, whole)
            elif name == "vsbc":
                self.put(vd, size, a - b - carry, whole)
            elif name in ("vmadc", "vmsbc"):
                carry = carry if not active.all() or self.masked else 0 * carry
                result = a + b + carry > everything if name == "vmadc" else a - b - carry < 0
                self.put_mask(vd, result, whole)
            else:
                raise KeyError(name)

    masked = False
    """The instruction in progress has vm = 0."""

    def widening(self, name: str, vd: int, vs2: int, second: Callable[[bool], Vector], active: np.ndarray) -> None:
        """vw*: results of twice the size; a name in .w has a first operand of that size."""
        size = self.size
        wide = name.endswith(".w")
        a = self.get(vs2, 2 * size if wide else size)
        sa = self.get(vs2, 2 * size if wide else size, signed=True)
        b, sb, old = second(False), second(True), self.get(vd, 2 * size, signed=True)
        result = {
            "vwaddu": a + b,
            "vwadd": sa + sb,
            "vwsubu": a - b,
            "vwsub": sa - sb,
            "vwmulu": a * b,
            "vwmul": sa * sb,
            "vwmulsu": sa * b,
            "vwmaccu": old + a * b,
            "vwmacc": old + sa * sb,
            "vwmaccsu": old + a * sb,
            "vwmaccus": old + sa * b,
        }[name.removesuffix(".w")]
        self.put(vd, 2 * size, result, active)

    def narrowing(self, name: str, vd: int, vs2: int, second: Callable[[bool], Vector], active: np.ndarray) -> None:
        """vnsrl, vnsra, vnclipu, vnclip."""
        size, bits = self.size, 8 * self.size
        a, sa = self.get(vs2, 2 * size), self.get(vs2, 2 * size, signed=True)
        shift = second(False) & (2 * bits - 1)
        if name == "vnsrl":
            result = a >> shift
        elif name == "vnsra":
            result = sa >> shift
        elif name == "vnclipu":
            result = self.saturate(_round(a, shift, self.vxrm), 0, (1 << bits) - 1, active)
        else:
            result = self.saturate(_round(sa, shift, self.vxrm), -(1 << bits - 1), (1 << bits - 1) - 1, active)
        self.put(vd, size, result, active)

    def reduction(self, name: str, vd: int, vs2: int, vs1: int, active: np.ndarray) -> None:
        """vred* and vwredsum*."""
        signed = name in ("vredmin", "vredmax", "vwredsum")
        size = 2 * self.size if name.startswith("vw") else self.size
        values = self.get(vs2, self.size, signed=signed)[active]
        start = self.get(vs1, size, signed=signed, count=1)
        together = np.concatenate([start, values])
        function = {
            "sum": np.add,
            "and": np.bitwise_and,
            "or": np.bitwise_or,
            "xor": np.bitwise_xor,
            "min": np.minimum,
            "max": np.maximum,
        }[name.removeprefix("vw").removeprefix("v").removeprefix("red").removesuffix("u")]
        if self.vl:
            result = int(function.reduce(together)) & ((1 << 8 * size) - 1)
            self.v[vd * VLENB :].view(UNSIGNED[size])[0] = result

    def slide(self, name: str, vd: int, vs2: int, amount: int, active: np.ndarray) -> None:
        """vslideup, vslidedown by an amount; vslide1up, vslide1down with a scalar."""
        most = int(VLENB * self.multiplier) // self.size
        source = self.get(vs2, self.size, count=most)
        places = np.arange(self.vl)
        if name == "vslideup":
            reached = places >= amount
            self.put(vd, self.size, source[np.where(reached, places - amount, 0)], active & reached)
        elif name == "vslidedown":
            inside = places + amount < most
            self.put(vd, self.size, np.where(inside, source[np.where(inside, places + amount, 0)], 0), active)
        elif name == "vslide1up":
            self.put(vd, self.size, np.concatenate([[amount], source[: self.vl]])[: self.vl], active)
        else:
            self.put(vd, self.size, np.concatenate([source[1 : self.vl], [amount]])[: self.vl], active)

    def gather(self, vd: int, vs2: int, indices: Vector, active: np.ndarray) -> None:
        """vrgather and vrgatherei16."""
        most = int(VLENB * self.multiplier) // self.size
        source = self.get(vs2, self.size, count=most)
        inside = indices < most
        self.put(vd, self.size, np.where(inside, source[np.where(inside, indices, 0)], 0), active)

    def logic(self, name: str, vd: int, vs2: int, vs1: int) -> None:
        """vmand and the others."""
        a, b = self.mask(vs2), self.mask(vs1)
        result = {
            "vmand": a & b,
            "vmnand": ~(a & b),
            "vmandn": a & ~b,
            "vmxor": a ^ b,
            "vmor": a | b,
            "vmnor": ~(a | b),
            "vmorn": a | ~b,
            "vmxnor": ~(a ^ b),
        }[name]
        self.put_mask(vd, result, np.ones(self.vl, bool))

    def mask_to_mask(self, name: str, vd: int, vs2: int, active: np.ndarray) -> None:
        """vmsbf, vmsif, vmsof."""
        here = self.mask(vs2) & active
        at = int(np.argmax(here)) if here.any() else self.vl
        places = np.arange(self.vl)
        result = {"vmsbf.m": places < at, "vmsif.m": places <= at, "vmsof.m": places == at}[name]
        self.put_mask(vd, result, active)

    def iota(self, vd: int, vs2: int, active: np.ndarray) -> None:
        """viota.m."""
        set_bits = (self.mask(vs2) & active).astype(np.int64)
        self.put(vd, self.size, np.cumsum(set_bits) - set_bits, active)

    def compress(self, vd: int, vs2: int, vs1: int) -> None:
        """vcompress.vm."""
        kept = self.get(vs2, self.size)[self.mask(vs1)]
        values = np.concatenate([kept, np.zeros(self.vl - len(kept), np.int64)])
        self.put(vd, self.size, values, np.arange(self.vl) < len(kept))

    def extend(self, vd: int, vs2: int, factor: int, signed: bool, active: np.ndarray) -> None:
        """vzext and vsext."""
        self.put(vd, self.size, self.get(vs2, self.size // factor, signed=signed), active)
