"""SFPLOADMACRO: what collides, what is refused, whole programs (math V.7)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError, MissingSpecification, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.recording import Recorder
from tests.tensix.macros import Macros, byte

pytestmark = pytest.mark.plain


@pytest.fixture
def unit() -> Macros:
    return Macros()


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
    unit.t["macro"]["misc"] = 1 << 9
    unit.macro(0, 1)
    unit.do("SFPMOV", lreg_c=9, lreg_dest=2)
    assert unit.t["macro"]["counted"] != 0
    unit.wait()
    assert unit.t["macro"]["pending"] == 0


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
    assert unit.t["vector"]["lane_flags"] == 0xFFFF0000 & ~0x01010101
    assert unit.t["vector"]["use_flags"] == 0xFFFFFFFF


def test_stores_in_some_lanes_are_refused(unit: Macros) -> None:
    unit.set(0, byte(3) << 24, 0)
    unit.do("SFPCONFIG", config_dest=4)
    with pytest.raises(UndefinedBehavior, match="all lanes must store"):
        unit.macro(0, 1)


@pytest.mark.parametrize(
    ("mnemonic", "operands", "flags", "use", "held"),
    [
        ("SFPPUSHC", {}, 0x0F0F0F0F, 0xFFFFFFFF, [0xFFFFFFFF, 0x01010101]),
        ("SFPPUSHC", {"instr_mod1": 13}, 0x0E0E0E0E, 0xFFFFFFFF, [0xFFFFFFFF, 0]),
        ("SFPPOPC", {}, 0x0F0F0F0F & ~0x01010101 | 0x00000101, 0xFFFFFFFF, [0xFEFEFEFE, 0]),
        ("SFPPOPC", {"instr_mod1": 14}, 0x0F0F0F0F, 0xFFFFFFFF, [0xFFFFFFFF, 0]),
        ("SFPENCC", {"instr_mod1": 10}, 0x0E0E0E0E, 0xFEFEFEFE, [0xFFFFFFFF, 0]),
        ("SFPENCC", {"instr_mod1": 1}, 0x0F0F0F0F, 0xFEFEFEFE, [0xFFFFFFFF, 0]),
        ("SFPCOMPC", {}, 0x0E0E0E0E, 0xFFFFFFFF, [0xFFFFFFFF, 0]),
        ("SFPSETCC", {"lreg_c": 9, "instr_mod1": 2}, 0x0E0E0E0E, 0xFFFFFFFF, [0xFFFFFFFF, 0]),
    ],
)
@pytest.mark.rule("math V.7")
@pytest.mark.rule("math V3")
def test_flag_control_scheduled_in_some_lanes_changes_those_lanes_alone(
    unit: Macros, mnemonic: str, operands: dict[str, int], flags: int, use: int, held: list[int]
) -> None:
    unit.template(0, mnemonic, **operands)
    unit.set(0, byte(4), 0)
    unit.do("SFPCONFIG", config_dest=5)
    unit.flags(0x0000FFFF)
    unit.do("SFPPUSHC")
    unit.flags(0x0F0F0F0F)
    unit.put(0, 0)
    unit.macro(1, 1)
    unit.settle()
    assert (unit.t["vector"]["lane_flags"], unit.t["vector"]["use_flags"]) == (flags, use)
    assert unit.t["vector"]["flag_stack_held"].tolist()[:2] == held
    assert unit.t["vector"]["acting_lanes"] == 0xFFFFFFFF


@pytest.mark.rule("math V.7")
def test_a_comparison_scheduled_in_some_lanes_changes_their_top_of_the_stack(unit: Macros) -> None:
    unit.template(0, "SFPGT", lreg_c=9, instr_mod1=2)
    unit.set(0, byte(4, b=True), 0)
    unit.do("SFPCONFIG", config_dest=5)
    unit.flags(0x0000FFFF)
    unit.do("SFPPUSHC")
    unit.flags(0xFFFFFFFF)
    unit.put(0, 0)
    unit.macro(1, 1)
    unit.settle()
    assert unit.t["vector"]["flag_stack"][0] == 0x0000FFFF & ~0x01010101


@pytest.mark.parametrize(
    ("units", "error", "text"),
    [
        ({"mad": byte(1)}, UndefinedBehavior, "sequence 2 chooses instruction 1 for sub-unit 1"),
        ({"store": byte(1)}, UndefinedBehavior, "sequence 2 chooses instruction 1 for sub-unit 3"),
        ({"store": byte(2)}, UndefinedBehavior, "not an SFPSTORE"),
        ({"store": byte(4)}, UndefinedBehavior, "not an SFPSTORE"),
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
    assert unit.t["macro"]["pending"] == 0


def test_a_refused_template_names_itself_and_the_waiting_word_of_the_thread_stays(unit: Macros) -> None:
    unit.template(0, "SFPABS", instr_mod1=7)
    unit.sequence(0, simple=byte(4))
    unit.macro(0, 1)
    unit.coprocessor.push(1, encode("SEMWAIT", stall_res=0x2, sem_sel=1, wait_sem_cond=1))
    unit.coprocessor.push(1, encode("SEMPOST", sem_sel=2))
    with pytest.raises(UndefinedBehavior, match=r"SFPABS .*thread 1, math, scheduled by SFPLOADMACRO.*mode 7"):
        unit.coprocessor.drain(1)
    assert not unit.coprocessor.drain(1)
    unit.t["sync"]["semaphore"][0] = 1
    assert unit.coprocessor.drain(1)
    assert unit.t["sync"]["semaphore"][1] == 1


def test_open_cases_are_refused_unless_the_user_consents(unit: Macros) -> None:
    unit.sequence(0, store=byte(3))
    unit.t["macro"]["misc"] = 10
    unit.macro(0, 1)
    with pytest.raises(MissingSpecification, match="Mod0 10"):
        unit.settle()
    unit.t["allow_open"] = 1
    unit.macro(0, 1)
    unit.settle()
    unit.template(0, "SFPSWAP", lreg_dest=3, instr_mod1=1)
    unit.sequence(0, simple=byte(4))
    unit.t["vector"]["lane_config"] = 4
    unit.macro(0, 1)
    with pytest.raises(MissingSpecification, match="which indices follow"):
        unit.settle()


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
    assert pipelined.record.macro.pending == 0
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
    assert tile.record.macro.pending != 0
    middle = tile.snapshot()
    tile.execute(1, program[-7:])
    wanted = tile.record.dst[:16].copy()
    tile.reset()
    tile.restore(middle)
    tile.execute(1, program[-7:])
    np.testing.assert_array_equal(tile.record.dst[:16], wanted)
