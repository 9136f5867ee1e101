"""SFPLOADMACRO: operands, LReg 16, stores (math V.7)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.machine.state import state_field
from tests.tensix.macros import INT32, Macros, byte
from tests.tensix.sfpu import word

pytestmark = pytest.mark.plain


@pytest.fixture
def unit() -> Macros:
    return Macros()


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
STATE = (
    *("lregs", "prng", "dst"),
    *("vector.lane_flags", "vector.use_flags", "vector.flag_stack", "vector.flag_stack_held"),
)
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
        np.testing.assert_array_equal(state_field(scheduled.t, name), state_field(plain.t, name), err_msg=name)


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
    unit.t["macro"]["misc"] = INT32
    unit.flags(0x0000FFFF)
    unit.macro(0, 6)
    unit.settle()
    assert unit.t["vector"]["lane_flags"] == 0x0000FFFF
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
    unit.t["macro"]["misc"] = INT32
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
    assert unit.t["macro"]["template"][3] == 0x8F000000
    before = unit.t["macro"]["template"].copy()
    unit.sequence(0, simple=byte(4, to16=True))
    unit.macro(0, 3)
    unit.settle()
    assert (unit.t["macro"]["template"] == before).all()
    assert unit.t["vector"]["lane_config"] == 0


def test_a_store_ignores_later_counters_and_its_own_address_modifier(unit: Macros) -> None:
    unit.t["thread_config"][1, 28] = 8  # address modifier 0
    unit.t["thread_config"][1, 29] = 100  # modifier 1, named by the template
    unit.put(0, 0)
    unit.t["rwc"][1, 4] = 4
    unit.t["macro"]["template"][1] = word("SFPSTORE", lreg_ind=10, sfpu_addr_mode=1, dest_reg_addr=64)
    unit.sequence(0, store=byte(5, 3, b=True))
    unit.t["macro"]["misc"] = INT32
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
    unit.t["macro"]["template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.sequence(1, store=byte(4, b=True))
    unit.t["macro"]["misc"] = misc
    unit.macro(1, 1, mode=15)
    unit.settle()
    assert unit.t["dst"][0, 0] == want


def test_a_store_obeys_the_flags_of_its_cycle_and_blocked_stores(unit: Macros) -> None:
    unit.put(0, 1)
    unit.set(2, 9)
    unit.t["macro"]["template"][0] = word("SFPSTORE", lreg_ind=2)
    unit.template(1, "SFPENCC", imm12_math=1, instr_mod1=10)  # all flags 0, in use
    unit.sequence(0, simple=byte(5), store=byte(4, b=True))
    unit.sequence(1, store=byte(4, b=True))
    unit.t["macro"]["misc"] = INT32
    unit.macro(0, 1)
    unit.settle()
    assert unit.t["vector"]["lane_flags"] == 0
    unit.flags(0xFFFFFFFF)
    assert unit.at(0) == [9] * 32
    unit.set(2, 10)
    unit.t["vector"]["lane_config"] = 1 << 4
    unit.macro(1, 1)
    unit.settle()
    assert unit.at(0) == [9] * 32
