"""Programs for the fuzzer: seeds from the conformance vectors, random and mutated words, and what shows their effect.

The conformance vectors are where programs begin: their configurations work, so words behind them reach the units. A
program is made by executing it: a word that bhemu refuses, or that would wait forever, is left out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np

from bhemu.conformance.run import VECTORS
from bhemu.conformance.vector_file import State, VectorFile
from bhemu.fuzz import words
from bhemu.fuzz.machine import Array, FuzzTile, Program
from bhemu.isa.instruction_table import BY_OPCODE
from bhemu.isa.instructions import encode
from bhemu.isa.registers import CONFIG_WORDS, THREAD_WORDS, config
from bhemu.machine.state import THREADS

DATA: Final = 0x40000
"""Where the vectors have the tiles that they unpack, and pack to."""
DATA_BYTES: Final = 0x8000
DUMP: Final = 0x70000
"""Where the last words of a program pack all of Dst."""
LREGS: Final = 8
PAGES: Final = 64
ATTEMPTS: Final = 24
PACK_THREAD: Final = 2
_STAGES: Final = (("unpack",), ("fpu", "sfpu"), ("pack",))
_OTHERS: Final = ("adc_rwc", "scalar", "frontend", "programs")


@cache
def _vectors(family: str) -> VectorFile:
    return VectorFile(VECTORS / f"{family}.npz")


@cache
def _pages() -> list[bytes]:
    """Pages of random bits, BF16 numbers near one, FP32 numbers, and special values."""
    chance = np.random.default_rng(0)
    special = np.array([0, 1, 0x8000, 0x7F80, 0xFF80, 0x7FFF, 0x3F80, 0xFFFF], np.uint16)
    pages = []
    for _ in range(PAGES // 4):
        pages.append(chance.integers(0, 1 << 16, 2048, np.uint16))
        pages.append((chance.standard_normal(2048).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16))
        pages.append(chance.standard_normal(1024).astype(np.float32).view(np.uint16))
        pages.append(chance.choice(special, 2048))
    return [page.tobytes() for page in pages]


def data(seed: int) -> tuple[tuple[int, bytes], ...]:
    """Tiles in L1, of pages that the seed chooses, each rotated by a number of bytes."""
    chance = random.Random(seed)
    content = []
    for _ in range(DATA_BYTES // 4096):
        page, turn = chance.choice(_pages()), 2 * chance.randrange(2048)
        content.append(page[turn:] + page[:turn])
    return ((DATA, b"".join(content)),)


# --- seeds ------------------------------------------------------------------------------------------------------------


def _setup(state: State, threads: set[int], held: dict[int, int]) -> list[tuple[int, int]]:
    """Words that bring a machine after reset to the registers of a vector's initial state."""
    first = min(threads)
    found: list[int] = []
    for index in np.nonzero(state["cfg"][:CONFIG_WORDS])[0]:
        held[int(index)] = int(state["cfg"][index])
        found += words.config_words(int(index), int(state["cfg"][index]))
    setup = [(first, word) for word in found]
    entries = state["tcfg"].reshape(THREADS, THREAD_WORDS)
    counters = state["adc"].reshape(THREADS, THREADS, 2, 2, 4)  # unit, carry copy, channel, dimension
    for thread in range(THREADS):
        for index in np.nonzero(entries[thread])[0]:
            setup.append((thread, encode("SETC16", setc16_reg=int(index), setc16_value=int(entries[thread, index]))))
        for unit, channel, dimension in np.argwhere(counters[thread, :, 0]):
            number = int(counters[thread, unit, 0, channel, dimension])
            operands = {"ChannelIndex": int(channel), "DimensionIndex": int(dimension), "Value": number & 0xFFFF}
            setup.append((thread, encode("SETADC", CntSetMask=1 << int(unit), **operands)))
        counts = state["rwc"].reshape(THREADS, 8)[thread]
        if counts.any():
            names = {"rwc_a": int(counts[0]) & 15, "rwc_b": int(counts[2]) & 15, "rwc_d": int(counts[4]) & 15}
            setup.append((thread, encode("SETRWC", BitMask=7, **names)))
    return setup


def _numbers(chance: random.Random, thread: int) -> list[tuple[int, int]]:
    """Words that put numbers into the LRegs, and from there into some rows of Dst."""
    found = []
    for lreg in range(LREGS):
        bits = chance.choice([0x3F80, 0xC000, 0x0080, 0x7F80, chance.randrange(1 << 16), chance.randrange(1 << 16)])
        found.append(encode("SFPLOADI", lreg_ind=lreg, instr_mod0=10, imm16=chance.randrange(1 << 16)))
        found.append(encode("SFPLOADI", lreg_ind=lreg, instr_mod0=8, imm16=bits))
        found.append(encode("SFPSTORE", lreg_ind=lreg, instr_mod0=4, dest_reg_addr=2 * chance.randrange(256)))
    return [(thread, word) for word in found]


def seed(chance: random.Random) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Words of one or more vectors, each after the set-up that it needs, and the words of Config that they use."""
    families = [chance.choice(stage) for stage in _STAGES] if chance.randrange(4) else [chance.choice(_OTHERS)]
    found = _numbers(chance, chance.randrange(THREADS))
    held: dict[int, int] = {}
    for family in families:
        file = _vectors(family)
        case = file.case(chance.randrange(len(file)))
        state = file.initial(case.index)
        found += _setup(state, {thread for thread, _ in case.program} or {0}, held)
        found += case.program
    return found, held


@cache
def epilogue() -> Array:
    """Words of the pack thread that store the LRegs to Dst, and pack all of Dst to `DUMP`, as 32-bit integers."""
    settings = {
        "ALU_FORMAT_SPEC_REG2_Dstacc": 8,
        "PCK0_ADDR_CTRL_XY_REG_0_Ystride": 256,
        "PCK_DEST_RD_CTRL_Read_32b_data": 1,
        "PCK_EDGE_OFFSET_SEC0_mask": 0xFFFF,
        "PACK_COUNTERS_SEC0_pack_reads_per_xy_plane": 16,
        "THCON_SEC0_REG1_L1_Dest_addr": DUMP // 16 - 1,
        "THCON_SEC0_REG1_Disable_zero_compress": 1,
        "THCON_SEC0_REG1_Out_data_format": 8,
        "THCON_SEC0_REG1_In_data_format": 8,
    }
    registers: dict[int, int] = dict.fromkeys((2, 12, 13, 18, 24, 28, 69, 70, 180), 0)
    for name, number in settings.items():
        place = config(name)
        registers[place[0]] = registers.get(place[0], 0) | number << place[1]
    found = [encode("SETC16", setc16_reg=index, setc16_value=0) for index in (0, 1, 37, 47)]
    for index, bits in registers.items():
        found += words.config_words(index, bits)
    found += [encode("SFPENCC", imm12_math=3, instr_mod1=10), encode("SETRWC", BitMask=15)]
    found += [
        encode("SFPSTORE", lreg_ind=lreg, instr_mod0=4, sfpu_addr_mode=0, dest_reg_addr=4 * lreg)
        for lreg in range(LREGS)
    ]
    found += [encode("SETADCXX", CntSetMask=4, x_end2=15), encode("SETADCZW", CntSetMask=4, BitMask=15)]
    for row in range(0, 512, 4):
        found += [encode("SETADC", CntSetMask=4, DimensionIndex=1, Value=row)]
        found += [encode("PACR", ReadIntfSel=0, Last=int(row == 508))]
    return Program.of([(PACK_THREAD, word) for word in found]).items


# --- making and changing ----------------------------------------------------------------------------------------------


@dataclass
class Maker:
    """Makes programs that bhemu executes whole.

    Attributes:
        avoided: signatures of words that the other side refuses; they are left out.
    """

    chance: random.Random
    tile: FuzzTile
    avoided: dict[tuple[int, ...], int] = field(default_factory=dict)
    refused: int = 0

    def new(self) -> Program:
        """A program from seeds, with random words after and between them."""
        start, held = seed(self.chance)
        thread = self.chance.randrange(THREADS) if self.chance.randrange(3) else start[-1][0]
        pieces = [*start, *self._random_words(thread, held, self.chance.randrange(8, 64))]
        return self._executed(pieces, self.chance.getrandbits(32))

    def changed(self, parent: Program, other: Program) -> Program:
        """A program with words replaced, left out, repeated, inserted, or joined with another program's."""
        chance = self.chance
        pieces, others = parent.words, other.words
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(pieces) + 1)
            kind = chance.randrange(6)
            if kind == 0 and at < len(pieces):
                thread, word = pieces[at]
                pieces[at] = thread, words.mutated(chance, word)
            elif kind == 1 and len(pieces) > 8:
                del pieces[at : at + chance.randrange(1, 4)]
            elif kind == 2:
                pieces[at:at] = pieces[max(0, at - chance.randrange(1, 8)) : at]
            elif kind == 3 and others:
                first = chance.randrange(len(others))
                pieces[at:at] = others[first : first + chance.randrange(1, 24)]
            else:
                thread = pieces[at - 1][0] if at else 0
                held = {int(i): int(self.tile.record.config[0, i]) for i in np.nonzero(self.tile.record.config[0])[0]}
                pieces[at:at] = self._random_words(thread, held, chance.randrange(1, 12))
        return self._executed(pieces[:1000], chance.getrandbits(32))

    def _random_words(self, thread: int, held: dict[int, int], count: int) -> list[tuple[int, int]]:
        chance = self.chance
        found: list[int] = []
        while len(found) < count:
            kind = chance.randrange(12)
            if kind == 0:
                place, bits = words.changed_field(chance, held)
                held[place.word] = bits
                found += words.config_words(place.word, bits)
            elif kind == 1:
                found.append(words.thread_word(chance))
            elif kind < 8:
                unit = chance.choice(("unpack", "pack", "matrix", "matrix", "vector", "vector", "misc"))
                found.append(words.word(chance, chance.choice(words.mnemonics(unit))))
            else:
                found.append(words.word(chance, chance.choice(words.mnemonics())))
        return [(thread, word) for word in found]

    def _executed(self, pieces: list[tuple[int, int]], seed_of_data: int) -> Program:
        """The words of `pieces` that bhemu executes."""
        content = data(seed_of_data)
        left = [p for p in pieces if not self.avoids(p[1]) and BY_OPCODE[p[1] >> 24] is not None]
        left = [p for p in left if BY_OPCODE[p[1] >> 24].mnemonic not in words.NOT_FUZZED]  # type: ignore[union-attr]
        kept: list[tuple[int, int]] = []
        self.tile.prepare(content)
        while left:
            ran = self.tile.continue_with(Program.of(left).items)
            kept += left[: ran.executed]
            self.refused += not ran.is_whole
            left = left[ran.executed + 1 :]
        for _ in range(ATTEMPTS):  # what a refused word had changed is missing now
            ran = self.tile.run(Program.of(kept, content))
            if ran.is_whole:
                break
            del kept[ran.executed]
        else:
            del kept[ran.executed :]
        return Program.of(kept, content)

    def avoids(self, word: int) -> bool:
        """The other side refuses such words; one in 64 is tried anyway."""
        return self.avoided.get(words.signature(word), 0) > 1 and self.chance.randrange(64) != 0


_IMMEDIATE: Final = np.array(
    [
        row is not None and row.unit == "vector" and any(f.width == 16 and f.lsb == 0 for f in row.fields)
        for row in BY_OPCODE
    ]
)
"""Opcodes of the vector unit's words that have a 16-bit number."""


def with_other_numbers(program: Program, number: int) -> Program:
    """The same words on other data, with other immediates in the vector unit."""
    chance = np.random.default_rng(number)
    has_number = _IMMEDIATE[program.items >> 24 & 0xFF]
    numbers = chance.integers(0, 1 << 16, len(program.items))
    return Program(np.where(has_number, program.items & ~0xFFFF | numbers, program.items), data(number))
