"""Audit rows 002.12.6, 002.16, 002.17: the listings of the seed, executed from their hexadecimal words, state by state.

The listings print words as a RISC-V stream holds them, rotated left by two bits. Corrections of the rows are applied
where the listing's comments are wrong; the words themselves are right.
"""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import decode
from tests.audit.pack_words import ROW, Words, pacr_word
from tests.tensix.packer_bench import L1_BASE

NOP = 0x02000000
TILE_UNIT = L1_BASE // 16
MATH_PACK = 1
"""Semaphore between the matrix thread and the packer."""


def listed(text: int) -> int:
    """The instruction of a printed word: rotated right by two bits."""
    return text >> 2 | (text & 3) << 30


LISTING = {
    "setc16 37": 0xC8940412,
    "setc16 38": 0xC898A082,
    "setc16 39": 0xC89C4482,
    "setadcxy": 0x4600002D,
    "setadczw": 0x5200003D,
    "semwait": 0x98020026,
    "stallwait 128": 0x89000026,
    "wrcfg": 0xC0300116,
    "dmanop": 0x80000001,
    "mop": 0x06000000,
    "stallwait 32": 0x88400022,
    "stallwait 64": 0x88800022,
    "semget": 0x94000022,
}
WORD = {name: listed(text) for name, text in LISTING.items()}


class Pack(Words):
    """The pack thread before the listing: strides of BF16, X range 0 to 15, the MOP of a tile of four faces."""

    def __init__(self) -> None:
        super().__init__()
        self.wrcfg(12, 32 << 16)
        self.wrcfg(13, 2048 << 16 | 512)
        body, face, tile = pacr_word(), pacr_word(AddrMode=2), pacr_word(AddrMode=1, Last=1)
        self.tile["frontend"]["mop_config"][2] = [4, 4, NOP, NOP, NOP, body, NOP, tile, face]

    def push(self, *names: str) -> bool:
        """Queue words of the listing; True when all of them are executed."""
        for name in names:
            assert self._coprocessor.push(2, WORD[name])
        return self._coprocessor.drain(2)

    def other(self, thread: int, word: int) -> None:
        """Execute a word on another thread."""
        assert self._coprocessor.push(thread, word)
        assert self._coprocessor.drain(thread)

    def half(self, register: int, high: int, value: int) -> None:
        """SETDMAREG of one half of a GPR (opcode 0x45)."""
        self.word(0x45 << 24 | value << 8 | 2 * register + high)

    def output_to(self, address: int) -> None:
        """GPR 12, from which the listing takes L1_Dest_addr."""
        unit = address // 16 - 1
        self.half(12, 0, unit & 0xFFFF)
        self.half(12, 1, unit >> 16)

    @property
    def semaphore(self) -> int:
        return int(self.tile["sync"]["semaphore"][MATH_PACK])


@pytest.mark.rule("002.17.1a", "002.17.1c", "002.17.1d", "002.17.1f", "002.17.1g")
@pytest.mark.parametrize(
    ("name", "mnemonic", "operands"),
    [
        ("setc16 37", "SETC16", {"setc16_reg": 37, "setc16_value": 260}),
        ("setc16 38", "SETC16", {"setc16_reg": 38, "setc16_value": 10272}),
        ("setc16 39", "SETC16", {"setc16_reg": 39, "setc16_value": 4384}),
        ("setadcxy", "SETADCXY", {"CntSetMask": 4, "BitMask": 0b1011}),
        ("setadczw", "SETADCZW", {"CntSetMask": 4, "BitMask": 0b1111}),
        ("semwait", "SEMWAIT", {"stall_res": 1, "sem_sel": 2, "wait_sem_cond": 1}),
        ("stallwait 128", "STALLWAIT", {"stall_res": 128, "wait_res": 9}),
        ("wrcfg", "WRCFG", {"GprAddress": 12, "CfgReg": 69}),
        ("dmanop", "DMANOP", {}),
        ("mop", "MOP", {"mop_type": 1}),
        ("stallwait 32", "STALLWAIT", {"stall_res": 0x20, "wait_res": 8}),
        ("stallwait 64", "STALLWAIT", {"stall_res": 0x40, "wait_res": 8}),
        ("semget", "SEMGET", {"sem_sel": 2}),
    ],
)
def test_the_words_decode_to_what_the_listing_prints(name: str, mnemonic: str, operands: dict[str, int]) -> None:
    """5200003d is opcode 0x54; 9 is C0 and C3."""
    decoded = decode(WORD[name])
    assert decoded.instruction.mnemonic == mnemonic
    assert {k: v for k, v in decoded.operands.items() if v} == operands
    assert decoded.reserved_bits == 0


def test_the_pack_thread_of_add1_state_by_state() -> None:
    """002.17.1a to 002.17.1g, 002.17.2, 002.16a."""
    p = Pack()
    t = p.tile
    assert p.push("setc16 37", "setc16 38", "setc16 39")
    assert t["thread_config"][2, 37:40].tolist() == [0x0104, 0x2820, 0x1120]
    assert t["thread_config"][[0, 1], 37:40].tolist() == [[0] * 3] * 2

    t["adc"][...] = 9
    t["adc"][2, 2, 4] = 15
    assert p.push("setadcxy")
    assert t["adc"][2, 2, :8].tolist() == [0, 0, 9, 9, 15, 0, 9, 9]
    assert t["adc"][2, 2, 8:].tolist() == [0, 0, 9, 9, 9, 0, 9, 9]
    assert p.push("setadczw")
    assert t["adc"][2, 2].tolist() == [0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]
    assert (t["adc"][[0, 1]] == 9).all()
    assert (t["adc"][2, :2] == 9).all()

    p.output_to(L1_BASE + 0x800)
    before = t["config"][0].copy()
    assert not p.push("semwait", "stallwait 128", "wrcfg")  # the matrix thread has posted nothing
    assert t["frontend"]["wait_word"][2] == WORD["semwait"]
    np.testing.assert_array_equal(t["config"][0], before)
    p.other(1, 0xA4 << 24 | 1 << (2 + MATH_PACK))  # SEMPOST
    assert p.push()
    changed = np.nonzero(t["config"][0] != before)[0].tolist()
    assert changed == [69]
    assert t["config"][0, 69] == (L1_BASE + 0x800) // 16 - 1
    assert p.semaphore == 1  # SEMWAIT takes nothing

    state = p.tile["adc"].copy(), p.tile["l1"][L1_BASE : L1_BASE + 0x2000].copy()
    assert p.push("dmanop")
    np.testing.assert_array_equal(p.tile["adc"], state[0])
    np.testing.assert_array_equal(p.tile["l1"][L1_BASE : L1_BASE + 0x2000], state[1])

    assert p.push("mop")
    assert t["issued"][2, 0x41] == 16
    assert p.rows(64, 0x800) == list(range(64))
    assert p.untouched(0, 0x800)
    assert p.untouched(0x1000, 0x800)
    assert not t.pack.open
    assert t["adc"][2, 2, :8].tolist() == [0, 0, 0, 0, 15, 0, 0, 0]

    assert p.push("stallwait 32", "stallwait 64")
    p.half(13, 0, 7)  # neither unit is held: the packer has nothing in flight
    p.word(0x10 << 24)
    assert t["gpr"][2, 13] == 7
    assert p.push("semget")
    assert p.semaphore == 0


@pytest.mark.rule("002.17.3")
def test_the_pack_thread_of_matmul_packs_a_tile_for_each_post() -> None:
    """One SEMWAIT, one MOP and one SEMGET a tile; without a post the thread waits."""
    p = Pack()
    assert p.push("setc16 37", "setc16 38", "setc16 39", "setadcxy", "setadczw")
    loop = ("semwait", "stallwait 128", "wrcfg", "dmanop", "mop", "stallwait 64", "semget")
    for tile in range(3):
        for row in range(64):
            p.bf16_row(row, [ROW[(row + 7 * tile) % 64]] * 16)
        p.output_to(L1_BASE + 0x800 * tile)
        p.other(1, 0xA4 << 24 | 1 << (2 + MATH_PACK))
        assert p.push(*loop)
        assert p.semaphore == 0
        assert p.rows(64, 0x800 * tile) == [(row + 7 * tile) % 64 for row in range(64)]
    assert p.untouched(0x1800, 0x800)
    assert not p.push(*loop)
    assert p.tile["issued"][2, 0x41] == 48


@pytest.mark.rule("002.17.1f")
@pytest.mark.parametrize(("block", "held"), [(0x20, "scalar"), (0x40, "matrix")])
def test_block_0x20_is_the_scalar_unit_and_0x40_the_matrix_unit(block: int, held: str) -> None:
    """The comments of the listing are swapped. A wait that cannot end shows what each block holds."""
    wait = 0xA6 << 24 | block << 15 | 1 << (2 + MATH_PACK) | 1
    for unit, word in (("scalar", 0x45 << 24 | 7 << 8 | 6), ("matrix", 0x10 << 24 | 3 << 19)):
        p = Pack()
        assert p._coprocessor.push(2, wait)
        assert p._coprocessor.push(2, word)
        assert p._coprocessor.drain(2) is (unit != held)


@pytest.mark.rule("002.17.1b")
def test_the_first_word_of_the_mop_area_is_a_loop_count_and_no_stride() -> None:
    """The stores to 0xFFB80000 program the MOP; strides go to Config, here by WRCFG."""
    p = Pack()
    assert p.push("setc16 37", "setc16 38", "setc16 39")
    strides = p.tile["config"][0, 12:16].tolist()
    p.tile["frontend"]["mop_config"][2, 0] = 1
    assert p.push("mop")
    assert p.tile["issued"][2, 0x41] == 4
    assert p.tile["config"][0, 12:16].tolist() == strides
    p.wrcfg(12, 64 << 16)
    assert p.tile["frontend"]["mop_config"][2, 0] == 1
    assert p.push("setadcxy", "mop")
    assert p.rows(16) == [2 * (row // 4 * 4) + row % 4 for row in range(16)]


@pytest.mark.rule("002.12.6a", "002.12.6b", "002.12.6c")
def test_program_packer_destination() -> None:
    """One 32-bit GPR in two halves; bit 31 goes to Config and has no effect."""
    p = Pack()
    unit = TILE_UNIT + 31
    p.half(12, 0, unit & 0xFFFF)
    assert p.tile["gpr"][2, 12] == unit & 0xFFFF
    p.half(12, 1, 1 << 15 | unit >> 16)
    assert p.tile["gpr"][2, 12] == 1 << 31 | unit
    assert p.tile["gpr"][2, 13] == 0
    assert p.push("stallwait 128", "wrcfg")
    assert p.tile["config"][0, 69] == 1 << 31 | unit
    p.half(12, 1, unit >> 16)
    assert p.push("dmanop")
    assert p.tile["gpr"][2, 12] == unit
    p.send(Last=1)
    assert p.rows(4, 512) == [0, 1, 2, 3]


@pytest.mark.rule("002.16a")
def test_the_protocol_around_a_tile() -> None:
    """SEMWAIT on zero, pack, STALLWAIT, ZEROACC of all, SEMGET: Dst is empty when math is told so."""
    p = Pack()
    assert p.push("setc16 37", "setc16 38", "setc16 39")
    p.output_to(L1_BASE)
    assert not p.push("semwait", "wrcfg", "mop", "stallwait 64")
    assert p.untouched(0)
    p.other(1, 0xA4 << 24 | 1 << (2 + MATH_PACK))
    assert p.push()
    assert p.rows(64) == list(range(64))
    assert p.semaphore == 1
    p.word(0x10 << 24 | 3 << 19)  # ZEROACC, CLR_ALL
    assert p.push("semget")
    assert p.semaphore == 0
    p.send(Last=1)
    assert p.l1("<u2", 64) == [0] * 64


@pytest.mark.rule("002.16b")
@pytest.mark.parametrize("half", [0, 1])
def test_the_destination_half_is_chosen_by_a_32_bit_write_of_word_180(half: int) -> None:
    """The 128-bit form would write 181 to 183 as well, which Blackhole's packer does not read."""
    p = Pack()
    p.bf16_row(512, [ROW[20]] * 16)
    p.tile["gpr"][2, 4:8] = [512 * half, 40, 44, 48]
    p.word(0xB0 << 24 | 4 << 16 | 180)
    assert p.tile["config"][0, 180:184].tolist() == [512 * half, 0, 0, 0]
    p.send(ReadIntfSel=1, Last=1)
    assert p.rows(1) == [20 * half]
    p.word(0xB0 << 24 | 4 << 16 | 1 << 15 | 180)
    assert p.tile["config"][0, 180:184].tolist() == [512 * half, 40, 44, 48]
    p.mark()
    p.send(ReadIntfSel=1, Last=1)
    assert p.rows(1) == [20 * half]


@pytest.mark.rule("002.17.1c")
def test_a_word_of_the_listing_that_is_not_rotated_back_is_another_instruction() -> None:
    """0x5200003d as it is printed would be INCADCXY with bits that it does not have."""
    assert decode(LISTING["setadczw"]).instruction.mnemonic == "INCADCXY"
    with pytest.raises(UndefinedBehavior):
        Pack().word(LISTING["setadczw"])
