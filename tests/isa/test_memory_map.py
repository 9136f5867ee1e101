"""The tables of the memory map and of the tile's registers agree with what the tile does (tile T24 to T28, K, N13).

What T24 itself says is in tests/tile/test_memory_map.py, written down by hand.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bhemu
from bhemu import Tile
from bhemu.errors import BhemuError
from bhemu.isa.memory_map import AGENTS, ETHERNET_AGENTS, REGIONS, Agent, Region, region, region_at
from bhemu.isa.registers import CONFIG_WORDS, THREAD_WORDS
from bhemu.isa.tile_registers import KINDS, TILE_REGISTERS, WORD_BYTES, registers_at, registers_of, tile_register
from bhemu.machine.agents import NC, NOC, T0, B
from bhemu.machine.faults import FAULTS
from bhemu.machine.state import THREADS

pytestmark = pytest.mark.plain

NUMBER: dict[Agent, int] = {"B": B, "T": T0, "NC": NC, "NoC": NOC}
REGISTERS_ABSENT = (
    "control.register",
    "interrupts.register",
    "tdma.register",
    "niu.no-register",
    "overlay.register",
    "sync_window.nothing.",
    "window.unmapped.",
    "map.unmapped.",
)
RIGHTS_MISSING = (
    "map.unmapped.",
    "map.other-thread.",
    "map.read-only.",
    "map.write-only.",
    "window.no-access.",
    "tdma.unreachable",
)
WIDTH_WRONG = ("map.narrow.", "window.narrow.")
NOP = 0x02000000
BLOCKS = {row.block for row in TILE_REGISTERS}
WORDS_LOOKED_AT = 2048
"""Of each region; those with registers further on repeat what they have before, or have none."""


def reasons(*names: str) -> re.Pattern[str]:
    """Matches the message of a refusal for one of these reasons, which are names of faults or beginnings of such."""
    texts = [known.text for known in FAULTS.values() if known.name.startswith(names)]
    assert len(texts) >= len(names)
    return re.compile("|".join(re.sub(r"\\\{.*?\\\}", ".*", re.escape(text)) for text in texts))


def refusal(tile: Tile, address: int, agent: int, size: int = WORD_BYTES, *, store: bool = False) -> str:
    """The message of the refusal of an access, or nothing."""
    try:
        if store:
            tile.cores.store(address, NOP & (1 << 8 * size) - 1, agent, size)
        else:
            tile.cores.load(address, agent, size)
    except BhemuError as error:
        return error.message
    return ""


@pytest.fixture(scope="module")
def tile() -> Tile:
    return Tile()


# --- the memory map ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", [*AGENTS, *ETHERNET_AGENTS])
def test_regions_that_one_agent_sees_do_not_overlap(agent: Agent) -> None:
    seen = sorted((r for r in REGIONS.values() if r.is_seen_by(agent)), key=lambda r: r.base)
    for first, second in itertools.pairwise(seen):
        assert first.end <= second.base, (first.name, second.name)
        assert region_at(first.end - 1, agent) is first
    assert all(r.size > 0 and r.size % WORD_BYTES == 0 and (not r.step or r.size % r.step == 0) for r in seen)


@pytest.mark.parametrize("name", REGIONS)
def test_widths_are_given_where_the_region_can_be_loaded_or_stored_to(name: str) -> None:
    rights = "".join(REGIONS[name].access.values())
    assert bool(REGIONS[name].loads) == ("r" in rights)
    assert bool(REGIONS[name].stores) == ("w" in rights)


@pytest.mark.parametrize("name", [name for name in REGIONS if name != "l1"])
def test_each_agent_may_access_a_region_as_the_table_says(tile: Tile, name: str) -> None:
    place, before = region(name), tile.snapshot()
    for agent, store in itertools.product(AGENTS, (False, True)):
        seen, right = region_at(place.base, agent), "w" if store else "r"
        message = refusal(tile, place.base, NUMBER[agent], store=store)
        allowed = seen is not None and right in seen.access[agent]
        assert bool(reasons(*RIGHTS_MISSING).search(message)) != allowed, (agent, store, message)
    tile.restore(before)


@pytest.mark.parametrize("name", [name for name in REGIONS if name != "l1"])
def test_each_width_may_be_accessed_as_the_table_says(tile: Tile, name: str) -> None:
    place, before = region(name), tile.snapshot()
    agents = [agent for agent in AGENTS if place.is_seen_by(agent)]
    for agent, size, store in itertools.product(agents, (1, 2, 4), (False, True)):
        if ("w" if store else "r") not in place.access[agent]:
            continue
        message = refusal(tile, place.base, NUMBER[agent], size, store=store)
        too_narrow = bool(reasons(*WIDTH_WRONG).search(message))
        assert too_narrow == (size not in (place.stores if store else place.loads)), (agent, size, message)
    tile.restore(before)


# --- registers --------------------------------------------------------------------------------------------------------


def test_each_register_has_a_name_of_its_own_in_its_block() -> None:
    names = [(row.block, row.name) for row in TILE_REGISTERS]
    assert len(names) == len(set(names))
    assert all(row.kind in KINDS and row.access in ("r", "w", "rw") for row in TILE_REGISTERS)


@pytest.mark.parametrize("block", sorted(BLOCKS))
def test_the_registers_of_a_block_do_not_overlap_and_lie_in_its_regions(block: str) -> None:
    offsets = [offset for row in registers_of(block) for offset in row.offsets]
    assert len(offsets) == len(set(offsets))
    assert all(offset % WORD_BYTES == 0 for offset in offsets)
    homes = [place for place in REGIONS.values() if place.block == block]
    assert homes
    assert max(offsets) < min(place.step or place.size for place in homes)


def test_each_region_with_a_block_has_registers() -> None:
    assert {place.block for place in REGIONS.values()} - {None} == BLOCKS


def test_fields_of_a_register_do_not_overlap() -> None:
    for row in TILE_REGISTERS:
        taken = 0
        for bits in row.fields:
            assert 31 >= bits.msb >= bits.lsb >= 0
            if bits.name in ("VALUE", "ENDS"):  # bits that a register keeps, some of which have names of their own
                continue
            assert not taken & bits.in_place, (row.name, bits.name)
            taken |= bits.in_place
        assert len({bits.name for bits in row.fields}) == len(row.fields)


OF_TENSIX = [name for name, place in REGIONS.items() if any(place.is_seen_by(agent) for agent in AGENTS)]
"""The other regions are those of Ethernet tiles: tests/chip/test_ethernet_map.py."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OF_TENSIX if region(name).block is not None])
def test_a_register_answers_where_the_table_has_one_and_nowhere_else(tile: Tile, name: str) -> None:
    place, before = region(name), tile.snapshot()
    agent = next(NUMBER[agent] for agent in AGENTS if place.is_seen_by(agent))
    absent = reasons(*REGISTERS_ABSENT)
    for address in range(place.base, place.end, WORD_BYTES)[:WORDS_LOOKED_AT]:
        found = [row for row, _ in registers_at(address) if row.block == place.block]
        if any(row.description.startswith("of streams") for row in found):
            continue  # other streams do not have it
        listed = [row.name for row in found]
        message = refusal(tile, address, agent)
        assert bool(listed) != bool(absent.search(message)), (f"{address:#x}", listed, message)
    tile.restore(before)


def test_a_register_is_found_by_its_address() -> None:
    assert [(row.name, number) for row, number in registers_at(0xFFB121B0)] == [("SOFT_RESET_0", 0)]
    assert [(row.name, number) for row, number in registers_at(0xFFB30248)] == [("REQS_OUTSTANDING", 2)]
    assert [(row.name, number) for row, number in registers_at(0xFFB7F028)] == [("REMOTE_DEST_BUF_SIZE", 0)]
    assert not list(registers_at(0xFFB13140 + 0x1000))


def test_the_window_of_configuration_holds_the_words_of_the_register_map() -> None:
    for bank in ("BANK_0", "BANK_1", "BOTH_BANKS"):
        assert tile_register("config", bank).repeat == ((CONFIG_WORDS, WORD_BYTES),)
    assert tile_register("config", "THREAD_CONFIG").repeat == ((THREADS, WORD_BYTES * THREAD_WORDS), (THREAD_WORDS, 4))


# --- who uses the table -----------------------------------------------------------------------------------------------

PACKAGE = Path(bhemu.__file__).parent
LOOK_UPS = ("offset_of", "address_of", "tile_register", "bits_of", "bit_of")
COUNTED_FROM_ANOTHER = {"TRISC1_RESET_PC": "TRISC0_RESET_PC + 4 * thread", "TRISC2_RESET_PC": "the same"}


def names_asked_for() -> Iterator[tuple[str, str]]:
    """(block, register) of each look-up in the source of the tile."""
    for path in (*(PACKAGE / "tile").rglob("*.py"), *(PACKAGE / "tensix").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in LOOK_UPS):
                continue
            block, name = node.args[:2]
            if isinstance(block, ast.Constant) and isinstance(name, ast.Constant):
                yield str(block.value), str(name.value)


def test_each_control_register_that_acts_is_handled() -> None:
    counters = "PERF_CNT_"  # tensix/performance.py makes their names of those of the banks
    acting = {row.name for row in registers_of("control") if row.kind == "acts" and not row.name.startswith(counters)}
    assert acting - {name for block, name in names_asked_for() if block == "control"} == set(COUNTED_FROM_ANOTHER)


def test_a_region_knows_its_addresses() -> None:
    place: Region = region("pic")
    assert place.base in place
    assert place.end not in place
    assert place.addresses == range(place.base, place.end)
