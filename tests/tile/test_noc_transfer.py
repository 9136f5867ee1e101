"""NoC requests of a tile to itself (tile N14 to N26; E23 to E29)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.agents import NC, B
from tests.chip.noc_programs import ATOMIC, FIELDS, INLINE, READ, RESPONSE, WRITE
from tests.riscv.rv_machine import SCRATCH, machine, word

pytestmark = pytest.mark.plain

OWN = 2 << 6 | 1


def request(tile: Tile, *, noc: int = 0, initiator: int = 0, agent: int = B, **fields: int) -> None:
    """Fill an initiator's registers and start it; what is not named is zero, coordinates are the tile's own."""
    base = 0xFFB20000 + 0x10000 * noc + 0x800 * initiator
    values = dict.fromkeys(FIELDS, 0) | {"target_hi": OWN, "back_hi": OWN} | fields
    for name, value in values.items():
        tile.cores.store(base + FIELDS[name], value, agent)
    tile.cores.store(base + 0x40, 1, agent)


def counters(tile: Tile, noc: int = 0) -> dict[int, int]:
    """Counters that are not zero."""
    values = (tile.cores.load(0xFFB20200 + 0x10000 * noc + 4 * i) for i in range(62))
    return {i: value for i, value in enumerate(values) if value}


def noise(tile: Tile, seed: int = 1) -> np.ndarray:
    tile.l1[:0x40000] = np.random.default_rng(seed).integers(0, 256, 0x40000, np.uint8)
    return tile.l1.copy()


@pytest.fixture
def tile() -> Tile:
    return Tile()


@pytest.mark.rule("tile N16", "tile N17", "tile N19")
@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("size", [1, 3, 16, 64, 65, 1000, 16384])
def test_reads_and_writes_copy_bytes(tile: Tile, noc: int, size: int) -> None:
    expected = noise(tile)
    request(tile, noc=noc, initiator=1, ctrl=READ, target=0x1007, back=0x20017, length=size)
    expected[0x20017 : 0x20017 + size] = expected[0x1007 : 0x1007 + size]
    assert np.array_equal(tile.l1, expected)
    request(tile, noc=noc, initiator=3, agent=NC, ctrl=WRITE, target=0x20003, back=0x30013, length=size)
    expected[0x30013 : 0x30013 + size] = expected[0x20003 : 0x20003 + size]
    assert np.array_equal(tile.l1, expected)


@pytest.mark.rule("tile N16")
@pytest.mark.parametrize("shift", [-16, 16, -32, 48])
def test_overlapping_places_are_copied_as_if_read_first(tile: Tile, shift: int) -> None:
    expected = noise(tile)
    request(tile, ctrl=WRITE, target=0x1000, back=0x1000 + shift, length=200)
    expected[0x1000 + shift : 0x1000 + shift + 200] = expected[0x1000 : 0x1000 + 200].copy()
    assert np.array_equal(tile.l1, expected)


@pytest.mark.rule("tile N15")
def test_a_request_can_be_started_again_and_keeps_its_registers(tile: Tile) -> None:
    noise(tile)
    request(tile, ctrl=WRITE, target=0x1000, back=0x8000, length=32)
    tile.cores.store(0xFFB2000C, 0x9000, B)
    tile.cores.store(0xFFB20040, 1, B)
    assert np.array_equal(tile.l1[0x9000:0x9020], tile.l1[0x1000:0x1020])
    assert tile.cores.load(0xFFB20008) == tile.cores.load(0xFFB20014) == OWN
    assert counters(tile)[4] == 2


# --- counters ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile N20")
def test_each_kind_of_request_increments_its_counters(tile: Tile) -> None:
    """Increments by the page of the counters: of the initiator (0 to 31), of the responder (48 to 61)."""
    cases = [
        ({"ctrl": READ, "length": 130}, {2: 1, 3: 3, 4: 1, 5: 1, 14: 1, 50: 1, 51: 3, 52: 1, 53: 1}),
        ({"ctrl": WRITE, "length": 130}, {1: 1, 4: 1, 8: 3, 10: 1, 12: 1, 49: 1, 56: 3, 58: 1, 60: 1}),
        ({"ctrl": WRITE & ~RESPONSE, "length": 64}, {4: 1, 9: 1, 11: 1, 13: 1, 57: 1, 59: 1, 61: 1}),
        ({"ctrl": INLINE, "target": 0xFFB40010}, {1: 1, 4: 1, 10: 1, 12: 1, 49: 1, 56: 1, 58: 1, 60: 1}),
        ({"ctrl": INLINE & ~RESPONSE, "target": 0xFFB40010}, {4: 1, 11: 1, 13: 1, 57: 1, 59: 1, 61: 1}),
        ({"ctrl": ATOMIC, "length": 0x107C}, {0: 1, 4: 1, 6: 1, 15: 1, 48: 1, 52: 1, 54: 1}),
        ({"ctrl": ATOMIC & ~RESPONSE, "length": 0x107C}, {4: 1, 7: 1, 52: 1, 55: 1}),
    ]
    for noc in range(2):
        for fields, expected in cases:
            tile.record.niu_counter[:] = 0
            request(tile, noc=noc, initiator=2, **({"target": 0x1000, "back": 0x2000} | fields))
            assert counters(tile, noc) == expected, fields
            assert counters(tile, 1 - noc) == {}


@pytest.mark.rule("tile N17", "tile N20", "tile N24")
@pytest.mark.parametrize("kind", [READ, WRITE])
def test_a_long_request_is_several_packets_and_leaves_the_last_one_in_the_registers(tile: Tile, kind: int) -> None:
    """40000 bytes are packets of 16384, 16384 and 7232 bytes: 256, 256 and 113 data words."""
    before = noise(tile)
    request(tile, initiator=1, ctrl=kind, target=0x1000, back=0x20040, length=40000, tag=3 << 10)
    assert np.array_equal(tile.l1[0x20040 : 0x20040 + 40000], before[0x1000 : 0x1000 + 40000])
    assert tile.l1[0x20040 + 40000] == before[0x20040 + 40000]
    registers = [tile.cores.load(0xFFB20800 + offset) for offset in (0x00, 0x0C, 0x20, 0x40)]
    assert registers == [0x1000 + 32768, 0x20040 + 32768, 7232, 0]
    read = {2: 3, 3: 625, 4: 3, 5: 3, 14: 3, 50: 3, 51: 625, 52: 3, 53: 3}
    write = {1: 3, 4: 3, 8: 625, 10: 3, 12: 3, 49: 3, 56: 625, 58: 3, 60: 3}
    assert counters(tile) == (read if kind == READ else write)
    assert tile.cores.load(0xFFB2037C) == 1 << 3


@pytest.mark.rule("tile N20", "tile N24")
def test_outstanding_requests_return_to_zero_at_once(tile: Tile) -> None:
    request(tile, ctrl=READ, target=0x1000, back=0x2000, length=16, tag=5 << 10)
    assert tile.cores.load(0xFFB2037C) == 1 << 5
    assert 16 + 5 not in counters(tile)
    request(tile, ctrl=WRITE & ~RESPONSE, target=0x1000, back=0x2000, length=16, tag=9 << 10)
    assert tile.cores.load(0xFFB2037C) == 1 << 5  # a posted write is not answered
    request(tile, ctrl=ATOMIC, target=0x1000, back=0x2000, length=0x107C, tag=15 << 10)
    assert tile.cores.load(0xFFB2037C) == 1 << 5 | 1 << 15
    assert tile.cores.load(0xFFB3037C) == 0
    tile.record.niu_counter[0, 18] = 3
    request(tile, ctrl=READ, target=0x1000, back=0x2000, length=16, tag=2 << 10)
    assert tile.record.niu_counter[0, 18] == 3
    assert tile.cores.load(0xFFB2037C) == 1 << 5 | 1 << 15


@pytest.mark.rule("tile T33", "tile N26")
def test_the_counter_shows_the_request_right_after_the_store(tile: Tile) -> None:
    """Firmware reads the counter back with the next instruction; data are there by then (N25)."""
    program = f"""
        li a0, 0xffb20000
        li t0, 0x81
        sw t0, 8(a0)
        sw t0, 20(a0)
        li t0, 0x1000
        sw t0, 0(a0)
        li t0, {SCRATCH + 0x100:#x}
        sw t0, 12(a0)
        li t0, 4
        sw t0, 32(a0)
        li t0, 0x2090
        sw t0, 28(a0)
        li t1, 1
        sw t1, 64(a0)
        lw t2, 0x208(a0)
        li a1, {SCRATCH:#x}
        sw t2, 0(a1)
        lw t3, 0x100(a1)
        sw t3, 4(a1)
        lw t4, 64(a0)
        sw t4, 8(a1)
    end: j end
    """
    tile.record.l1_u32[0x1000 >> 2] = 0xCAFE
    tile.record.l1_u32[SCRATCH + 8 >> 2] = 77
    machine({"NC": program}, 60, tile=tile)
    assert [word(tile, SCRATCH + 4 * i) for i in range(3)] == [1, 0xCAFE, 0]


@pytest.mark.rule("tile T34")
def test_a_poller_of_the_destination_wakes(tile: Tile) -> None:
    poll = f"li a0, 0x8000\nagain: lw t0, 0(a0)\n beqz t0, again\n li a1, {SCRATCH:#x}\n sw t0, 0(a1)\nend: j end"
    machine({"T1": poll}, 300, tile=tile)
    assert tile.cores["T1"].state == "polling"
    tile.record.l1_u32[0x1000 >> 2] = 0x1234
    send = """
        li a0, 0xffb20000
        li t0, 0x2092
        sw t0, 0x1c(a0)
        li t0, 0x1000
        sw t0, 0(a0)
        li t0, 0x8000
        sw t0, 12(a0)
        li t0, 4
        sw t0, 32(a0)
        li t0, 0x81
        sw t0, 8(a0)
        sw t0, 20(a0)
        li t0, 1
        sw t0, 64(a0)
    end: j end
    """
    machine({"B": send}, 60, tile=tile)
    assert word(tile) == 0x1234


# --- registers as source and destination ------------------------------------------------------------------------------


@pytest.mark.rule("tile N18")
def test_words_move_between_l1_and_registers(tile: Tile) -> None:
    tile.record.l1_u32[0x1004 >> 2] = 0xABCDEF
    request(tile, ctrl=WRITE, target=0x1004, back=0xFFB40010, length=4)
    assert tile.cores.load(0xFFB40010) == 0xABCDEF
    request(tile, ctrl=READ, target=0xFFB40010, back=0x2008, length=4)
    assert word(tile, 0x2008) == 0xABCDEF
    request(tile, ctrl=READ, target=0xFFB20044, back=0xFFB41010, length=4)
    assert tile.cores.load(0xFFB41010) == 0x10611081 & 0xFFFFFF
    request(tile, ctrl=WRITE | 4, target=0x1004, back=0xFFB42010, length=0)  # byte enables do not count for a register
    assert tile.cores.load(0xFFB42010) == 0xABCDEF


@pytest.mark.rule("tile N16", "tile K52")
def test_an_inline_write_stores_to_a_register(tile: Tile) -> None:
    request(tile, ctrl=INLINE, target=0xFFB70438, data=64)
    request(tile, ctrl=INLINE, target=0xFFB70438, data=64)
    assert tile.cores.load(0xFFB704A4) == 2
    with pytest.raises(UndefinedBehavior, match="can only be read"):
        request(tile, ctrl=INLINE, target=0xFFB20044, data=1)
    with pytest.raises(Unimplemented, match="would start another request"):
        request(tile, ctrl=INLINE, target=0xFFB30840, data=1)
    with pytest.raises(UndefinedBehavior, match="unmapped"):
        request(tile, ctrl=INLINE, target=0xFFE80020, data=1)


@pytest.mark.rule("tile N26")
def test_a_write_can_release_a_core(tile: Tile) -> None:
    tile.record.l1_u32[0x6000 >> 2] = 0x0000006F  # j .
    request(tile, ctrl=INLINE, target=0xFFB121B0, data=0x46800)
    tile.clock(10)
    assert tile.cores["T0"].state != "in reset"


@pytest.mark.rule("tile N19", "tile E25")
def test_an_inline_write_to_l1_is_not_safe_on_silicon() -> None:
    tile = Tile()
    with pytest.raises(NonContractualBehavior, match="0x1008"):
        request(tile, ctrl=INLINE, target=0x1008, data=5, length=0xF00)
    open_tile = Tile(allow_open=True)
    expected = noise(open_tile)
    request(open_tile, ctrl=INLINE, target=0x1008, data=0x44332211, length=0x6F00 | 1 << 17)
    for byte in (8, 9, 10, 11, 13, 14, 1):
        expected[0x1000 + byte] = (0x11, 0x22, 0x33, 0x44)[byte & 3]
    assert np.array_equal(open_tile.l1, expected)


@pytest.mark.rule("tile N19", "tile E23")
@pytest.mark.parametrize(
    ("source", "destination"), [(0x1000, 0x8000), (0x100F, 0x8003), (0x1000, 0x1010), (0x1020, 0x1000)]
)
def test_byte_enables_select_bytes_of_64(tile: Tile, source: int, destination: int) -> None:
    expected = noise(tile)
    mask = random.Random(destination).getrandbits(64)
    request(tile, ctrl=WRITE | 4, target=source, back=destination, length=mask & 0xFFFFFFFF, mask_high=mask >> 32)
    block = expected[source & ~15 : (source & ~15) + 64].copy()
    for i in range(64):
        if mask >> i & 1:
            expected[(destination & ~15) + i] = block[i]
    assert np.array_equal(tile.l1, expected)
    assert counters(tile)[8] == 1


# --- atomics ----------------------------------------------------------------------------------------------------------


def signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


ATOMICS = {
    "add": (0x107C, lambda old, data: old + data),
    "add, 8 bits": (0x101C, lambda old, data: old & ~0xFF | (old + data) & 0xFF),
    "add, 1 bit": (0x1000, lambda old, data: old & ~1 | (old + data) & 1),
    "swap 6": (0x6004, lambda old, data: data),
    "swap 10": (0xA300, lambda old, data: data),
    "amoadd": (0xA800, lambda old, data: old + data),
    "amoxor": (0xA900, lambda old, data: old ^ data),
    "amoor": (0xAA00, lambda old, data: old | data),
    "amoand": (0xAB00, lambda old, data: old & data),
    "amomin": (0xAC00, lambda old, data: min(signed(old), signed(data))),
    "amomax": (0xAD00, lambda old, data: max(signed(old), signed(data))),
    "amominu": (0xAE00, min),
    "amomaxu": (0xAF00, max),
}


@pytest.mark.rule("tile N22", "tile E26")
@pytest.mark.parametrize("name", ATOMICS)
def test_atomics_change_one_word_and_return_its_old_value(tile: Tile, name: str) -> None:
    code, operate = ATOMICS[name]
    rng = random.Random(name)
    for index in range(4):
        for old, data in ((0xFFFFFFFF, 1), (0x80000000, 0x7FFFFFFF), *[(rng.getrandbits(32), rng.getrandbits(32))] * 3):
            expected = noise(tile)
            expected_words = expected.view(np.uint32)
            for content in (tile.record.l1_u32, expected_words):
                content[(0x1000 >> 2) + index] = old
            request(tile, ctrl=ATOMIC, target=0x1000 + 4 * index, back=0x2004, length=code | index, data=data)
            expected_words[(0x1000 >> 2) + index] = operate(old, data) & 0xFFFFFFFF
            expected_words[0x2004 >> 2] = old
            assert np.array_equal(tile.l1, expected)


@pytest.mark.rule("tile N22")
def test_the_result_is_the_word_at_the_address_whatever_the_index(tile: Tile) -> None:
    tile.record.l1_u32[0x1000 >> 2 : 0x1010 >> 2] = [10, 20, 30, 40]
    request(tile, ctrl=ATOMIC, target=0x1004, back=0x2000, length=0x107C | 3, data=5)
    assert list(tile.record.l1_u32[0x1000 >> 2 : 0x1010 >> 2]) == [10, 20, 30, 45]
    assert word(tile, 0x2000) == 20


@pytest.mark.rule("tile N22", "tile E51")
def test_a_posted_atomic_delivers_nothing(tile: Tile) -> None:
    tile.record.l1_u32[0x2000 >> 2] = 99
    request(tile, ctrl=ATOMIC & ~RESPONSE, target=0x1000, back=0x2000, length=0x107C, data=5, back_hi=0x3FF)
    assert (word(tile, 0x1000), word(tile, 0x2000)) == (5, 99)


@pytest.mark.rule("tile N22")
def test_three_atomics_exchange_a_word_by_mask_by_comparison_or_whole(tile: Tile) -> None:
    words = tile.record.l1_u32[0x1000 >> 2 : 0x1010 >> 2]
    words[:] = [0x11112222, 0x33334444, 0x55556666, 0x77778888]
    request(tile, ctrl=ATOMIC, target=0x1000, back=0x2000, length=0x3000 | 0b1001_0110 << 2, data=0xAAAABBBB)
    assert [f"{int(w):#x}" for w in words] == ["0xaaaa2222", "0x3333bbbb", "0x5555bbbb", "0xaaaa8888"]
    words[2] = 9
    request(tile, ctrl=ATOMIC, target=0x1008, back=0x2000, length=0x4000 | 8 << 2 | 5 << 6 | 2, data=0)
    assert (words[2], word(tile, 0x2000)) == (9, 9)
    request(tile, ctrl=ATOMIC, target=0x1008, back=0x2000, length=0x4000 | 9 << 2 | 5 << 6 | 2, data=0)
    assert (words[2], word(tile, 0x2000)) == (5, 9)
    request(tile, ctrl=ATOMIC, target=0x100C, back=0x2000, length=0x7000 | 3 << 2, data=123)
    assert (words[3], word(tile, 0x2000)) == (123, 0xAAAA8888)


@pytest.mark.rule("tile N22")
def test_accumulating_atomics_add_each_integer_of_four_words(tile: Tile) -> None:
    words = tile.record.l1_u32[0x1000 >> 2 : 0x1010 >> 2]
    for form in (4, 12, 13):
        words[:] = [1, 0xFFFFFFFF, 0x80000000, 0x10]
        request(tile, ctrl=ATOMIC & ~RESPONSE, target=0x1000, length=0x9000 | form, data=0x80000002)
        assert list(words) == [0x80000003, 0x80000001, 2, 0x80000012]
    for form, total in ((7, 0xFFFF1103), (15, 0x7F001103)):
        words[:] = 0xFF801001
        request(tile, ctrl=ATOMIC & ~RESPONSE, target=0x1000, length=0x9000 | form, data=0x80800102)
        assert [int(w) for w in words] == [total] * 4
    for form in (0, 1, 2, 8, 9, 10):
        with pytest.raises(Unimplemented, match="floating-point"):
            request(tile, ctrl=ATOMIC & ~RESPONSE, target=0x1000, length=0x9000 | form, data=0)


# --- what is refused --------------------------------------------------------------------------------------------------

COPY = {"target": 0x1000, "back": 0x2000, "length": 16}
REFUSALS = {
    "another tile, read": (
        {"ctrl": READ, **COPY, "target_hi": 0x82},
        Unimplemented,
        r"NoC 0 read .* 0x2000, and tile \(2, 2\), address 0x1000",
    ),
    "another tile, write": (
        {"ctrl": WRITE, **COPY, "back_hi": 0xC1},
        Unimplemented,
        r"NoC 0 write .* 0x1000, and tile \(1, 3\), address 0x2000",
    ),
    "another tile, inline": (
        {"ctrl": INLINE, "target": 0xFFB40010, "target_hi": 0x82},
        Unimplemented,
        r"inline write .*\(2, 2\), address 0xffb40010",
    ),
    "another tile, atomic": (
        {"ctrl": ATOMIC, **COPY, "length": 0x107C, "target_hi": 0x82},
        Unimplemented,
        r"atomic .*\(2, 2\), address 0x1000",
    ),
    "a read that returns elsewhere": ({"ctrl": READ, **COPY, "back_hi": 0x82}, Unimplemented, r"own side .* \(2, 2\)"),
    "a write from elsewhere": ({"ctrl": WRITE, **COPY, "target_hi": 0x82}, Unimplemented, r"own side .* \(2, 2\)"),
    "an atomic that returns elsewhere": (
        {"ctrl": ATOMIC, **COPY, "length": 0x107C, "back_hi": 0},
        Unimplemented,
        "own side",
    ),
    "multicast": ({"ctrl": WRITE | 0x120, **COPY}, Unimplemented, "multicast"),
    "write and atomic": ({"ctrl": 0x2093, **COPY}, UndefinedBehavior, "CTRL is 0x2093"),
    "reserved bit 10": ({"ctrl": WRITE | 1 << 10, **COPY}, UndefinedBehavior, "CTRL"),
    "reserved bit 26": ({"ctrl": WRITE | 1 << 26, **COPY}, UndefinedBehavior, "CTRL"),
    "accumulation": ({"ctrl": WRITE | 1 << 31, **COPY}, NonContractualBehavior, "accumulation"),
    "header store": ({"ctrl": WRITE, **COPY, "tag": 1 << 9}, Unimplemented, "PACKET_TAG"),
    "to an overlay stream": ({"ctrl": WRITE, **COPY, "tag": 1 << 6}, Unimplemented, "PACKET_TAG"),
    "no bytes": ({"ctrl": READ, **COPY, "length": 0}, UndefinedBehavior, "no bytes"),
    "long and not aligned to 64": (
        {"ctrl": READ, "target": 0x1010, "back": 0x2010, "length": 16385},
        UndefinedBehavior,
        "16385 bytes between 0x1010 and 0x2010",
    ),
    "longer than L1": ({"ctrl": READ, **COPY, "mask_high": 1}, UndefinedBehavior, "4294967312 bytes at"),
    "source past L1": ({"ctrl": READ, **COPY, "target": 0x180000}, UndefinedBehavior, "0x180000"),
    "across the end of L1": ({"ctrl": WRITE, **COPY, "back": 0x17FFF0, "length": 17}, UndefinedBehavior, "0x17fff0"),
    "a 64-bit address": ({"ctrl": WRITE, **COPY, "back_mid": 1}, UndefinedBehavior, "0x100002000"),
    "misaligned in L1": ({"ctrl": WRITE, **COPY, "back": 0x2004}, UndefinedBehavior, "modulo 16"),
    "misaligned with a register": (
        {"ctrl": READ, **COPY, "target": 0xFFB40010, "back": 0x2001, "length": 4},
        UndefinedBehavior,
        "modulo 4",
    ),
    "two registers at once": ({"ctrl": READ, **COPY, "target": 0xFFB40010, "length": 8}, UndefinedBehavior, "8 bytes"),
    "half a register": ({"ctrl": WRITE, **COPY, "back": 0xFFB40010, "length": 2}, UndefinedBehavior, "2 bytes"),
    "no atomic": ({"ctrl": ATOMIC, **COPY, "length": 0x5000}, UndefinedBehavior, "0x5000"),
    "atomic on a register": (
        {"ctrl": ATOMIC, **COPY, "target": 0xFFB40010, "length": 0x107C},
        UndefinedBehavior,
        "0xffb40010",
    ),
    "atomic on half a word": (
        {"ctrl": ATOMIC, **COPY, "target": 0x1002, "length": 0x107C},
        UndefinedBehavior,
        "0x1002",
    ),
    "atomic with a result off L1": (
        {"ctrl": ATOMIC, **COPY, "back": 0x180000, "length": 0x107C},
        UndefinedBehavior,
        "0x180000",
    ),
}


@pytest.mark.rule("tile N14", "tile N22", "tile E24", "tile E29")
@pytest.mark.parametrize("name", REFUSALS)
def test_refused_requests_change_nothing(tile: Tile, name: str) -> None:
    fields, error, text = REFUSALS[name]
    before = noise(tile)
    with pytest.raises(error, match=text):
        request(tile, **fields)
    assert np.array_equal(tile.l1, before)
    assert not tile.record.niu_counter.any()
    assert not tile.record.niu_rtz.any()
    request(tile, ctrl=READ, **COPY)  # the tile lives on
    assert np.array_equal(tile.l1[0x2000:0x2010], before[0x1000:0x1010])


@pytest.mark.parametrize("name", ["another tile, read", "misaligned in L1"])
def test_a_core_is_blamed_for_its_request(tile: Tile, name: str) -> None:
    fields, error, text = REFUSALS[name]
    with pytest.raises(error):
        request(tile, **fields)  # leaves the registers behind
    machine({"B": "li a0, 0xffb20000\n li t0, 1\n sw t0, 64(a0)\nend: j end"}, tile=tile)
    with pytest.raises(error, match=text) as raised:
        tile.clock(10)
    assert raised.value.core == 0


@pytest.mark.rule("tile N5", "tile N6")
def test_own_coordinates_are_translated_unless_that_is_off(tile: Tile) -> None:
    """On NoC 1 the tables mirror; with translation off the raw coordinates (15, 9) are the tile's own there."""
    raw = 9 << 6 | 15
    request(tile, noc=1, ctrl=READ, **COPY)
    with pytest.raises(Unimplemented, match="own side"):
        request(tile, noc=1, ctrl=READ, **COPY, target_hi=raw, back_hi=raw)
    tile.cores.store(0xFFB30100, 0)
    request(tile, noc=1, ctrl=READ, **COPY, target_hi=raw, back_hi=raw)
    with pytest.raises(Unimplemented, match="own side"):
        request(tile, noc=1, ctrl=READ, **COPY)
    tile.cores.store(0xFFB30100, 1 << 14)
    tile.cores.store(0xFFB30150, 1 << 1)  # column 1 keeps its y, so that row 9 is the tile's
    request(tile, noc=1, ctrl=READ, **COPY, target_hi=9 << 6 | 1, back_hi=9 << 6 | 1)
