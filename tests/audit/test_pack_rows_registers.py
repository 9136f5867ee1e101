"""Audit rows 000.1.1e, 000.3, 000.4.1, 000.5, 003.2b, 003.3, 003.5c, 003.7b: registers, their writers and readers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bhemu
from bhemu.analysis import timing
from bhemu.errors import AssemblyError, BhemuError, MissingSpecification, UndefinedBehavior
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import decode
from bhemu.isa.registers import decode_word
from bhemu.machine.state import ALL_CONFIG_DIRTY
from bhemu.programs.program import Program
from bhemu.programs.thread_core import Core
from bhemu.recording import Recorder
from bhemu.recording import log as column
from tests.audit.pack_words import Words
from tests.tensix.matrix_unit import Matrix
from tests.tensix.packer_bench import BF16, FP8, FP16, L1_BASE
from tests.tensix.unpacker import Unpacker


@pytest.mark.rule("000.1.1e")
@pytest.mark.parametrize("throttle", [0, 1])
def test_word_70_bit_3_is_kept_and_does_nothing_to_the_packer(throttle: int) -> None:
    """ovrd_default_throttle_mode concerns the unpackers' speed."""
    bench = Words()
    bench.bits(70, 3, 1, throttle)
    bench.bits(118, 3, 1, throttle)
    bench.send(Last=1)
    assert bench.rows(4) == [0, 1, 2, 3]
    assert [int(bench.tile["config"][0, word]) >> 3 & 1 for word in (70, 118)] == [throttle] * 2


@pytest.mark.rule("000.1.1k")
@pytest.mark.parametrize(
    ("word", "bit", "effect"),
    [
        (98, 17, "header"),
        (146, 17, "header"),
        (98, 18, "pack_dis_y_pos_start_offset"),
        (98, 22, "unpack_tile_offset"),
        (146, 19, "unpack_tile_offset"),
        (70, 22, "header"),
        (118, 22, "header"),
        (118, 23, "pack_dis_y_pos_start_offset"),
        (70, 17, "pack_start_intf_pos"),
    ],
)
def test_the_third_words_of_the_groups_differ(word: int, bit: int, effect: str) -> None:
    """REG8 has Add_tile_header_size at 17, y position at 18, unpack_tile_offset at [23:19]."""
    context = (70, 98, 118, 146).index(word)
    bench = Words()
    bench.context(context, In_data_format=BF16, Out_data_format=BF16)
    bench.bits(word, bit, 1, 1)
    if effect == "header":
        bench.send(CfgContext=context, Last=1)
        assert bench.rows(4) == [0, 1, 2, 3]
        assert bench.tile.pack.acc_tile_size[2] == 8 + 1
    else:
        with pytest.raises(MissingSpecification, match=effect):
            bench.send(CfgContext=context, Last=1)


@pytest.mark.rule("000.1.1k")
@pytest.mark.parametrize(("context", "has_bit"), [(0, True), (1, False), (2, True), (3, False)])
def test_groups_1_and_3_have_no_fp8_bit(context: int, has_bit: bool) -> None:
    """Words 99 and 147 end with the threshold; FP8 output there is open."""
    bench = Words(FP16, FP8)
    bench.fp16_row(0, [0x3D00] * 16)
    bench.context(context, In_data_format=FP16, Out_data_format=FP8)
    word = (71, 99, 119, 147)[context]
    bench.bits(word, 23, 1, 1)
    if has_bit:
        bench.send(CfgContext=context, ReadIntfSel=1, Last=1)
        assert bench.l1("u1", 16) == [0x3A] * 16
    else:
        assert bench.tile["config"][0, word] == 0  # there is no such bit to write
        with pytest.raises(MissingSpecification, match="Pac_LF8_4b_exp"):
            bench.send(CfgContext=context, ReadIntfSel=1, Last=1)


# --- ALU format words -------------------------------------------------------------------------------------------------

FINE = 1 << 8 | 15
"""Src cell 1 + 2^-10 of FP16; BF16 does not have its last mantissa bit, so that a sum tells the two apart."""


def sum_is_fp16(word0: int, word1: int, *, implied: int, disable: tuple[int, int] = (1, 1)) -> bool:
    """Whether ELWADD takes its operands for FP16 with these words, implied format and ThreadConfig 2 and 3."""
    m = Matrix().start(implied, implied)
    m.t.srca[...] = FINE
    m.t.srcb[...] = FINE
    m.t.config[0, :2] = (word0, word1)
    m.t.thread_config[1, 2:4] = disable
    m.t.config_dirty[0] = ALL_CONFIG_DIRTY
    assert m.do("ELWADD")
    cell = int(m.t.dst[0, 0])
    assert cell in (1 << 5 | 16, 16)  # 2 + 2^-9 or 2
    return cell != 16


BOTH_FP16 = FP16 << 17 | FP16 << 21
BOTH_BF16 = BF16 << 17 | BF16 << 21


@pytest.mark.rule("000.3a")
@pytest.mark.parametrize("overrides", [0, 1 << 4 | 1 << 9])
def test_format_values_of_word_0_count_where_their_override_is_set(overrides: int) -> None:
    """SrcA [3:0] with bit 4, SrcB [8:5] with bit 9; word 1 has SrcA [20:17], SrcB [24:21] (000.3c)."""
    assert sum_is_fp16(FP16 | FP16 << 5 | overrides, BOTH_BF16, implied=BF16) is (overrides != 0)
    assert sum_is_fp16(BF16 | BF16 << 5 | overrides, BOTH_FP16, implied=BF16) is (overrides == 0)


@pytest.mark.rule("000.3a", "002.5.1")
@pytest.mark.parametrize("override", [0, 1])
def test_the_dstacc_value_counts_where_its_override_is_set(override: int) -> None:
    """Dstacc [13:10] with bit 14; else word 1 [28:25] (000.3c)."""
    bench = Words(FP16, FP16)
    bench.wrcfg(0, BF16 << 10 | override << 14)
    if override:
        with pytest.raises(UndefinedBehavior, match=r"format 5 .* In_data_format 1"):
            bench.send(Last=1)
        bench.wrcfg(0, FP16 << 10 | override << 14)
        bench.wrcfg(1, BF16 << 25)
    bench.fp16_row(0, [0x3C01] * 16)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("<u2", 16) == [0x3C01] * 16


@pytest.mark.rule("000.3b")
@pytest.mark.parametrize("implied", [FP16, BF16])
@pytest.mark.parametrize("disable", [(0, 0), (1, 1)])
def test_the_format_is_implied_by_the_bank_unless_the_thread_says_otherwise(
    implied: int, disable: tuple[int, int]
) -> None:
    """ThreadConfig 2 (SrcA) and 3 (SrcB)."""
    configured = BF16 if implied == FP16 else FP16
    word1 = BOTH_FP16 if configured == FP16 else BOTH_BF16
    counts = configured if disable[0] else implied
    assert sum_is_fp16(0, word1, implied=implied, disable=disable) is (counts == FP16)


WORD_1 = {
    "ALU_ROUNDING_MODE_Fpu_srnd_en": (0, 1),
    "ALU_ROUNDING_MODE_Gasket_srnd_en": (1, 1),
    "ALU_ROUNDING_MODE_Packer_srnd_en": (2, 1),
    "ALU_ROUNDING_MODE_GS_LF": (13, 1),
    "ALU_ROUNDING_MODE_Bfp8_HF": (14, 1),
    "ALU_FORMAT_SPEC_REG0_SrcAUnsigned": (15, 1),
    "ALU_FORMAT_SPEC_REG0_SrcBUnsigned": (16, 1),
    "ALU_FORMAT_SPEC_REG0_SrcA": (17, 4),
    "ALU_FORMAT_SPEC_REG1_SrcB": (21, 4),
    "ALU_FORMAT_SPEC_REG2_Dstacc": (25, 4),
    "ALU_ACC_CTRL_Fp32_enabled": (29, 1),
    "ALU_ACC_CTRL_SFPU_Fp32_enabled": (30, 1),
    "ALU_ACC_CTRL_INT8_math_enabled": (31, 1),
}


@pytest.mark.rule("000.3c")
@pytest.mark.parametrize("name", WORD_1)
def test_fields_of_word_1(name: str) -> None:
    """A write of the field's bits by WRCFG reads back in that field and in no other."""
    lsb, width = WORD_1[name]
    bench = Words()
    bench.wrcfg(1, ((1 << width) - 1) << lsb)
    fields = decode_word("config", 1, int(bench.tile["config"][0, 1]))
    assert {f.name: v for f, v in fields if v} == {name: (1 << width) - 1}


@pytest.mark.rule("000.3c")
@pytest.mark.parametrize("bit", [1, 2])
def test_stochastic_bits_of_word_1_are_refused_by_the_packer(bit: int) -> None:
    bench = Words()
    bench.bits(1, bit, 1, 1)
    with pytest.raises(MissingSpecification, match="stochastic"):
        bench.send(Last=1)


@pytest.mark.rule("000.3c")
@pytest.mark.parametrize(("bit", "is_wide"), [(28, False), (29, True), (30, False)])
def test_bit_29_of_word_1_gives_the_matrix_unit_32_bit_dst(bit: int, is_wide: bool) -> None:
    m = Matrix().start(BF16, BF16)
    m.t.srca[...] = 127
    m.t.srcb[...] = 127
    m.t.dst[...] = 0xABCD
    m.t.config[0, 1] = 1 << bit
    m.t.config_dirty[0] = ALL_CONFIG_DIRTY
    assert m.do("ELWADD")
    assert m.t.dst[0, 0] == 128
    assert m.t.dst[8, 0] == (0 if is_wide else 0xABCD)  # the lower half of the 32-bit row 0


# --- word 71 ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("000.5a", "000.5d", "000.1.1i")
@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0, [0x3D, 0x2C]),  # E5M2: 1.25 and 0.0625
        (1 << 22, [0x3D, 0x2C]),  # the unpacker's
        (1 << 23, [0x3A, 0x18]),  # E4M3
        (1 << 20 | 15 << 24, [0x3D, 0]),  # exponents below 15 go
        (15 << 24, [0x3D, 0x2C]),
    ],
)
def test_word_71_has_the_positions_of_blackhole(bits: int, expected: list[int]) -> None:
    """[20] and [31:24] threshold, [22] E4M3 of unpacker 0, [23] E4M3 of the packer."""
    bench = Words(FP16, FP8)
    bench.fp16_row(0, [0x3D00, 0x2C00] * 8)
    bench.wrcfg(71, bits)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.l1("u1", 16) == expected * 8


@pytest.mark.rule("000.5a", "000.1.1i")
def test_word_71_bit_19_accumulates() -> None:
    """Every other position of Pack_L1_Acc is Wormhole's."""
    for bit in (18, 19, 21):
        bench = Words()
        bench.wrcfg(71, 1 << bit)
        bench.tile.allow_open = 1  # bit 18 belongs to Downsample_rate
        bench.tile["l1"][L1_BASE : L1_BASE + 32].view("<u2")[:] = 0x4000
        bench.send(ReadIntfSel=1, Last=1)
        assert bench.l1("<u2", 16) == [0x4040 if bit == 19 else 0x3F80] * 16


@pytest.mark.rule("000.5d", "000.0g")
@pytest.mark.parametrize("unpacker", [0, 1])
@pytest.mark.parametrize("word", [71, 119])
def test_each_unpacker_has_its_own_e4m3_bit(unpacker: int, word: int) -> None:
    """Word 71 bit 22 for unpacker 0, word 119 bit 22 for unpacker 1."""
    u = Unpacker(unpacker)
    u.formats(FP8)
    u.l1(np.full(256, 0x39, np.uint8), "u1")
    u.t["config"][0, word] = int(u.t["config"][0, word]) | 1 << 22
    u.t["config_dirty"][...] = 0xFFFFFFFF
    assert u.unpack()
    e4m3 = 1 << 15 | 15  # 1.125: mantissa 0x080, exponent 15
    e5m2 = 0x100 << 8 | 14  # 0.625
    assert int(u.src()[0, 0]) == (e4m3 if (word == 119) == (unpacker == 1) else e5m2)


# --- writers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def core() -> Core:
    return Core(bhemu.Tile(), Program("rows"), 2)


@pytest.mark.rule("000.4.1")
def test_stores_of_a_core_change_config_at_once(core: Core) -> None:
    """In the core's order, and past what waits in its FIFO."""
    record: Any = core.tile.record
    core.tile.coprocessor.push(2, 0xB0 << 24 | 5 << 16 | 69)  # WRCFG of GPR 5, which is 0
    core.config.store({"THCON_SEC0_REG1_L1_Dest_addr": 0x123})
    assert record.config[0, 69] == 0x123
    core.config.store({"THCON_SEC0_REG1_L1_Dest_addr": 0x456})
    assert record.config[0, 69] == 0x456
    assert core.tile.coprocessor.drain(2)
    assert record.config[0, 69] == 0


@pytest.mark.rule("003.3g")
def test_a_core_cannot_store_to_thread_config(core: Core) -> None:
    """SETC16 alone writes it."""
    with pytest.raises(AssemblyError, match="SETC16"):
        core.config.store({"ADDR_MOD_PACK_SEC0_YsrcIncr": 4})
    core.tile.execute(2, 0xB2 << 24 | 37 << 16 | 4)
    assert core.tile.record.thread_config[2, 37] == 4


@pytest.mark.rule("003.3b")
def test_thread_config_has_68_entries_of_16_bits_for_each_thread() -> None:
    """Entry 67 exists, 68 does not."""
    tile = bhemu.Tile()
    for thread in range(3):
        tile.execute(thread, 0xB2 << 24 | 67 << 16 | 0xFFFF)
        with pytest.raises(UndefinedBehavior, match="no entry 68"):
            tile.execute(thread, 0xB2 << 24 | 68 << 16 | 1)
    assert tile.record.thread_config.shape == (3, 68)
    assert tile.record.thread_config.itemsize == 2


def lanes_after(seed: int) -> list[int]:
    """The generators by the vector rules: 32 steps, then one lane every two steps, from the last."""
    state, lanes = seed, [0] * 32

    def step(value: int) -> int:
        parity = (value >> 31 ^ value >> 21 ^ value >> 1 ^ value) & 1
        return value >> 1 | (parity ^ 1) << 31

    for _ in range(32):
        state = step(state)
    for lane in reversed(range(32)):
        state = step(step(state))
        lanes[lane] = state
    return lanes


@pytest.mark.rule("003.3j")
def test_a_write_of_word_186_reseeds_the_generators() -> None:
    tile = bhemu.Tile()
    for seed in (0x12345678, 7, 0x12345678):
        tile.record.gpr[0, 3] = seed
        tile.execute(0, 0xB0 << 24 | 3 << 16 | 186)
        assert tile.record.prng.tolist() == lanes_after(seed)


@pytest.mark.rule("003.5c")
def test_stallwait_has_conditions_c0_to_c12() -> None:
    """C13 is Wormhole's; C10 waits for the own core, which has nothing outstanding here."""
    tile = bhemu.Tile()
    tile.execute(0, 0xA2 << 24 | 0x80 << 15 | 1 << 10)
    tile.execute(0, 0xB2 << 24 | 37 << 16 | 5)
    assert tile.record.thread_config[0, 37] == 5
    with pytest.raises(BhemuError, match="belong to no operand"):
        tile.execute(0, 0xA2 << 24 | 0x80 << 15 | 1 << 13)


@pytest.mark.rule("003.7b")
@pytest.mark.parametrize(
    ("word", "mnemonic", "operands"),
    [
        (0xB0_1C800D, "WRCFG", {"GprAddress": 28, "wr128b": 1, "CfgReg": 13}),
        (0xB1_1C000D, "RDCFG", {"GprAddress": 28, "CfgReg": 13}),
        (0xB2_250104, "SETC16", {"setc16_reg": 37, "setc16_value": 0x104}),
        (0xB3_F00A45, "RMWCIB0", {"Mask": 0xF0, "Data": 0x0A, "CfgRegAddr": 0x45}),
        (0xB4_F00A45, "RMWCIB1", {"Mask": 0xF0, "Data": 0x0A, "CfgRegAddr": 0x45}),
        (0xB5_F00A45, "RMWCIB2", {"Mask": 0xF0, "Data": 0x0A, "CfgRegAddr": 0x45}),
        (0xB6_F00A45, "RMWCIB3", {"Mask": 0xF0, "Data": 0x0A, "CfgRegAddr": 0x45}),
    ],
)
def test_fields_of_the_configuration_instructions(word: int, mnemonic: str, operands: dict[str, int]) -> None:
    decoded = decode(word)
    assert decoded.instruction.mnemonic == mnemonic
    assert decoded.operands == operands


@pytest.mark.rule("003.2b")
def test_a_busy_scalar_unit_holds_its_thread_and_others_only_for_itself() -> None:
    """Modelled issue cycles; MULDMAREG of two aligned groups takes four."""
    tile = bhemu.Tile()
    recorder = Recorder()
    recorder.attach(tile)
    multiply, nop = assemble("MULDMAREG 0, 4, 9, 6"), assemble("NOP")
    for thread, words in ((0, [multiply, nop]), (1, [nop, nop, multiply])):
        for word in words:
            assert recorder.push(thread, word)
    recorder.run(100)
    log = recorder.log()
    issue = timing(log).issue
    by_thread = {t: [issue[i] for i, row in enumerate(log.rows) if row[column.THREAD] == t] for t in (0, 1)}
    assert by_thread == {0: [0, 4], 1: [0, 1, 4]}
