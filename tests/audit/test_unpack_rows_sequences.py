"""Audit rows 001.11: the words of the compiled kernels in the unpack seed, as a RISC-V stream carries them."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.isa.assembler import assemble, disassemble, from_ttinsn, to_ttinsn
from bhemu.isa.instructions import decode
from tests.tensix.unpacker import COUNTING, INT16, TILE, Unpacker

# The seed's text, the word in a stream (rotated left by two bits) and what its operands are
LISTING = {
    "001.11.1a SETADCXY": (
        "ttsetadcxy 3,0,0,0,0,11",
        0x4580002D,
        {"CntSetMask": 3, "BitMask": 11},
    ),
    "001.11.1a SETADCZW": ("ttsetadczw 3,0,0,0,0,15", 0x5180003D, {"CntSetMask": 3, "BitMask": 15}),
    "001.11.1a ATGETM": ("ttatgetm 0", 0x80000002, {}),
    "001.11.1a ATRELM": ("ttatrelm 0", 0x84000002, {}),
    "001.11.1e SETADCXX": ("ttsetadcxx 1,255,0", 0x788FF001, {"CntSetMask": 1, "x_end2": 255}),
    "001.11.1e SETC16": ("ttsetc16 5,4", 0xC8140012, {"setc16_reg": 5, "setc16_value": 4}),
    "001.11.5 SETC16 0": ("ttsetc16 41,0", 0xC8A40002, {"setc16_reg": 41}),
    "001.11.5 SETC16 257": ("ttsetc16 41,257", 0xC8A40406, {"setc16_reg": 41, "setc16_value": 0x101}),
    "001.11.2a STALLWAIT": ("ttstallwait 8,1024", 0x88101002, {"stall_res": 8, "wait_res": 1 << 10}),
    "001.11.2a MOP": ("ttmop 1,0,0", 0x06000000, {"mop_type": 1}),
    "001.11.2b SEMGET": ("ttsemget 32", 0x94000202, {"sem_sel": 32}),
    "001.11.3d REPLAY": ("ttreplay 0,12,0,1", 0x10000304, {"len": 12, "load_mode": 1}),
    "001.11.3b UNPACR": (
        "ttunpacr 1,0,0,0,0,1,1,0,0,0,0,0,1",
        0x0A000305,
        {"Unpack_block_selection": 1, "OvrdThreadId": 1, "SetDatValid": 1, "Last": 1},
    ),
    "001.11.3a RDCFG": ("ttrdcfg 12,124", 0xC43001F2, {"GprAddress": 12, "CfgReg": 124}),
    "001.11.3a ADDDMAREG": (
        "ttadddmareg 0,12,12,18",
        0x60030C49,
        {"ResultRegIndex": 12, "OpBRegIndex": 12, "OpARegIndex": 18},
    ),
    "001.11.3c STALLWAIT": ("ttstallwait 128,1", 0x89000006, {"stall_res": 128, "wait_res": 1}),
    "001.11.3a WRCFG": ("ttwrcfg 12,0,124", 0xC03001F2, {"GprAddress": 12, "CfgReg": 124}),
    "001.11.3a NOP": ("ttnop", 0x08000000, {}),
    "001.11.4 UNPACR": (
        "ttunpacr 0,0,0,0,0,1,1,0,0,0,0,0,1",
        0x08000305,
        {"OvrdThreadId": 1, "SetDatValid": 1, "Last": 1},
    ),
}


@pytest.mark.parametrize("row", LISTING)
def test_words_of_the_listings(row: str) -> None:
    """Text to word, word to operands, and the form in the stream, whose two low bits are never both set."""
    text, stream, operands = LISTING[row]
    word = from_ttinsn(stream)
    assert assemble(text) == word
    assert to_ttinsn(word) == stream
    assert stream & 3 != 3
    found = decode(word)
    assert found.mnemonic == text.split()[0].removeprefix("tt").upper()
    assert {name: value for name, value in found.operands.items() if value and name != "AddrMode"} == operands


def run(u: Unpacker, *names: str) -> None:
    """Execute rows of the listing from their stream form."""
    for name in names:
        assert u.issue(from_ttinsn(LISTING[name][1])), name


@pytest.mark.rule("001.11.1a")
def test_the_first_lines_reset_all_counters_but_x1() -> None:
    """Mask 0b1011 leaves channel-1 X alone; the packer's counters stay."""
    u = Unpacker()
    u.t["adc"][...] = 7
    run(u, "001.11.1a SETADCXY", "001.11.1a SETADCZW")
    for unpacker in range(2):
        u.unpacker = unpacker
        counters = {name: u.counter(name) for name in ("x", "y", "z", "w", "x1", "y1", "z1", "w1")}
        assert counters == {"x": 0, "y": 0, "z": 0, "w": 0, "x1": 7, "y1": 0, "z1": 0, "w1": 0}
    assert (u.t["adc"][0, 2] == 7).all()
    assert (u.t["adc"][1:] == 7).all()


# Word, config word, bits that become 0 of a word of ones
MASKED_WRITES = [
    ("001.11.1b", 0xB3FF0000, 0, 0x000000FF),
    ("001.11.1b", 0xB47F0000, 0, 0x00007F00),
    ("001.11.1b2", 0xB3070001, 1, 0b111),  # Fpu, gasket, packer stochastic rounding
    ("001.11.1b2", 0xB4800001, 1, 1 << 15),  # SrcAUnsigned
    ("001.11.1b2", 0xB5010001, 1, 1 << 16),  # SrcBUnsigned
    ("001.11.1b2", 0xB6600001, 1, 0b11 << 29),  # Fp32_enabled, SFPU_Fp32_enabled
    ("001.11.1c", 0xB3010002, 2, 1),  # Zero_Flag_disabled_src
]


@pytest.mark.rule("001.11.1b", "001.11.1b2", "001.11.1c")
@pytest.mark.parametrize(("row", "word", "place", "cleared"), MASKED_WRITES)
def test_stores_are_masked_byte_writes(row: str, word: int, place: int, cleared: int) -> None:
    """RMWCIB0-3: byte in the opcode, mask, data, word number."""
    assert disassemble(word).startswith(f"RMWCIB{(word >> 24) - 0xB3}")
    u = Unpacker()
    before = u.t["config"].copy()
    ones = 0x7FFF if place == 0 else 0xFFFFFFFF  # word 0 has 15 bits
    u.t["config"][0, place] = ones
    before[0, place] = ones & ~cleared
    assert u.issue(word)
    np.testing.assert_array_equal(u.t["config"], before)


@pytest.mark.rule("001.11.1d")
@pytest.mark.parametrize(("unpacker", "word"), [(0, 57), (1, 59)])
def test_z_strides_stand_in_words_57_and_59(unpacker: int, word: int) -> None:
    """Bits 15:0, bytes of output; written as the kernel writes, through a GPR."""
    u = Unpacker(unpacker)
    u.l1(COUNTING)
    u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 1)
    u.t["gpr"][0, 1] = 16 * 16 * 2
    assert u.issue(assemble(f"WRCFG 1, 0, {word}"))
    u.adc(z1=3)
    assert u.unpack()
    assert list(np.flatnonzero(u.values().any(axis=1))) == [48]


@pytest.mark.rule("001.11.1e")
def test_setc16_5_4_sets_one_bit_and_no_base_row() -> None:
    """After a hand-over SrcRow is 0, and rows 16 and up may be addressed: SetOvrdWithAddr is 1."""
    u = Unpacker(0)
    u.l1(COUNTING)
    run(u, "001.11.1e SETC16", "001.11.1e SETADCXX", "001.11.4 UNPACR")
    assert u.t["thread_config"][0, 5] == 4
    assert u.t["unpack"]["src_row"][0, 0] == 0
    np.testing.assert_array_equal(u.values(0)[:16].reshape(-1), np.arange(1, 257))
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + 16))
    run(u, "001.11.4 UNPACR")
    np.testing.assert_array_equal(np.flatnonzero(u.values(1).any(axis=1)), np.arange(16, 32))


@pytest.mark.rule("001.11.2a", "001.11.2b")
def test_the_add1_kernel_unpacks_a_tile() -> None:
    """Counters, wait, MOP with an UNPACR for each source, SEMGET of semaphore 5, next context."""
    u = Unpacker(0)
    u.formats(INT16)
    for unpacker, address in ((0, TILE), (1, TILE + 0x1000)):
        u.unpacker = unpacker
        u.base(address)
        u.l1(COUNTING + 5000 * unpacker, address=address)
        u.count(256)
        u.adc(z=3, w=1)
    a, b = (from_ttinsn(LISTING[f"001.11.{row} UNPACR"][1]) for row in ("4", "3b"))
    nop = assemble("NOP")
    u.t["frontend"]["mop_config"][0] = [1, 1, nop, nop, nop, a, b, b, b]  # one pass of the double loop: body a, then b
    u.t["sync"]["semaphore"][:] = 2
    run(u, "001.11.1a SETADCZW", "001.11.2a STALLWAIT", "001.11.2a MOP", "001.11.2b SEMGET", "001.11.5 SETC16 257")
    assert u.t["sync"]["semaphore"].tolist() == [2, 2, 2, 2, 2, 1, 2, 2]
    assert u.t["src_owner"].tolist() == [[1, 0], [1, 0]]
    for unpacker in (0, 1):
        u.unpacker = unpacker
        np.testing.assert_array_equal(u.values(0)[:16].reshape(-1), COUNTING[:256] + 5000 * unpacker)
    assert u.t["thread_config"][0, 41] == 0x0101


REPLAYED = [
    *("001.11.3b UNPACR", "001.11.3a RDCFG", "001.11.3a ADDDMAREG"),
    *("001.11.3c STALLWAIT", "001.11.3a WRCFG", "001.11.3a NOP"),
]


@pytest.mark.rule("001.11.3a")
def test_the_base_address_advances_by_a_gpr() -> None:
    """001.11.3a: Config word 124 += GPR 18, by way of GPR 12; 001.11.3b: the bank is handed over each time."""
    u = Unpacker(1)
    u.l1(COUNTING)
    u.count(256)
    u.t["gpr"][0, 18] = 256 * 2 // 16
    for n in range(3):
        u.t["src_owner"][...] = 0
        run(u, *REPLAYED)
        assert int(u.t["config"][0, 124]) == TILE // 16 - 1 + 32 * (n + 1)
        assert u.t["src_owner"][1].tolist() == ([1, 0] if n % 2 == 0 else [0, 1])
        np.testing.assert_array_equal(u.values(n % 2)[:16].reshape(-1), np.arange(256 * n + 1, 256 * n + 257))


@pytest.mark.rule("001.11.3b")
def test_the_last_operand_is_last_and_no_counter_moves() -> None:
    u = Unpacker(1)
    u.l1(COUNTING)
    run(u, "001.11.3b UNPACR")
    assert from_ttinsn(LISTING["001.11.3b UNPACR"][1]) & 1 == 1
    assert [u.counter(name) for name in ("y", "z", "y1", "z1")] == [0, 0, 0, 0]
    assert u.t["src_owner"][1, 0] == 1


@pytest.mark.rule("001.11.3c")
def test_the_wait_is_for_the_scalar_unit_and_not_for_unpacker_1() -> None:
    """Block B7 (configuration), condition C0 (ThCon); WRCFG goes on while SrcB is the matrix unit's."""
    u = Unpacker(1)
    u.t["src_owner"][...] = 1
    u.t["gpr"][0, 12] = 0x777
    run(u, "001.11.3c STALLWAIT", "001.11.3a WRCFG")
    assert u.t["config"][0, 124] == 0x777


@pytest.mark.rule("001.11.3d")
def test_replay_with_1_records_the_next_12_words_and_runs_none() -> None:
    """Six words for each context; playing six of them does one tile."""
    u = Unpacker(1)
    u.l1(COUNTING)
    u.count(256)
    u.base(TILE + 0x1000, 1)
    u.l1(COUNTING + 5000, address=TILE + 0x1000)
    u.t["gpr"][0, 18] = 32
    run(u, "001.11.3d REPLAY", *REPLAYED)
    for name in REPLAYED:
        assert u.issue(assemble(LISTING[name][0].replace("124", "125")))
    assert not u.src().any()
    assert u.t["config"][0, 124] == TILE // 16 - 1
    first = [from_ttinsn(LISTING[name][1]) for name in REPLAYED]
    assert u.t["frontend"]["replay_buffer"][0, :6].tolist() == first
    second = [word + 1 if word >> 24 in (0xB0, 0xB1) else word for word in first]
    assert u.t["frontend"]["replay_buffer"][0, 6:12].tolist() == second

    assert u.issue(assemble("REPLAY 0, 6, 0, 0"))
    run(u, "001.11.5 SETC16 257")
    assert u.issue(assemble("REPLAY 6, 6, 0, 0"))
    for bank in range(2):
        np.testing.assert_array_equal(u.values(bank)[:16].reshape(-1), COUNTING[:256] + 5000 * bank)
    assert u.t["config"][0, 124] == TILE // 16 - 1 + 32
    assert u.t["config"][0, 125] == (TILE + 0x1000) // 16 - 1 + 32


@pytest.mark.rule("001.11.4")
def test_a_face_is_unpacked_to_srca_and_handed_over() -> None:
    """Wait, unpack and hand over, release the semaphore, context 0."""
    u = Unpacker(0)
    u.l1(COUNTING)
    u.count(256)
    u.t["sync"]["semaphore"][5] = 1
    run(u, "001.11.2a STALLWAIT", "001.11.4 UNPACR", "001.11.2b SEMGET", "001.11.5 SETC16 0")
    np.testing.assert_array_equal(u.values(0)[:16].reshape(-1), np.arange(1, 257))
    assert u.t["src_owner"][0].tolist() == [1, 0]
    assert (u.t["sync"]["semaphore"][5], u.t["thread_config"][0, 41]) == (0, 0)


@pytest.mark.rule("001.11.5")
def test_257_and_0_alternate_between_contexts_1_and_0_of_both_unpackers() -> None:
    u = Unpacker(0)
    for unpacker in range(2):
        u.unpacker = unpacker
        u.count(16)
        for context in range(2):
            address = TILE + 0x100 * (2 * unpacker + context)
            u.base(address, context)
            u.l1([10 * unpacker + context + 1] * 16, address=address)
    for switch, context in (("0", 0), ("257", 1), ("0", 0), ("257", 1)):
        u.t["src_owner"][...] = 0
        u.t["unpack"]["bank"][...] = 0
        run(u, f"001.11.5 SETC16 {switch}", "001.11.4 UNPACR", "001.11.3b UNPACR")
        for unpacker in range(2):
            u.unpacker = unpacker
            assert u.values(0)[0, 0] == 10 * unpacker + context + 1
