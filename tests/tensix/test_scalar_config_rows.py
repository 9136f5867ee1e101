"""Rows of the audit of the GPR and configuration seeds that no other test names: how the two units play together."""

from __future__ import annotations

import pytest

from bhemu.analysis.access import access
from bhemu.analysis.figures import figure
from bhemu.api.tile import Tile
from bhemu.errors import AssemblyError
from bhemu.isa.instructions import INSTRUCTIONS, decode, encode
from bhemu.isa.names import Block, Condition
from bhemu.isa.registers import decode_word, field
from bhemu.isa.timing import TIMINGS
from bhemu.recording import log
from bhemu.tensix.instruction import HANDLERS

pytestmark = pytest.mark.plain

THREAD = 1


@pytest.mark.rule("003.0a", "003.2a", "003.8")
@pytest.mark.parametrize("mnemonic", [m for m, row in INSTRUCTIONS.items() if row.unit in ("scalar", "config")])
def test_every_instruction_of_the_two_units_has_a_handler_with_modes(mnemonic: str) -> None:
    assert HANDLERS[INSTRUCTIONS[mnemonic].opcode].modes


@pytest.mark.rule("003.0b")
def test_wrcfg_alone_reads_gprs(tile: Tile) -> None:
    """RMWCIB and SETC16 carry their data; RDCFG writes a GPR."""
    tile.record.gpr[...] = 0xFFFFFFFF
    tile.execute(THREAD, encode("RMWCIB0", Mask=0xFF, Data=0x12, CfgRegAddr=12))
    tile.execute(THREAD, encode("SETC16", 12, 0x34))
    assert tile.record.config[0, 12] == 0x12
    assert tile.record.thread_config[THREAD, 12] == 0x34
    tile.execute(THREAD, encode("RDCFG", GprAddress=5, CfgReg=12))
    assert tile.record.gpr[THREAD, 5] == 0x12
    tile.execute(THREAD, encode("WRCFG", GprAddress=6, CfgReg=13))
    assert tile.record.config[0, 13] == 0xFFFFFFFF


@pytest.mark.rule("003.1a", "003.3a")
def test_gprs_configuration_and_threadconfig_have_their_sizes(tile: Tile) -> None:
    assert tile.record.gpr.shape == (3, 64)
    assert tile.record.config.shape == (2, 224)
    assert tile.record.thread_config.shape == (3, 68)


@pytest.mark.parametrize(
    ("mnemonic", "latency", "issue"),
    [
        ("SETDMAREG", 1, 1),  # 003.2.1j
        ("DMANOP", 1, 1),  # 003.2.5
        ("WRCFG", 2, 1),  # 003.4.1c, 000.4.2b
        ("SETC16", 1, 1),  # 003.4a
        ("RMWCIB0", 1, 1),  # 003.4.4b
        ("CFGSHIFTMASK", 2, 2),  # 003.4b
    ],
)
def test_documented_cycles(mnemonic: str, latency: int, issue: int) -> None:
    (timing,) = TIMINGS[mnemonic]
    assert (timing.latency, timing.occupancy) == (latency, issue)


@pytest.mark.rule("003.2.2b")
@pytest.mark.parametrize(
    "mnemonic", ["ADDDMAREG", "SUBDMAREG", "MULDMAREG", "BITWOPDMAREG", "SHIFTDMAREG", "CMPDMAREG"]
)
def test_arithmetic_takes_three_or_four_cycles(mnemonic: str) -> None:
    def cycles(**operands: int) -> int:
        word = encode(mnemonic, **operands)
        row = [0] * log.COLUMNS
        row[log.WORD] = word
        return figure(access(word), row).latency

    assert cycles(OpBisConst=1, OpARegIndex=1, OpBRegIndex=9) == 3
    assert cycles(OpARegIndex=8, OpBRegIndex=11) == 3
    assert cycles(OpARegIndex=8, OpBRegIndex=12) == 4


@pytest.mark.rule("003.3k")
def test_blackhole_has_no_clock_gate_registers() -> None:
    with pytest.raises(AssemblyError):
        field("CG_CTRL_EN_Regblocks")


@pytest.mark.rule("003.4.3b")
def test_after_reset_bank_0_is_in_use_without_any_setc16(tile: Tile) -> None:
    tile.record.gpr[THREAD, 1] = 3
    tile.execute(THREAD, encode("WRCFG", GprAddress=1, CfgReg=12))
    assert tile.record.config[0, 12] == 3


@pytest.mark.rule("003.4.3c")
def test_value_0x0104_offsets_the_contexts_by_4_and_1() -> None:
    values = {row.name: value for row, value in decode_word("thread", 41, 0x0104) if value}
    assert values == {"UNPACK_MISC_CFG_CfgContextOffset_0": 4, "UNPACK_MISC_CFG_CfgContextOffset_1": 1}


@pytest.mark.rule("003.4.4b", "003.4.4c")
def test_byte_writes_and_word_writes_of_a_thread_keep_their_order(tile: Tile) -> None:
    tile.record.gpr[THREAD, 1] = 0x11223344
    words = [
        encode("RMWCIB1", Mask=0xFF, Data=0xAA, CfgRegAddr=12),
        encode("WRCFG", GprAddress=1, CfgReg=12),
        encode("RMWCIB0", Mask=0xFF, Data=0xBB, CfgRegAddr=12),
        encode("RMWCIB2", Mask=0x0F, Data=0xCC, CfgRegAddr=12),
    ]
    tile.execute(THREAD, words)
    assert tile.record.config[0, 12] == 0x112C33BB


@pytest.mark.rule("003.5a", "003.5b", "000.4.5")
def test_wrcfg_behind_a_wait_for_the_scalar_unit_reads_the_new_gpr(tile: Tile) -> None:
    """SETDMAREG twice, STALLWAIT(STALL_CFG, THCON), WRCFG: the words of 003.6.2."""
    stall = 0xA2400001  # 003.6.2c
    assert decode(stall).mnemonic == "STALLWAIT"
    assert stall == encode("STALLWAIT", Block.CFG, Condition.THCON)
    tile.execute(THREAD, [0x45000038, 0x45002039, stall, 0xB01C000C, encode("NOP"), encode("NOP")])
    assert tile.record.config[0, 12] == 0x00200000


@pytest.mark.rule("003.2.6f", "003.4.2b", "003.4.2c")
def test_waits_for_the_two_units_find_them_idle(tile: Tile) -> None:
    """C0 after LOADIND and C12 after RDCFG: the results are there."""
    tile.record.l1_u32[64] = 0x76543210
    tile.record.gpr[THREAD, 1] = 16
    tile.record.gpr[THREAD, 2] = 0
    tile.execute(
        THREAD,
        [
            encode("LOADIND", SizeSel=1, OffsetIndex=4, DataRegIndex=8, AddrRegIndex=1),
            encode("STALLWAIT", Block.CFG, Condition.THCON),
            encode("WRCFG", GprAddress=8, CfgReg=12),
            encode("RDCFG", GprAddress=9, CfgReg=12),
            encode("STALLWAIT", Block.THCON, Condition.CFGEXU),
            encode("ADDDMAREG", OpBisConst=1, OpBRegIndex=1, OpARegIndex=9, ResultRegIndex=10),
        ],
    )
    assert tile.record.gpr[THREAD, 10] == 0x76543211


@pytest.mark.rule("000.4.2b")
def test_a_configuration_write_is_visible_to_the_next_word(tile: Tile) -> None:
    tile.record.gpr[THREAD, 1] = 7
    tile.execute(THREAD, [encode("WRCFG", GprAddress=1, CfgReg=12), encode("RDCFG", GprAddress=2, CfgReg=12)])
    assert tile.record.gpr[THREAD, 2] == 7


@pytest.mark.rule("003.6.1")
def test_thread_2_zeroes_its_own_file(tile: Tile) -> None:
    tile.record.gpr[...] = 1
    tile.execute(2, [encode("SETDMAREG", value=0, RegIndex16b=half) for half in range(128)])
    assert not tile.record.gpr[2].any()
    assert (tile.record.gpr[:2] == 1).all()
