"""Audit rows 001.0, 001.1, 001.12: register files, L1 layouts, upsampling."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import UndefinedBehavior
from bhemu.formats import DataFormat
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.machine.state import L1_SIZE
from tests.tensix.unpacker import (
    BF16,
    BFP2,
    BFP4,
    BFP8,
    COUNTING,
    FP32,
    INT16,
    INT32,
    TF32,
    TILE,
    Unpacker,
    counting,
    unpacr,
)


@pytest.mark.rule("001.0a")
def test_unpacker_0_writes_srca_or_dst_and_unpacker_1_srcb() -> None:
    files = ("srca", "srcb", "dst")
    for unpacker, dst, written in ((0, False, "srca"), (1, False, "srcb"), (0, True, "dst")):
        u = counting(unpacker)
        if dst:
            u.to_dst()
        assert u.unpack()
        assert [name for name in files if u.t[name].any()] == [written]


@pytest.mark.rule("001.0a")
def test_unpacker_1_has_no_way_to_dst() -> None:
    u = counting(1)
    u.set("THCON_SEC1_REG2_Unpack_if_sel_cntx0", 1)
    u.set("THCON_SEC1_REG2_Unpack_If_Sel", 1)
    assert u.unpack()
    assert u.unpack(OvrdThreadId=0)
    assert not u.t["dst"].any()
    assert u.values()[0, 0] == 1


@pytest.mark.rule("001.0b")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_a_src_file_has_two_banks_of_64_rows_of_16_cells_of_19_bits(unpacker: int) -> None:
    """1024 values whose TF32 form has all combinations of ends fill a bank, the next 1024 the other."""
    u = Unpacker(unpacker)
    u.formats(FP32, TF32)
    values = np.random.default_rng(0).integers(0, 1 << 32, 2048, dtype=np.uint64).astype(np.uint32)
    values[:2] = 0xFFFFFFFF
    u.l1(values, "<u4")
    for bank in range(2):
        u.count(1024, first=1024 * bank)
        assert u.unpack(SetDatValid=1)
    bits = values.reshape(2, 64, 16)
    cells = bits >> 31 << 18 | (bits >> 13 & 0x3FF) << 8 | bits >> 23 & 0xFF
    for bank in range(2):
        np.testing.assert_array_equal(u.src(bank), cells[bank])
    assert int(u.src(0).max()) == (1 << 19) - 1
    assert not u.unpack()  # there is no third bank


@pytest.mark.rule("001.0b")
def test_dst_has_1024_rows_of_16_bits() -> None:
    """Row 1023 exists and row 1024 is row 0 again."""
    u = counting(0)
    u.to_dst()
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + 1023))
    u.count(32)
    assert u.unpack()
    np.testing.assert_array_equal(u.t["dst"][1023], np.arange(1, 17))
    np.testing.assert_array_equal(u.t["dst"][0], np.arange(17, 33))
    assert u.t["dst"].shape == (1024, 16)


@pytest.mark.rule("001.0b", "001.2.6i", "004.9a")
def test_dst_has_512_rows_of_32_bits() -> None:
    """512 rows of INT32 fill each cell of the 1024 physical rows once (I.3)."""
    u = Unpacker(0)
    u.to_dst()
    u.formats(INT32)
    values = np.arange(0x10001, 0x10001 + 8192 * 0x10003, 0x10003, dtype=np.uint64).astype(np.uint32)
    u.l1(values, "<u4", address=0x10000)
    u.base(0x10000)
    u.count(8192)
    assert u.unpack()
    expected = np.zeros((1024, 16), np.uint16)
    for row in range(512):
        bits = values[16 * row : 16 * row + 16]
        top = bits >> 16
        a = row // 8 * 16 + row % 8
        expected[a] = top & 0x8000 | (top & 0x7F) << 8 | top >> 7 & 0xFF
        expected[a + 8] = bits & 0xFFFF
    np.testing.assert_array_equal(u.t["dst"], expected)


@pytest.mark.rule("001.0d")
@pytest.mark.parametrize("thread", [0, 1, 2])
def test_counter_instructions_take_effect_in_program_order(thread: int) -> None:
    """They belong to the Misc unit; an UNPACR that waits holds those behind it."""
    assert {INSTRUCTIONS[m].unit for m in ("SETADC", "SETADCXY", "INCADCZW", "ADDRCRZW")} == {"misc"}
    assert INSTRUCTIONS["UNPACR"].unit == "unpack"
    u = Unpacker(1, thread=thread)
    u.l1(COUNTING)
    u.t["src_owner"][1, 0] = 1
    for word in (
        unpacr(1, SetDatValid=1),
        encode("INCADCZW", CntSetMask=2, Ch0_Z=3),
        unpacr(1, SetDatValid=1),
        encode("SETADCZW", CntSetMask=2, Ch0_Z=1, BitMask=1),
    ):
        assert u.coprocessor.push(thread, word)
    assert not u.coprocessor.drain(thread)
    assert u.counter("z") == 0
    u.t["src_owner"][1, 0] = 0
    assert u.coprocessor.drain(thread)
    assert [int(u.values(bank)[0, 0]) for bank in range(2)] == [1, 3 * 256 + 1]
    assert u.counter("z") == 1


@pytest.mark.rule("001.1.1a", "004.8b")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_no_header_is_read_but_the_address_has_one_unit_added(unpacker: int) -> None:
    """With Base = address / 16 - 1 the first datum is the one at the address itself."""
    u = Unpacker(unpacker)
    u.l1([7] * 8, address=TILE - 16)  # what a stored header would be
    u.l1(COUNTING)
    u.set(f"THCON_SEC{unpacker}_REG3_Base_address", TILE // 16 - 1)
    assert u.unpack()
    assert u.values()[0, 0] == 1
    u.set(f"THCON_SEC{unpacker}_REG3_Base_address", TILE // 16)
    assert u.unpack()
    assert u.values()[0, 0] == 9  # 16 bytes further


@pytest.mark.rule("001.1.1b")
def test_a_bf16_tile_takes_2048_bytes() -> None:
    """The last tile of L1 ends where L1 ends; 16 bytes further up it does not fit."""
    assert DataFormat.BF16.tile_bytes() == 32 * 32 * 2
    for base, fits in ((L1_SIZE - 2048, True), (L1_SIZE - 2032, False)):
        u = Unpacker(1)
        u.formats(BF16)
        u.base(base)
        u.adc(x=0, x1=255)
        for z in range(3):
            u.adc(z=z)
            assert u.unpack()
        u.adc(z=3)
        if fits:
            assert u.unpack()
        else:
            with pytest.raises(UndefinedBehavior, match="outside L1"):
                u.unpack()


@pytest.mark.rule("001.1.1c")
def test_the_usual_dimensions_take_a_face_for_each_z() -> None:
    """YDim 1, ZDim 4, XDim 256."""
    u = counting(0)
    u.count(256)
    for face in range(4):
        u.adc(z=face)
        assert u.unpack()
        expected = np.arange(256 * face + 1, 256 * face + 257)
        np.testing.assert_array_equal(u.values()[:16].reshape(-1), expected)


@pytest.mark.rule("001.1.1d")
@pytest.mark.parametrize("y_dim", [1, 3])
def test_x_dim_is_the_length_of_a_y_step_and_of_a_z_slice_only_when_y_dim_is_1(y_dim: int) -> None:
    u = counting(1)
    u.set("THCON_SEC1_REG0_TileDescriptor_x_dim", 24)
    u.set("THCON_SEC1_REG0_TileDescriptor_y_dim", y_dim)
    u.adc(z=1)
    assert u.unpack()
    assert u.values()[0, 0] == 24 * y_dim + 1
    u.adc(z=0, y=1)
    assert u.unpack()
    assert u.values()[0, 0] == 24 + 1


@pytest.mark.rule("001.1.2a", "001.1.2b")
@pytest.mark.parametrize(
    ("dims", "section"),
    [
        ((256, 1, 4, 0), 64),  # 64 exponents
        ((256, 1, 1, 1), 16),  # 16 exponents
        ((16, 1, 1, 0), 16),  # one exponent, rounded up
        ((17, 1, 1, 0), 16),  # two exponents: a part of 16 datums has one too
        ((16, 17, 1, 0), 32),  # 17 exponents
        ((16, 2, 3, 3), 32),  # 18
        ((256, 1, 0, 0), 16),  # Z of 0 counts as 1
    ],
)
def test_exponents_come_first_in_whole_16_byte_units(dims: tuple[int, int, int, int], section: int) -> None:
    """ceil16(ceil(X * Y * Z * W / 16)) bytes, whatever count is unpacked."""
    u = Unpacker(1)
    u.formats(BFP8)
    for name, value in zip("xyzw", dims, strict=True):
        u.set(f"THCON_SEC1_REG0_TileDescriptor_{name}_dim", value)
    u.l1([77] + [0] * (section - 1) + [0x40] + [0x20] * 255, "<u1")
    u.count(2)
    assert u.unpack()
    # 0x40 is 1.0 * 2^(77 - 127); 0x20 is half of it
    np.testing.assert_array_equal(u.src()[0, :3], [77, 76, 0])


@pytest.mark.rule("001.1.2b")
def test_dimensions_count_after_masking_to_8_bits() -> None:
    """A Y field of 0x0102 is 2 rows, for which 16 * 2 datums have 2 exponents."""
    u = Unpacker(1)
    u.formats(BFP8)
    u.set("THCON_SEC1_REG0_TileDescriptor_x_dim", 16)
    u.t["config"][0, 113] = 1 << 16 | 0x0102
    u.l1([50] * 16 + [0x40] * 16, "<u1")
    assert u.unpack()
    assert set(u.src()[0]) == {50}


@pytest.mark.rule("001.1.2e")
@pytest.mark.parametrize(
    ("kind", "raw", "cells"),
    [
        # BFP4: low nibble first. Magnitudes 1, 2, 3 of 7 with exponent 100: 1/4, 1/2, 3/4 of 2^(100 - 127).
        (BFP4, [0x21, 0xB0], [98, 99, 0, 1 << 18 | 0x40 << 11 | 99]),
        # BFP2: bits 1:0 first. 1 is 2^(100 - 127), 3 its negative, 2 minus infinity.
        (BFP2, [0b10_11_00_01], [100, 0, 1 << 18 | 100, 1 << 18 | 255]),
        (BFP2, [0b01_00_00_00], [0, 0, 0, 100]),
    ],
)
def test_the_low_part_of_a_byte_is_the_earlier_datum(kind: int, raw: list[int], cells: list[int]) -> None:
    u = Unpacker(1)
    u.formats(kind)
    u.set("THCON_SEC1_REG0_TileDescriptor_x_dim", 16)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    u.l1([100] + [0] * 15 + raw, "<u1")
    u.count(4)
    assert u.unpack()
    np.testing.assert_array_equal(u.src()[0, :4], cells)


@pytest.mark.rule("001.12b")
def test_the_rates_insert_0_1_3_and_7_zeros() -> None:
    """(1 << rate) - 1, not 0, 1, 2, 4."""
    for rate, zeros in ((0, 0), (1, 1), (2, 3), (3, 7)):
        u = Unpacker(1)
        u.formats(INT16)
        u.l1([1] * 16)
        u.set("THCON_SEC1_REG2_Upsample_rate", rate)
        assert u.unpack()
        places = np.flatnonzero(u.values().reshape(-1))
        np.testing.assert_array_equal(np.diff(places), [zeros + 1] * 15)
