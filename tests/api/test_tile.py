"""The tile as a notebook uses it: memory, decoded registers, instructions, snapshots."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from bhemu.api.tile import Tile
from bhemu.errors import AssemblyError, FormatError, MemoryError_, UndefinedBehavior
from bhemu.machine.state import L1_SIZE

pytestmark = pytest.mark.plain


@pytest.fixture
def tile() -> Tile:
    return Tile()


def test_a_tensor_written_to_l1_reads_back(tile: Tile) -> None:
    values = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    assert tile.write_tensor(0x10000, values, "fp32") == values.nbytes
    np.testing.assert_array_equal(tile.read_tensor(0x10000, (64, 32), "fp32"), values)
    # Face order: the second face begins with column 16 of the first row.
    assert tile.l1[0x10000 + 256 * 4 :].view(np.float32)[0] == values[0, 16]


@pytest.mark.parametrize("address", [0x10008, -16, L1_SIZE - 16, L1_SIZE])
def test_an_address_that_is_no_aligned_range_of_l1_is_refused(tile: Tile, address: int) -> None:
    with pytest.raises(MemoryError_, match=f"{address:#x}"):
        tile.write_tensor(address, np.zeros((32, 32), np.float32), "bf16")
    assert not tile.l1.any()


def test_a_tensor_that_is_not_whole_tiles_is_refused(tile: Tile) -> None:
    with pytest.raises(FormatError, match="33"):
        tile.write_tensor(0x10000, np.zeros((33, 32), np.float32), "bf16")


def test_execute_takes_text_words_and_lists(tile: Tile) -> None:
    tile.execute(0, "SETDMAREG 0x1234, 6\nSETDMAREG value=0x5678, RegIndex16b=7")
    assert tile.gpr[0, 3] == 0x56781234
    tile.execute(2, [0x45000006, "SETDMAREG 1, 7"])
    assert tile.gpr[2, 3] == 0x00010000
    assert tile.gpr[0, 3] == 0x56781234


def test_a_misspelt_instruction_suggests_the_right_one(tile: Tile) -> None:
    with pytest.raises(AssemblyError) as caught:
        tile.execute(0, "SETDMAREGS 1, 2")
    assert "SETDMAREG" in str(caught.value)


def test_an_instruction_that_would_wait_for_ever_is_refused_and_the_tile_lives_on(tile: Tile) -> None:
    wait = "SEMWAIT stall_res=2, sem_sel=2, wait_sem_cond=1"
    with pytest.raises(UndefinedBehavior, match="SEMPOST"):
        tile.execute(1, [wait, "SEMPOST sem_sel=4"])
    tile.execute(1, "SEMPOST sem_sel=4")
    assert tile.semaphores[2] == 1


def test_config_fields_are_read_and_written_by_name(tile: Tile) -> None:
    tile.config["THCON_SEC0_REG1_Out_data_format"] = 6
    assert tile.config["THCON_SEC0_REG1_Out_data_format"] == 6
    assert tile.record.config[0, 70] == 6 << 4
    assert tile.config.for_bank(1)["THCON_SEC0_REG1_Out_data_format"] == 0
    tile.config.for_thread(2)["ADDR_MOD_PACK_SEC0_YsrcIncr"] = 4
    assert tile.record.thread_config[2, 37] == 4
    assert "PRNG_SEED_Seed_Val_ADDR32" not in tile.config


def test_a_config_value_that_does_not_fit_is_refused(tile: Tile) -> None:
    with pytest.raises(AssemblyError, match="16"):
        tile.config["THCON_SEC0_REG1_Out_data_format"] = 16
    with pytest.raises(AssemblyError, match="Out_data_formt"):
        tile.config["THCON_SEC0_REG1_Out_data_formt"] = 1


def test_dst_is_decoded_in_both_views(tile: Tile) -> None:
    tile.dst.cells[5, 2] = 0x8000 | 0x40 << 8 | 127  # -1.5 as a BF16 cell
    assert tile.dst.bf16[5, 2] == -1.5
    assert np.asarray(tile.dst)[5, 2] == -1.5
    bits = int(np.float32(3.1415927).view(np.uint32))
    top = bits >> 16
    tile.dst.cells[16 + 1, 0] = (top & 0x8000) | (top & 0x7F) << 8 | top >> 7 & 0xFF
    tile.dst.cells[16 + 9, 0] = bits & 0xFFFF
    tile.config["ALU_ACC_CTRL_Fp32_enabled"] = 1
    assert np.asarray(tile.dst)[9, 0] == np.float32(3.1415927)  # logical row 9 of the 32-bit view is physical row 17
    tile.dst.valid[17] = 0
    assert tile.dst.fp32[9, 0] == 0


def test_source_banks_are_decoded_by_their_implied_format(tile: Tile) -> None:
    tile.srca.cells[1, 0, 0] = 1 << 18 | 0x200 << 8 | 128  # -3.0 as TF32
    assert tile.srca.bank(1)[0, 0] == -3.0
    tile.record.src_format[0, 1] = 14
    tile.srca.cells[1, 0, 1] = 1 << 18 | 5 << 8 | 16
    assert tile.srca.bank(1)[0, 1] == -5
    assert tile.srca.owner == ("unpacker", "unpacker")


def test_snapshot_restore_and_continue_equals_an_uninterrupted_run(tile: Tile) -> None:
    first = ["SETDMAREG 7, 2", "SEMPOST sem_sel=1"]
    second = ["ADDDMAREG 0, 3, 1, 1", "SEMPOST sem_sel=1"]
    tile.execute(0, first)
    snapshot = tile.snapshot()
    tile.execute(0, second)
    end = tile.snapshot()
    tile.restore(snapshot)
    assert tile.snapshot() == snapshot
    assert tile.snapshot() != end
    tile.execute(0, second)
    assert tile.snapshot() == end


def test_reset_keeps_l1(tile: Tile) -> None:
    tile.l1[100] = 7
    tile.execute(0, "SETDMAREG 7, 2")
    tile.reset()
    assert tile.l1[100] == 7
    assert not tile.gpr.any()


def test_a_tile_takes_under_4_mb_before_it_runs_and_64_untouched_ones_next_to_nothing() -> None:
    script = """
import os
from bhemu.machine.state import new_tiles, TILE
import numpy as np
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
before = resident()
one = new_tiles(1)
after = resident()
many = np.zeros(64, TILE)
print(after - before, resident() - after)
"""
    one, many = map(int, subprocess.check_output([sys.executable, "-c", script], text=True).split())
    assert one < 4_000_000
    assert many < 4_000_000
