"""Words of RISC-V instructions that bhemu makes itself, read back by the table that decodes them."""

from __future__ import annotations

import pytest

from bhemu.isa.riscv import RISCV, RiscvInstruction, disassemble_riscv, find, immediate
from bhemu.isa.riscv_words import EBREAK, PARKED, is_call, is_return, riscv_word, set_register

IMMEDIATES = {"B": -4096, "J": -(1 << 20), "S": -2048, "I": -2048, "load": 2047, "jalr": -1, "shift": 31}
ROWS = [row for row in RISCV if row.layout in (*IMMEDIATES, "U", "R", "amo")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_word_has_its_operands(row: RiscvInstruction) -> None:
    """Registers that a layout does not have would change other bits of the word."""
    has_rd, has_rs1 = row.layout not in ("B", "S"), row.layout not in ("J", "U")
    has_rs2 = row.layout in ("B", "S", "R", "amo")
    value = IMMEDIATES.get(row.layout, 0)
    word = riscv_word(row.name, rd=31 * has_rd, rs1=30 * has_rs1, rs2=29 * has_rs2, imm=value)
    assert find(word) is row
    assert immediate(word, row.layout) == value
    assert (word >> 7 & 31 == 31) or not has_rd
    assert (word >> 15 & 31 == 30) or not has_rs1
    assert (word >> 20 & 31 == 29) or not has_rs2


@pytest.mark.parametrize("value", [0, 1, 0x7FF, 0x800, 0xFFF, 0x1000, 0x7FFFFFFF, 0x80000000, 0xFFFFF800, 0xFFFFFFFF])
def test_two_words_give_a_register_a_value(value: int) -> None:
    lui, addi = set_register(5, value)
    assert disassemble_riscv(lui).startswith("lui t0")
    assert disassemble_riscv(addi).startswith("addi t0, t0")
    assert (immediate(lui, "U") + immediate(addi, "I")) & 0xFFFFFFFF == value


def test_jumps_that_call_and_that_return() -> None:
    call, through_t0 = riscv_word("jal", rd=1, imm=8), riscv_word("jalr", rd=5, rs1=6)
    back, jump = riscv_word("jalr", rs1=1), riscv_word("jalr", rs1=6)
    assert [is_call(word) for word in (call, through_t0, back, jump, PARKED, EBREAK)] == [True, True, *[False] * 4]
    assert [is_return(word) for word in (call, through_t0, back, jump, PARKED)] == [False, False, True, False, False]
