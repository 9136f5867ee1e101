"""The description of the chip that is written next to the C library: what tt-umd reads from it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bhemu.capi.soc_descriptor import NAME, soc_descriptor, write_soc_descriptor
from bhemu.chip.coordinates import HEIGHT, NODES, WIDTH, Kind

pytestmark = pytest.mark.plain

LISTS = {
    "arc": Kind.ARC,
    "pcie": Kind.PCIE,
    "eth": Kind.ETHERNET,
    "functional_workers": Kind.TENSIX,
    "router_only": Kind.ROUTER,
    "security": Kind.SECURITY,
    "l2cpu": Kind.L2CPU,
}


def places(text: str, key: str) -> list[tuple[int, int]]:
    """Coordinates of one list of the file, up to the next key."""
    (value,) = re.findall(rf"^{key}: (\[.*?\])\n(?=[a-z]|$)", text, re.MULTILINE | re.DOTALL)
    return [(int(x), int(y)) for x, y in re.findall(r"(\d+)-(\d+)", value)]


def test_every_node_is_in_one_list() -> None:
    text = soc_descriptor()
    listed = {kind: places(text, key) for key, kind in LISTS.items()} | {Kind.DRAM: places(text, "dram")}
    assert sum(map(len, listed.values())) == WIDTH * HEIGHT
    for kind, found in listed.items():
        assert {place for place, node in NODES.items() if node.kind is kind} == set(found), kind


def test_tiles_are_listed_in_the_order_of_their_numbers() -> None:
    text = soc_descriptor()
    assert places(text, "eth")[:4] == [(1, 1), (16, 1), (2, 1), (15, 1)]
    assert places(text, "functional_workers")[:2] == [(1, 2), (2, 2)]
    assert places(text, "functional_workers")[-1] == (16, 11)
    assert places(text, "l2cpu") == [(8, 3), (8, 9), (8, 5), (8, 7)]


@pytest.mark.rule("tile N7")
def test_a_channel_has_three_ports_in_the_order_of_translated_coordinates() -> None:
    """Rows (0, 1, 11), (2, 10, 3), (9, 4, 8), (5, 7, 6); channels 4 to 7 at x = 9."""
    ports = places(soc_descriptor(), "dram")
    rows = [0, 1, 11, 2, 10, 3, 9, 4, 8, 5, 7, 6]
    assert ports == [(x, y) for x in (0, 9) for y in rows]


def test_tt_metal_finds_a_view_of_each_channel() -> None:
    """What it looks up beyond tt-umd: by which of a channel's three ports Tensix tiles reach it."""
    text = soc_descriptor()
    views = re.findall(r"\{channel: (\d), worker_endpoint: \[(\d), (\d)\], eth_endpoint: \[\d, \d\]", text)
    assert [int(channel) for channel, _, _ in views] == list(range(8))
    assert {int(port) for _, *ports in views for port in ports} <= {0, 1, 2}
    assert f"dram_view_size: {0xFF000000}\n" in text


def test_without_ethernet_its_tiles_are_routers() -> None:
    text = soc_descriptor(ethernet=False)
    assert places(text, "eth") == []
    of_kind = {place for place, node in NODES.items() if node.kind in (Kind.ETHERNET, Kind.ROUTER)}
    assert set(places(text, "router_only")) == of_kind


def test_file_is_where_tt_umd_looks(tmp_path: Path) -> None:
    path = write_soc_descriptor(tmp_path)
    assert path == tmp_path / NAME
    assert path.name == "soc_descriptor.yaml"
    assert path.read_text() == soc_descriptor()


def test_tt_umd_reads_it(tmp_path: Path) -> None:
    tt_umd = pytest.importorskip("tt_umd", reason="tt-umd is not installed: `make test-llk` has it read the file")
    read = tt_umd.SocArchDescriptor(str(write_soc_descriptor(tmp_path)))
    assert read.grid_size.x == WIDTH
    assert len(read.tensix_cores) == 140
    assert len(read.dram_cores) == 8
    assert read.worker_l1_size == 0x180000
