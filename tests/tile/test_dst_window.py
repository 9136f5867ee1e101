"""The window through which T cores access Dst (tile K45 to K47, E9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from bhemu import Tile
from bhemu.api.views import bf16_cells_to_float, fp16_cells_to_float
from bhemu.errors import UndefinedBehavior
from bhemu.machine.agents import NC, NOC, T0, T1, T2, B
from bhemu.machine.compiler import JIT
from bhemu.tensix.dst_window import BF16, FLOAT32, FP16, INT8, INT16, INT32, cells_of_value, value_of_cells
from tests.riscv.rv_machine import SCRATCH, machine, words

WINDOW = 0xFFBD8000
ALL_CELLS = np.arange(1 << 16)
T_CORES = (T0, T1, T2)


def _values(fmt: int, raw: int, unsigned: int, highs: Any, lows: Any, out: Any) -> None:
    for i in range(len(out)):
        out[i] = value_of_cells(fmt, highs[i], lows[i], raw, unsigned)


def _cells(fmt: int, raw: int, unsigned: int, values: Any, highs: Any, lows: Any) -> None:
    for i in range(len(values)):
        highs[i], lows[i] = cells_of_value(fmt, values[i], raw, unsigned)


values_loop: Callable[..., None] = njit(_values) if JIT else _values
cells_loop: Callable[..., None] = njit(_cells) if JIT else _cells


def loaded(fmt: int, highs: Any, lows: Any = None, *, raw: int = 0, unsigned: int = 0) -> Any:
    """What loads of cells give."""
    out = np.zeros(len(highs), np.int64)
    values_loop(fmt, raw, unsigned, highs, np.zeros_like(highs) if lows is None else lows, out)
    return out


def stored(fmt: int, values: Any, *, raw: int = 0, unsigned: int = 0) -> Any:
    """High (or only) cells that stores of values write."""
    highs, lows = np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
    cells_loop(fmt, raw, unsigned, values, highs, lows)
    assert not lows.any()
    return highs


def configured(fmt: int, *, raw: int = 0, unsigned: int = 0, agent: int = T0, bank: int = 0) -> Tile:
    """A tile whose Dst window has a format for one core; the others keep 0."""
    tile = Tile()
    thread = agent - T0
    config = tile.config.for_bank(bank)
    config[f"RISC_DEST_ACCESS_CTRL_SEC{thread}_fmt"] = fmt
    config[f"RISC_DEST_ACCESS_CTRL_SEC{thread}_no_swizzle"] = raw
    config[f"RISC_DEST_ACCESS_CTRL_SEC{thread}_unsigned_int"] = unsigned
    return tile


# --- conversions, exhaustively ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_bf16_every_cell_is_the_bfloat_that_dst_holds() -> None:
    value = loaded(BF16, ALL_CELLS)
    floats = (value.astype(np.uint32) << 16).view(np.float32)
    assert np.array_equal(floats.view(np.uint32), bf16_cells_to_float(ALL_CELLS).view(np.uint32))
    assert np.array_equal(stored(BF16, value), ALL_CELLS)
    assert stored(BF16, np.array([0x3F80, 0xC040])).tolist() == [0x007F, 0xC080]


@pytest.mark.slow
@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_fp16_every_cell_is_the_half_that_dst_holds() -> None:
    value = loaded(FP16, ALL_CELLS)
    ordinary = ((ALL_CELLS & 0x1F) != 0) & ((ALL_CELLS & 0x1F) != 31)  # Dst has no subnormals, no infinity
    halves = value.astype(np.uint16).view(np.float16).astype(np.float32)
    assert np.array_equal(halves[ordinary], fp16_cells_to_float(ALL_CELLS)[ordinary])
    assert np.array_equal(stored(FP16, value), ALL_CELLS)
    assert len(set(value.tolist())) == 1 << 16
    assert stored(FP16, np.array([0x3C00, 0xC200])).tolist() == [0x000F, 0xC010]


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_int16_every_cell_is_sign_and_magnitude() -> None:
    value = loaded(INT16, ALL_CELLS)
    expected = np.where(ALL_CELLS & 0x8000, -(ALL_CELLS & 0x7FFF), ALL_CELLS)
    assert np.array_equal(value.astype(np.uint16).view(np.int16), expected)
    assert value[0x8000] == 0  # -0
    back = stored(INT16, ALL_CELLS)
    again = loaded(INT16, back)
    assert np.array_equal(np.delete(again, 0x8000), np.delete(ALL_CELLS, 0x8000))
    assert back[0x8000] == 0xFFFF  # -2**15 is clamped to -(2**15 - 1)
    assert back[0xFFFF] == 0x8001


@pytest.mark.rule("tile K45")
@pytest.mark.plain
@pytest.mark.parametrize("fmt", [FP16, BF16, INT16])
def test_sixteen_bits_pass_unchanged_without_swizzle(fmt: int) -> None:
    assert np.array_equal(loaded(fmt, ALL_CELLS, raw=1), ALL_CELLS)
    assert np.array_equal(stored(fmt, ALL_CELLS, raw=1), ALL_CELLS)


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_int16_unsigned_passes_unchanged() -> None:
    assert np.array_equal(loaded(INT16, ALL_CELLS, unsigned=1), ALL_CELLS)
    assert np.array_equal(stored(INT16, ALL_CELLS, unsigned=1), ALL_CELLS)


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_int8_loads_decode_every_cell() -> None:
    magnitude = (ALL_CELLS >> 5) & 0x7F
    expected = np.where(ALL_CELLS & 0x8000, -magnitude, magnitude)
    assert np.array_equal(loaded(INT8, ALL_CELLS).astype(np.uint8).view(np.int8), expected)
    for options in ({"unsigned": 1}, {"raw": 1}, {"raw": 1, "unsigned": 1}):
        assert np.array_equal(loaded(INT8, ALL_CELLS, **options), (ALL_CELLS >> 5) & 0xFF)


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_int8_stores_encode_every_value() -> None:
    byte = np.arange(256)
    exponent = np.where(byte != 0, 16, 0)
    for options in ({"unsigned": 1}, {"raw": 1}):
        assert np.array_equal(stored(INT8, byte, **options), byte << 5 | exponent)
        assert np.array_equal(loaded(INT8, stored(INT8, byte, **options), **options), byte)
    cells = stored(INT8, byte)
    assert np.array_equal(cells[:128], (byte << 5 | exponent)[:128])
    assert np.array_equal(loaded(INT8, cells[:128]), byte[:128])


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_int8_negative_stores_go_wrong_as_on_silicon() -> None:
    """The magnitude byte is 0x180 - v (one less for -128), truncated: right but for its bit 7, 0x80 too much."""
    v = np.arange(0x80, 0x100)
    cells = stored(INT8, v)
    assert ((cells & 0x801F) == 0x8010).all()
    magnitude = (cells >> 5) & 0xFF
    assert magnitude.tolist() == [0xFF] + [(0x180 - n) & 0xFF for n in range(0x81, 0x100)]
    assert (cells[-1], cells[1]) == (0x8000 | 0x81 << 5 | 16, 0x8000 | 0xFF << 5 | 16)
    # Loads drop the wrong bit again, so that the window alone does not show the fault; -128 comes back as -127.
    assert loaded(INT8, cells).tolist() == [0x81, *range(0x81, 0x100)]


def samples32() -> Any:
    edges = [0, 1, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0x3F800000, 0xC0490FDB, 0x00800000, 0x007FFFFF]
    bits = [1 << i for i in range(32)]
    more = np.random.default_rng(45).integers(0, 1 << 32, 4096)
    return np.array(edges + bits + [*more], np.int64)


@pytest.mark.rule("tile K46")
@pytest.mark.plain
def test_fp32_and_plain_words_are_permuted_as_dst_holds_them() -> None:
    word = samples32()
    highs, lows = np.zeros_like(word), np.zeros_like(word)
    cells_loop(FLOAT32, 0, 0, word, highs, lows)
    assert np.array_equal(lows, word & 0xFFFF)
    assert np.array_equal(bf16_cells_to_float(highs).view(np.uint32), (word & 0xFFFF0000).astype(np.uint32))
    assert np.array_equal(loaded(FLOAT32, highs, lows), word)
    cells_loop(FLOAT32, 1, 0, word, highs, lows)
    assert np.array_equal(highs << 16 | lows, word)
    assert np.array_equal(loaded(FLOAT32, highs, lows, raw=1), word)


@pytest.mark.rule("tile K45", "tile K46")
@pytest.mark.plain
@pytest.mark.parametrize("unsigned", [0, 1])
def test_int32_is_sign_and_magnitude_whatever_unsigned_int_says(unsigned: int) -> None:
    word = samples32()
    signed = np.where(word >> 31, word - (1 << 32), word)
    clamped = np.maximum(signed, -0x7FFFFFFF)
    highs, lows, floats = (np.zeros_like(word) for _ in range(3))
    cells_loop(INT32, 0, unsigned, word, highs, lows)
    magnitude = np.where(clamped < 0, 1 << 31 | -clamped, clamped)
    cells_loop(FLOAT32, 0, 0, magnitude, floats, np.zeros_like(word))
    assert np.array_equal(highs, floats)
    assert np.array_equal(lows, magnitude & 0xFFFF)
    back = loaded(INT32, highs, lows, unsigned=unsigned)
    assert np.array_equal(back, clamped & 0xFFFFFFFF)
    assert loaded(INT32, np.array([0x8000]), np.array([0])).tolist() == [0]  # -0
    cells_loop(INT32, 1, unsigned, word, highs, lows)
    assert np.array_equal(highs << 16 | lows, word)


# --- rows, columns, valid bits ----------------------------------------------------------------------------------------


@pytest.mark.rule("tile K45", "tile K46")
@pytest.mark.plain
@pytest.mark.parametrize("agent", T_CORES)
def test_32_bit_elements_lie_in_the_rows_of_dst32b(agent: int) -> None:
    tile = configured(FLOAT32, agent=agent)
    rng = np.random.default_rng(1)
    expected = np.zeros((512, 16), np.uint32)
    for row in (0, 7, 8, 15, 16, 255, 511):
        for column in (0, 1, 15):
            expected[row, column] = rng.integers(1, 1 << 32)
            tile.cores.store(WINDOW + 4 * (16 * row + column), int(expected[row, column]), agent)
    assert np.array_equal(tile.dst.bits32, expected)
    for row, column in zip(*np.nonzero(expected), strict=True):
        assert tile.cores.load(WINDOW + 4 * (16 * int(row) + int(column)), agent) == expected[row, column]
    assert tile.dst.cells[8, 0] == expected[0, 0] & 0xFFFF  # I.3: low halves eight rows after the high ones


@pytest.mark.rule("tile K45")
@pytest.mark.plain
@pytest.mark.parametrize(("fmt", "width"), [(FP16, 2), (BF16, 2), (INT16, 2), (INT8, 1)])
def test_narrow_elements_lie_in_the_rows_of_dst16b(fmt: int, width: int) -> None:
    tile = configured(fmt, unsigned=1)
    for row, column in ((0, 0), (0, 15), (1, 0), (8, 3), (513, 2), (1023, 15)):
        address = WINDOW + width * (16 * row + column)
        tile.cores.store(address, 0x5A, T0, width)
        assert tile.cores.load(address, T0, width) == 0x5A
        assert tile.dst.cells[row, column] != 0
    assert np.count_nonzero(tile.dst.cells) == 6


@pytest.mark.rule("tile K47")
@pytest.mark.plain
def test_a_store_makes_its_row_valid_and_loads_do_not_ask() -> None:
    for fmt, row, place in ((BF16, 12, 12), (FLOAT32, 12, 20)):
        tile = configured(fmt)
        width = 2 if fmt == BF16 else 4
        tile.dst.valid[...] = 0
        tile.dst.cells[place, 1] = 0x007F
        assert tile.cores.load(WINDOW + width * (16 * row + 1), T0, width) == (0x3F80 if width == 2 else 0x3F800000)
        assert not tile.dst.valid.any()
        tile.cores.store(WINDOW + width * (16 * row), 0, T0, width)
        assert np.nonzero(tile.dst.valid)[0].tolist() == [place]


@pytest.mark.rule("tile K47")
@pytest.mark.plain
def test_rows_are_logical_in_all_units() -> None:
    """Both bits permute every view alike (rules I.3), hence nothing moves."""
    tile = configured(FLOAT32)
    tile.config["DEST_ACCESS_CFG_remap_addrs"] = 1
    tile.config["DEST_ACCESS_CFG_swizzle_32b"] = 1
    tile.cores.store(WINDOW + 4 * 16 * 9, 0x3F800000, T0)
    assert tile.dst.fp32[9, 0] == 1.0


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_each_thread_has_its_own_format_in_the_bank_of_its_state_id() -> None:
    tile = configured(BF16, agent=T1, bank=1)
    tile.config.for_thread(1)["CFG_STATE_ID_StateID"] = 1
    tile.dst.cells[0, 0] = 0x007F
    assert tile.cores.load(WINDOW, T1, 2) == 0x3F80
    assert tile.cores.load(WINDOW, T0, 4) == 0x3F800000  # format 0 of bank 0
    tile.config.for_thread(1)["CFG_STATE_ID_StateID"] = 0
    assert tile.cores.load(WINDOW, T1, 4) == 0x3F800000


# --- widths -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile K45")
@pytest.mark.plain
@pytest.mark.parametrize(("fmt", "width"), [(FLOAT32, 4), (INT32, 4), (FP16, 2), (BF16, 2), (INT16, 2), (INT8, 1)])
@pytest.mark.parametrize("agent", [T0, T1])
def test_cores_t0_and_t1_access_exactly_one_element(fmt: int, width: int, agent: int) -> None:
    tile = configured(fmt, agent=agent)
    for size in {1, 2, 4} - {width}:
        with pytest.raises(UndefinedBehavior, match=f"T{agent - T0} accesses {size} bytes"):
            tile.cores.load(WINDOW, agent, size)
        with pytest.raises(UndefinedBehavior, match=f"T{agent - T0} accesses {size} bytes"):
            tile.cores.store(WINDOW, 0, agent, size)
    tile.cores.store(WINDOW, 1, agent, width)
    assert tile.cores.load(WINDOW, agent, width) == 1


@pytest.mark.rule("tile K45")
@pytest.mark.plain
@pytest.mark.parametrize(
    ("fmt", "width", "size"), [(BF16, 2, 4), (FP16, 2, 4), (INT16, 2, 4), (INT8, 1, 2), (INT8, 1, 4)]
)
def test_core_t2_accesses_several_elements_at_once(fmt: int, width: int, size: int) -> None:
    tile = configured(fmt, agent=T2)
    content = bytes([0x11, 0x22, 0x33, 0x44])[:size]
    tile.cores.store(WINDOW + 4, int.from_bytes(content, "little"), T2, size)
    assert tile.cores.load(WINDOW + 4, T2, size) == int.from_bytes(content, "little")
    for i in range(size // width):
        part = content[width * i : width * (i + 1)]
        assert tile.cores.load(WINDOW + 4 + width * i, T2, width) == int.from_bytes(part, "little")
    assert np.count_nonzero(tile.dst.cells) == size // width


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_core_t2_accesses_no_part_of_an_element() -> None:
    tile = configured(FLOAT32, agent=T2)
    with pytest.raises(UndefinedBehavior, match="T2 accesses 2 bytes"):
        tile.cores.load(WINDOW, T2, 2)
    tile.config["RISC_DEST_ACCESS_CTRL_SEC2_fmt"] = INT16
    with pytest.raises(UndefinedBehavior, match="T2 accesses 1 bytes"):
        tile.cores.store(WINDOW, 0, T2, 1)


@pytest.mark.rule("tile K45")
@pytest.mark.plain
@pytest.mark.parametrize("fmt", [6, 7])
def test_reserved_formats_are_refused(fmt: int) -> None:
    with pytest.raises(UndefinedBehavior, match="reserved"):
        configured(fmt).cores.load(WINDOW, T0)


@pytest.mark.rule("tile K45")
@pytest.mark.plain
def test_bytes_fill_half_of_the_window() -> None:
    tile = configured(INT8)
    tile.cores.store(WINDOW + 0x3FFF, 3, T0, 1)
    assert tile.dst.cells[1023, 15] == 3 << 5 | 16
    with pytest.raises(UndefinedBehavior, match="0x4000"):
        tile.cores.load(WINDOW + 0x4000, T0, 1)


@pytest.mark.rule("tile T24")
@pytest.mark.plain
@pytest.mark.parametrize("agent", [B, NC, NOC])
def test_only_t_cores_see_dst(agent: int) -> None:
    with pytest.raises(UndefinedBehavior, match="unmapped"):
        Tile().cores.load(WINDOW, agent)


@pytest.mark.rule("tile E9")
def test_programs_store_and_load_through_the_window() -> None:
    """lhu and lh of BF16 elements that a core has stored with sh."""
    tile = configured(BF16, agent=T1)
    program = f"""
        li a0, {WINDOW + 2 * 16 * 5}
        li a1, 0xc040
        sh a1, 6(a0)
        lhu a2, 6(a0)
        lh a3, 6(a0)
        li a4, {SCRATCH}
        sw a2, 0(a4)
        sw a3, 4(a4)
    end: j end
    """
    machine({"T1": program}, 60, tile=tile)
    assert words(tile, 2) == [0xC040, 0xFFFFC040]
    assert tile.dst.bf16[5, 3] == -3.0
