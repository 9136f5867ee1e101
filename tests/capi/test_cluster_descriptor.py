"""The description of several chips that is written beside the library, and the image of their records (ethernet 7)."""

from __future__ import annotations

from importlib import import_module

import pytest

from bhemu.capi.cluster_descriptor import cluster_descriptor
from bhemu.capi.image import CHIP_POINTERS, IN_CHIP, IN_EACH_CHIP, describe_machine
from bhemu.chip.coordinates import TENSIX_TILES
from bhemu.chip.state import CHIP
from bhemu.cluster.topology import ChipOf, Topology, load_topology
from bhemu.errors import ConfigurationError
from bhemu.machine.state import offset_of

pytestmark = pytest.mark.plain


@pytest.mark.rule("ethernet 7")
@pytest.mark.parametrize("name", ["p300", "p300x2", "galaxy"])
def test_chips_and_links_are_listed(name: str) -> None:
    topology = load_topology(name)
    table = import_module("yaml").safe_load(cluster_descriptor(topology))
    numbers = list(range(len(topology.chips)))
    assert list(table["arch"]) == numbers
    assert [list(entry) for entry in table["chips_with_mmio"]] == [[n] for n in numbers]
    links = {tuple((end["chip"], end["chan"]) for end in link) for link in table["ethernet_connections"]}
    assert links == {((a.chip, a.channel), (b.chip, b.channel)) for a, b in topology.links}
    assert len(set(table["chip_unique_ids"].values())) == len(numbers)
    assert {chip["eth_harvesting_mask"] for chip in table["harvesting"].values()} == {0x3000}  # channels 12 and 13
    assert sorted(chip for board in table["boards"] for chip in board[2]["chips"]) == numbers


@pytest.mark.rule("ethernet 3", "ethernet 7")
def test_the_chips_of_a_board_have_neighbouring_ids() -> None:
    table = import_module("yaml").safe_load(cluster_descriptor(load_topology("p300")))
    board = table["boards"][0][0]["board_id"]
    assert table["chip_unique_ids"] == {0: board << 5, 1: board << 5 | 1}
    assert board == 0x440_0000_0001


@pytest.mark.rule("ethernet 5", "ethernet 7")
def test_the_image_has_what_chips_differ_in_and_no_more() -> None:
    alone, pair = describe_machine(), describe_machine(load_topology("p300"))
    shared = [run for run in pair.image if run.chip == IN_EACH_CHIP]
    assert shared == list(alone.image)
    own = [run for run in pair.image if run.chip != IN_EACH_CHIP]
    assert {run.chip for run in own} == {0, 1}
    assert {run.tile for run in own if run.chip == 0} == {IN_CHIP, TENSIX_TILES + 2, TENSIX_TILES + 3}
    assert {run.tile for run in own if run.chip == 1} == {IN_CHIP, TENSIX_TILES + 8, TENSIX_TILES + 9}
    bars = offset_of(CHIP, "pci_config") + 0x10
    moved = [run for run in own if run.tile == IN_CHIP and bars <= run.at < bars + 0x18]
    assert {run.chip for run in moved} == {1}  # the BARs of the first chip are where they always are
    for name in CHIP_POINTERS:
        begin = offset_of(CHIP, name)
        end = begin + CHIP[name].itemsize
        assert all(run.at + len(run.content) <= begin or run.at >= end for run in own if run.tile == IN_CHIP)


@pytest.mark.rule("ethernet 7.1")
def test_chips_of_a_galaxy_have_places_of_their_own_and_its_corners_are_those_of_trays() -> None:
    buses = import_module("yaml").safe_load(cluster_descriptor(load_topology("galaxy")))["chip_to_bus_id"]
    places = {chip: divmod(int(bus, 16), 16) for chip, bus in buses.items()}
    assert len(set(places.values())) == 32
    assert {place for _, place in places.values()} == set(range(1, 9))
    trays = {0x0: 1, 0x4: 2, 0xC: 3, 0x8: 4}
    corners = {chip: trays[tray] for chip, (tray, place) in places.items() if place == 1}
    assert corners == {0: 1, 7: 2, 24: 3, 31: 4}
    assert "chip_to_bus_id" not in cluster_descriptor(load_topology("p300"))


@pytest.mark.rule("ethernet 7.1")
def test_two_chips_on_one_bus_are_refused() -> None:
    chips = tuple(ChipOf(pci_bus=bus) for bus in (0x41, 0, 0x41))
    with pytest.raises(ConfigurationError, match="chips 0 and 2 both have PCI bus 0x41"):
        Topology("wrong", chips)
