"""SFPLOADMACRO: the load, templates, sequences, delays (math V.7)."""

from __future__ import annotations

import pytest

from bhemu.api.tile import Tile
from bhemu.isa.instructions import encode
from tests.tensix.macros import INT32, SIMPLE, Macros, byte
from tests.tensix.sfpu import word

pytestmark = pytest.mark.plain


@pytest.fixture
def unit() -> Macros:
    return Macros()


def test_without_a_sequence_it_is_a_load_into_any_of_lreg_0_to_7(unit: Macros) -> None:
    unit.put(4, 11, 22)
    for register in range(8):
        unit.set(register, 0)
        unit.macro(0, register, address=4)
        assert unit.get(register) == [11] + [22] * 31
    assert unit.t["macro"]["pending"] == 0


def test_the_load_applies_its_address_modifier(unit: Macros) -> None:
    unit.t["thread_config"][1, 28 + 5] = 6
    unit.macro(0, modifier=5)
    assert unit.t["rwc"][1, 4] == 6


def test_templates_come_from_destinations_12_to_15_and_from_sfpconfig(unit: Macros) -> None:
    for register in range(12, 16):
        unit.do("SFPIADD", imm12_math=register, lreg_dest=register, instr_mod1=5)
    unit.put(0, 100)
    for index in range(4):
        unit.do("SFPLOADI", lreg_ind=0, imm16=byte(4 + index), instr_mod0=2)
        unit.do("SFPCONFIG", config_dest=4 + index)
        unit.macro(index, 1)
        unit.settle()
        assert unit.get(1) == [100 + 12 + index] * 32
    template = word("SFPIADD", imm12_math=0x7FF, lreg_dest=13, instr_mod1=5)
    unit.do("SFPLOADI", lreg_ind=0, imm16=template >> 16, instr_mod0=8)
    unit.do("SFPLOADI", lreg_ind=0, imm16=template & 0xFFFF, instr_mod0=10)
    unit.do("SFPCONFIG", config_dest=2)
    unit.macro(2, 1)
    unit.settle()
    assert unit.get(1) == [100 + 0x7FF] * 32


def test_each_sub_unit_executes_and_the_store_writes_where_the_macro_read(unit: Macros) -> None:
    unit.put(6, 0x40000000)  # 2.0
    unit.set(2, 0x40400000)  # 3.0
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.template(1, "SFPMAD", lreg_src_a=2, lreg_src_c=10)
    unit.template(2, "SFPSHFT2", imm12_math=1, instr_mod1=6)
    unit.sequence(0, mad=byte(5, b=True), simple=byte(4, 2), round=byte(6, 4, b=True), store=byte(3, 5))
    unit.t["macro"]["misc"] = INT32
    unit.macro(0, 1, address=6)
    unit.settle()
    fused = 0x40E00000  # 2.0 * 3.0 + 1.0
    assert unit.get(1) == [(fused + 1) << 1] * 32
    assert unit.at(6) == [(fused + 1) << 1] * 32


def test_what_a_sub_unit_cannot_execute_is_a_nop_and_keeps_it_busy(unit: Macros) -> None:
    unit.set(1, 5)
    unit.template(0, "SFPMAD", lreg_src_a=10, lreg_src_b=10, lreg_src_c=10)
    unit.sequence(0, simple=byte(4), mad=byte(2), round=byte(4))
    unit.put(0, 3)
    unit.macro(0, 1)
    unit.do("SFPMOV", lreg_c=9, lreg_dest=2)  # lost to the SFPNOP
    unit.settle()
    assert unit.get(1) == [3] * 32
    unit.set(2, 8)
    unit.macro(0, 1)
    unit.do("SFPMOV", lreg_c=9, lreg_dest=2)
    assert unit.get(2) == [8] * 32


def test_templates_are_not_recorded_inside_macros(unit: Macros) -> None:
    unit.t["macro"]["template"][1] = 0x1234
    unit.template(0, "SFPIADD", imm12_math=1, lreg_dest=13, instr_mod1=5)
    unit.sequence(0, simple=byte(4))
    unit.put(0, 7)
    unit.macro(0, 2)
    unit.settle()
    assert unit.t["macro"]["template"][1] == 0x1234
    assert unit.get(2) == [8] * 32


@pytest.mark.parametrize("delay", range(8))
def test_a_delay_counts_cycles_whatever_passes_in_them(unit: Macros, delay: int) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, delay))
    unit.macro(0, 1)
    unit.wait(delay)
    assert unit.get(1) == [0] * 32
    unit.wait()
    assert unit.get(1) == [1] * 32
    assert unit.t["macro"]["pending"] == 0


@pytest.mark.parametrize("delay", range(8))
def test_with_misc_bit_8_a_delay_counts_vector_instructions(unit: Macros, delay: int) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, delay))
    unit.t["macro"]["misc"] = 1 << 8
    unit.macro(0, 1)
    for _ in range(delay):
        unit.wait(3)
        unit.settle()
        assert unit.get(1) == [0] * 32
        unit.do("SFPNOP")
    assert unit.get(1) == [0] * 32
    unit.wait()  # delay 0 executes in the next cycle, whatever that holds
    assert unit.get(1) == [1] * 32


@pytest.mark.parametrize("counting", range(4))
def test_one_pending_entry_that_counts_instructions_makes_all_count_them(unit: Macros, counting: int) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 1), mad=byte(2, 3), round=byte(2, 3), store=byte(3, 3))
    unit.t["macro"]["misc"] = 1 << (8 + counting) | INT32
    unit.macro(0, 1)
    unit.wait(5)
    assert unit.get(1) == [0] * 32
    unit.do("SFPNOP")
    unit.wait()
    assert unit.get(1) == [1] * 32
    unit.wait(3)
    # Once those that count instructions are gone, the others count cycles again.
    assert (unit.t["macro"]["pending"] == 0) == (counting == SIMPLE)
    for _ in range(2):
        unit.do("SFPNOP")
    unit.wait()
    assert unit.t["macro"]["pending"] == 0


def test_a_macro_counts_down_those_before_it_but_not_itself(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 1))
    unit.t["macro"]["misc"] = 1 << 8
    unit.macro(0, 1)
    unit.macro(0, 2)
    unit.wait()
    assert (unit.get(1)[0], unit.get(2)[0]) == (1, 0)
    unit.do("SFPNOP")
    unit.wait()
    assert (unit.get(1)[0], unit.get(2)[0]) == (1, 1)


def test_an_entry_replaces_one_for_the_same_sub_unit_and_cycle(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 3))
    unit.sequence(1, simple=byte(4, 2))
    unit.macro(0, 1)
    unit.macro(1, 2)
    unit.settle()
    assert (unit.get(1)[0], unit.get(2)[0]) == (0, 1)


def test_a_sequence_byte_of_0_forgets_nothing(unit: Macros) -> None:
    """As the overlapping iterations of the LLK's mul_int32 need it."""
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 1))
    unit.macro(0, 1)
    unit.macro(1, 2)
    unit.settle()
    assert (unit.get(1)[0], unit.get(2)[0]) == (1, 0)


def test_all_instructions_of_a_cycle_read_the_lregs_of_its_beginning(unit: Macros) -> None:
    unit.put(0, 5)
    unit.put(2, 50)
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, to16=True), store=byte(3, 1, to16=True))
    unit.t["macro"]["misc"] = INT32
    unit.macro(0, 1, address=0)
    unit.macro(0, 1, address=2)  # loads LReg 1 while the first macro's addition reads it
    unit.do("SFPNOP")  # the second addition writes LReg 16 while the first macro's store reads it
    unit.settle()
    assert (unit.at(0)[0], unit.at(2)[0]) == (6, 51)


def test_a_load_does_not_see_the_store_of_its_own_cycle(unit: Macros) -> None:
    unit.put(0, 5)
    unit.set(2, 9)
    unit.t["macro"]["template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.sequence(0, store=byte(4, b=True))
    unit.t["macro"]["misc"] = INT32
    unit.macro(0, 1)
    unit.do("SFPLOAD", lreg_ind=3, instr_mod0=INT32)
    unit.do("SFPLOAD", lreg_ind=4, instr_mod0=INT32)
    assert (unit.get(3)[0], unit.get(4)[0]) == (5, 9)


def test_a_scheduled_mad_takes_two_cycles_and_nobody_waits_for_it(unit: Macros) -> None:
    unit.put(0, 0x3F800000)
    unit.template(0, "SFPMULI", imm16_math=0x4000)
    unit.sequence(0, mad=byte(4))
    unit.macro(0, 1)
    unit.wait()
    assert unit.get(1)[0] == 0x3F800000
    unit.do("SFPMOV", lreg_c=1, lreg_dest=2)
    assert (unit.get(1)[0], unit.get(2)[0]) == (0x40000000, 0x3F800000)


def test_what_a_program_leaves_scheduled_completes_when_its_threads_are_idle() -> None:
    tile = Tile()
    tile.record.macro.template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro.sequence[0] = byte(4, 6)
    tile.coprocessor.push(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    tile.coprocessor.run(100)
    assert tile.record.macro.pending == 0
    assert tile.lregs[1, 0] == 1
    assert tile.record.clock == 8
    tile.execute(1, encode("SFPLOADMACRO", lreg_ind=2, instr_mod0=4))
    assert tile.lregs[2, 0] == 1


def test_what_counts_instructions_stays_scheduled_when_none_come() -> None:
    tile = Tile()
    tile.record.macro.template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro.sequence[0] = byte(4, 2)
    tile.record.macro.misc = 0x100
    tile.execute(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    assert tile.lregs[1, 0] == 0
    tile.execute(1, [encode("SFPNOP")] * 2)
    assert tile.lregs[1, 0] == 1


def test_stallwait_for_the_vector_unit_waits_for_what_is_scheduled() -> None:
    tile = Tile()
    tile.record.macro.template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro.sequence[0] = byte(4, 5)
    program = [
        encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4),
        encode("STALLWAIT", stall_res=0x002, wait_res=0x800),
        encode("SEMPOST", sem_sel=1),
    ]
    for instruction in program:
        tile.coprocessor.push(1, instruction)
    for _ in range(7):
        assert tile.semaphores[0] == 0
        tile.coprocessor.run(1)
    assert tile.lregs[1, 0] == 1
    tile.coprocessor.run(10)
    assert tile.semaphores[0] == 1


def test_other_threads_go_on_beside_a_macro() -> None:
    tile = Tile()
    tile.record.macro.template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro.sequence[0] = byte(4, 7)
    tile.coprocessor.push(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    for _ in range(4):
        for thread in (0, 2):
            tile.coprocessor.push(thread, encode("INCRWC", rwc_d=1))
    tile.coprocessor.run(4)
    assert tile.record.rwc[:, 4].tolist() == [4, 0, 4]
    assert tile.record.clock == 4
