"""Code of a T core that feeds a thread of the coprocessor, made of a few RISC-V instructions (tile T10, K5 to K20)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from bhemu.isa.assembler import to_ttinsn
from bhemu.isa.instructions import decode
from bhemu.isa.memory_map import region
from bhemu.isa.riscv_words import PARKED, riscv_word, set_register, upper
from bhemu.isa.tile_registers import address_of

MOP_CONFIG: Final = region("mop_config").base
IDLE: Final = address_of("sync", "COPROCESSOR_DONE")
MOP_IDLE: Final = address_of("sync", "MOP_DONE")
SEMAPHORES: Final = address_of("sync", "SEMAPHORE")
CONFIG: Final = address_of("config", "BANK_0")
BANK: Final = address_of("config", "BANK_1") - CONFIG
_CONFIG_OPERANDS: Final = ("CfgReg", "CfgRegAddr")
"""Operands that name a word of configuration."""
_BANK_REGISTER: Final = 0
"""The word of ThreadConfig that chooses the bank (K9)."""
_T0, _T1, _T2 = 5, 6, 7


@dataclass(frozen=True)
class _Merge:
    """A change of fields: the RMWCIB word, and the word of configuration that it changes."""

    instruction: int
    config_word: int
    mask: int
    data: int


def words_of_one_thread(stubs: list[Stub]) -> set[int]:
    """Words of configuration that one thread alone changes, and by fields alone; they are 0 after reset."""
    if any(stub.is_opaque for stub in stubs):
        return set()
    touched = set().union(*(stub.touched for stub in stubs))
    writers = Counter(word for stub in stubs for word in stub.merged)
    return {word for word, count in writers.items() if count == 1} - touched


class Stub:
    """Code under construction.

    Attributes:
        merged: words of configuration that the thread changes by fields.
        touched: words of configuration that it changes in other ways.
        is_opaque: it chooses the bank of configuration itself, or changes words that its instructions do not name.
    """

    def __init__(self) -> None:
        self._words: list[int | _Merge] = []
        self.merged: set[int] = set()
        self.touched: set[int] = set()
        self.is_opaque = False

    def code(self, whole: set[int]) -> bytes:
        """What was added; then wait until the thread is idle, and stop.

        Args:
            whole: words of configuration that are stored as a whole instead of being changed by RMWCIB.
        """
        end, values = Stub(), dict.fromkeys(whole, 0)
        for item in self._words:
            if not isinstance(item, _Merge):
                end._words.append(item)
            elif item.config_word not in values:
                end._words.append(to_ttinsn(item.instruction))
            else:
                values[item.config_word] = values[item.config_word] & ~item.mask | item.data
                end.wait_idle()
                end.config(0, item.config_word, values[item.config_word])
        end.wait_idle()
        end._words.append(PARKED)
        return b"".join(word.to_bytes(4, "little") for word in end._words if isinstance(word, int))

    def instruction(self, word: int, *, merges: bool = False) -> None:
        """An instruction word for the coprocessor.

        Args:
            merges: it is RMWCIB, which the host issues to change fields.
        """
        decoded = decode(word)
        name, operands = decoded.mnemonic, decoded.operands
        if merges and name.startswith("RMWCIB"):
            shift = 8 * int(name[-1])
            mask = operands["Mask"] << shift
            self._words.append(_Merge(word, operands["CfgRegAddr"], mask, operands["Data"] << shift & mask))
            self.merged.add(operands["CfgRegAddr"])
            return
        self._words.append(to_ttinsn(word))
        self.is_opaque |= name == "REG2FLOP" or (name == "SETC16" and operands["setc16_reg"] == _BANK_REGISTER)
        register = next((operands[key] for key in _CONFIG_OPERANDS if key in operands), None)
        if register is not None:
            self.touched |= set(range(register & ~3, (register & ~3) + 4))

    def mop(self, words: list[int]) -> None:
        """Program the MOP expander once it is idle."""
        self._load(_T1, MOP_IDLE)
        for number, word in enumerate(words):
            self._store(MOP_CONFIG + 4 * number, word)

    def config(self, bank: int, word: int, value: int) -> None:
        """Store a word of configuration."""
        self.touched.add(word)
        self._store(CONFIG + BANK * bank + 4 * word, value)

    def wait_idle(self) -> None:
        """Wait until all words are executed."""
        self._load(_T1, IDLE)

    def semaphore(self, index: int, *, get: bool) -> None:
        """Post or get a semaphore (K20)."""
        self._store(SEMAPHORES + 4 * index, int(get))

    def wait_semaphore(self, index: int, values: set[int]) -> None:
        """Wait until a semaphore has one of these values."""
        self._words += set_register(_T2, sum(1 << value for value in values))
        address = SEMAPHORES + 4 * index
        self._load(_T1, address)
        self._words.append(riscv_word("srl", _T1, _T2, _T1))
        self._words.append(riscv_word("andi", _T1, _T1, imm=1))
        self._words.append(riscv_word("beq", rs1=_T1, imm=-12))

    def _load(self, register: int, address: int) -> None:
        """Leaves the upper part of the address in t0."""
        self._words.append(riscv_word("lui", _T0, imm=upper(address)))
        self._words.append(riscv_word("lw", register, _T0, imm=address))

    def _store(self, address: int, value: int) -> None:
        self._words += set_register(_T1, value)
        self._words.append(riscv_word("lui", _T0, imm=upper(address)))
        self._words.append(riscv_word("sw", rs1=_T0, rs2=_T1, imm=address))
