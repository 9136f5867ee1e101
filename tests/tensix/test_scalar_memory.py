"""Scalar unit: L1, Src, MMIO and atomics (I.11; rows 003.2.6, 003.2.7, 003.8)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import BhemuError, MemoryError_, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.instructions import encode
from bhemu.machine.agents import TENSIX
from bhemu.machine.state import L1_SIZE

pytestmark = pytest.mark.plain

THREAD = 0
ADDRESS = 4  # GPR with an address in 16-byte units
OFFSET = 10  # half register: low half of GPR 5
DATA = 17  # not a multiple of four
BASE = 0x12340  # bytes
WAITS = "waits on thread"


@pytest.fixture
def tile(shared_tile: Tile) -> Tile:
    """L1 from BASE holds 1, 2, 3, ...; GPR n holds 0xA0B0C0D0 + n."""
    shared_tile.reset()
    record = shared_tile.record
    record.allow_open = 0
    record.l1[BASE - 64 : BASE + 128] = 0
    record.l1[BASE : BASE + 64] = np.arange(1, 65)
    record.gpr[THREAD] = 0xA0B0C0D0 + np.arange(64)
    record.gpr[THREAD, ADDRESS] = BASE // 16
    record.gpr[THREAD, OFFSET // 2] = 0xABCD0000
    return shared_tile


def gpr(tile: Tile, index: int) -> int:
    return int(tile.record.gpr[THREAD, index])


def set_offset(tile: Tile, value: int) -> None:
    tile.record.gpr[THREAD, OFFSET // 2] = 0xABCD0000 | value


def load(size: int, increment: int = 0, data: int = DATA) -> int:
    return encode("LOADIND", size, OFFSET, increment, data, ADDRESS)


def store(size: int, increment: int = 0, data: int = DATA) -> int:
    return encode("STOREIND", form="L1", Size=size, OffsetIndex=OFFSET, AutoIncSpec=increment, DataRegIndex=data,
                  AddrRegIndex=ADDRESS)  # fmt: skip


def l1(tile: Tile, start: int, count: int) -> list[int]:
    return [int(v) for v in tile.record.l1[BASE + start : BASE + start + count]]


@pytest.mark.rule("003.2.6b", "003.2.6c")
@pytest.mark.parametrize("offset", range(20))
def test_loadind_drops_low_address_bits_and_keeps_other_gpr_bits(tile: Tile, offset: int) -> None:
    old = gpr(tile, DATA)
    set_offset(tile, offset)
    tile.execute(THREAD, load(1))
    word = offset & ~3
    assert gpr(tile, DATA) == int.from_bytes(bytes(range(word + 1, word + 5)), "little")
    tile.record.gpr[THREAD, DATA] = old
    tile.execute(THREAD, load(2))
    half = offset & ~1
    assert gpr(tile, DATA) == old & 0xFFFF0000 | (half + 2) << 8 | (half + 1)
    tile.record.gpr[THREAD, DATA] = old
    tile.execute(THREAD, load(3))
    assert gpr(tile, DATA) == old & 0xFFFFFF00 | (offset + 1)


@pytest.mark.rule("003.2.6b")
def test_loadind_of_16_bytes_fills_an_aligned_group_of_gprs(tile: Tile) -> None:
    set_offset(tile, 31)
    tile.execute(THREAD, load(0))
    expected = np.arange(17, 33, dtype=np.uint8).view("<u4").tolist()
    assert [gpr(tile, i) for i in range(16, 20)] == expected
    assert gpr(tile, 15) == 0xA0B0C0D0 + 15
    assert gpr(tile, 20) == 0xA0B0C0D0 + 20


@pytest.mark.rule("003.2.6a", "003.7")
def test_the_offset_register_has_seven_bits(tile: Tile) -> None:
    tile.record.gpr[THREAD, 63] = 0x0004_0000  # half 127 is its upper half
    tile.execute(THREAD, encode("LOADIND", 3, 127, 0, DATA, ADDRESS))
    assert gpr(tile, DATA) & 0xFF == 5


@pytest.mark.rule("003.2.6c", "003.2.6e")
@pytest.mark.parametrize(("code", "step"), [(0, 0), (1, 2), (2, 4), (3, 16)])
def test_the_offset_is_incremented_after_use(tile: Tile, code: int, step: int) -> None:
    tile.record.allow_open = 1
    set_offset(tile, 8)
    tile.execute(THREAD, load(3, code))
    assert gpr(tile, DATA) & 0xFF == 9
    assert gpr(tile, OFFSET // 2) == 0xABCD0000 | (8 + step)
    tile.execute(THREAD, store(3, code))
    assert l1(tile, 8 + step, 1) == [9]
    assert gpr(tile, OFFSET // 2) == 0xABCD0000 | (8 + 2 * step)


def test_the_offset_half_wraps_without_touching_the_other_half(tile: Tile) -> None:
    tile.record.gpr[THREAD, ADDRESS] = 0
    set_offset(tile, 0xFFF8)
    tile.execute(THREAD, load(3, 3))
    assert gpr(tile, OFFSET // 2) == 0xABCD0008


def test_loaded_data_win_over_the_increment_of_the_same_gpr(tile: Tile) -> None:
    set_offset(tile, 4)
    tile.execute(THREAD, load(1, 3, OFFSET // 2))
    assert gpr(tile, OFFSET // 2) == 0x08070605


@pytest.mark.rule("003.2.7a", "003.2.7c")
@pytest.mark.parametrize("offset", [0, 1, 5, 15, 16, 31])
def test_storeind_writes_16_bytes_or_one(tile: Tile, offset: int) -> None:
    set_offset(tile, offset)
    tile.execute(THREAD, store(0))
    group = np.array([gpr(tile, i) for i in range(16, 20)], "<u4").tobytes()
    at = offset & ~15
    assert bytes(l1(tile, at, 16)) == group
    assert l1(tile, at + 16, 1) == [at + 17]
    tile.execute(THREAD, store(3, data=30))
    assert l1(tile, offset, 1) == [gpr(tile, 30) & 0xFF]


@pytest.mark.rule("003.2.7b")
@pytest.mark.parametrize("size", [1, 2])
def test_storeind_sizes_1_and_2_are_an_open_choice(tile: Tile, size: int) -> None:
    set_offset(tile, 7)
    with pytest.raises(MissingSpecification, match=f"with size {size}"):
        tile.execute(THREAD, store(size, 1))
    assert gpr(tile, OFFSET // 2) == 0xABCD0007
    tile.record.allow_open = 1
    tile.execute(THREAD, store(size, 1))
    data = gpr(tile, DATA).to_bytes(4, "little")
    if size == 1:
        assert bytes(l1(tile, 4, 5)) == data + b"\x09"
    else:
        assert bytes(l1(tile, 5, 4)) == b"\x06" + data[:2] + b"\x09"


@pytest.mark.rule("003.2.7f")
def test_storeind_stores_a_16_byte_header(tile: Tile) -> None:
    tile.execute(THREAD, encode("STOREIND", 1, 0, 0, OFFSET, 0, 16, ADDRESS))
    assert bytes(l1(tile, 0, 16)) == np.array([gpr(tile, i) for i in range(16, 20)], "<u4").tobytes()


@pytest.mark.rule("003.2.6d")
@pytest.mark.parametrize(
    "word",
    [
        load(0),
        load(3),
        store(0),
        store(3),
        encode("ATINCGET", DataRegIndex=DATA, AddrRegIndex=ADDRESS),
        encode("ATINCGETPTR", DataRegIndex=DATA, AddrRegIndex=ADDRESS),
        encode("ATSWAP", SwapMask=255, DataRegIndex=DATA, AddrRegIndex=ADDRESS),
        encode("ATCAS", AddrRegIndex=ADDRESS),
    ],
)
@pytest.mark.parametrize("address", [L1_SIZE, 0xFFFFFFF0])
def test_l1_past_the_end_is_refused_with_its_address(tile: Tile, word: int, address: int) -> None:
    tile.record.gpr[THREAD, ADDRESS] = address // 16
    before = tile.record.gpr.copy()
    with pytest.raises(MemoryError_, match=f"{address:#x} is past the end of L1"):
        tile.execute(THREAD, word)
    assert (tile.record.gpr == before).all()


def test_the_last_16_bytes_of_l1_are_in_reach(tile: Tile) -> None:
    tile.record.gpr[THREAD, ADDRESS] = L1_SIZE // 16 - 1
    set_offset(tile, 15)
    tile.execute(THREAD, [store(0), load(0, data=20)])
    assert [gpr(tile, i) for i in range(20, 24)] == [gpr(tile, i) for i in range(16, 20)]


# --- Src ------------------------------------------------------------------------------------------


def store_src(to_b: int, increment: int = 0) -> int:
    return encode("STOREIND", form="Src", StoreToSrcB=to_b, OffsetIndex=OFFSET, AutoIncSpec=increment,
                  DataRegIndex=DATA, AddrRegIndex=ADDRESS)  # fmt: skip


# Low half: s m7 e8 as Dst keeps it; high half: BF16. Cells are s m10 e8.
PAIR = (0x3FC0_857F, 0xC120_0182)
CELLS = [1 << 18 | 0x05 << 11 | 0x7F, 0x40 << 11 | 0x7F, 0x01 << 11 | 0x82, 1 << 18 | 0x20 << 11 | 0x82]


def aim(tile: Tile, row: int, column: int, offset: int = 0) -> None:
    tile.record.gpr[THREAD, ADDRESS] = (4 * row + column // 4 - offset) & 0xFFFFFFFF  # the sum wraps
    set_offset(tile, 16 * offset)
    tile.record.gpr[THREAD, 16:18] = PAIR


@pytest.mark.rule("003.2.7e")
@pytest.mark.parametrize("column", [0, 4, 8, 12])
@pytest.mark.parametrize("row", [0, 5, 15])
def test_storeind_to_srcb_writes_four_cells_of_a_row(tile: Tile, row: int, column: int) -> None:
    tile.record.unpack.bank[1] = 1
    tile.record.unpack.src_row[THREAD, 1] = 32
    aim(tile, row, column, offset=3)
    tile.execute(THREAD, store_src(1, 3))
    assert tile.record.srcb[1, row + 32, column : column + 4].tolist() == CELLS
    assert np.count_nonzero(tile.record.srcb) == 4
    assert gpr(tile, OFFSET // 2) == 0xABCD0000 | 64


@pytest.mark.rule("003.2.7e")
@pytest.mark.parametrize(("override", "row", "cell_row"), [(1, 4, 0), (1, 67, 63), (0, 4, 16), (0, 19, 31)])
def test_storeind_to_srca_is_four_rows_lower(tile: Tile, override: int, row: int, cell_row: int) -> None:
    tile.config.for_thread(THREAD)["SRCA_SET_SetOvrdWithAddr"] = override
    tile.record.unpack.src_row[THREAD, 0] = 16
    aim(tile, row, 8)
    tile.execute(THREAD, store_src(0))
    assert tile.record.srca[0, cell_row, 8:12].tolist() == CELLS
    assert np.count_nonzero(tile.record.srca) == 4


@pytest.mark.rule("003.2.7e")
def test_srca_rows_below_four_are_dropped(tile: Tile) -> None:
    aim(tile, 3, 0)
    tile.execute(THREAD, store_src(0, 1))
    assert not tile.record.srca.any()
    assert gpr(tile, OFFSET // 2) == 0xABCD0002


@pytest.mark.rule("003.2.7e")
@pytest.mark.parametrize(("to_b", "override", "row"), [(1, 0, 16), (0, 0, 20), (0, 1, 68), (1, 0, 0x4000)])
def test_rows_out_of_reach_are_refused(tile: Tile, to_b: int, override: int, row: int) -> None:
    tile.config.for_thread(THREAD)["SRCA_SET_SetOvrdWithAddr"] = override
    aim(tile, row, 0)
    with pytest.raises(UndefinedBehavior, match=f"is row {row},"):
        tile.execute(THREAD, store_src(to_b))


@pytest.mark.parametrize("to_b", [0, 1])
def test_storeind_to_src_waits_for_the_unpackers_bank(tile: Tile, to_b: int) -> None:
    aim(tile, 4, 0)
    tile.record.src_owner[to_b, 0] = 1
    with pytest.raises(UndefinedBehavior, match=WAITS):
        tile.execute(THREAD, store_src(to_b, 1))
    assert gpr(tile, OFFSET // 2) == 0xABCD0000


# --- MMIO -----------------------------------------------------------------------------------------

PLAIN_REGISTER = 0xFFB41028  # register 10 of overlay stream 1, 17 bits
MMIO_WORD = (PLAIN_REGISTER - 0xFFB00000) // 4


@pytest.mark.rule("003.8")
def test_storereg_and_loadreg_reach_overlay_registers(tile: Tile) -> None:
    tile.record.gpr[THREAD, 3] = 0x12345
    tile.execute(THREAD, encode("STOREREG", 3, MMIO_WORD))
    tile.execute(THREAD, encode("LOADREG", 63, MMIO_WORD))
    assert gpr(tile, 63) == 0x12345
    assert gpr(tile, 3) == 0x12345


@pytest.mark.rule("003.8")
@pytest.mark.parametrize(
    ("word", "error", "text"),
    [
        (encode("LOADREG", 3, 0x40), UndefinedBehavior, "0xffb00100 is below 0xffb11000"),
        (encode("STOREREG", 3, 0x43FF), UndefinedBehavior, "0xffb10ffc is below"),
        (encode("LOADREG", 3, 0x80C0), Unimplemented, "register 0x300 of the network interface of NoC 0"),
        (encode("STOREREG", 3, 0x3FFFF), UndefinedBehavior, "the coprocessor accesses 0xffbffffc"),
        (encode("LOADREG", 3, 0x4400), MissingSpecification, r"the coprocessor accesses TDMA-RISC \(0xffb11000\)"),
        (encode("STOREREG", 3, 0x4407), MissingSpecification, r"TDMA-RISC \(0xffb1101c\)"),
    ],
)
def test_loadreg_and_storereg_name_the_address(tile: Tile, word: int, error: type[BhemuError], text: str) -> None:
    before = tile.record.gpr.copy()
    with pytest.raises(error, match=text):
        tile.execute(THREAD, word)
    assert (tile.record.gpr == before).all()


@pytest.mark.rule("tile T24")
def test_the_coprocessor_reaches_tdma_risc_where_the_user_accepts_it(tile: Tile) -> None:
    tile.record.allow_open = 1
    tile.record.gpr[THREAD, 3] = 0x10000 | 0x77
    tile.execute(THREAD, encode("STOREREG", 3, 0x4407))
    assert tile.record.pack.l1_dest_addr_offset == 0x77
    tile.record.pack.l1_dest_addr_offset = 0
    tile.execute(THREAD, encode("LOADREG", 4, 0x4405))
    assert gpr(tile, 4) == 0x428
    with pytest.raises(MissingSpecification, match="base for compact moves"):
        tile.execute(THREAD, encode("STOREREG", 3, 0x440B))


DEVICES = {
    "control": 0xFFB12228,
    "interrupt controller": 0xFFB130A8,
    "software IRQ": 0xFFB13020,
    "local RAM of B": 0xFFB14100,
    "local RAM of T2": 0xFFB1CFFC,
    "NIU of NoC 0": 0xFFB20000,
    "NIU of NoC 1": 0xFFB31820,
    "overlay stream 0": 0xFFB40090,
}


@pytest.mark.rule("tile T24", "003.8")
@pytest.mark.parametrize("device", DEVICES)
def test_loadreg_storereg_and_storeind_reach_the_devices_of_the_tile(tile: Tile, device: str) -> None:
    address = DEVICES[device]
    tile.record.gpr[THREAD, 3] = 0x12_3456
    tile.execute(THREAD, encode("STOREREG", 3, (address - 0xFFB00000) // 4))
    tile.execute(THREAD, encode("LOADREG", 63, (address - 0xFFB00000) // 4))
    assert gpr(tile, 63) == 0x12_3456
    assert tile.cores.load(address) == (0 if device == "software IRQ" else 0x12_3456)  # LOADREG has taken it
    tile.record.gpr[THREAD, ADDRESS] = address - 0xFFB00000
    tile.record.gpr[THREAD, OFFSET // 2] = 0
    tile.record.gpr[THREAD, DATA] = 0x65_4321
    tile.execute(THREAD, store_mmio(1))
    assert tile.cores.load(address) == 0x65_4321
    assert gpr(tile, OFFSET // 2) == 2


@pytest.mark.rule("tile T24")
def test_the_coprocessor_reads_program_counters_and_starts_noc_requests(tile: Tile) -> None:
    tile.record.core_pc[3] = 0xE010
    tile.execute(THREAD, encode("LOADREG", 5, 0x13148 // 4))
    assert gpr(tile, 5) == 0xE010
    tile.record.l1_u32[0x1000 // 4] = 77
    values = {0x00: 0x1000, 0x08: 0x81, 0x0C: 0x2000, 0x14: 0x81, 0x1C: 0x2090, 0x20: 4, 0x40: 1}
    for offset, value in values.items():
        tile.record.gpr[THREAD, 3] = value
        tile.execute(THREAD, encode("STOREREG", 3, (0x20000 + offset) // 4))
    assert tile.record.l1_u32[0x2000 // 4] == 77


@pytest.mark.rule("tile E8")
def test_the_coprocessor_cannot_push_instructions(tile: Tile) -> None:
    """Its window of 1 MiB ends below 0xffc00000."""
    assert 0xFFB00000 + 0xFFFFC < 0xFFE40000
    with pytest.raises(UndefinedBehavior, match="the coprocessor accesses 0xffe40000, which is unmapped"):
        tile.cores.store(0xFFE40000, 0x02000000, TENSIX)


def store_mmio(increment: int = 0, data: int = DATA) -> int:
    return encode("STOREIND", form="MMIO", OffsetIndex=OFFSET, AutoIncSpec=increment, DataRegIndex=data,
                  AddrRegIndex=ADDRESS)  # fmt: skip


@pytest.mark.rule("003.2.7d")
@pytest.mark.parametrize(("increment", "step"), [(0, 0), (1, 2), (2, 4), (3, 16)])
def test_storeind_to_mmio_adds_sixteenths_of_the_offset(tile: Tile, increment: int, step: int) -> None:
    tile.record.gpr[THREAD, ADDRESS] = 0x7FF4_1003
    tile.record.gpr[THREAD, DATA] = 0xFFF1_2345
    set_offset(tile, 0x255)  # 0x25 bytes
    tile.execute(THREAD, store_mmio(increment))
    tile.execute(THREAD, encode("LOADREG", 2, MMIO_WORD))
    assert gpr(tile, 2) == 0x1_2345
    assert gpr(tile, OFFSET // 2) == 0xABCD_0255 + step
    assert gpr(tile, ADDRESS) == 0x7FF4_1003


@pytest.mark.rule("003.2.7d")
def test_the_data_are_read_before_the_offset_advances(tile: Tile) -> None:
    tile.record.gpr[THREAD, ADDRESS] = 0x41028
    tile.record.gpr[THREAD, OFFSET // 2] = 0
    tile.execute(THREAD, store_mmio(3, OFFSET // 2))
    tile.execute(THREAD, encode("LOADREG", 2, MMIO_WORD))
    assert (gpr(tile, 2), gpr(tile, OFFSET // 2)) == (0, 16)


@pytest.mark.rule("003.2.7d")
@pytest.mark.parametrize(
    ("address", "text"),
    [(0, "0xffb00000 is below"), (0x10FFC, "0xffb10ffc is below"), (0xFFFFF, "accesses 0xffbffffc")],
)
def test_refused_stores_leave_the_offset(tile: Tile, address: int, text: str) -> None:
    tile.record.gpr[THREAD, ADDRESS] = address
    with pytest.raises(UndefinedBehavior, match=text):
        tile.execute(THREAD, store_mmio(3))
    assert gpr(tile, OFFSET // 2) == 0xABCD0000


# --- atomics --------------------------------------------------------------------------------------


def word_at(tile: Tile, index: int) -> int:
    return int(tile.record.l1_u32[BASE // 4 + index])


@pytest.mark.rule("003.8")
@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("width", [0, 7, 15, 31])
def test_atincget_adds_inside_a_field_and_returns_the_old_word(tile: Tile, width: int, place: int) -> None:
    tile.record.l1_u32[BASE // 4 + place] = 0xFFFFFFFE
    tile.record.gpr[THREAD, DATA] = 0x10003
    tile.execute(THREAD, encode("ATINCGET", IntWidth=width, Sel32b=place, DataRegIndex=DATA, AddrRegIndex=ADDRESS))
    mask = (1 << (width + 1)) - 1
    assert word_at(tile, place) == (0xFFFFFFFE & ~mask) | ((0xFFFFFFFE + 0x10003) & mask)
    assert gpr(tile, DATA) == 0xFFFFFFFE


def pointer(place: int, *, width: int = 4, log2: int = 0, no_increment: int = 0) -> int:
    return encode("ATINCGETPTR", NoIncr=no_increment, IncrVal=log2, WrapVal=width, Sel32b=place, DataRegIndex=DATA,
                  AddrRegIndex=ADDRESS)  # fmt: skip


def fifo(tile: Tile, read: int, write: int) -> None:
    tile.record.l1_u32[BASE // 4 : BASE // 4 + 2] = [read, write]


@pytest.mark.rule("003.8")
def test_atincgetptr_pushes_and_pops(tile: Tile) -> None:
    fifo(tile, 0x105, 0x105)
    tile.execute(THREAD, pointer(1, log2=1))
    assert (word_at(tile, 0), word_at(tile, 1), gpr(tile, DATA)) == (0x105, 0x107, 0x105)
    tile.execute(THREAD, pointer(0))
    assert (word_at(tile, 0), word_at(tile, 1), gpr(tile, DATA)) == (0x106, 0x107, 0x105)
    tile.execute(THREAD, pointer(0, no_increment=1))
    assert (word_at(tile, 0), gpr(tile, DATA)) == (0x106, 0x106)


@pytest.mark.rule("003.8")
def test_atincgetptr_wraps_inside_its_field(tile: Tile) -> None:
    fifo(tile, 0x10E, 0x10F)
    tile.execute(THREAD, pointer(1))
    assert word_at(tile, 1) == 0x100


@pytest.mark.rule("003.8")
@pytest.mark.parametrize(
    ("place", "width", "read", "write"), [(0, 4, 9, 9), (1, 4, 2, 10), (1, 0, 0, 0x8000), (1, 1, 0, 1)]
)
def test_atincgetptr_waits_on_an_empty_or_full_fifo(tile: Tile, place: int, width: int, read: int, write: int) -> None:
    fifo(tile, read, write)
    with pytest.raises(UndefinedBehavior, match=WAITS):
        tile.execute(THREAD, pointer(place, width=width))
    assert (word_at(tile, 0), word_at(tile, 1)) == (read, write)


@pytest.mark.rule("003.8")
@pytest.mark.parametrize("mask", [0x00, 0x01, 0x80, 0x5A, 0xFF])
@pytest.mark.parametrize("single", [0, 1])
def test_atswap_stores_masked_granules_and_returns_nothing(tile: Tile, mask: int, single: int) -> None:
    old = np.array(l1(tile, 0, 16), np.uint8).view("<u2").tolist()
    group = [gpr(tile, i) if not single or i == DATA else 0 for i in range(16, 20)]
    new = np.array(group, "<u4").view("<u2").tolist()
    before = tile.record.gpr.copy()
    tile.execute(
        THREAD,
        encode("ATSWAP", SingleDataReg=single, SwapMask=mask, DataRegIndex=DATA, AddrRegIndex=ADDRESS),
    )
    expected = [n if (mask >> i) & 1 else o for i, (n, o) in enumerate(zip(new, old, strict=True))]
    assert np.array(l1(tile, 0, 16), np.uint8).view("<u2").tolist() == expected
    assert (tile.record.gpr == before).all()


@pytest.mark.rule("003.8")
def test_atcas_waits_until_the_word_has_the_value(tile: Tile) -> None:
    word = encode("ATCAS", SwapVal=9, CmpVal=5, Sel32b=2, AddrRegIndex=ADDRESS)
    with pytest.raises(UndefinedBehavior, match=WAITS):
        tile.execute(THREAD, word)
    tile.record.l1_u32[BASE // 4 + 2] = 5
    tile.execute(THREAD, word)
    assert word_at(tile, 2) == 9


def test_atcas_lets_the_other_threads_go_on_until_one_writes_the_word(tile: Tile) -> None:
    tile.record.l1_u32[BASE // 4] = 1
    tile.record.gpr[1, ADDRESS] = BASE // 16
    tile.record.gpr[1, DATA] = 4
    machine = tile.coprocessor
    machine.push(0, encode("ATCAS", SwapVal=7, CmpVal=5, AddrRegIndex=ADDRESS))
    for _ in range(3):
        machine.push(1, encode("DMANOP"))
    machine.push(1, encode("ATINCGET", IntWidth=31, DataRegIndex=DATA, AddrRegIndex=ADDRESS))
    machine.run(100)
    assert not tile.record.frontend.gate_full.any()
    assert word_at(tile, 0) == 7


@pytest.mark.parametrize("mnemonic", ["ATINCGET", "ATINCGETPTR", "ATSWAP", "ATCAS"])
def test_atomics_are_refused_outside_l1(tile: Tile, mnemonic: str) -> None:
    with pytest.raises(UndefinedBehavior, match="atomics work on L1 only"):
        tile.execute(THREAD, encode(mnemonic, MemHierSel=1, AddrRegIndex=ADDRESS))


@pytest.mark.rule("003.8")
@pytest.mark.parametrize("conditions", [0, 1, 15])
def test_flushdma_never_waits_because_nothing_is_in_flight(tile: Tile, conditions: int) -> None:
    tile.execute(THREAD, encode("FLUSHDMA", conditions))


@pytest.mark.rule("003.3h")
def test_reg2flop_is_an_open_choice(tile: Tile) -> None:
    with pytest.raises(MissingSpecification, match="no longer lists REG2FLOP"):
        tile.execute(THREAD, encode("REG2FLOP", SizeSel=1, FlopIndex=3))


@pytest.mark.rule("003.3h")
@pytest.mark.parametrize(
    ("size", "shift", "value"),
    [(1, 0, 0x0003C0DE), (1, 1, 0), (2, 0, 0xC0DE), (2, 2, 0x8003), (2, 1, 0), (3, 1, 0xC0), (3, 3, 0x80), (0, 0, 0)],
)
def test_reg2flop_moves_a_part_of_a_gpr_to_a_counter(size: int, shift: int, value: int) -> None:
    """0x8003C0DE; X counters have 18 bits. FlopIndex: channel 1, unpacker 1, X."""
    tile = Tile(allow_open=True)
    tile.record.gpr[THREAD, 5] = 0x8003C0DE
    tile.record.adc[THREAD, 1, 4] = 77
    fields = {"SizeSel": size, "TargetSel": 2, "ByteOffset": shift, "FlopIndex": 1 << 5 | 1 << 3, "RegIndex": 5}
    tile.execute(THREAD, encode("REG2FLOP", **fields))
    assert tile.record.adc[THREAD, 1, 4] == value


@pytest.mark.rule("003.3h")
def test_reg2flop_reaches_the_counters_of_another_thread_and_the_carry_copies() -> None:
    tile = Tile(allow_open=True)
    tile.record.gpr[0, 5] = 0xFFFFFFFF
    fields = {"SizeSel": 1, "TargetSel": 3, "ContextId_2": 2, "FlopIndex": 2 << 3 | 1 << 2 | 1, "RegIndex": 5}
    tile.execute(0, encode("REG2FLOP", **fields))
    assert tile.record.adc[2, 2, 8 + 1] == 0x1FFF  # the packer's Y_Cr
    tile.execute(0, encode("REG2FLOP", **(fields | {"ContextId_2": 3})))
    assert np.count_nonzero(tile.record.adc) == 1


@pytest.mark.rule("003.3h")
def test_reg2flop_writes_thcon_words_one_or_four_at_a_time() -> None:
    tile = Tile(allow_open=True)
    tile.record.gpr[0, 4:8] = [0x11, 0x22, 0x33, 0x44]
    tile.execute(0, encode("REG2FLOP", SizeSel=1, FlopIndex=5, RegIndex=6))
    assert tile.record.config[0, 64 + 5] == 0x33
    tile.execute(0, encode("REG2FLOP", SizeSel=0, FlopIndex=10, RegIndex=6))
    assert list(tile.record.config[0, 64 + 8 : 64 + 12] & 0xFF) == [0x11, 0x22, 0x33, 0x44]
    for fields in ({"FlopIndex": 116}, {"TargetSel": 1}):
        with pytest.raises(UndefinedBehavior, match="names no configuration word"):
            tile.execute(0, encode("REG2FLOP", SizeSel=1, **fields))
