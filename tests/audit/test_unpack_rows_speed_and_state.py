"""Audit rows 001.13, 001.14: speed settings without effect on data, and the state of the unpackers."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.analysis import timing
from bhemu.errors import MissingSpecification
from bhemu.isa.instructions import encode
from bhemu.recording import log as column
from tests.analysis.logs import log_of
from tests.tensix.unpacker import BF16, BFP2, BFP4, BFP8, FP8, FP32, INT8, INT16, TF32, TILE, Unpacker, counting, unpacr


def bytes_of(u: Unpacker) -> None:
    """Random bytes where the tile is."""
    u.l1(np.random.default_rng(7).integers(0, 256, 4096), "<u1")


def row_is_accepted(u: Unpacker, row: int) -> bool:
    """Whether 32 output datums may start at this SrcA row; only then are they written."""
    u.t["srca"][:] = 0
    u.set("THCON_SEC0_REG5_Dest_cntx0_address", 16 * (4 + row))
    try:
        written = u.unpack()
    except MissingSpecification as error:
        if "rows that the unpacker writes at a time" not in str(error):
            raise
        written = False
    assert written or not u.src().any()
    return written


def rows_at_a_time(u: Unpacker) -> int:
    """Height of a burst, from the start rows that are accepted."""
    accepted = [row for row in range(16) if row_is_accepted(u, row)]
    step = accepted[1]
    assert accepted == list(range(0, 16, step))
    return step


# --- 001.13: speed ----------------------------------------------------------------------------------------------------


@pytest.mark.rule("001.13a")
@pytest.mark.parametrize("kinds", [(FP32, TF32), (BF16, BF16), (BFP8, BFP8), (BFP4, BFP4), (FP8, FP8), (INT8, INT8)])
def test_throttle_codes_change_no_data(kinds: tuple[int, int]) -> None:
    """Codes 0 to 3, with and without the bit that lets them count."""
    cells = []
    for override in (0, 1):
        for mode in range(4):
            u = Unpacker(0)
            u.formats(*kinds)
            bytes_of(u)
            u.set("THCON_SEC0_REG2_Throttle_mode", mode)
            u.set("THCON_SEC0_REG1_ovrd_default_throttle_mode", override)
            u.count(256)
            assert u.unpack()
            cells.append(u.src())
    assert len(np.unique(cells[0])) > 16
    for other in cells[1:]:
        np.testing.assert_array_equal(other, cells[0])


@pytest.mark.rule("001.13a")
@pytest.mark.parametrize(
    ("kinds", "default", "coded"),
    [
        # Bytes of a 16-datum row: 16 for 8 bits. By default 128 bytes a cycle; codes 16, 32, 64, 128.
        ((INT8, INT8), 8, [1, 2, 4, 8]),
        # 32 bytes for 16 bits. By default, and for code 2, a doubled x4: 128.
        ((INT16, INT16), 4, [1, 1, 4, 4]),
        # 64 bytes for 32 bits.
        ((FP32, TF32), 2, [1, 1, 2, 2]),
        # 8 bytes for 4 bits: x4 by default, at most 8 rows.
        ((BFP4, BFP4), 8, [2, 4, 8, 8]),
    ],
)
def test_code_3_is_128_bytes_and_the_default_is_automatic(
    kinds: tuple[int, int], default: int, coded: list[int]
) -> None:
    """Seen in the start rows of SrcA that are certain to be written (U12)."""
    u = Unpacker(0)
    u.formats(*kinds)
    u.count(32)
    for mode in range(4):
        u.set("THCON_SEC0_REG2_Throttle_mode", mode)
        assert rows_at_a_time(u) == default
    u.set("THCON_SEC0_REG1_ovrd_default_throttle_mode", 1)
    for mode, rows in enumerate(coded):
        u.set("THCON_SEC0_REG2_Throttle_mode", mode)
        assert rows_at_a_time(u) == rows


@pytest.mark.rule("001.13b")
@pytest.mark.parametrize("override", [0, 1])
@pytest.mark.parametrize("mode", [0, 3])
def test_some_modes_have_a_speed_of_their_own(mode: int, override: int) -> None:
    """Tileize x4, compressed x1, BFP2 x1, three zeros behind each datum x1, whatever the throttle says."""

    def unpacker(kind: int) -> Unpacker:
        u = Unpacker(0)
        u.formats(kind)
        u.count(32)
        u.set("THCON_SEC0_REG2_Throttle_mode", mode)
        u.set("THCON_SEC0_REG1_ovrd_default_throttle_mode", override)
        return u

    tileize = unpacker(INT8)
    tileize.set("THCON_SEC0_REG2_Tileize_mode", 1)
    assert rows_at_a_time(tileize) == 64 // 16
    assert rows_at_a_time(unpacker(BFP2)) == 16 // 4

    compressed = unpacker(INT8)
    compressed.set("THCON_SEC0_REG2_Disable_zero_compress_cntx0", 0)
    compressed.set("THCON_SEC0_REG5_Tile_x_dim_cntx0", 64)
    compressed.set("THCON_SEC0_REG0_TileDescriptor_z_dim", 1)
    compressed.l1(np.ones(48, np.uint8), "<u1", address=TILE + 16)
    assert rows_at_a_time(compressed) == 16 // 16

    upsampled = unpacker(INT8)
    upsampled.set("THCON_SEC0_REG2_Upsample_rate", 2)
    assert rows_at_a_time(upsampled) == 16 // 16


@pytest.mark.rule("001.13c")
def test_an_unpacr_takes_two_cycles_before_any_thread_may_issue_another() -> None:
    """In modelled time; one datum each, different unpackers and threads, NOPs of others go on."""
    one = {column.UNPACK_X: 0, column.UNPACK_TILE: 5}
    timed = timing(
        log_of(
            (0, "UNPACR Unpack_block_selection=0, Last=1", one),
            (1, "UNPACR Unpack_block_selection=1, Last=1", one),
            (2, "NOP"),
            (2, "NOP"),
        )
    )
    first, second, *others = timed.issue
    assert second - first == 2
    assert others == [first, first + 1]


# --- 001.14: state and order ----------------------------------------------------------------------------------------


@pytest.mark.rule("001.14.1")
def test_state_is_per_unpacker_and_thread_and_the_format_per_bank() -> None:
    """Banks and formats of each file, SrcRow and context counter of each thread."""
    u = Unpacker(0)
    u.count(16)
    u.t["adc"][...] = u.t["adc"][0, 0]
    u.t["thread_config"][:, 5] = 4
    assert u.issue(encode("SETC16", setc16_reg=6, setc16_value=2))  # SRCB_SET_Base of thread 0
    for thread, unpacker, kind in ((0, 1, BF16), (1, 1, INT16), (0, 0, FP8)):
        u.formats(kind)
        assert u.coprocessor.push(thread, unpacr(unpacker, SetDatValid=1))
        assert u.coprocessor.drain(thread)
    assert u.t["unpack"]["bank"].tolist() == [1, 0]
    assert u.t["src_owner"].tolist() == [[1, 0], [1, 1]]
    assert u.t["src_format"].tolist() == [[FP8, 0], [BF16, INT16]]
    assert u.t["unpack"]["src_row"].tolist() == [[0, 32], [0, 0], [0, 0]]
    u.set("THCON_SEC0_REG2_Context_count", 3)
    u.t["src_owner"][...] = 0
    assert u.coprocessor.push(2, unpacr(0, AutoIncContextID=1))
    assert u.coprocessor.drain(2)
    assert u.t["unpack"]["context_counter"].tolist() == [[0, 0], [0, 0], [1, 0]]


@pytest.mark.rule("001.14.2a")
def test_data_and_exponents_wrap_at_the_limit() -> None:
    """Limit and FIFO size move both pointers down."""
    u = Unpacker(1)
    u.formats(BFP8)
    top = TILE + 0x1000
    u.base(top)
    u.set("THCON_SEC1_REG2_Unpack_limit_address", (top - 16) // 16)
    u.set("THCON_SEC1_REG2_Unpack_fifo_size", 0x1000 // 16)
    u.l1([55] * 64, "<u1")  # exponents of 1024 datums, 0x1000 below
    u.l1([0x40] * 64, "<u1", address=TILE + 64)
    u.count(32)
    assert u.unpack()
    assert set(u.src()[:2].reshape(-1)) == {55}


@pytest.mark.rule("001.14.2a")
def test_fp32_is_rearranged_to_sign_mantissa_exponent() -> None:
    """Sign, mantissa, exponent from the top."""
    u = Unpacker(1)
    u.formats(FP32, TF32)
    u.l1([0xC0490FDB] * 16, "<u4")
    assert u.unpack()
    assert set(u.src()[0]) == {1 << 18 | 0b1001001000 << 8 | 0x80}


@pytest.mark.rule("001.14.2a")
def test_an_unpacr_with_set_dat_valid_hands_its_bank_over() -> None:
    """To the matrix unit with SetDatValid, back with its clear; an UNPACR waits in between."""
    u = counting(0)
    assert u.t["src_owner"].tolist() == [[0, 0], [0, 0]]
    assert u.unpack(SetDatValid=1)
    assert u.unpack(SetDatValid=1)
    assert not u.unpack()
    assert u.coprocessor.push(1, encode("CLEARDVALID", cleardvalid=1))
    assert u.coprocessor.drain(1)
    assert u.t["src_owner"][0].tolist() == [0, 1]
    assert u.coprocessor.drain(0)


@pytest.mark.rule("001.14.2a")
@pytest.mark.parametrize("first", [0, 15, 16, 47])
def test_the_exponent_index_is_the_datum_number_over_16(first: int) -> None:
    u = Unpacker(1)
    u.formats(BFP8)
    u.set("THCON_SEC1_REG0_TileDescriptor_z_dim", 1)
    u.l1([100 + n for n in range(16)] + [0x40] * 256, "<u1")
    u.count(20, first=first)
    assert u.unpack()
    np.testing.assert_array_equal(u.src().reshape(-1)[:20], 100 + np.arange(first, first + 20) // 16)


@pytest.mark.rule("001.14.2a")
@pytest.mark.parametrize("count", range(4))
def test_the_context_counter_wraps_at_a_power_of_two(count: int) -> None:
    u = Unpacker(0)
    u.set("THCON_SEC0_REG2_Context_count", count)
    seen = []
    for _ in range(9):
        assert u.unpack(OvrdThreadId=0, Last=0, CfgContextCntInc=1)
        seen.append(int(u.t["unpack"]["context_counter"][0, 0]))
    assert seen == [n % (1 << count) for n in range(1, 10)]


@pytest.mark.rule("001.14.2b")
def test_rows_of_a_tile_come_from_channel_1_and_src_row_is_not_used() -> None:
    """With SetOvrdWithAddr 1 no value of SrcRow makes a difference."""
    u = counting(0)
    u.t["unpack"]["src_row"][0, 0] = 48
    u.set("UNP0_ADD_DEST_ADDR_CNTR_add_dest_addr_cntr", 1)
    u.set("UNP0_ADDR_CTRL_ZW_REG_1_Zstride", 512)
    u.count(256)
    for _ in range(4):
        assert u.unpack(z=1, z1=1)
        assert u.t["unpack"]["src_row"][0, 0] == 48
    np.testing.assert_array_equal(u.values().reshape(-1), np.arange(1, 1025))


@pytest.mark.rule("001.14.3")
def test_an_unpacr_that_waits_has_changed_nothing() -> None:
    """Neither counters, context nor registers; once the bank is free it runs once."""
    u = counting(0)
    u.set("THCON_SEC0_REG2_Context_count", 1)
    u.t["src_owner"][0, 0] = 1
    before = u.t.copy()
    assert not u.unpack(y=1, z=2, y1=3, z1=1, AutoIncContextID=1, SetDatValid=1)
    for name in ("adc", "src_format", "src_owner", "srca"):
        np.testing.assert_array_equal(u.t[name], before[name], err_msg=name)
    for name in ("context_counter", "bank", "src_row"):
        np.testing.assert_array_equal(u.t["unpack"][name], before["unpack"][name], err_msg=name)
    u.t["src_owner"][0, 0] = 0
    assert u.coprocessor.drain(0)
    assert [u.counter(name) for name in ("y", "z", "y1", "z1")] == [1, 2, 3, 1]
    assert u.t["unpack"]["context_counter"][0, 0] == 1
    assert u.values()[0, 0] == 1  # read with the counters from before


@pytest.mark.rule("001.14.3")
def test_output_starts_at_its_address_without_any_header() -> None:
    u = counting(1)
    assert u.unpack()
    np.testing.assert_array_equal(u.values()[0], np.arange(1, 17))
    assert not u.values()[1:].any()
