"""Audit rows 001.2: the operands of UNPACR, where it reads and where it writes."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.errors import UndefinedBehavior
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import decode, encode
from tests.tensix.unpacker import BF16, COUNTING, FP32, INT8, INT16, INT32, TF32, TILE, Unpacker, counting, unpacr

"""Datum n of the tile at TILE is n + 1."""


def written(u: Unpacker) -> list[int]:
    """Src rows with anything in them."""
    return [int(row) for row in np.flatnonzero(u.values().any(axis=1))]


# Operand, lowest bit, bits: the Blackhole order of the macro's arguments
OPERANDS = (
    ("Unpack_block_selection", 23, 1),
    ("AddrMode", 15, 8),
    ("CfgContextCntInc", 13, 1),
    ("CfgContextId", 10, 3),
    ("AddrCntContextId", 8, 2),
    ("OvrdThreadId", 7, 1),
    ("SetDatValid", 6, 1),
    ("srcb_bcast", 5, 1),
    ("ZeroWrite2", 4, 1),
    ("AutoIncContextID", 3, 1),
    ("RowSearch", 2, 1),
    ("SearchCacheFlush", 1, 1),
    ("Last", 0, 1),
)


@pytest.mark.rule("001.2.1a")
@pytest.mark.parametrize("place", range(13))
def test_the_thirteen_arguments_have_blackholes_order_and_places(place: int) -> None:
    name, lsb, width = OPERANDS[place]
    arguments = [0] * 13
    arguments[place] = (1 << width) - 1
    word = assemble(f"ttunpacr {','.join(map(str, arguments))}")
    assert word == 0x42000000 | ((1 << width) - 1) << lsb
    assert {key: value for key, value in decode(word).operands.items() if value} == {name: (1 << width) - 1}


@pytest.mark.rule("001.2.1c")
@pytest.mark.parametrize("last", [0, 1])
def test_last_may_be_0_or_1(last: int) -> None:
    """Software always sets it; both forms do the same."""
    u = counting()
    assert u.unpack(Last=last, SetDatValid=1, z=1)
    np.testing.assert_array_equal(u.values()[0], np.arange(1, 17))
    assert u.t["src_owner"][1, 0] == 1
    assert u.counter("z") == 1


@pytest.mark.rule("001.2.1d")
@pytest.mark.parametrize(("counter", "lsb"), [("y1", 6), ("z1", 4), ("y", 2), ("z", 0)])
@pytest.mark.parametrize("amount", [1, 2, 3])
def test_the_increment_byte_moves_one_counter_by_each_of_its_fields(counter: str, lsb: int, amount: int) -> None:
    """Ch1Y << 6, Ch1Z << 4, Ch0Y << 2, Ch0Z."""
    u = counting()
    assert u.issue(encode("UNPACR", Unpack_block_selection=1, AddrMode=amount << lsb, OvrdThreadId=1, Last=1))
    assert {name: u.counter(name) for name in ("y1", "z1", "y", "z")} == {"y1": 0, "z1": 0, "y": 0, "z": 0} | {
        counter: amount
    }


@pytest.mark.rule("001.2.2e")
def test_tile_dimensions_have_8_bits_except_x() -> None:
    """X of 300 datums counts whole; Y, Z and W of 0x102 count 2."""
    u = counting()
    u.set("THCON_SEC1_REG0_TileDescriptor_x_dim", 300)
    u.t["config"][0, 113] = 0x0102_0102
    u.t["config"][0, 114] = 0x0102
    for counters, datum in (({"y": 1}, 300), ({"y": 0, "z": 1}, 600), ({"z": 0, "w": 1}, 1200)):
        u.adc(**counters)
        assert u.unpack()
        assert u.values()[0, 0] == datum + 1


@pytest.mark.rule("001.2.3a")
@pytest.mark.parametrize(
    ("base", "offset", "digest"), [(0x500, 0, 0), (0x400, 0xFF, 1), (0, 0x4F0, 16), (1, 0xFFFF, 7)]
)
def test_the_tile_starts_at_base_plus_offset_plus_digest_plus_1(base: int, offset: int, digest: int) -> None:
    u = Unpacker(1)
    u.l1(COUNTING, address=(base + offset + digest + 1) * 16)
    u.set("THCON_SEC1_REG3_Base_address", base)
    u.set("THCON_SEC1_REG7_Offset_address", offset)
    u.set("THCON_SEC1_REG0_TileDescriptor_digest_size", digest)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[0], np.arange(1, 17))


@pytest.mark.rule("001.2.3b")
def test_contexts_4_to_7_share_the_offsets_of_0_to_3() -> None:
    for context in range(8):
        u = Unpacker(0)
        u.l1(COUNTING)
        u.base(TILE, context)
        for index, middle in enumerate(("", "cntx1_", "cntx2_", "cntx3_")):
            u.set(f"THCON_SEC0_REG7_Offset_{middle}address", 10 * (index + 1))
        assert u.unpack(CfgContextId=context)
        assert u.values()[0, 0] == 8 * 10 * (context % 4 + 1) + 1


@pytest.mark.rule("001.2.3d")
@pytest.mark.parametrize("adc_thread", [0, 1, 2])
def test_channel_1_x_of_the_chosen_threads_adc_is_the_last_datum(adc_thread: int) -> None:
    """Count X1 - X0 + 1 from the ADC that AddrCntContextId names."""
    u = counting()
    for thread in range(3):
        u.adc(thread=thread, x=thread, x1=3 * thread + 2)
    assert u.unpack(AddrCntContextId=adc_thread)
    expected = list(range(adc_thread + 1, 3 * adc_thread + 4))
    np.testing.assert_array_equal(u.values()[0], expected + [0] * (16 - len(expected)))


@pytest.mark.rule("001.2.4b")
def test_the_output_uses_the_strides_of_reg_1() -> None:
    """Those of REG_0 may be anything."""
    u = counting()
    for field in ("XY_REG_0_Ystride", "ZW_REG_0_Zstride", "ZW_REG_0_Wstride"):
        u.set(f"UNP1_ADDR_CTRL_{field}", 0xFFFF)
    u.set("UNP1_ADDR_BASE_REG_0_Base", 0x1234)
    u.set("UNP1_ADDR_CTRL_XY_REG_1_Ystride", 32)
    u.set("UNP1_ADDR_CTRL_ZW_REG_1_Zstride", 4 * 32)
    u.set("UNP1_ADDR_CTRL_ZW_REG_1_Wstride", 16 * 32)
    u.adc(y1=1, z1=2, w1=1)
    assert u.unpack()
    assert written(u) == [1 + 8 + 16]


@pytest.mark.rule("001.2.4b")
@pytest.mark.parametrize(
    ("kinds", "size"), [((INT8, INT8), 1), ((INT16, INT16), 2), ((FP32, TF32), 4), ((FP32, BF16), 2)]
)
def test_strides_are_bytes_of_the_output_format(kinds: tuple[int, int], size: int) -> None:
    u = Unpacker(1)
    u.formats(*kinds)
    u.l1([0x3F] * 64, "<u1")
    u.set("UNP1_ADDR_CTRL_XY_REG_1_Ystride", 16 * size)
    u.adc(y1=5)
    assert u.unpack()
    assert [int(row) for row in np.flatnonzero(u.src().any(axis=1))] == [5]


@pytest.mark.rule("001.2.4c", "001.2.4d")
def test_the_context_address_replaces_or_is_added() -> None:
    """Datums; word 50 bit 8 chooses."""
    for add, row in ((0, 3), (1, 3 + 2)):
        u = counting(0)
        u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + 3))
        u.set("UNP0_ADDR_CTRL_XY_REG_1_Ystride", 32)
        u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", add)
        u.adc(y1=2)
        assert u.unpack()
        assert written(u) == [row]


@pytest.mark.rule("001.2.4d")
@pytest.mark.parametrize("address", [0, 16, 48, 64, 80])
def test_unpacker_0_has_a_fixed_bias_of_four_rows(address: int) -> None:
    """Address 64 is row 0; what lies in front is dropped in SrcA, and is the end of Dst."""
    row = address // 16 - 4
    u = counting(0)
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", address)
    assert u.unpack()
    assert written(u) == ([row] if row >= 0 else [])
    u.to_dst()
    assert u.unpack()
    assert list(np.flatnonzero(u.t["dst"].any(axis=1))) == [row % 1024]


@pytest.mark.rule("001.2.4d")
def test_unpacker_1_has_no_bias() -> None:
    u = counting(1)
    u.set("UNP1_ADDR_BASE_REG_1_Base", 2 * 64)
    assert u.unpack()
    assert written(u) == [4]


@pytest.mark.rule("001.2.5a")
@pytest.mark.parametrize("nibbles", [(15, 0, 0), (0, 1, 0), (2, 3, 0), (1, 0, 1), (0, 15, 1)])
def test_the_row_stride_is_made_of_three_nibbles(nibbles: tuple[int, int, int]) -> None:
    stride = nibbles[0] * 16 + nibbles[1] * 256 + nibbles[2] * 4096
    u = counting()
    u.set("THCON_SEC1_REG2_Tileize_mode", 1)
    for context, nibble in enumerate(nibbles):
        u.set(f"THCON_SEC1_REG2_Shift_amount_cntx{context}", nibble)
    u.count(64)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[:4, 0], [1, 17, stride // 2 + 1, stride // 2 + 17])


@pytest.mark.rule("001.2.5b")
@pytest.mark.parametrize("count", [16, 40, 300])
def test_without_tileize_the_datums_are_contiguous_whatever_the_shift_amounts(count: int) -> None:
    u = counting()
    for context in range(4):
        u.set(f"THCON_SEC1_REG2_Shift_amount_cntx{context}", 5)
    u.count(count)
    assert u.unpack()
    np.testing.assert_array_equal(u.values().reshape(-1)[:count], np.arange(1, count + 1))


@pytest.mark.rule("001.2.6a")
@pytest.mark.parametrize(
    ("kinds", "dtype", "width", "shift"),
    [
        ((FP32, TF32), "<u4", 32, 23),
        ((BF16, BF16), "<u2", 32, 7),
        ((INT16, INT16), "<u2", 32, 0),
        ((INT8, INT8), "<u1", 16, 0),
    ],
)
def test_tileize_jumps_after_32_datums_wider_than_8_bits_else_after_16(
    kinds: tuple[int, int], dtype: str, width: int, shift: int
) -> None:
    """Each datum is the number of its L1 row, in the exponent field (magnitude field for INT8)."""
    size = np.dtype(dtype).itemsize
    per_row = 256 // size  # 256-byte rows
    image = np.arange(1, 9, dtype=np.uint32).repeat(per_row) << shift
    u = Unpacker(1)
    u.formats(*kinds)
    u.l1(image.astype(dtype), dtype)
    u.set("THCON_SEC1_REG2_Tileize_mode", 1)
    u.set("THCON_SEC1_REG2_Shift_amount_cntx1", 1)
    u.count(128)
    assert u.unpack()
    cells = u.src()[:8].reshape(-1)
    numbers = cells >> 8 & 0xFF if kinds[0] == INT8 else cells & 0xFF
    np.testing.assert_array_equal(numbers, np.arange(128) // width + 1)


@pytest.mark.rule("001.2.6i", "004.9c", "004.9d")
@pytest.mark.parametrize("row", [0, 7, 8, 9, 100, 511])
def test_32_bit_formats_use_the_32_bit_view(row: int) -> None:
    """High half in row n % 8 + n / 8 * 16, low half eight rows on."""
    u = Unpacker(0)
    u.to_dst()
    u.formats(INT32)
    u.l1([0x8123_4567] * 16, "<u4")
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + row))
    assert u.unpack()
    high = row % 8 + row // 8 * 16
    assert list(np.flatnonzero(u.t["dst"].any(axis=1))) == [high, high + 8]
    # 0x8123: sign 1, exponent 0b00000010, mantissa 0b0100011
    assert set(u.t["dst"][high]) == {0x8000 | 0x23 << 8 | 0x02}
    assert set(u.t["dst"][high + 8]) == {0x4567}


@pytest.mark.rule("001.2.1a")
def test_the_fields_that_wormhole_left_reserved_have_functions() -> None:
    """As arguments 3, 8, 10 and 12 they are the counter increment, the broadcast, the counter, the flush."""
    u = counting(0)
    u.set("THCON_SEC0_REG2_Context_count", 3)
    assert u.issue(assemble("ttunpacr 0,0,1,0,0,0,0,0,0,0,0,0,0"))
    assert u.t["unpack"]["context_counter"][0, 0] == 1
    assert u.issue(assemble("ttunpacr 0,0,0,0,0,0,0,0,0,0,0,1,0"))
    assert not u.src().any()
    u.base(TILE + 32, 1)
    assert u.issue(assemble("ttunpacr 0,0,0,0,0,1,0,0,0,1,0,0,1"))
    assert u.values()[0, 0] == 17
    with pytest.raises(UndefinedBehavior, match="srcb_bcast"):
        u.issue(unpacr(0, srcb_bcast=1))
