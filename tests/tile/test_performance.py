"""Performance counters: start, stop, clocks, and counts of instructions (tile K54)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import MissingSpecification
from bhemu.isa.assembler import encode
from bhemu.isa.tile_registers import offset_of

pytestmark = [pytest.mark.plain, pytest.mark.rule("tile K54")]

CONTROL = 0xFFB12000
COMMANDS = {"INSTRN_THREAD": "INSTRN_THREAD", "TDMA_UNPACK": "TDMA_UNPACK", "FPU": "FPU", "L1_": "DBG_L1"}
ALL = CONTROL + 0x03C


def register(name: str) -> int:
    """Address of a register of the counters."""
    return CONTROL + offset_of("control", f"PERF_CNT_{name}")


def count(tile: Tile, bank: str, select: int, grant: int = 0) -> int:
    """A count of a bank."""
    tile.cores.store(register(f"{bank}1"), select << 8 | grant << 16)
    return tile.cores.load(register(f"OUT_H_{COMMANDS[bank]}"))


def clocks(tile: Tile, bank: str) -> int:
    """Clocks of a bank."""
    return tile.cores.load(register(f"OUT_L_{COMMANDS[bank]}"))


@pytest.mark.parametrize("bank", COMMANDS)
def test_a_bank_counts_clocks_between_rising_bits(bank: str) -> None:
    tile = Tile()
    command = register(f"{bank}2")
    tile.clock(5)
    tile.cores.store(command, 1)
    tile.clock(100)
    assert clocks(tile, bank) == 100
    tile.cores.store(command, 1)  # no edge
    tile.clock(7)
    assert clocks(tile, bank) == 107
    tile.cores.store(command, 2)
    tile.clock(50)
    assert clocks(tile, bank) == 107
    tile.cores.store(command, 1)
    assert clocks(tile, bank) == 0
    assert tile.cores.load(command) == 1


def test_one_register_starts_and_stops_instructions_and_units_alone() -> None:
    tile = Tile()
    tile.cores.store(ALL, 1)
    tile.clock(40)
    tile.cores.store(ALL, 2)
    tile.clock(40)
    assert [clocks(tile, bank) for bank in COMMANDS] == [40, 0, 40, 0]


def test_instructions_are_counted_by_thread_and_unit() -> None:
    """Two words of thread 0; three of thread 1: two for the matrix unit, one for the vector unit."""
    tile = Tile()
    for _ in range(4):
        tile.execute(1, encode("ZEROACC", clear_mode=0))
    tile.cores.store(ALL, 1)
    tile.cores.store(register("TDMA_UNPACK2"), 1)
    tile.execute(0, [encode("NOP"), encode("SETADCXX")])
    tile.execute(1, [encode("SETRWC"), encode("INCRWC"), encode("SFPNOP")])
    tile.cores.store(ALL, 2)
    tile.cores.store(register("TDMA_UNPACK2"), 2)
    tile.execute(1, encode("SETRWC"))
    assert [count(tile, "INSTRN_THREAD", 8 * thread, 1) for thread in range(3)] == [2, 3, 0]
    assert [count(tile, "FPU", 0), count(tile, "FPU", 1), count(tile, "FPU", 1, 1)] == [2, 1, 3]
    assert count(tile, "TDMA_UNPACK", 3) == 2


@pytest.mark.parametrize(("bank", "select", "grant"), [("INSTRN_THREAD", 24, 0), ("TDMA_UNPACK", 7, 0), ("L1_", 0, 1)])
def test_stalls_busy_cycles_and_ports_are_an_open_choice(bank: str, select: int, grant: int) -> None:
    with pytest.raises(MissingSpecification, match=f"count {select | grant << 8} of performance counters"):
        count(Tile(), bank, select, grant)
    assert count(Tile(allow_open=True), bank, select, grant) == 0


def test_counting_for_a_period_is_an_open_choice() -> None:
    for allow_open in (False, True):
        tile = Tile(allow_open=allow_open)
        tile.cores.store(register("FPU1"), 1)
        if allow_open:
            assert tile.cores.load(register("OUT_L_FPU")) == 0
        else:
            with pytest.raises(MissingSpecification, match="are read in mode 1"):
                tile.cores.load(register("OUT_L_FPU"))
