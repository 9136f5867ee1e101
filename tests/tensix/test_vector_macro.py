"""SFPLOADMACRO: templates, sequences, delays, operands, LReg 16, what collides (math V.7)."""

from __future__ import annotations

import numpy as np
import pytest
from sfpu import Sfpu, word

from bhemu.debug import Recorder
from bhemu.errors import BhemuError, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.host.tile import Tile
from bhemu.isa.instructions import encode

pytestmark = pytest.mark.plain

SIMPLE, MAD, ROUND, STORE = range(4)
INT32 = 4
WAIT_A_CYCLE = "NOP"


def byte(what: int, delay: int = 0, *, to16: bool = False, b: bool = False) -> int:
    """A sequence byte: 0 nothing, 2 SFPNOP, 3 SFPSTORE, 4..7 templates."""
    return what | delay << 3 | to16 << 6 | b << 7


class Macros(Sfpu):
    """The vector unit with column pairs 0..3 of Dst holding 32-bit values, and short ways to program macros."""

    def template(self, index: int, mnemonic: str, **operands: int) -> None:
        self.t["macro_template"][index] = word(mnemonic, **operands)

    def sequence(self, index: int, **units: int) -> None:
        names = ("simple", "mad", "round", "store")
        self.t["macro_sequence"][index] = sum(units.get(name, 0) << 8 * n for n, name in enumerate(names))

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


@pytest.fixture
def unit() -> Macros:
    return Macros()


# --- the load, and where the instructions come from ---------------------------------------------------------------


def test_without_a_sequence_it_is_a_load_into_any_of_lreg_0_to_7(unit: Macros) -> None:
    unit.put(4, 11, 22)
    for register in range(8):
        unit.set(register, 0)
        unit.macro(0, register, address=4)
        assert unit.get(register) == [11] + [22] * 31
    assert unit.t["macro_pending"] == 0


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
    unit.t["macro_misc"] = INT32
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
    unit.t["macro_template"][1] = 0x1234
    unit.template(0, "SFPIADD", imm12_math=1, lreg_dest=13, instr_mod1=5)
    unit.sequence(0, simple=byte(4))
    unit.put(0, 7)
    unit.macro(0, 2)
    unit.settle()
    assert unit.t["macro_template"][1] == 0x1234
    assert unit.get(2) == [8] * 32


# --- time ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delay", range(8))
def test_a_delay_counts_cycles_whatever_passes_in_them(unit: Macros, delay: int) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, delay))
    unit.macro(0, 1)
    unit.wait(delay)
    assert unit.get(1) == [0] * 32
    unit.wait()
    assert unit.get(1) == [1] * 32
    assert unit.t["macro_pending"] == 0


@pytest.mark.parametrize("delay", range(8))
def test_with_misc_bit_8_a_delay_counts_vector_instructions(unit: Macros, delay: int) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, delay))
    unit.t["macro_misc"] = 1 << 8
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
    unit.t["macro_misc"] = 1 << (8 + counting) | INT32
    unit.macro(0, 1)
    unit.wait(5)
    assert unit.get(1) == [0] * 32
    unit.do("SFPNOP")
    unit.wait()
    assert unit.get(1) == [1] * 32
    unit.wait(3)
    # Once those that count instructions are gone, the others count cycles again.
    assert (unit.t["macro_pending"] == 0) == (counting == SIMPLE)
    for _ in range(2):
        unit.do("SFPNOP")
    unit.wait()
    assert unit.t["macro_pending"] == 0


def test_a_macro_counts_down_those_before_it_but_not_itself(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 1))
    unit.t["macro_misc"] = 1 << 8
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


def test_a_sequence_byte_of_0_forgets_what_is_due_in_the_next_cycle(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, 1))
    unit.macro(0, 1)
    unit.macro(1, 2)
    unit.settle()
    assert unit.get(1)[0] == 0


def test_all_instructions_of_a_cycle_read_the_lregs_of_its_beginning(unit: Macros) -> None:
    unit.put(0, 5)
    unit.put(2, 50)
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, to16=True), store=byte(3, 1, to16=True))
    unit.t["macro_misc"] = INT32
    unit.macro(0, 1, address=0)
    unit.macro(0, 1, address=2)  # loads LReg 1 while the first macro's addition reads it
    unit.do("SFPNOP")  # the second addition writes LReg 16 while the first macro's store reads it
    unit.settle()
    assert (unit.at(0)[0], unit.at(2)[0]) == (6, 51)


def test_a_load_does_not_see_the_store_of_its_own_cycle(unit: Macros) -> None:
    unit.put(0, 5)
    unit.set(2, 9)
    unit.t["macro_template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.sequence(0, store=byte(4, b=True))
    unit.t["macro_misc"] = INT32
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
    tile.record.macro_template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro_sequence[0] = byte(4, 6)
    tile.coprocessor.push(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    tile.coprocessor.run(100)
    assert tile.record.macro_pending == 0
    assert tile.lregs[1, 0] == 1
    assert tile.record.clock == 8
    tile.execute(1, encode("SFPLOADMACRO", lreg_ind=2, instr_mod0=4))
    assert tile.lregs[2, 0] == 1


def test_what_counts_instructions_stays_scheduled_when_none_come() -> None:
    tile = Tile()
    tile.record.macro_template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro_sequence[0] = byte(4, 2)
    tile.record.macro_misc = 0x100
    tile.execute(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    assert tile.lregs[1, 0] == 0
    tile.execute(1, [encode("SFPNOP")] * 2)
    assert tile.lregs[1, 0] == 1


def test_stallwait_for_the_vector_unit_waits_for_what_is_scheduled() -> None:
    tile = Tile()
    tile.record.macro_template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro_sequence[0] = byte(4, 5)
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
    tile.record.macro_template[0] = encode("SFPIADD", imm12_math=1, instr_mod1=5)
    tile.record.macro_sequence[0] = byte(4, 7)
    tile.coprocessor.push(1, encode("SFPLOADMACRO", lreg_ind=1, instr_mod0=4))
    for _ in range(4):
        for thread in (0, 2):
            tile.coprocessor.push(thread, encode("INCRWC", rwc_d=1))
    tile.coprocessor.run(4)
    assert tile.record.rwc[:, 4].tolist() == [4, 0, 4]
    assert tile.record.clock == 4


# --- operands -----------------------------------------------------------------------------------------------------

PLAIN = [
    ("SFPMAD", {"lreg_src_a": 3, "lreg_src_b": 4, "lreg_src_c": 5, "instr_mod1": 3}),
    ("SFPMAD", {"lreg_src_a": 3, "lreg_src_b": 4, "lreg_src_c": 5, "instr_mod1": 4}),
    ("SFPADD", {"lreg_src_a": 10, "lreg_src_b": 4, "lreg_src_c": 5}),
    ("SFPMUL", {"lreg_src_a": 3, "lreg_src_b": 4, "lreg_src_c": 9}),
    ("SFPADDI", {"imm16_math": 0x4123}),
    ("SFPMULI", {"imm16_math": 0x4123}),
    ("SFPLUTFP32", {"instr_mod1": 2}),
    ("SFPLUT", {"instr_mod0": 4}),
    ("SFPABS", {"lreg_c": 5, "instr_mod1": 1}),
    ("SFPAND", {"lreg_c": 5}),
    ("SFPAND", {"lreg_c": 5, "imm12_math": 6, "instr_mod1": 1}),
    ("SFPOR", {"lreg_c": 5}),
    ("SFPXOR", {"lreg_c": 5}),
    ("SFPNOT", {"lreg_c": 5}),
    ("SFPARECIP", {"lreg_c": 5}),
    ("SFPARECIP", {"lreg_c": 5, "imm12_math": 6, "instr_mod1": 1}),
    ("SFPCAST", {"lreg_src_c": 5}),
    ("SFPDIVP2", {"lreg_c": 5, "imm12_math": 3, "instr_mod1": 1}),
    ("SFPEXEXP", {"lreg_c": 5, "instr_mod1": 2}),
    ("SFPEXMAN", {"lreg_c": 5}),
    ("SFPGT", {"lreg_c": 5, "instr_mod1": 9}),
    ("SFPLE", {"lreg_c": 5, "instr_mod1": 1}),
    ("SFPIADD", {"lreg_c": 5, "instr_mod1": 2}),
    ("SFPIADD", {"lreg_c": 5, "imm12_math": 0xFFF, "instr_mod1": 9}),
    ("SFPLZ", {"lreg_c": 5, "instr_mod1": 2}),
    ("SFPMOV", {"lreg_c": 5, "instr_mod1": 1}),
    ("SFPMOV", {"lreg_c": 5, "instr_mod1": 2}),
    ("SFPSETCC", {"lreg_c": 5, "instr_mod1": 4}),
    ("SFPENCC", {"instr_mod1": 0}),
    ("SFPPUSHC", {}),
    ("SFPSETEXP", {"lreg_c": 5, "instr_mod1": 2}),
    ("SFPSETMAN", {"lreg_c": 5}),
    ("SFPSETSGN", {"lreg_c": 5}),
    ("SFPSHFT", {"lreg_c": 5, "instr_mod1": 0}),
    ("SFPSHFT", {"lreg_c": 5, "imm12_math": 0xFFD, "instr_mod1": 1}),
    ("SFPSWAP", {"lreg_src_c": 5, "instr_mod1": 1}),
    ("SFPTRANSP", {}),
    ("SFPSHFT2", {"lreg_src_c": 5, "instr_mod1": 0}),
    ("SFPSHFT2", {"lreg_src_c": 5, "instr_mod1": 2}),
    ("SFPSHFT2", {"lreg_src_c": 5, "instr_mod1": 3}),
    ("SFPSHFT2", {"lreg_src_c": 5, "imm12_math": 6, "instr_mod1": 5}),
    ("SFP_STOCH_RND", {"lreg_src_c": 5, "instr_mod1": 1}),
    ("SFP_STOCH_RND", {"lreg_src_c": 5, "lreg_src_b": 6, "instr_mod1": 4, "rnd_mode": 1}),
]

MAD_WORDS = {"SFPMAD", "SFPADD", "SFPMUL", "SFPMUL24", "SFPMULI", "SFPADDI", "SFPLUT", "SFPLUTFP32"}
STATE = ("lregs", "prng", "lane_flags", "use_flags", "flag_stack", "flag_stack_depth", "dst")
LOADED = 2


def registers(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal((8, 32)) * 4).astype(np.float32).view(np.uint32)
    values[6] = rng.integers(0, 40, 32)
    return values


def sub_unit(mnemonic: str) -> str:
    if mnemonic in MAD_WORDS:
        return "mad"
    return "round" if mnemonic in ("SFPSHFT2", "SFP_STOCH_RND") else "simple"


@pytest.mark.parametrize("value_is_b", [False, True])
@pytest.mark.parametrize(("mnemonic", "operands"), PLAIN)
def test_with_the_loaded_register_as_destination_it_is_the_plain_instruction(
    mnemonic: str, operands: dict[str, int], value_is_b: bool
) -> None:
    scheduled, plain = Macros(), Macros()
    destination = "lreg_ind" if mnemonic == "SFPLUT" else "lreg_dest"
    wanted = dict(operands)
    fields = {"c": ("lreg_c", "lreg_src_c"), "b": ("lreg_src_b",)}
    if mnemonic in ("SFPAND", "SFPARECIP") or (mnemonic, operands.get("instr_mod1")) == ("SFPSHFT2", 5):
        fields["b"] = ("imm12_math",)
    for name in fields["b" if value_is_b else "c"]:
        if name in wanted:
            wanted[name] = LOADED
    for unit in (scheduled, plain):
        unit.t["lregs"][:8] = registers(1)
        unit.t["prng"][:] = np.arange(32) * 77 + 5
        unit.put(0, *[int(x) for x in registers(2)[0]])
        unit.flags(0x0FF0FFF5)
    scheduled.template(0, mnemonic, **operands, **{destination: LOADED})
    scheduled.sequence(0, **{sub_unit(mnemonic): byte(4, b=value_is_b)})
    scheduled.macro(0, LOADED)
    scheduled.settle()
    plain.do("SFPLOAD", lreg_ind=LOADED, instr_mod0=INT32)
    plain.do(mnemonic, **wanted, **{destination: LOADED})
    for name in STATE:
        np.testing.assert_array_equal(scheduled.t[name], plain.t[name], err_msg=name)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "b", "want"),
    [
        # C is the loaded register, B the displaced destination 13, which no plain instruction can read
        ("SFPIADD", {"instr_mod1": 6}, False, 1000 - 13),
        ("SFPXOR", {}, False, 1000 ^ 13),
        ("SFPSHFT", {"imm12_math": 2, "instr_mod1": 1}, False, 13 << 2),
        # B is the loaded register
        ("SFPIADD", {"lreg_c": 14, "instr_mod1": 6}, True, 14 - 1000 & 0xFFFFFFFF),
        ("SFPSHFT", {"imm12_math": 2, "instr_mod1": 1, "lreg_c": 14}, True, 1000 << 2),
        ("SFPSETMAN", {"lreg_c": 14}, True, 1000),
        ("SFPMOV", {"lreg_c": 14}, True, 14),
        # AND without the mode bit has no operand B: it reads its true destination
        ("SFPAND", {"lreg_c": 14}, True, 14 & 1000),
        # the amount keeps its bits, although they are also where B is named
        ("SFPSHFT2", {"imm12_math": 5, "instr_mod1": 6}, True, 1000 << 5),
        ("SFPSHFT2", {"imm12_math": 4, "instr_mod1": 6}, False, 44 << 4),
    ],
)
def test_operands_that_a_plain_word_cannot_name(
    unit: Macros, mnemonic: str, operands: dict[str, int], b: bool, want: int
) -> None:
    unit.set(13, 13)
    unit.set(14, 14)
    unit.set(4, 44)
    unit.put(0, 1000)
    unit.template(0, mnemonic, **operands, lreg_dest=13)
    unit.sequence(0, **{sub_unit(mnemonic): byte(4, b=b)})
    unit.macro(0, 5)
    unit.settle()
    assert unit.get(5) == [want] * 32
    assert (unit.get(13)[0], unit.get(4)[0]) == (13, 44)


def test_immediate_mad_words_take_the_displaced_destination_when_the_value_is_b(unit: Macros) -> None:
    unit.set(12, 0x40A00000)  # 5.0
    unit.put(0, 0x40000000)  # 2.0
    unit.template(0, "SFPADDI", imm16_math=0x3F80, lreg_dest=12)
    for b, want in ((False, 0x40400000), (True, 0x40C00000)):
        unit.sequence(0, mad=byte(4, b=b))
        unit.macro(0, 3)
        unit.settle()
        assert unit.get(3) == [want] * 32


def test_lreg_16_takes_a_result_and_is_stored_while_the_loaded_register_stays(unit: Macros) -> None:
    unit.put(0, 40)
    unit.template(0, "SFPIADD", imm12_math=2, instr_mod1=1)  # would set flags
    unit.sequence(0, simple=byte(4, to16=True), store=byte(3, 1, to16=True))
    unit.t["macro_misc"] = INT32
    unit.flags(0x0000FFFF)
    unit.macro(0, 6)
    unit.settle()
    assert unit.t["lane_flags"] == 0x0000FFFF
    assert unit.get(6) == [40] * 16 + [0] * 16
    assert unit.get(16) == [42] * 16 + [0] * 16
    unit.flags(0xFFFFFFFF)
    assert unit.at(0) == [42] * 16 + [40] * 16


def test_lreg_16_is_the_old_destination_of_an_and_without_operand_b(unit: Macros) -> None:
    unit.set(16, 0b1100)
    unit.put(0, 0b1010)
    unit.template(0, "SFPAND")
    unit.sequence(0, simple=byte(4, to16=True))
    unit.macro(0, 1)
    unit.settle()
    assert unit.get(16) == [0b1000] * 32


@pytest.mark.parametrize(
    ("mnemonic", "operands"),
    [
        ("SFPMAD", {"lreg_src_a": 10, "lreg_src_c": 9, "instr_mod1": 8}),
        ("SFPADDI", {"instr_mod1": 8}),
        ("SFPLUTFP32", {"instr_mod1": 10}),
    ],
)
def test_an_indirect_destination_is_obeyed_unless_it_is_lreg_16(
    unit: Macros, mnemonic: str, operands: dict[str, int]
) -> None:
    unit.set(7, 4, 5)
    unit.set(0, 0x3C000000)  # table entry: slope 1.0, offset 2^-15
    unit.put(0, 0x3F000000)
    unit.template(0, mnemonic, **operands)
    unit.sequence(0, mad=byte(4, b=mnemonic == "SFPMAD"))
    unit.macro(0, 3)
    unit.settle()
    assert unit.get(3) == [0x3F000000] * 32
    results = {unit.get(4)[0], unit.get(5)[1]}
    assert len(results) == 1
    assert results != {0}
    assert (unit.get(4)[1], unit.get(5)[0]) == (0, 0)
    unit.sequence(0, mad=byte(4, b=mnemonic == "SFPMAD", to16=True))
    unit.macro(0, 3)
    unit.settle()
    assert set(unit.get(16)) == results
    assert unit.get(7)[:2] == [4, 5]


def test_a_swap_clamps_the_loaded_register_against_a_constant(unit: Macros) -> None:
    unit.set(14, 0xC2B10000)  # -88.5
    unit.template(0, "SFPSWAP", lreg_dest=14, instr_mod1=1)
    unit.sequence(0, simple=byte(4), store=byte(3, 2))
    unit.t["macro_misc"] = INT32
    unit.put(0, 0xC2C80000, 0xC2200000, 0x42C80000)  # -100, -40, 100
    unit.macro(0, 2)
    unit.settle()
    assert unit.get(2)[:3] == [0xC2B10000, 0xC2200000, 0x42C80000]
    assert unit.at(0)[:3] == [0xC2B10000, 0xC2200000, 0x42C80000]
    assert unit.get(14) == [0xC2B10000] * 32


def test_a_swap_into_lreg_16_gives_each_side_its_value_even_where_they_are_equal(unit: Macros) -> None:
    unit.set(14, 5)
    unit.template(0, "SFPSWAP", lreg_dest=14, instr_mod1=0)
    unit.sequence(0, simple=byte(4, to16=True))
    unit.put(0, 5, 6)
    unit.macro(0, 2)
    unit.settle()
    assert unit.get(16)[:2] == [5, 6]
    assert unit.get(2)[:2] == [5, 5]


def test_sfpconfig_in_a_macro_writes_the_template_or_sequence_that_the_loaded_register_numbers(unit: Macros) -> None:
    unit.set(0, 0x8F000000)
    unit.template(0, "SFPCONFIG", config_dest=15)
    unit.sequence(0, simple=byte(4))
    unit.macro(0, 3)
    unit.settle()
    assert unit.t["macro_template"][3] == 0x8F000000
    before = unit.t["macro_template"].copy()
    unit.sequence(0, simple=byte(4, to16=True))
    unit.macro(0, 3)
    unit.settle()
    assert (unit.t["macro_template"] == before).all()
    assert unit.t["lane_config"] == 0


# --- stores -------------------------------------------------------------------------------------------------------


def test_a_store_ignores_later_counters_and_its_own_address_modifier(unit: Macros) -> None:
    unit.t["thread_config"][1, 28] = 8  # address modifier 0
    unit.t["thread_config"][1, 29] = 100  # modifier 1, named by the template
    unit.put(0, 0)
    unit.t["rwc"][1, 4] = 4
    unit.t["macro_template"][1] = word("SFPSTORE", lreg_ind=10, sfpu_addr_mode=1, dest_reg_addr=64)
    unit.sequence(0, store=byte(5, 3, b=True))
    unit.t["macro_misc"] = INT32
    unit.macro(0, 1, address=2)
    unit.settle()
    assert unit.t["rwc"][1, 4] == 12
    unit.t["rwc"][1, 4] = 0
    unit.t["thread_config"][1, 28] = 0
    assert unit.at(6) == [0x3F800000] * 32


@pytest.mark.parametrize(("misc", "want"), [(6, 0x1234), (6 | 1 << 5, 0x12), (6 | 1 << 6, 0x1234)])
def test_the_format_of_a_store_is_misc_or_that_of_the_load(unit: Macros, misc: int, want: int) -> None:
    """Mod0 6 stores the low half of LReg 2; the load's Mod0 15 would store its high half."""
    unit.set(2, 0x00121234)
    unit.t["macro_template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.sequence(1, store=byte(4, b=True))
    unit.t["macro_misc"] = misc
    unit.macro(1, 1, mode=15)
    unit.settle()
    assert unit.t["dst"][0, 0] == want


def test_a_store_obeys_the_flags_of_its_cycle_and_blocked_stores(unit: Macros) -> None:
    unit.put(0, 1)
    unit.set(2, 9)
    unit.t["macro_template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.template(1, "SFPENCC", imm12_math=1, instr_mod1=10)  # all flags 0, in use
    unit.sequence(0, simple=byte(5), store=byte(4, b=True))
    unit.sequence(1, store=byte(4, b=True))
    unit.t["macro_misc"] = INT32
    unit.macro(0, 1)
    unit.settle()
    assert unit.t["lane_flags"] == 0
    unit.flags(0xFFFFFFFF)
    assert unit.at(0) == [9] * 32
    unit.set(2, 10)
    unit.t["lane_config"] = 1 << 4
    unit.macro(1, 1)
    unit.settle()
    assert unit.at(0) == [9] * 32


# --- collisions ---------------------------------------------------------------------------------------------------


def test_a_regular_instruction_is_lost_where_a_scheduled_one_has_its_sub_unit(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4))
    unit.set(2, 20)
    unit.set(4, 0x3F800000)
    for mnemonic, operands, survives in (
        ("SFPMOV", {"lreg_c": 9, "lreg_dest": 2}, False),
        ("SFPADDI", {"imm16_math": 0x3F80, "lreg_dest": 4}, True),
        ("SFPLOADI", {"imm16": 3, "lreg_ind": 3, "instr_mod0": 2}, True),
    ):
        before = unit.t["lregs"][2:5].copy()
        unit.macro(0, 1)
        unit.do(mnemonic, **operands)
        assert unit.get(1)[0] == 1
        assert (unit.t["lregs"][2:5] != before).any() == survives
    unit.do("SFPMOV", lreg_c=9, lreg_dest=2)
    assert unit.get(2) == [0] * 32


def test_a_lost_instruction_counts_as_issued(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4), mad=byte(2, 1))
    unit.t["macro_misc"] = 1 << 9
    unit.macro(0, 1)
    unit.do("SFPMOV", lreg_c=9, lreg_dest=2)
    assert unit.t["macro_counted"] != 0
    unit.wait()
    assert unit.t["macro_pending"] == 0


@pytest.mark.parametrize(("simple16", "round16"), [(False, False), (True, True), (True, False), (False, True)])
def test_simple_and_round_may_meet_if_exactly_one_has_lreg_16(unit: Macros, simple16: bool, round16: bool) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.template(1, "SFPSHFT2", imm12_math=0x003, instr_mod1=6)
    unit.sequence(0, simple=byte(4, to16=simple16), round=byte(5, to16=round16, b=True))
    unit.put(0, 4)
    unit.macro(0, 1)
    if simple16 != round16:
        unit.settle()
        assert {unit.get(1)[0], unit.get(16)[0]} == {5, 4 << 3}
        return
    with pytest.raises(UndefinedBehavior, match="exactly one of them must have LReg 16") as refusal:
        unit.wait()
    assert "scheduled by SFPLOADMACRO" in str(refusal.value)
    unit.do("SFPLOADI", lreg_ind=5, imm16=1, instr_mod0=2)  # the machine lives on
    assert unit.get(5)[0] == 1


@pytest.mark.parametrize("to16", [False, True])
def test_a_regular_round_instruction_beside_a_scheduled_simple_one(unit: Macros, to16: bool) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.sequence(0, simple=byte(4, to16=to16))
    unit.set(3, 2)
    unit.macro(0, 1)
    operands = {"imm12_math": 0x003, "lreg_dest": 4, "instr_mod1": 6}
    if not to16:
        with pytest.raises(UndefinedBehavior, match="exactly one"):
            unit.do("SFPSHFT2", **operands)
        return
    unit.do("SFPSHFT2", **operands)
    assert (unit.get(4)[0], unit.get(16)[0]) == (2 << 3, 1)


def test_a_swap_needs_mad_idle_and_a_cycle_of_rest(unit: Macros) -> None:
    unit.template(0, "SFPSWAP", lreg_dest=14, instr_mod1=1)
    unit.template(1, "SFPMULI")
    unit.sequence(0, simple=byte(4), mad=byte(5))
    unit.sequence(1, simple=byte(4), mad=byte(2))
    unit.macro(0, 1)
    with pytest.raises(UndefinedBehavior, match="write port"):
        unit.wait()
    unit.macro(1, 1)
    unit.wait()
    with pytest.raises(UndefinedBehavior, match=r"sub-unit 0 .* gets an instruction in the cycle after"):
        unit.do("SFPMOV", lreg_c=9, lreg_dest=2)
    unit.settle()
    unit.macro(1, 1)
    unit.macro(1, 2)
    with pytest.raises(UndefinedBehavior, match="in the cycle after"):
        unit.wait()


# --- settings that differ by lane ---------------------------------------------------------------------------------


def test_columns_may_have_sequences_of_their_own(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=1, instr_mod1=5)
    unit.template(1, "SFPSHFT", imm12_math=4, instr_mod1=5)
    unit.set(0, byte(4, 1), byte(5, 1), byte(5, 0), 0)
    unit.do("SFPCONFIG", config_dest=4)
    unit.put(0, 3)
    unit.macro(0, 1)
    unit.wait()
    assert unit.get(1)[:4] == [3, 3, 48, 3]
    unit.settle()
    assert unit.get(1) == [4, 48, 48, 3, 3, 3, 3, 3] * 4


def test_flags_of_other_lanes_stay_when_some_lanes_execute(unit: Macros) -> None:
    unit.template(0, "SFPIADD", imm12_math=0x800, instr_mod1=9)  # flags := result >= 0
    unit.set(0, byte(4), 0)
    unit.do("SFPCONFIG", config_dest=4)
    unit.flags(0xFFFF0000)
    unit.macro(0, 1)
    unit.settle()
    assert unit.t["lane_flags"] == 0xFFFF0000 & ~0x01010101
    assert unit.t["use_flags"] == 1


def test_stores_in_some_lanes_and_flag_control_in_some_lanes_are_refused(unit: Macros) -> None:
    unit.set(0, byte(3) << 24, 0)
    unit.do("SFPCONFIG", config_dest=4)
    with pytest.raises(UndefinedBehavior, match="all lanes must store"):
        unit.macro(0, 1)
    unit.template(0, "SFPPUSHC")
    unit.set(0, byte(4), 0)
    unit.do("SFPCONFIG", config_dest=5)
    unit.macro(1, 1)
    with pytest.raises(Unimplemented, match="exist once for all lanes"):
        unit.settle()


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "error", "text"),
    [
        ({"mad": byte(1)}, UndefinedBehavior, "sequence 2 chooses instruction 1 for sub-unit 1"),
        ({"store": byte(1)}, UndefinedBehavior, "sequence 2 chooses instruction 1 for sub-unit 3"),
        ({"store": byte(2)}, UndefinedBehavior, "no SFPSTORE"),
        ({"store": byte(4)}, UndefinedBehavior, "no SFPSTORE"),
    ],
)
def test_sequences_without_a_meaning_are_refused_before_the_load(
    unit: Macros, units: dict[str, int], error: type[BhemuError], text: str
) -> None:
    unit.template(0, "SFPMOV")
    unit.sequence(2, **units)
    unit.put(0, 7)
    with pytest.raises(error, match=text):
        unit.macro(2, 1)
    assert unit.get(1) == [0] * 32
    assert unit.t["macro_pending"] == 0


def test_a_refused_template_names_itself_and_the_waiting_word_of_the_thread_stays(unit: Macros) -> None:
    unit.template(0, "SFPABS", instr_mod1=7)
    unit.sequence(0, simple=byte(4))
    unit.macro(0, 1)
    unit.coprocessor.push(1, encode("SEMWAIT", stall_res=0x2, sem_sel=1, wait_sem_cond=1))
    unit.coprocessor.push(1, encode("SEMPOST", sem_sel=2))
    with pytest.raises(UndefinedBehavior, match=r"SFPABS .*thread 1, math, scheduled by SFPLOADMACRO.*mode 7"):
        unit.coprocessor.drain(1)
    assert not unit.coprocessor.drain(1)
    unit.t["semaphore"][0] = 1
    assert unit.coprocessor.drain(1)
    assert unit.t["semaphore"][1] == 1


def test_open_cases_are_refused_unless_the_user_consents(unit: Macros) -> None:
    unit.sequence(0, store=byte(3))
    unit.t["macro_misc"] = 10
    unit.macro(0, 1)
    with pytest.raises(MissingSpecification, match="Mod0 10"):
        unit.settle()
    unit.t["allow_open"] = 1
    unit.macro(0, 1)
    unit.settle()
    unit.template(0, "SFPSWAP", lreg_dest=3, instr_mod1=1)
    unit.sequence(0, simple=byte(4))
    unit.t["lane_config"] = 4
    unit.macro(0, 1)
    with pytest.raises(MissingSpecification, match="which indices follow"):
        unit.settle()


# --- programs -----------------------------------------------------------------------------------------------------


def face(seed: int) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal((16, 16)) * 20).astype(np.float32)


def with_face(tile: Tile) -> Tile:
    """Dst rows 0..15 in the BF16 cells {sign, mantissa, exponent} of a face (I.2)."""
    bits = face(3).view(np.uint32) >> 16
    tile.record.dst[:16] = (bits & 0x8000) | (bits & 0x7F) << 8 | (bits >> 7) & 0xFF
    tile.lregs[12] = np.full(32, 369.329925, np.float32).view(np.uint32)
    tile.lregs[13] = np.full(32, 32500.818, np.float32).view(np.uint32)
    tile.lregs[14] = np.full(32, -88.5, np.float32).view(np.uint32)
    return tile


ADDRESSES = range(0, 16, 2)
CLAMP = 9


def plain_exponential() -> list[int]:
    program = []
    for address in ADDRESSES:
        program += [
            encode("SFPLOAD", lreg_ind=0, instr_mod0=2, dest_reg_addr=address),
            encode("SFPSWAP", lreg_src_c=14, lreg_dest=0, instr_mod1=CLAMP),
            encode("SFPMAD", lreg_src_a=12, lreg_src_b=0, lreg_src_c=13, lreg_dest=0),
            encode("SFP_STOCH_RND", lreg_src_c=0, lreg_dest=0, instr_mod1=6),
            encode("SFPSHFT", imm12_math=15, lreg_c=0, lreg_dest=0, instr_mod1=1),
            encode("SFPSTORE", lreg_ind=0, instr_mod0=2, dest_reg_addr=address),
        ]
    return program


def configuration() -> list[int]:
    """Templates swap, multiply-add, round, shift; sequence 0 computes and stores, sequence 1 clamps and stores."""
    swap = encode("SFPSWAP", lreg_dest=14, instr_mod1=1)
    compute = byte(7, 3, to16=True, b=True) | byte(5, b=True) << 8 | byte(6, 2) << 16 | byte(3, 4, to16=True) << 24
    clamp = byte(4) | byte(3, 2) << 24
    program = []
    for destination, value in ((0, swap), (4, compute), (5, clamp)):
        program += [
            encode("SFPLOADI", lreg_ind=0, imm16=value & 0xFFFF, instr_mod0=10),
            encode("SFPLOADI", lreg_ind=0, imm16=value >> 16, instr_mod0=8),
            encode("SFPCONFIG", config_dest=destination),
        ]
    return [
        *program,
        encode("SFPMAD", lreg_src_a=12, lreg_src_c=13, lreg_dest=13),
        encode("SFP_STOCH_RND", lreg_dest=14, instr_mod1=6),
        encode("SFPSHFT", imm12_math=15, lreg_dest=15, instr_mod1=1),
        encode("SFPCONFIG", config_dest=8, imm16_math=2, instr_mod1=1),
    ]


def macro_exponential(misc: int = 2) -> list[int]:
    """Every cycle a load starts; four registers in turn, all five sub-units at work at once."""
    program = [*configuration(), encode("SFPCONFIG", config_dest=8, imm16_math=misc, instr_mod1=1)]
    for n, address in enumerate(ADDRESSES):
        clamp = encode("SFPLOADMACRO", lreg_ind=1 << 2 | n % 4, instr_mod0=2, dest_reg_addr=address)
        program += [clamp, encode("SFPNOP")]
    for n, address in enumerate(ADDRESSES):
        program.append(encode("SFPLOADMACRO", lreg_ind=n % 4, instr_mod0=2, dest_reg_addr=address))
    return [*program, *[encode("SFPNOP")] * 5]


@pytest.mark.parametrize("misc", [0x002, 0xF02])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_pipelined_exponential_over_a_face_is_the_plain_one(misc: int, at_once: bool) -> None:
    plain, pipelined = with_face(Tile()), with_face(Tile())
    plain.execute(1, plain_exponential())
    program = macro_exponential(misc)
    if at_once:
        for instruction in program:
            while not pipelined.coprocessor.push(1, instruction):
                pipelined.coprocessor.run(3)
        pipelined.coprocessor.run(100)
    else:
        pipelined.execute(1, program)
    assert pipelined.record.macro_pending == 0
    np.testing.assert_array_equal(pipelined.record.dst[:16], plain.record.dst[:16])
    cells = plain.record.dst[:16].astype(np.uint32)
    value = ((cells & 0x8000) | (cells & 0xFF) << 7 | (cells >> 8) & 0x7F) << 16
    argument = (face(3).view(np.uint32) & 0xFFFF0000).view(np.float32)
    np.testing.assert_allclose(value.view(np.float32), np.exp(np.maximum(argument, -88.5)), rtol=0.04)


def test_a_recorder_changes_nothing() -> None:
    plain, recorded = with_face(Tile()), with_face(Tile())
    recorder = Recorder()
    recorder.attach(recorded)
    for tile in (plain, recorded):
        tile.execute(1, macro_exponential())
    np.testing.assert_array_equal(recorded.record.dst, plain.record.dst)
    assert recorded.record.clock == plain.record.clock
    assert len(recorder.log()) == len(macro_exponential())


def test_a_snapshot_in_the_middle_of_a_macro_can_be_continued() -> None:
    tile = with_face(Tile())
    program = macro_exponential()
    for instruction in program[:-7]:
        tile.coprocessor.push(1, instruction)
        tile.coprocessor.drain(1)
    assert tile.record.macro_pending != 0
    middle = tile.snapshot()
    tile.execute(1, program[-7:])
    wanted = tile.record.dst[:16].copy()
    tile.reset()
    tile.restore(middle)
    tile.execute(1, program[-7:])
    np.testing.assert_array_equal(tile.record.dst[:16], wanted)
