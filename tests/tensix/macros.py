"""A vector unit with short ways to program macros, for the tests of SFPLOADMACRO."""

from __future__ import annotations

from typing import Final

from tests.tensix.sfpu import Sfpu, word

SIMPLE: Final = 0
INT32: Final = 4
WAIT_A_CYCLE: Final = "NOP"


def byte(what: int, delay: int = 0, *, to16: bool = False, b: bool = False) -> int:
    """A sequence byte: 0 nothing, 2 SFPNOP, 3 SFPSTORE, 4..7 templates."""
    return what | delay << 3 | to16 << 6 | b << 7


class Macros(Sfpu):
    """The vector unit with column pairs 0..3 of Dst holding 32-bit values, and short ways to program macros."""

    def template(self, index: int, mnemonic: str, **operands: int) -> None:
        self.t["macro"]["template"][index] = word(mnemonic, **operands)

    def sequence(self, index: int, **units: int) -> None:
        names = ("simple", "mad", "round", "store")
        self.t["macro"]["sequence"][index] = sum(units.get(name, 0) << 8 * n for n, name in enumerate(names))

    def put(self, address: int, *values: int) -> None:
        """Write a Dst datum per lane with a plain store."""
        old = self.t["lregs"][7].copy()
        self.set(7, *values)
        self.do("SFPSTORE", lreg_ind=7, instr_mod0=INT32, dest_reg_addr=address)
        self.t["lregs"][7] = old

    def at(self, address: int) -> list[int]:
        old = self.t["lregs"][7].copy()
        self.do("SFPLOAD", lreg_ind=7, instr_mod0=INT32, dest_reg_addr=address)
        values = self.get(7)
        self.t["lregs"][7] = old
        return values

    def macro(self, index: int, register: int = 0, *, address: int = 0, mode: int = INT32, modifier: int = 0) -> None:
        self.do(
            "SFPLOADMACRO",
            lreg_ind=index << 2 | register & 3,
            instr_mod0=mode,
            sfpu_addr_mode=modifier,
            dest_reg_addr=address | register >> 2,
        )

    def wait(self, cycles: int = 1) -> None:
        for _ in range(cycles):
            self.do(WAIT_A_CYCLE)

    def settle(self) -> None:
        self.coprocessor.settle()
