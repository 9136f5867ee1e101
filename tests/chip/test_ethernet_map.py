"""The table of the memory map agrees with what an Ethernet tile does (ethernet 2)."""

from __future__ import annotations

import re

import pytest

from bhemu.chip.coordinates import NODES
from bhemu.chip.device import Device
from bhemu.errors import BhemuError
from bhemu.isa.memory_map import ETHERNET_AGENTS, REGIONS, Region, region
from bhemu.isa.tile_registers import WORD_BYTES, registers_at
from bhemu.machine.agents import NOC
from bhemu.machine.ethernet_state import ERISC0, ERISC1
from bhemu.tile.cores import Cores

pytestmark = pytest.mark.plain

TILE = NODES[1, 1].tile
NUMBERS = {"E": (ERISC0, ERISC1), "ENoC": (NOC,)}
OF_ETHERNET = [
    name
    for name, place in REGIONS.items()
    if name != "ethernet_l1" and any(place.is_seen_by(agent) for agent in ETHERNET_AGENTS)
]
UNMAPPED = re.compile(r"where an Ethernet tile has nothing")
NARROW = re.compile(r"only whole words of 4 bytes")
NO_REGISTER = re.compile(r"is not built|has no register")
RIGHTS = re.compile(r"can only be (loaded|stored)|can only be (read|written)|a store to .* PTP timer")
WORDS_LOOKED_AT = 1100


@pytest.fixture(scope="module")
def cores() -> Cores:
    return Device(allow_open=True).cores(TILE)


def refusal(cores: Cores, address: int, agent: int, size: int = WORD_BYTES, *, store: bool = False) -> str:
    """The message of the refusal of an access, or nothing."""
    try:
        if store:
            cores.store(address, 0, agent, size)
        else:
            cores.load(address, agent, size)
    except BhemuError as error:
        return error.message
    return ""


@pytest.mark.rule("ethernet 2")
@pytest.mark.parametrize("name", REGIONS)
def test_an_ethernet_tile_has_the_regions_that_the_table_gives_it_and_no_others(cores: Cores, name: str) -> None:
    place = region(name)
    if place.base == 0:
        return
    for agent in ETHERNET_AGENTS:
        seen = any(place.base in other and other.is_seen_by(agent) for other in REGIONS.values())
        for number in NUMBERS[agent]:
            assert bool(UNMAPPED.search(refusal(cores, place.base, number))) != seen, (agent, number)


@pytest.mark.rule("ethernet 2")
@pytest.mark.parametrize("name", OF_ETHERNET)
def test_narrow_accesses_are_for_local_ram_alone(cores: Cores, name: str) -> None:
    place: Region = region(name)
    for size in (1, 2):
        narrow = bool(NARROW.search(refusal(cores, place.base, ERISC0, size)))
        assert narrow == (size not in place.loads), size


@pytest.mark.rule("ethernet 2", "ethernet 2.2")
@pytest.mark.parametrize("name", [name for name in OF_ETHERNET if name.startswith("eth_")])
def test_a_register_answers_where_the_table_has_one_and_nowhere_else(cores: Cores, name: str) -> None:
    place = region(name)
    for address in range(place.base, place.end, WORD_BYTES)[:WORDS_LOOKED_AT]:
        listed = [row for row, _ in registers_at(address) if row.block == place.block]
        loaded = refusal(cores, address, ERISC0)
        assert bool(listed) != bool(NO_REGISTER.search(loaded)), (f"{address:#x}", loaded)
        if listed:
            assert ("r" in listed[0].access) != bool(RIGHTS.search(loaded)), (f"{address:#x}", loaded)
            if listed[0].access == "r":
                assert RIGHTS.search(refusal(cores, address, ERISC0, store=True)), f"{address:#x}"
