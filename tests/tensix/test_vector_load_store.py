"""SFPLOAD, SFPSTORE, SFPLOADI (math V2, V7 to V9)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from tests.tensix.sfpu import Sfpu


@pytest.fixture
def sfpu() -> Sfpu:
    unit = Sfpu()
    unit.t["dst"][...] = np.arange(1024 * 16).reshape(1024, 16)
    return unit


@pytest.mark.rule("math V2")
def test_a_load_takes_the_even_columns_of_four_rows(sfpu: Sfpu) -> None:
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6, dest_reg_addr=8)
    assert sfpu.get(1) == [16 * (8 + lane // 8) + 2 * (lane % 8) for lane in range(32)]


@pytest.mark.rule("math V2")
def test_an_address_with_bit_1_takes_the_odd_columns(sfpu: Sfpu) -> None:
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6, dest_reg_addr=10)
    assert sfpu.get(1) == [16 * (8 + lane // 8) + 2 * (lane % 8) + 1 for lane in range(32)]


@pytest.mark.rule("math V2")
def test_the_address_adds_the_row_counter_and_the_math_offset_modulo_1024(sfpu: Sfpu) -> None:
    sfpu.t["rwc"][1, 4] = 520
    sfpu.t["thread_config"][1, 1] = 512
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6, dest_reg_addr=0)
    assert sfpu.get(1)[0] == 16 * 8


@pytest.mark.rule("math V8")
def test_invalid_rows_read_as_zero_and_a_store_makes_its_rows_valid(sfpu: Sfpu) -> None:
    sfpu.t["dst_valid"][5] = 0
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6, dest_reg_addr=4)
    assert sfpu.get(1)[8:16] == [0] * 8
    assert sfpu.get(1)[16] == 16 * 6
    sfpu.t["dst_valid"][4:8] = 0
    sfpu.flags(0x00000100)
    sfpu.do("SFPSTORE", lreg_ind=10, instr_mod0=6, dest_reg_addr=4)
    assert sfpu.t["dst_valid"][4:8].tolist() == [0, 1, 0, 0]
    assert sfpu.t["dst"][5, :3].tolist() == [0, 81, 82]


@pytest.mark.rule("math V8")
@pytest.mark.parametrize("bits", [0x3F812345, 0xC1234567, 0x80000001, 0x7F800000])
def test_the_32_bit_view_keeps_halves_eight_rows_apart(sfpu: Sfpu, bits: int) -> None:
    sfpu.set(2, bits)
    sfpu.do("SFPSTORE", lreg_ind=2, instr_mod0=4, dest_reg_addr=12)  # rows 12..15 of the view are physical 20..23
    high = bits >> 16
    assert sfpu.t["dst"][20, 0] == (high & 0x8000) | (high & 0x7F) << 8 | (high >> 7) & 0xFF
    assert sfpu.t["dst"][28, 0] == bits & 0xFFFF
    sfpu.do("SFPLOAD", lreg_ind=3, instr_mod0=4, dest_reg_addr=12)
    assert sfpu.get(3) == [bits] * 32


@pytest.mark.rule("math V8")
def test_storing_floats_flushes_denormals_and_truncates(sfpu: Sfpu) -> None:
    sfpu.set(2, 0x807FFFFF, 0x3F80FFFF)
    sfpu.do("SFPSTORE", lreg_ind=2, instr_mod0=2, dest_reg_addr=0)
    assert sfpu.t["dst"][0, [0, 2]].tolist() == [0x8000, 0x007F]
    sfpu.do("SFPSTORE", lreg_ind=2, instr_mod0=3, dest_reg_addr=0)
    assert sfpu.t["dst"][[0, 8], 0].tolist() == [0x8000, 0]


@pytest.mark.rule("math V8")
@pytest.mark.parametrize(
    ("bits", "cell"),
    [
        (0x387FFFFF, 0x0000),  # exponent 0: flushed to a signed zero
        (0xB87FFFFF, 0x8000),
        (0x38800000, 0x0001),  # the smallest exponent
        (0x3F803FFF, 0x0020 | 15),  # truncated
        (0x47FFE000, 0x7FFF),  # exponent 31 is a number
        (0x48000000, 0x7FFF),  # beyond it saturates
        (0xFFC00000, 0xFFFF),  # and so does a NaN
    ],
)
def test_storing_fp16_flushes_truncates_and_saturates(sfpu: Sfpu, bits: int, cell: int) -> None:
    sfpu.set(2, bits)
    sfpu.do("SFPSTORE", lreg_ind=2, instr_mod0=1, dest_reg_addr=0)
    assert sfpu.t["dst"][0, 0] == cell


@pytest.mark.rule("math V5", "math V8")
def test_loading_fp16_knows_infinity_only_with_lane_config_bit_0(sfpu: Sfpu) -> None:
    sfpu.t["dst"][0, 0] = 0xFFFF
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=1)
    assert sfpu.get(1)[0] == 0xC7FFE000
    sfpu.t["vector"]["lane_config"] = 1
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=1)
    assert sfpu.get(1)[0] == 0xFF800000


@pytest.mark.rule("math V8")
@pytest.mark.parametrize(("mode", "want"), [(5, 0x800000A5), (8, 0x800014B0), (9, 0x94B0), (7, 0x94B00000), (11, 0),
                                            (13, 0x800000A5)])  # fmt: skip
def test_integer_loads_that_the_documents_alone_describe_follow_them(sfpu: Sfpu, mode: int, want: int) -> None:
    sfpu.t["dst"][0, 0] = 0x94B0
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=mode)
    assert sfpu.get(1)[0] == want


@pytest.mark.rule("math V8")
@pytest.mark.parametrize(("mode", "want"), [(5, 0x8000 | 0x123 << 5 | 16), (8, 0x9123), (11, 0)])
def test_integer_stores_that_the_documents_alone_describe_follow_them(sfpu: Sfpu, mode: int, want: int) -> None:
    sfpu.set(1, 0x80001123)
    sfpu.do("SFPSTORE", lreg_ind=1, instr_mod0=mode)
    assert sfpu.t["dst"][0, 0] == want


@pytest.mark.rule("math V7")
def test_mode_0_follows_the_configured_format(sfpu: Sfpu) -> None:
    sfpu.t["dst"][0, 0] = 0x007F
    for srcb, want in ((5, 0x3F800000), (1, (31 + 112) << 23 | 3 << 13)):
        sfpu.t["config"][0, 1] = srcb << 21
        sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=0)
        assert sfpu.get(1)[0] == want
    sfpu.t["thread_config"][1, 4] = 1 | 5 << 1  # the thread's own format
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=0)
    assert sfpu.get(1)[0] == 0x3F800000
    sfpu.t["config"][0, 1] = 1 << 30
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=0)
    assert sfpu.get(1)[0] == 0x3F800000 | 16 * 8  # the low half is in row 8


@pytest.mark.rule("math V7")
def test_stack_mode_pushes_and_pops_whatever_the_flags(sfpu: Sfpu) -> None:
    sfpu.t["thread_config"][1, 36] = 4
    sfpu.flags(0)
    for value in (0x11, 0x22):
        sfpu.set(1, value)
        sfpu.do("SFPSTORE", lreg_ind=1, instr_mod0=10)
    assert sfpu.t["vector"]["dst_stack_pointer"][1] == 8
    for value in (0x22, 0x11):
        sfpu.do("SFPLOAD", lreg_ind=2, instr_mod0=10)
        assert sfpu.get(2) == [value] * 32
    assert sfpu.t["vector"]["dst_stack_pointer"][1] == 0


@pytest.mark.rule("math V5")
def test_lane_config_blocks_accesses_and_forces_odd_columns(sfpu: Sfpu) -> None:
    sfpu.set(1, 7)
    sfpu.t["vector"]["lane_config"] = 1 << 5
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6)
    assert sfpu.get(1)[0] == 7
    sfpu.t["vector"]["lane_config"] = 1 << 4
    sfpu.do("SFPSTORE", lreg_ind=1, instr_mod0=6)
    assert sfpu.t["dst"][0, 2] == 2
    sfpu.t["vector"]["lane_config"] = 1 << 6
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6)
    assert sfpu.get(1)[1] == 3
    sfpu.t["vector"]["lane_config"] = 1 << 7
    sfpu.do("SFPSTORE", lreg_ind=9, instr_mod0=6)
    assert sfpu.t["dst"][0, :4].tolist() == [0, 0, 2, 0]


@pytest.mark.rule("math V5")
def test_lane_config_captures_the_place_of_each_datum(sfpu: Sfpu) -> None:
    sfpu.t["vector"]["lane_config"] = 0b1100
    sfpu.do("SFPLOAD", lreg_ind=1, instr_mod0=6, dest_reg_addr=10)
    assert sfpu.get(5) == [16 * (8 + lane // 8) + 2 * (lane % 8) + 1 for lane in range(32)]


@pytest.mark.rule("math V2")
@pytest.mark.parametrize("mnemonic", ["SFPLOAD", "SFPSTORE"])
def test_odd_addresses_are_refused_and_change_nothing(sfpu: Sfpu, mnemonic: str) -> None:
    with pytest.raises(NonContractualBehavior, match=r"address 3 .* is odd") as refusal:
        sfpu.do(mnemonic, lreg_ind=1, instr_mod0=6, dest_reg_addr=3)
    assert "even" in str(refusal.value)
    assert sfpu.get(1) == [0] * 32


@pytest.mark.rule("math V1")
def test_loads_into_the_programmable_constants_are_refused(sfpu: Sfpu) -> None:
    for mnemonic in ("SFPLOAD", "SFPLOADI"):
        with pytest.raises(MissingSpecification, match="register 12"):
            sfpu.do(mnemonic, lreg_ind=12, instr_mod0=4)


@pytest.mark.rule("math V9")
@pytest.mark.parametrize(
    ("mode", "want"),
    [(0, 0x80010000), (1, 0xB8002000), (2, 0x8001), (4, 0xFFFF8001), (8, 0x80015678), (10, 0x12348001)],
)
def test_each_mode_of_sfploadi_places_its_immediate(sfpu: Sfpu, mode: int, want: int) -> None:
    sfpu.set(1, 0x12345678)
    sfpu.do("SFPLOADI", lreg_ind=1, instr_mod0=mode, imm16=0x8001)
    assert sfpu.get(1) == [want] * 32


@pytest.mark.rule("math V9")
def test_reserved_immediate_modes_are_refused(sfpu: Sfpu) -> None:
    for mode in (3, 5, 6, 7, 9, 11, 15):
        with pytest.raises(UndefinedBehavior, match=f"mode {mode} of SFPLOADI"):
            sfpu.do("SFPLOADI", lreg_ind=1, instr_mod0=mode)
