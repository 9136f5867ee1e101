"""Soft reset of the coprocessor's blocks (tile K40, K41, E19, E52)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification
from bhemu.isa.instructions import encode
from bhemu.machine.state import state_field
from bhemu.tensix.banks import MATRIX
from tests.riscv.rv_machine import ALL_HELD

pytestmark = pytest.mark.plain

SOFT_RESET = 0xFFB121B0


def used(*, allow_open: bool = True) -> Tile:
    """A tile in which every block holds something."""
    tile = Tile(allow_open=allow_open)
    record = tile.record
    record.srca[...] = record.srcb[...] = 0x12345
    record.dst[...] = 0x1234
    record.dst_valid[::2] = 0
    record.src_owner[...] = MATRIX
    record.matrix.bank[...] = record.unpack.bank[...] = 1
    record.lregs[...] += 3
    record.prng[...] = 77
    record.vector.lane_flags = record.vector.lane_config = 5
    record.vector.use_flags = 0
    record.vector.flag_stack_held[:3] = 0xFFFFFFFF
    record.macro.template[...] = record.macro.sequence[...] = record.macro.misc = 9
    record.vector.settings_mixed = 1
    record.macro.pending = 1
    record.macro.word[...] = 4
    record.config[...] = 0x01010101
    record.pack.histogram[...] = 2
    record.pack.acc_tile_size[...] = record.pack.last_tile_size = record.pack.l1_dest_addr_offset = 11
    record.tdma_parameters[...] = 6
    return tile


def snapshot(tile: Tile) -> dict[str, bytes]:
    """Every field of the coprocessor as bytes."""
    skipped = {"soft_reset", "open_used", "device_value", "device_size", "handlers", "l1_u16", "l1_u32", "dst_u32"}
    names = [name for name in tile.record.dtype.names if name not in skipped and not name.startswith(("core_", "now_"))]
    fields: dict[str, bytes] = {}
    for name in names:
        value = tile.record[name]
        inside = value.dtype.names or ()  # of a unit's section
        fields |= {f"{name}.{inner}": np.asarray(value[inner]).tobytes() for inner in inside}
        if not inside:
            fields[name] = np.asarray(value).tobytes()
    return fields


def changes(tile: Tile, value: int) -> set[str]:
    """Fields that a store to the soft-reset register changes."""
    before = snapshot(tile)
    tile.cores.store(SOFT_RESET, value)
    after = snapshot(tile)
    assert tile.cores.load(SOFT_RESET) == value
    return {name for name in before if before[name] != after[name]} - {"dst_valid_u16", "dst_valid_u32"}


@pytest.mark.rule("tile K40")
@pytest.mark.parametrize("bit", [0, 1, 3, 4, 5, 6, 7, 23, 24, 30])
def test_bits_of_blocks_that_keep_nothing_read_back_and_change_nothing(bit: int) -> None:
    tile = used()
    assert changes(tile, ALL_HELD | 1 << bit) == set()
    assert changes(tile, ALL_HELD) == set()


@pytest.mark.rule("tile K40")
@pytest.mark.parametrize(("bit", "file"), [(15, 0), (16, 1)])
def test_bits_15_and_16_return_the_banks(bit: int, file: int) -> None:
    tile = used()
    data = {"srcb"} if file else set()
    assert changes(tile, ALL_HELD | 1 << bit) == {"src_owner", "matrix.bank", "unpack.bank"} | data
    assert tile.record.src_owner[file].tolist() == [0, 0]
    assert tile.record.src_owner[1 - file].tolist() == [MATRIX, MATRIX]
    for banks in (tile.record.matrix.bank, tile.record.unpack.bank):
        assert (banks[file], banks[1 - file]) == (0, 1)
    assert tile.record.srcb.any() == (file == 0)
    assert changes(tile, ALL_HELD) == set()


@pytest.mark.rule("tile K40")
def test_bit_10_zeroes_srca_and_forgets_what_is_scheduled() -> None:
    tile = used()
    tile.record.matrix.srca_row = 5
    assert changes(tile, ALL_HELD | 1 << 10) == {"srca", "macro.pending", "macro.word", "matrix.srca_row"}
    assert not tile.record.srca.any()
    assert tile.record.macro.pending == 0


@pytest.mark.rule("tile K41")
def test_bit_10_puts_the_vector_unit_into_its_defaults_at_the_release() -> None:
    tile = used()
    constants = tile.record.lregs[[8, 9, 10, 15]].copy()
    tile.cores.store(SOFT_RESET, ALL_HELD | 1 << 10)
    assert tile.record.prng[0] == 77
    tile.cores.store(SOFT_RESET, ALL_HELD)
    lregs = tile.record.lregs
    assert not lregs[:8].any()
    assert not lregs[16].any()
    expected = [-1.0, 1 / 65536, -0.67487759, -0.34484843]
    assert np.array_equal(lregs[11:15].view(np.float32), np.repeat(np.float32(expected)[:, None], 32, axis=1))
    assert np.array_equal(lregs[[8, 9, 10, 15]], constants)
    fresh = Tile().record
    vector = ("lane_flags", "use_flags", "flag_stack_held", "lane_config", "settings_mixed")
    macro = ("template", "sequence", "misc", "pending", "word")
    for name in ("prng", *(f"vector.{one}" for one in vector), *(f"macro.{one}" for one in macro)):
        assert np.array_equal(state_field(tile.record, name), state_field(fresh, name)), name


@pytest.mark.rule("tile K41")
def test_lreg_12_is_an_open_choice_and_its_refusal_changes_nothing() -> None:
    tile = used(allow_open=False)
    tile.cores.store(SOFT_RESET, ALL_HELD | 1 << 10)
    before = snapshot(tile)
    with pytest.raises(MissingSpecification, match="LReg 12"):
        tile.cores.store(SOFT_RESET, 0)
    assert snapshot(tile) == before
    assert tile.cores.load(SOFT_RESET) == ALL_HELD | 1 << 10
    assert tile.cores["B"].state == "in reset"


@pytest.mark.rule("tile K40")
@pytest.mark.parametrize("group", range(4))
def test_bits_19_to_22_zero_four_columns_of_srca(group: int) -> None:
    tile = used()
    assert changes(tile, ALL_HELD | 1 << 19 + group) == {"srca"}
    zero = ~tile.record.srca.any(axis=(0, 1))
    assert np.nonzero(zero)[0].tolist() == [4 * group + i for i in range(4)]


@pytest.mark.rule("tile K40")
def test_bit_17_shows_again_what_zeroacc_has_cleared() -> None:
    tile = used()
    assert changes(tile, ALL_HELD | 1 << 17) == {"dst_valid", "pack.histogram"}
    assert tile.dst.valid.all()
    assert not tile.record.pack.histogram.any()


@pytest.mark.rule("tile K40")
def test_bit_9_zeroes_the_configuration_of_unpackers_and_packer() -> None:
    tile = used()
    tile.record.config_dirty[...] = 0
    assert changes(tile, ALL_HELD | 1 << 9) == {"config", "config_dirty"}
    assert not tile.record.config[:, 64:180].any()
    assert (tile.record.config[:, :64] == 0x01010101).all()
    assert (tile.record.config[0, 180:] == 0x01010101).all()


@pytest.mark.rule("tile K40")
def test_bit_2_restarts_the_packers_sizes() -> None:
    tile = used()
    assert changes(tile, ALL_HELD | 1 << 2) == {"pack.acc_tile_size", "pack.last_tile_size"}
    assert not tile.record.pack.acc_tile_size.any()
    assert tile.record.pack.last_tile_size == 0
    assert tile.record.pack.l1_dest_addr_offset == 11
    assert changes(tile, ALL_HELD) == {"pack.l1_dest_addr_offset"}
    assert tile.record.pack.l1_dest_addr_offset == 0


@pytest.mark.rule("tile K40")
def test_bit_8_forgets_the_movers_parameters() -> None:
    tile = used()
    assert changes(tile, ALL_HELD | 1 << 8) == {"tdma_parameters"}


@pytest.mark.rule("tile K40", "tile E19")
def test_a_reset_block_works_again() -> None:
    """LLK's debug code toggles the packer's bit, with all cores released."""
    tile = Tile()
    tile.cores.store(SOFT_RESET, ALL_HELD | 4)
    tile.cores.store(SOFT_RESET, ALL_HELD)
    tile.execute(1, encode("SETDMAREG", RegIndex16b=16, Payload_SigSel=3))
    assert tile.gpr[1, 8] == 3
