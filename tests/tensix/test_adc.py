"""Address counters (I.8) and SETDVALID (I.7)."""

from __future__ import annotations

import pytest

from bhemu.api.tile import Tile
from bhemu.errors import MissingSpecification, NonContractualBehavior, UndefinedBehavior
from bhemu.isa.instructions import encode
from bhemu.machine.counters import CARRY, CH0_X, CH1_X, PACKER, UNPACKER0, UNPACKER1

pytestmark = pytest.mark.plain

THREAD = 2
DIMENSIONS = "xyzw"


def place(name: str) -> int:
    """Position of a counter such as `x0` (channel 0) or `z1`."""
    return (CH0_X, CH1_X)[int(name[1])] + DIMENSIONS.index(name[0])


def fill(tile: Tile, unit: int, **values: tuple[int, int]) -> None:
    """Counter and copy of each named counter."""
    for name, (counter, copy) in values.items():
        tile.record.adc[THREAD, unit, place(name)] = counter
        tile.record.adc[THREAD, unit, CARRY + place(name)] = copy


def read(tile: Tile, unit: int, thread: int = THREAD) -> dict[str, tuple[int, int]]:
    """Every counter and copy that is not zero."""
    adc = tile.record.adc[thread, unit]
    pairs = {d + c: (int(adc[place(d + c)]), int(adc[CARRY + place(d + c)])) for c in "01" for d in DIMENSIONS}
    return {name: pair for name, pair in pairs.items() if pair != (0, 0)}


UNITS = {1: UNPACKER0, 2: UNPACKER1, 4: PACKER}


@pytest.mark.parametrize("mask", range(8))
def test_the_counter_set_mask_chooses_units(tile: Tile, mask: int) -> None:
    tile.execute(THREAD, encode("SETADCXX", mask, x_end2=15, x_start=3))
    for bit, unit in UNITS.items():
        assert read(tile, unit) == ({"x0": (3, 3), "x1": (15, 15)} if mask & bit else {})


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize(("dimension", "kept"), [(0, 0xFFFF), (1, 0x1FFF), (2, 0xFF), (3, 0xFF)])
def test_setadc_writes_counter_and_copy_at_the_counters_width(
    tile: Tile, channel: int, dimension: int, kept: int
) -> None:
    tile.execute(THREAD, encode("SETADC", 4, channel, dimension, 0xFFFF))
    assert read(tile, PACKER) == {f"{DIMENSIONS[dimension]}{channel}": (kept, kept)}


OPERANDS = {
    "x": {"Ch0_X": 1, "Ch0_Y": 2, "Ch1_X": 3, "Ch1_Y": 4},
    "z": {"Ch0_Z": 1, "Ch0_W": 2, "Ch1_Z": 3, "Ch1_W": 4},
}
NAMES = {"x": ("x0", "y0", "x1", "y1"), "z": ("z0", "w0", "z1", "w1")}
TOP = {"x": 0x3FFFF, "y": 0x1FFF, "z": 0xFF, "w": 0xFF}


@pytest.mark.parametrize("kind", ["x", "z"])
@pytest.mark.parametrize("select", range(16))
def test_setadcxy_and_setadczw_set_what_bitmask_selects(tile: Tile, kind: str, select: int) -> None:
    mnemonic = {"x": "SETADCXY", "z": "SETADCZW"}[kind]
    tile.execute(THREAD, encode(mnemonic, CntSetMask=2, BitMask=select, **OPERANDS[kind]))
    expected = {name: (i + 1, i + 1) for i, name in enumerate(NAMES[kind]) if (select >> i) & 1}
    assert read(tile, UNPACKER1) == expected


@pytest.mark.parametrize("kind", ["x", "z"])
def test_incadc_changes_the_counters_only_and_wraps(tile: Tile, kind: str) -> None:
    fill(tile, UNPACKER0, **{name: (TOP[name[0]], 9) for name in NAMES[kind]})
    mnemonic = {"x": "INCADCXY", "z": "INCADCZW"}[kind]
    tile.execute(THREAD, encode(mnemonic, CntSetMask=1, **OPERANDS[kind]))
    assert read(tile, UNPACKER0) == {name: (i, 9) for i, name in enumerate(NAMES[kind])}


@pytest.mark.parametrize("kind", ["x", "z"])
@pytest.mark.parametrize("select", [0, 1, 2, 4, 8, 15])
def test_addrcr_adds_to_the_copy_and_loads_the_counter_from_it(tile: Tile, kind: str, select: int) -> None:
    fill(tile, PACKER, **{name: (5, TOP[name[0]]) for name in NAMES[kind]})
    mnemonic = {"x": "ADDRCRXY", "z": "ADDRCRZW"}[kind]
    tile.execute(THREAD, encode(mnemonic, CntSetMask=4, BitMask=select, **OPERANDS[kind]))
    expected = {
        name: (i, i) if (select >> i) & 1 else (5, TOP[name[0]])
        for i, name in enumerate(NAMES[kind])
        if not ((select >> i) & 1 and i == 0)
    }
    assert read(tile, PACKER) == expected


@pytest.mark.parametrize("mnemonic", ["SETADCXY", "INCADCXY", "ADDRCRXY", "SETADCZW", "INCADCZW", "ADDRCRZW"])
@pytest.mark.parametrize("override", [0, 1, 2, 3])
def test_thread_override_moves_another_threads_counters(tile: Tile, mnemonic: str, override: int) -> None:
    kind = "x" if mnemonic.endswith("XY") else "z"
    first = {"x": {"Ch0_X": 6}, "z": {"Ch0_Z": 6}}[kind]
    select = {} if mnemonic.startswith("INC") else {"BitMask": 1}
    tile.execute(THREAD, encode(mnemonic, CntSetMask=1, ThreadOverride=override, **first, **select))
    target = THREAD if override == 0 else override - 1
    for thread in range(3):
        expected = {f"{kind}0": (6, 0 if mnemonic.startswith("INC") else 6)} if thread == target else {}
        assert read(tile, UNPACKER0, thread) == expected


@pytest.mark.parametrize("override", [1, 2, 3])
def test_setadc_takes_the_thread_override_from_the_upper_bits_of_its_value(tile: Tile, override: int) -> None:
    tile.execute(0, encode("SETADC", 1, 0, 0, override << 16 | 0x8001))
    for thread in range(3):
        assert read(tile, UNPACKER0, thread) == ({"x0": (0x8001, 0x8001)} if thread == override - 1 else {})


@pytest.mark.parametrize("mnemonic", ["SETADCXY", "ADDRCRZW"])
def test_reserved_bits_are_refused(tile: Tile, mnemonic: str) -> None:
    with pytest.raises(UndefinedBehavior, match="belong to no operand"):
        tile.execute(THREAD, encode(mnemonic, CntSetMask=1, BitMask=1, reserved=0x10))


def test_setdvalid_is_refused_by_name_because_the_implied_format_is_not_defined(tile: Tile) -> None:
    with pytest.raises(MissingSpecification, match="SETDVALID is unsupported on Blackhole"):
        tile.execute(0, encode("SETDVALID", 3))
    assert not tile.record.src_owner.any()
    assert not tile.record.unpack.bank.any()


@pytest.mark.parametrize(("which", "file"), [(1, 0), (2, 1)])
def test_setdvalid_as_open_choice_hands_the_unpackers_bank_over(tile: Tile, which: int, file: int) -> None:
    tile.record.allow_open = 1
    tile.record.src_format[file] = [3, 5]
    tile.config.for_thread(0)[f"SRC{'AB'[file]}_SET_Base"] = 3
    tile.execute(0, encode("SETDVALID", which))
    assert tile.record.src_owner[file].tolist() == [1, 0]
    assert tile.record.src_owner[1 - file].tolist() == [0, 0]
    assert tile.record.src_format[file].tolist() == [5, 5]
    assert tile.record.unpack.bank[file] == 1
    assert tile.record.unpack.src_row[0, file] == 48


def test_setdvalid_of_a_bank_that_is_valid_already_is_refused(tile: Tile) -> None:
    tile.record.allow_open = 1
    tile.record.src_owner[1, 0] = 1
    with pytest.raises(NonContractualBehavior, match="SrcB bank 0"):
        tile.execute(0, encode("SETDVALID", 3))
    assert tile.record.src_owner[0].tolist() == [0, 0]
