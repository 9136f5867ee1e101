"""Audit rows 001.4 to 001.6: address counters, and how tilize and untilize are made of them."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.isa.assembler import assemble
from bhemu.isa.instructions import encode
from bhemu.machine.counters import CARRY, CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_W, CH1_X, CH1_Y, CH1_Z
from tests.tensix.packer_bench import Bench
from tests.tensix.unpacker import INT8, INT16, TILE, Unpacker, counting, unpacr

UNITS = {"unpacker 0": 0, "unpacker 1": 1, "packer": 2}


@pytest.fixture(scope="module")
def shared_tile() -> Tile:
    return Tile()


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    shared_tile.reset()
    return shared_tile


def adc(tile: Tile, thread: int, unit: int, counter: int) -> tuple[int, int]:
    """Counter and carry copy."""
    row = tile.record["adc"][thread, unit]
    return int(row[counter]), int(row[CARRY + counter])


# --- 001.4: counters --------------------------------------------------------------------------------------------------


@pytest.mark.rule("001.4.1")
def test_address_counters_wrap_at_their_widths(tile: Tile) -> None:
    """X 18 bits, Y 13. Z and W have the 8 bits of the vectors; values above 255 are all that differs."""
    for mnemonic, places, width in (
        ("INCADCXY", (CH0_X, CH1_X), 18),
        ("INCADCXY", (CH0_Y, CH1_Y), 13),
        ("INCADCZW", (CH0_Z, CH1_Z, CH0_W, CH1_W), 8),
    ):
        tile.record["adc"][0, 1, list(places)] = (1 << width) - 1
        names = ("Ch0_X", "Ch1_X", "Ch0_Y", "Ch1_Y") if mnemonic == "INCADCXY" else ("Ch0_Z", "Ch1_Z", "Ch0_W", "Ch1_W")
        tile.execute(0, encode(mnemonic, CntSetMask=2, **dict.fromkeys(names, 3)))
        assert [adc(tile, 0, 1, place)[0] for place in places] == [2] * len(places)


@pytest.mark.rule("001.4.2a", "001.4.2b")
@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 15), (3, 17), (255, 256)])
def test_x_counters_are_first_and_last_datum(first: int, last: int) -> None:
    """001.4.2a: channel-1 X is XEnd - 1, so X1 - X0 + 1 datums; 001.4.2b: channel-0 X is the place in the row."""
    u = counting()
    u.adc(x=first, x1=last)
    assert u.unpack()
    flat = u.values().reshape(-1)
    np.testing.assert_array_equal(flat[: last - first + 1], np.arange(first + 1, last + 2))
    assert not flat[last - first + 1 :].any()


@pytest.mark.rule("001.4.3a")
@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_setadc_sets_one_counter_and_its_copy(tile: Tile, unit: int) -> None:
    """Mask [23:21] = packer, unpacker 1, unpacker 0; channel [20]; dimension [19:18]; value [17:0]."""
    for dimension, (ch0, ch1) in enumerate(((CH0_X, CH1_X), (CH0_Y, CH1_Y), (CH0_Z, CH1_Z), (CH0_W, CH1_W))):
        for channel, place in enumerate((ch0, ch1)):
            tile.reset()
            tile.execute(1, 0x5000_0000 | 1 << 21 + unit | channel << 20 | dimension << 18 | 0x5A)
            assert adc(tile, 1, unit, place) == (0x5A, 0x5A)
            assert np.count_nonzero(tile.record["adc"]) == 2


@pytest.mark.rule("001.4.3a")
@pytest.mark.parametrize(("override", "thread"), [(0, 2), (1, 0), (2, 1), (3, 2)])
def test_bits_17_and_16_choose_the_thread_and_leave_x_16_bits(tile: Tile, override: int, thread: int) -> None:
    tile.execute(2, 0x5000_0000 | 2 << 21 | override << 16 | 0xFFFF)
    assert adc(tile, thread, 1, CH0_X) == (0xFFFF, 0xFFFF)
    assert np.count_nonzero(tile.record["adc"]) == 2


@pytest.mark.rule("001.4.3b")
@pytest.mark.parametrize(
    ("mnemonic", "opcode", "places"),
    [("SETADCXY", 0x51, (CH1_Y, CH1_X, CH0_Y, CH0_X)), ("SETADCZW", 0x54, (CH1_W, CH1_Z, CH0_W, CH0_Z))],
)
def test_setadcxy_and_zw_take_3_bit_values_under_a_mask(
    tile: Tile, mnemonic: str, opcode: int, places: tuple[int, int, int, int]
) -> None:
    """Values from [17:15] down, mask bit 3 for the first; thread override in [19:18]."""
    assert assemble(f"{mnemonic} 3, 7, 6, 5, 4, 15") == opcode << 24 | 3 << 21 | 0b111_110_101_100 << 6 | 15
    for mask in range(16):
        tile.reset()
        tile.execute(0, opcode << 24 | 1 << 21 | 3 << 18 | 0b111_110_101_100 << 6 | mask)
        for n, place in enumerate(places):
            assert adc(tile, 2, 0, place) == ((7 - n, 7 - n) if mask >> 3 - n & 1 else (0, 0))
        assert not tile.record["adc"][:2].any()


@pytest.mark.rule("001.4.3c")
def test_setadcxx_sets_both_x_counters_and_copies(tile: Tile) -> None:
    """X1 [19:10], X0 [9:0], no override: bit 20 up to the mask is unused."""
    tile.execute(1, 0x5E00_0000 | 7 << 21 | 0x3FF << 10 | 0x155)
    for unit in range(3):
        assert adc(tile, 1, unit, CH1_X) == (0x3FF, 0x3FF)
        assert adc(tile, 1, unit, CH0_X) == (0x155, 0x155)
    assert np.count_nonzero(tile.record["adc"]) == 12


@pytest.mark.rule("001.4.3d", "001.4.3e")
@pytest.mark.parametrize(
    ("family", "places"), [("XY", (CH1_Y, CH1_X, CH0_Y, CH0_X)), ("ZW", (CH1_W, CH1_Z, CH0_W, CH0_Z))]
)
def test_increments_leave_the_copy_and_addrcr_moves_both(
    tile: Tile, family: str, places: tuple[int, int, int, int]
) -> None:
    """001.4.3d: counter += n. 001.4.3e: copy += n, counter = copy; a plain restore when n is 0, under its mask."""
    tile.execute(0, f"SETADC{family} 1, 1, 1, 1, 1, 15")
    tile.execute(0, f"INCADC{family} 1, 4, 3, 2, 1")
    assert [adc(tile, 0, 0, place) for place in places] == [(5, 1), (4, 1), (3, 1), (2, 1)]
    tile.execute(0, f"ADDRCR{family} 1, 7, 0, 6, 5, 0b0110")
    assert [adc(tile, 0, 0, place) for place in places] == [(5, 1), (1, 1), (7, 7), (2, 1)]
    tile.execute(0, f"ADDRCR{family} 1, 2, 2, 2, 2, 15")
    assert [adc(tile, 0, 0, place) for place in places] == [(3, 3), (3, 3), (9, 9), (3, 3)]


@pytest.mark.rule("001.4.3f")
def test_addrcrzw_takes_mask_w1_z1_w0_z0_and_bit_mask() -> None:
    """Mask, W1, Z1, W0, Z0, bit mask."""
    assert assemble("ttaddrcrzw 1, 1, 2, 3, 4, 5") == 0x56000000 | 1 << 21 | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6 | 5


@pytest.mark.rule("001.4.4")
@pytest.mark.parametrize("unpacker", [0, 1])
def test_counters_take_a_tile_face_by_face(unpacker: int) -> None:
    """Z of channel 0 chooses the face in L1, Z of channel 1 the rows, by a stride of one face in bytes."""
    u = counting(unpacker)
    u.set("UNP{}_ADDR_CTRL_ZW_REG_1_Zstride", 16 * 16 * 2)
    u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 1)
    for text in ("SETADCZW 3,0,0,0,0,15", "SETADCXY 3,0,0,0,0,11", "SETADCXX 3,255,0"):
        assert u.issue(assemble(text))
    for face in range(4):
        assert u.t["unpack"]["src_row"][0, unpacker] == 0  # SrcRow takes no part
        assert u.unpack(z=1, z1=1, SetDatValid=int(face == 3))
    np.testing.assert_array_equal(u.values(0).reshape(-1), np.arange(1, 1025))
    assert (u.counter("z"), u.counter("z1")) == (4, 4)


# --- 001.5: tilize ----------------------------------------------------------------------------------------------------


def block(columns: int, rows: int = 32) -> np.ndarray:
    """Row-major numbers row * 64 + column + 1."""
    return (np.arange(rows)[:, None] * 64 + np.arange(columns) % 64 + 1).astype(np.uint16)


def tilizing(columns: int, unpacker: int = 0, size: int = 2) -> Unpacker:
    """Tileize on, the row stride as three nibbles of columns * size / 16."""
    u = Unpacker(unpacker)
    amount = columns * size // 16
    u.set("THCON_SEC{}_REG2_Tileize_mode", 1)
    for context in range(3):
        u.set(f"THCON_SEC{{}}_REG2_Shift_amount_cntx{context}", amount >> 4 * context & 15)
    return u


@pytest.mark.rule("001.5.2a")
@pytest.mark.parametrize("columns", [32, 64, 512, 0xFFF * 8])
def test_the_shift_amount_is_the_row_length_in_16_byte_units(columns: int) -> None:
    """Up to 0xFFF, 65520 bytes or 32760 datums of 16 bits."""
    u = tilizing(columns)
    u.l1(np.arange(1, 33), address=TILE)
    u.l1(np.arange(1001, 1033), address=TILE + 2 * columns)
    u.count(64)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[:4].reshape(-1), [*range(1, 33), *range(1001, 1033)])


@pytest.mark.rule("001.5.2b")
def test_8_bit_data_takes_a_pass_for_each_face() -> None:
    """XDim 16, the base advanced by CFGSHIFTMASK (operation 3, add)."""
    data = (np.arange(32)[:, None] * 4 + np.arange(32) // 8 + 1).astype(np.uint8)
    u = tilizing(32, size=1)
    u.formats(INT8)
    u.l1(data, "<u1")
    u.set("SCRATCH_SEC0_val", 1)  # 16 bytes, a face's width, in units of 16
    u.count(256)
    add = encode("CFGSHIFTMASK", disable_mask_on_old_val=1, operation=3, mask_width=31, scratch_sel=0, CfgReg=76)
    for face in range(2):
        assert u.unpack()
        magnitudes = u.src()[:16] >> 8 & 0x3FF
        np.testing.assert_array_equal(magnitudes, data[:16, 16 * face : 16 * face + 16])
        assert u.issue(add)


@pytest.mark.rule("001.5.2c")
def test_halves_of_32_datum_rows_alternate_and_packer_masks_part_them() -> None:
    """Rows 2 n and 2 n + 1 of Dst are left and right half; masks 0b0101 and 0b1010 choose them."""
    data = block(64)
    u = tilizing(64)
    u.l1(data)
    u.to_dst()
    u.count(512)
    assert u.unpack()
    for row in range(32):
        half = slice(16 * (row % 2), 16 * (row % 2) + 16)
        np.testing.assert_array_equal(u.t["dst"][row], data[row // 2, half])
    for mask, half in ((0b0101, slice(0, 16)), (0b1010, slice(16, 32))):
        bench = Bench(INT16, INT16)
        bench.tile["dst"][:] = u.t["dst"]
        bench.modifier(0, YsrcIncr=4)
        for n in range(8):
            bench.pacr(ReadIntfSel=mask, Last=int(n == 7))
        np.testing.assert_array_equal(bench.l1("<u2", 256), data[:16, half].reshape(-1))


@pytest.mark.rule("001.5.3")
def test_rows_one_at_a_time_need_no_tileize() -> None:
    """Channel-1 Y places each row, the base moves by a matrix row in 16-byte units."""
    data = block(64)
    u = Unpacker(0)
    u.l1(data)
    u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 1)
    u.set("UNP0_ADDR_CTRL_XY_REG_1_Ystride", 32)
    start = TILE // 16 - 1
    for row in range(16):
        u.set("THCON_SEC0_REG3_Base_address", start + row * 64 * 2 // 16)
        assert u.unpack(y1=1)
    np.testing.assert_array_equal(u.values()[:16], data[:16, :16])


# --- 001.6: untilize --------------------------------------------------------------------------------------------------


def faces(first: int) -> np.ndarray:
    """A tile's 1024 datums in storage order."""
    return np.arange(first, first + 1024, dtype=np.uint16)


def untilizing() -> Unpacker:
    """Faces as 16 rows of 16 datums; each 16 datums go to the next row of SrcA."""
    u = Unpacker(0)
    u.set("THCON_SEC0_REG5_Tile_x_dim_cntx0", 16)
    u.set("THCON_SEC0_REG0_TileDescriptor_y_dim", 16)
    u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 1)
    u.set("UNP0_ADDR_CTRL_XY_REG_1_Ystride", 32)
    return u


@pytest.mark.rule("001.6a")
def test_counters_bring_the_rows_of_two_faces_into_matrix_order() -> None:
    """Z steps between left and right face, Y goes down."""
    u = untilizing()
    u.l1(faces(1))
    for row in range(16):
        u.adc(y=row, z=0)
        assert u.unpack(y1=1, z=1)
        assert u.unpack(y1=1, z=1)
    tile = faces(1).reshape(4, 16, 16)
    np.testing.assert_array_equal(u.values()[:32].reshape(16, 2, 16), tile[:2].transpose(1, 0, 2))


@pytest.mark.rule("001.6b")
def test_the_replay_buffer_and_wrcfg_untilize_two_tiles() -> None:
    """Six recorded instructions, then the tile offset from a GPR to word 92, which the seed leaves out."""
    u = untilizing()
    u.l1(faces(1))
    u.l1(faces(2001), address=TILE + 2048)
    offset, size = 20, 21
    u.t["gpr"][0, size] = 2048 // 16
    for word in (
        encode("REPLAY", start_idx=0, len=6, load_mode=1),
        encode("DMANOP"),
        unpacr(0, y1=1, z=1),
        unpacr(0, y1=1, z=1),
        encode("ADDDMAREG", ResultRegIndex=offset, OpBRegIndex=size, OpARegIndex=offset),
        assemble("STALLWAIT 128, 1"),
        assemble("ADDRCRZW 1, 0, 0, 0, 0, 1"),  # back to the Z that SETADCZW set
    ):
        assert u.issue(word)
    assert not u.src().any()  # loading executed nothing
    play = encode("REPLAY", start_idx=0, len=6)
    write = encode("WRCFG", GprAddress=offset, CfgReg=92)
    for _ in range(16):
        u.t["gpr"][0, offset] = 0
        assert u.issue(write)
        for _ in range(2):
            assert u.issue(play)
            assert u.counter("z") == 0
            assert u.issue(write)
        assert u.issue(assemble("INCADCXY 1, 0, 0, 1, 0"))
    both = np.stack([faces(1), faces(2001)]).reshape(2, 4, 16, 16)[:, :2]
    np.testing.assert_array_equal(u.values().reshape(16, 2, 2, 16), both.transpose(2, 0, 1, 3))
