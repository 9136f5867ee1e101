"""Audit rows 000.2: unpacker registers, written as whole words at the bit positions of the seed's corrected tables."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import MissingSpecification
from bhemu.isa.instructions import encode
from bhemu.machine.state import ALL_CONFIG_DIRTY
from tests.tensix.unpacker import BF16, BFP8, COUNTING, INT16, TILE, Unpacker, counting, unpacr

"""Datum n of the tile at TILE is n + 1."""


def put(u: Unpacker, word: int, value: int, mask: int = 0xFFFFFFFF) -> None:
    """Replace the bits of a Config word under `mask`."""
    u.t["config"][0, word] = int(u.t["config"][0, word]) & ~mask | value & mask
    u.t["config_dirty"][0] = ALL_CONFIG_DIRTY


def first_datum(u: Unpacker, **operands: int) -> int:
    """Number of the datum that arrives first."""
    assert u.unpack(**operands)
    return int(u.values()[0, 0]) - 1


@pytest.mark.rule("000.2.1a", "000.2.1d")
@pytest.mark.parametrize(("unpacker", "word"), [(0, 64), (1, 112)])
def test_each_descriptor_word_has_its_fields(unpacker: int, word: int) -> None:
    """Format [3:0], flag [4], X [31:16]; Y [7:0], Z [23:16] of the second; W, digest [31:24]."""
    u = counting(unpacker)
    if unpacker == 0:
        put(u, 49, 128)  # the single-context form has no Dest address: 64 datums of 2 bytes
    put(u, word, 10 << 16 | 1 << 4 | INT16)
    put(u, word + 1, 3 << 16 | 5)
    put(u, word + 2, 2)
    u.adc(w=1, z=2, y=4, x=3, x1=18)
    assert first_datum(u, OvrdThreadId=0) == ((1 * 3 + 2) * 5 + 4) * 10 + 3
    put(u, word + 3, 2 << 24)  # DigestSize in 16-byte units: 8 INT16 datums each
    assert first_datum(u, OvrdThreadId=0) == ((1 * 3 + 2) * 5 + 4) * 10 + 3 + 16


@pytest.mark.rule("000.2.1d")
def test_bit_5_suppresses_the_exponent_skip() -> None:
    """NoBFPExpSection, for a BFP4 tile of 1024 datums, whose section has 64 bytes."""
    # Byte 0 is the exponent 0x22 and, without the skip, datums 2, 2: 0.5 * 2^(E - 127). Byte 64 holds datums 7, 7.
    for bit, cell in ((0, 0x60 << 11 | 0x22), (1, 0x21)):
        u = Unpacker(1)
        u.formats(7)
        u.l1([0x22] + [0] * 63 + [0x77] * 16, "<u1")
        put(u, 112, bit << 5, 1 << 5)
        assert u.unpack()
        assert int(u.src()[0, 0]) == cell


@pytest.mark.rule("000.2.1b")
@pytest.mark.parametrize("bit_11", [0, 1])
def test_blobs_per_plane_has_three_bits(bit_11: int) -> None:
    """Bits 10:8 alone; 2 blobs, the second from datum 32 to the X dimension 64."""
    u = counting(1)
    put(u, 112, 64 << 16 | bit_11 << 11 | 2 << 8 | 1 << 4 | INT16)
    put(u, 114, 0x20 << 16, 0xFFFF0000)  # blobs_y_start from bit 80: starts 0, 2 in units of 16
    u.adc(y=1, x=1)
    assert u.unpack(RowSearch=1)
    np.testing.assert_array_equal(u.values().reshape(-1)[:33], [*range(33, 65), 0])


@pytest.mark.rule("000.2.1c")
@pytest.mark.parametrize("junk", [0, 0xFF])
def test_y_z_and_w_have_eight_bits(junk: int) -> None:
    """The upper byte of each 16-bit half is not part of the dimension."""
    u = counting(1)
    put(u, 112, 4 << 16, 0xFFFF0000)
    put(u, 113, junk << 24 | 3 << 16 | junk << 8 | 5)
    put(u, 114, junk << 8 | 2, 0xFFFF)
    u.adc(w=1, z=1, y=1)
    assert first_datum(u) == ((1 * 3 + 1) * 5 + 1) * 4


@pytest.mark.rule("000.2.1e")
@pytest.mark.parametrize("x_dim", [16, 24, 256])
def test_x_dim_is_datums_per_y_step(x_dim: int) -> None:
    """Whatever face width and count are."""
    u = counting(1)
    put(u, 112, x_dim << 16, 0xFFFF0000)
    put(u, 113, 7, 0xFF)
    u.adc(y=3)
    assert first_datum(u) == 3 * x_dim
    u.adc(y=0, z=1)
    assert first_datum(u) == 7 * x_dim


@pytest.mark.rule("000.2.2a")
@pytest.mark.parametrize("context", range(8))
def test_each_nibble_of_word_72_is_the_column_shift_of_contexts_n_and_n_plus_4(context: int) -> None:
    """Nibbles at 16, 20, 24, 28; unpacker 0, no tileize."""
    u = counting(0)
    u.base(TILE, context)
    put(u, 72, 0x4321_0000, 0xFFFF0000)
    assert u.unpack(CfgContextId=context)
    shift = (1, 2, 3, 4)[context % 4]
    np.testing.assert_array_equal(u.values()[0], [*range(shift + 1, 17), *[0] * shift])


@pytest.mark.rule("000.2.2a")
def test_three_nibbles_make_the_row_stride_of_tileize() -> None:
    """cntx0 << 4 | cntx1 << 8 | cntx2 << 12; the fourth has no part in it."""
    for nibbles, stride in ((0x00F, 0xF0), (0x010, 0x100), (0x001, 0x10), (0x101, 0x1010), (0xF001, 0x10)):
        u = counting(1)
        put(u, 120, 1 << 9 | nibbles << 16, 0xFFFF0200)
        u.count(64)
        assert u.unpack()
        assert int(u.values()[2, 0]) == stride // 2 + 1  # datum 32 starts the second unpack row


@pytest.mark.rule("000.2.2b", "000.2.5a")
def test_bit_14_gives_each_context_its_own_formats() -> None:
    """[19:16] in, [23:20] out of word 140 for context 0, word 141 for 1."""
    u = Unpacker(1)
    u.base(TILE, 1)
    u.l1([0x3F80] * 16)
    put(u, 141, BF16 << 20 | BF16 << 16)
    for bit, cell in ((0, 0x3F << 11 | 0x80), (1, 127)):  # INT16 cell, BF16 cell of 1.0
        put(u, 120, bit << 14, 1 << 14)
        assert u.unpack(CfgContextId=1)
        assert int(u.src()[0, 0]) == cell


def burst_refused(u: Unpacker, row: int) -> bool:
    """Whether a two-row transfer to SrcA row `row` starts inside a burst."""
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + row))
    u.count(32)
    try:
        assert u.unpack()
    except MissingSpecification:
        return True
    return False


@pytest.mark.rule("000.2.2d")
@pytest.mark.parametrize("mode", range(4))
def test_throttle_mode_counts_only_under_the_override_bit(mode: int) -> None:
    """16-bit data, 32 bytes a row: by default 128 bytes or 4 rows; with word 70 bit 3, 16 << mode bytes.

    A doubled x4 makes mode 2 128 bytes for data wider than 8 bits.
    """
    u = counting(0)
    put(u, 72, mode << 4, 0x30)
    assert [burst_refused(u, row) for row in (0, 1, 2, 4)] == [False, True, True, False]
    put(u, 70, 1 << 3, 1 << 3)
    rows = (1, 1, 4, 4)[mode]
    if mode == 2:
        assert [burst_refused(u, row) for row in (0, 1, 4)] == [False, True, False]
    else:
        assert [burst_refused(u, row) for row in (0, 1, 2, 4)] == [bool(row % rows) for row in (0, 1, 2, 4)]


@pytest.mark.rule("000.2.2e")
def test_word_73_has_a_count_that_is_no_power_of_two() -> None:
    """[11:9] count 5 under [12]; Metadata_x_end [31:24] changes no data; [8] forces the exponent."""
    u = counting(0)
    put(u, 73, 0xAB << 24 | 1 << 12 | 5 << 9, 0xFF001E00)
    for expected in (1, 2, 3, 4, 0, 1):
        assert u.unpack(OvrdThreadId=0, Last=0, CfgContextCntInc=1)
        assert u.t["unpack"]["context_counter"][0, 0] == expected
    assert first_datum(u) == 0
    u.formats(BFP8)
    put(u, 73, 1 << 8, 1 << 8)
    put(u, 50, 99, 0xFF)
    u.l1([0x40] * 16, "<u1")
    assert u.unpack()
    assert set(u.src()[0]) == {99}


@pytest.mark.rule("000.2.2f")
def test_limit_and_size_have_17_bits_and_context_1_its_own() -> None:
    """Words 122, 123; 152, 153 with bit 17 of 153 for context 1. Units are 16 bytes."""
    for context in (0, 1):
        u = Unpacker(1)
        high = 0x17F000
        u.base(high, context)
        u.l1(COUNTING[:64], address=high - 0x1000)
        limit, size = (122, 123) if context == 0 else (152, 153)
        put(u, limit, (high - 16) // 16)
        put(u, size, 0x1000 // 16 | (1 << 17 if context else 0))
        assert u.unpack(CfgContextId=context)
        assert int(u.values()[0, 0]) == 1
        if context:
            put(u, size, 0x1000 // 16)  # not enabled: context 1 has no limit of its own
            assert u.unpack(CfgContextId=1)
            assert int(u.values()[0, 0]) == 0


@pytest.mark.rule("000.2.2g")
@pytest.mark.parametrize("rate", range(4))
@pytest.mark.parametrize("interleave", [0, 1])
def test_upsampling_zeroes_or_keeps_what_lies_between_datums(rate: int, interleave: int) -> None:
    """Rate in [13:12], interleave in [15]: what lies between is zeroed or kept."""
    u = counting(1)
    u.t["srcb"][0] = 0x7FFFF
    put(u, 120, rate << 12 | interleave << 15, 0xB000)
    assert u.unpack()
    step = (1, 2, 4, 8)[rate]
    flat = u.src().reshape(-1)[: 16 * step].reshape(16, step)
    np.testing.assert_array_equal(flat[:, 0], np.arange(1, 17))
    if step > 1:
        assert set(flat[:, 1:].reshape(-1)) == {0x7FFFF if interleave else 0}


@pytest.mark.rule("000.2.5a", "000.2.5b")
@pytest.mark.parametrize(("unpacker", "first"), [(0, 92), (1, 140)])
def test_each_context_has_its_offset_and_formats(unpacker: int, first: int) -> None:
    """Words first .. first + 3; bits 15:0 offset in 16-byte units, shared by contexts n and n + 4.

    Formats at 19:16 / 23:20 for n, 27:24 / 31:28 for n + 4. Unpacker 1 has contexts 0 and 1 only.
    """
    for context in range(8 if unpacker == 0 else 2):
        u = Unpacker(unpacker)
        u.base(TILE, context)
        u.l1(COUNTING)
        put(u, 72 if unpacker == 0 else 120, 1 << 14, 1 << 14)
        shift = 16 if context < 4 else 24
        other = 40 - shift
        put(u, first + context % 4, (BF16 << 4 | BF16) << shift | (12 << 4 | 12) << other | 3 + context)
        assert u.unpack(CfgContextId=context)
        value = 8 * (3 + context) + 1
        assert int(u.src()[0, 0]) == (value & 0x7F) << 11 | value >> 7


@pytest.mark.rule("000.2.6a")
def test_channel_0_strides_have_no_effect_on_the_unpackers() -> None:
    """Words 44-47 store and change nothing; the input address comes from the dimensions."""
    cells = []
    for value in (0, 0xFFFFFFFF):
        for unpacker in (0, 1):
            u = counting(unpacker)
            for word in range(44, 48):
                u.t["gpr"][0, 0] = value
                assert u.issue(encode("WRCFG", GprAddress=0, CfgReg=word))
                assert int(u.t["config"][0, word]) == value
            u.adc(x=1, x1=16, y=1, z=1, w=1)
            assert u.unpack()
            cells.append(u.src())
    assert cells[0].any()
    for other in cells[1:]:
        np.testing.assert_array_equal(other, cells[0])


@pytest.mark.rule("000.2.6b")
@pytest.mark.parametrize(("unpacker", "word"), [(0, 56), (1, 58)])
def test_output_strides_are_words_56_to_59(unpacker: int, word: int) -> None:
    """Y in [31:16] of the first, Z in [15:0] and W in [31:16] of the second; bytes."""
    u = counting(unpacker)
    if unpacker == 0:
        put(u, 50, 1 << 8, 1 << 8)  # add the context's 64 datums to the strided sum
    put(u, word, 32 << 16, 0xFFFF0000)
    put(u, word + 1, 5 * 32 << 16 | 3 * 32)
    u.adc(y1=2, z1=1, w1=3)
    assert u.unpack()
    np.testing.assert_array_equal(np.flatnonzero(u.values().any(axis=1)), [2 + 3 + 15])


@pytest.mark.rule("000.2.7a")
def test_the_context_offset_is_thread_config_41_and_setc16_alone_writes_it() -> None:
    """Config word 41 is another register; other threads keep their own entry."""
    u = counting(0)
    u.base(TILE + 0x40, 1)
    u.t["gpr"][0, 0] = 0x0101
    assert u.issue(encode("WRCFG", GprAddress=0, CfgReg=41))
    assert u.issue(encode("RMWCIB0", Mask=0xFF, Data=1, CfgRegAddr=41))
    assert first_datum(u) == 0
    assert u.issue(encode("SETC16", setc16_reg=41, setc16_value=1))
    assert first_datum(u) == 32
    assert list(u.t["thread_config"][:, 41]) == [1, 0, 0]
    u.t["adc"][1, 0] = u.t["adc"][0, 0]
    u.t["thread_config"][1, 5] = u.t["thread_config"][0, 5]
    assert u.coprocessor.push(1, unpacr(0))
    assert u.coprocessor.drain(1)
    assert int(u.values()[0, 0]) == 1
