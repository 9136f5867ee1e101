"""Audit rows 002.4, 002.18.2e, 002.18.4.6: the packer's counters, their instructions and the address modifiers."""

from __future__ import annotations

import pytest

from tests.audit.pack_words import Words

PACKER_ONLY = 4 << 21
"""CntSetMask: bit 2 is the packer."""
ROW_OF_MODIFIER = (37, 38, 39, 40)
"""ThreadConfig entries of ADDR_MOD_PACK_SEC0 to 3."""


def counters(bench: Words, thread: int = 2) -> dict[str, tuple[int, int]]:
    """(counter, carry copy) of every packer counter that is not (0, 0)."""
    adc = bench.tile["adc"][thread, 2]
    names = [d + c for c in "01" for d in "XYZW"]
    pairs = {name: (int(adc[i]), int(adc[8 + i])) for i, name in enumerate(names)}
    return {name: pair for name, pair in pairs.items() if pair != (0, 0)}


def cleared() -> Words:
    bench = Words()
    bench.tile["adc"][...] = 0
    return bench


@pytest.mark.rule("002.4.1a", "002.4.1b")
@pytest.mark.parametrize(
    ("word", "result"),
    [
        (0x50 << 24 | PACKER_ONLY | 3 << 18 | 5, {"W0": (5, 5)}),
        (0x50 << 24 | PACKER_ONLY | 1 << 20 | 2 << 18 | 6, {"Z1": (6, 6)}),
        (0x5E << 24 | PACKER_ONLY | 15 << 10 | 3, {"X0": (3, 3), "X1": (15, 15)}),
        (0x51 << 24 | PACKER_ONLY | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6 | 15, "YX"),
        (0x54 << 24 | PACKER_ONLY | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6 | 15, "WZ"),
    ],
)
def test_set_instructions_write_counter_and_copy(word: int, result: dict[str, tuple[int, int]] | str) -> None:
    """SETADC 0x50, SETADCXX 0x5E, SETADCXY 0x51, and SETADCZW 0x54."""
    bench = cleared()
    bench.word(word)
    if isinstance(result, str):
        a, b = result
        result = {a + "1": (1, 1), b + "1": (2, 2), a + "0": (3, 3), b + "0": (4, 4)}
    assert counters(bench) == result


@pytest.mark.rule("002.4.1b")
@pytest.mark.parametrize(("opcode", "dimensions"), [(0x52, "YX"), (0x55, "WZ")])
def test_increments_leave_the_copy(opcode: int, dimensions: str) -> None:
    """0x52 is INCADCXY, not SETADCZW: it adds to the counters and not to their copies."""
    bench = cleared()
    bench.tile["adc"][2, 2, :8] = 2
    bench.word(opcode << 24 | PACKER_ONLY | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6)
    a, b = dimensions
    moved = {a + "1": 3, b + "1": 4, a + "0": 5, b + "0": 6}
    assert counters(bench) == {d + c: (moved.get(d + c, 2), 0) for d in "XYZW" for c in "01"}


@pytest.mark.rule("002.4.1c", "002.4.1d")
@pytest.mark.parametrize(("opcode", "dimensions"), [(0x53, "YX"), (0x56, "WZ")])
def test_addrcr_adds_to_the_copy_and_loads_the_counter_from_it(opcode: int, dimensions: str) -> None:
    """Opcodes 0x53 and 0x56; copy += value, counter = copy; only where BitMask says."""
    bench = cleared()
    bench.tile["adc"][2, 2, :8] = 9
    bench.tile["adc"][2, 2, 8:] = 4
    a = dimensions[0]
    bench.word(opcode << 24 | PACKER_ONLY | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6 | 0b1010)
    moved = {a + "1": (5, 5), a + "0": (7, 7)}
    assert counters(bench) == {d + c: moved.get(d + c, (9, 4)) for d in "XYZW" for c in "01"}
    bench.word(opcode << 24 | PACKER_ONLY | 1 << 15 | 2 << 12 | 3 << 9 | 4 << 6 | 0b1010)
    assert counters(bench)[a + "1"] == (6, 6)


@pytest.mark.rule("002.4.1e")
@pytest.mark.parametrize("mask", range(8))
def test_the_set_mask_names_unpacker_0_unpacker_1_and_packer(mask: int) -> None:
    bench = cleared()
    bench.word(0x50 << 24 | mask << 21 | 1 << 18 | 77)
    assert [int(v) for v in bench.tile["adc"][2, :, 1]] == [77 * (mask >> unit & 1) for unit in range(3)]


@pytest.mark.rule("002.4.2", "002.18.4.6")
@pytest.mark.parametrize(("mask", "datums"), [(1, 16), (3, 32), (0, 64)])
def test_setadcxx_15_0_gives_sixteen_datums_an_interface(mask: int, datums: int) -> None:
    """With mask 0 a PACR moves 64."""
    bench = cleared()
    bench.word(0x5E << 24 | PACKER_ONLY | 15 << 10 | 0)
    bench.send(ReadIntfSel=mask, Last=1)
    assert bench.rows(datums // 16) == list(range(datums // 16))
    assert bench.untouched(2 * datums)


@pytest.mark.rule("002.4.3")
def test_channel_0_addresses_dst_channel_1_addresses_l1_and_its_x_is_the_end() -> None:
    """X stays between PACRs; Y and Z move by the modifier; W stays."""
    bench = Words()
    bench.wrcfg(12, 32 << 16)
    bench.wrcfg(13, 2048 << 16 | 512)
    bench.wrcfg(14, 0x200 << 16)
    bench.wrcfg(15, 0x1000 << 16 | 0x400)
    bench.tile["adc"][2, 2, :8] = (0, 2, 1, 0, 15, 1, 2, 1)
    bench.setc16(37, 4 | 1 << 6 | 1 << 12 | 1 << 14)
    bench.send(ReadIntfSel=1, Last=1)
    assert bench.rows(1, 0x200 + 2 * 0x400 + 0x1000) == [18]
    assert bench.tile["adc"][2, 2, :8].tolist() == [0, 6, 2, 0, 15, 2, 3, 1]


@pytest.mark.rule("002.4.4")
@pytest.mark.parametrize("tile", [0, 1])
def test_channel_0_w_chooses_the_tile_in_dst(tile: int) -> None:
    """SETADC of W, as set_dst_write_addr does; a tile of 32 rows here."""
    bench = Words()
    bench.wrcfg(13, 1024 << 16)
    bench.word(0x50 << 24 | PACKER_ONLY | 3 << 18 | tile)
    bench.send(Last=1)
    assert bench.rows(4) == [32 * tile + r for r in range(4)]


@pytest.mark.rule("002.4.5a", "002.4.5b")
@pytest.mark.parametrize(
    ("word", "kept"),
    [
        (0x54 << 24 | PACKER_ONLY | 0b0101, {"X0", "Y0", "W0", "X1", "Y1", "W1"}),
        (0x51 << 24 | PACKER_ONLY | 0b1011, {"Z0", "W0", "X1", "Z1", "W1"}),
    ],
)
def test_bit_masks_of_the_resets_of_the_seed(word: int, kept: set[str]) -> None:
    """Z of both channels; X, Y of channel 0 and Y of channel 1."""
    bench = Words()
    bench.tile["adc"][2, 2] = 7
    bench.word(word)
    assert set(counters(bench)) == kept


@pytest.mark.rule("002.4.6a", "002.4.6b")
@pytest.mark.parametrize("index", range(4))
def test_address_modifiers_are_16_bit_entries_37_to_40_of_the_thread(index: int) -> None:
    """Another thread's entry and Config words 37 to 39 (face maps) move nothing."""
    bench = Words()
    bench.tile["adc"][2, 2, :4] = 0
    for word in (37, 38, 39, 40):
        bench.wrcfg(word, 0x00010001)
        bench.tile["thread_config"][1, word] = 2
    bench.send(AddrMode=index)
    assert bench.counter(0, "Y") == 0
    bench.setc16(ROW_OF_MODIFIER[index], 0xFFFF & 5)
    bench.send(AddrMode=index)
    assert bench.counter(0, "Y") == 5
    assert bench.tile["thread_config"].dtype.itemsize == 2


FIELDS = {
    "Y0": (0, 4, 5),
    "Y1": (6, 10, 11),
}
"""Lowest bit of the increment, the carry bit and the clear bit (002.4.6c)."""


@pytest.mark.rule("002.4.6c", "002.4.6d", "002.4.6e")
@pytest.mark.parametrize("counter", FIELDS)
@pytest.mark.parametrize("carry", [0, 1])
@pytest.mark.parametrize("clear", [0, 1])
@pytest.mark.parametrize("increment", [0, 3, 15])
def test_clear_outranks_carry_and_carry_outranks_the_increment(
    counter: str, carry: int, clear: int, increment: int
) -> None:
    """copy += increment, counter = copy (not the counter first); clear zeroes both."""
    bench = cleared()
    place = {"Y0": 1, "Y1": 5}[counter]
    bench.tile["adc"][2, 2, 4] = 15
    bench.tile["adc"][2, 2, [place, 8 + place]] = (20, 8)
    at, carry_at, clear_at = FIELDS[counter]
    bench.setc16(38, increment << at | carry << carry_at | clear << clear_at)
    bench.send(ReadIntfSel=1, AddrMode=1)
    expected = (0, 0) if clear else (8 + increment,) * 2 if carry else (20 + increment, 8)
    assert counters(bench).get(counter, (0, 0)) == expected


@pytest.mark.rule("002.4.6c", "002.4.6e")
@pytest.mark.parametrize(("counter", "place", "increment", "clear"), [("Z0", 2, 12, 13), ("Z1", 6, 14, 15)])
def test_z_has_an_increment_of_one_bit_and_a_clear(counter: str, place: int, increment: int, clear: int) -> None:
    bench = cleared()
    bench.tile["adc"][2, 2, 4] = 15
    for word, expected in ((1 << increment, (7, 3)), (1 << increment | 1 << clear, (0, 0))):
        bench.tile["adc"][2, 2, [place, 8 + place]] = (6, 3)
        bench.setc16(38, word)
        bench.send(ReadIntfSel=1, AddrMode=1)
        assert counters(bench).get(counter, (0, 0)) == expected


@pytest.mark.rule("002.4.6f")
@pytest.mark.parametrize(
    ("value", "after"),
    [
        (0x0104, (0, 6 + 4, 2, 3, 15, 5 + 4, 1, 4)),
        (0x2820, (0, 0, 0, 3, 15, 0, 1, 4)),
        (0x1120, (0, 0, 2 + 1, 3, 15, 5 + 4, 1, 4)),
    ],
)
def test_the_three_modifiers_of_the_seed(value: int, after: tuple[int, ...]) -> None:
    """Advance by four rows; clear; next face (which also moves the output's Y by 4)."""
    bench = Words()
    bench.tile["adc"][2, 2, :8] = (0, 6, 2, 3, 15, 5, 1, 4)
    bench.setc16(37, value)
    bench.wrcfg(13, 0)
    bench.send(ReadIntfSel=1)
    assert tuple(bench.tile["adc"][2, 2, :8].tolist()) == after


@pytest.mark.rule("002.18.2e")
@pytest.mark.parametrize(("place", "modifier", "top"), [(1, 1, 0x1FFF), (5, 1 << 6, 0x1FFF)])
def test_y_counters_have_13_bits(place: int, modifier: int, top: int) -> None:
    """They wrap, by the modifier as by the instructions; also I.8."""
    bench = Words()
    bench.setc16(37, modifier)
    bench.tile["adc"][2, 2, place] = top
    bench.send(ReadIntfSel=1, Flush=1)
    assert bench.tile["adc"][2, 2, place] == 0
    bench.word(0x50 << 24 | PACKER_ONLY | (place >> 2) << 20 | 1 << 18 | top + 3)
    assert bench.tile["adc"][2, 2, place] == 2


@pytest.mark.rule("002.18.2e")
def test_z_counters_wrap_at_8_bits_as_the_reference_has_them() -> None:
    """The documents say 13 bits; the reference, whose vectors count, masks to 8."""
    bench = Words()
    bench.setc16(37, 1 << 12 | 1 << 14)
    bench.tile["adc"][2, 2, [2, 6]] = 255
    bench.send(ReadIntfSel=1, Flush=1)
    assert bench.tile["adc"][2, 2, [2, 6]].tolist() == [0, 0]


@pytest.mark.rule("002.18.4.6")
@pytest.mark.parametrize(("start", "end"), [(0, 15), (3, 9), (15, 15)])
def test_the_x_range_of_setadcxx_is_inclusive(start: int, end: int) -> None:
    """End - start + 1 datums, from column `start`."""
    bench = Words()
    bench.bf16_row(0, [0x4000 + c for c in range(16)])
    bench.wrcfg(12, 32 << 16 | 2)
    bench.word(0x5E << 24 | PACKER_ONLY | end << 10 | start)
    bench.send(ReadIntfSel=1, Last=1)
    count = end - start + 1
    padding = -count % 8
    assert bench.l1("<u2", count + padding) == [0x4000 + c for c in range(start, end + 1)] + [0] * padding
