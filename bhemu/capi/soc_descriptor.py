"""The description of the chip that clients of the library read from a file beside it (tile H1, N2).

tt-umd looks for `soc_descriptor.yaml` in the directory of `libttsim_bh.so`. Everything in it follows from the map of
the chip; coordinates are physical ones of NoC 0, written x-y.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from bhemu.chip.coordinates import DRAM_CHANNELS, HEIGHT, NODES, WIDTH, Harvesting, Kind, Place, translation
from bhemu.errors import ProgramError
from bhemu.files import write_whole
from bhemu.machine.compiler import package_path
from bhemu.machine.state import L1_SIZE

NAME: Final = "soc_descriptor.yaml"
ETHERNET_L1_BYTES: Final = 512 * 1024
DRAM_BYTES: Final = 0xFF00_0000
"""What software uses of the 4 GiB of a channel (N4)."""
DST_BYTES: Final = 32 * 1024
WORKER_PORTS: Final = ((2, 1), (0, 1), (0, 1), (0, 1), (2, 1), (2, 1), (2, 1), (2, 1))
"""Ports of each channel by which tt-metal lets Tensix tiles reach it: over NoC 0, over NoC 1. Any would do here."""


def _places(places: Iterable[Place]) -> str:
    return "[" + ", ".join(f"{x}-{y}" for x, y in places) + "]"


def _of(kind: Kind) -> list[Place]:
    """Places of the tiles of one kind, by their number."""
    return sorted((place for place, node in NODES.items() if node.kind is kind), key=lambda place: NODES[place].index)


def _dram_ports() -> list[list[Place]]:
    """The three ports of each channel, in the order of translated coordinates (N7)."""
    table = translation(Harvesting())
    ports: list[list[Place]] = [[] for _ in range(DRAM_CHANNELS)]
    for x in (17, 18):
        for y in range(12, 24):
            place = table[x, y]
            ports[NODES[place].index].append(place)
    return ports


def soc_descriptor(*, ethernet: bool = True, python: bool = True) -> str:
    """The file's text: YAML, of the full part of 140 Tensix tiles.

    Args:
        ethernet: False to say that Ethernet tiles are routers: tt-metal starts firmware on all others.
        python: name this Python and the place of bhemu in comments: the library starts it to explain refusals
            (explain.c). Not for other machines.
    """
    views = ",\n".join(
        f"  {{channel: {n}, worker_endpoint: [{a}, {b}], eth_endpoint: [{a}, {b}], address_offset: 0}}"
        for n, (a, b) in enumerate(WORKER_PORTS)
    )
    eth, routers = _of(Kind.ETHERNET), _of(Kind.ROUTER)
    if not ethernet:
        eth, routers = [], eth + routers
    ports = ",\n".join(f"  {_places(channel)}" for channel in _dram_ports())
    found = f"# python: {sys.executable}\n# package: {package_path().parent}\n" if python else ""
    return f"""\
# Written by bhemu: the full Blackhole part, physical coordinates of NoC 0.
{found}\
arch_name: BLACKHOLE
grid: {{x_size: {WIDTH}, y_size: {HEIGHT}}}
arc: {_places(_of(Kind.ARC))}
pcie: {_places(_of(Kind.PCIE))}
dram: [
{ports}
]
dram_bank_size: {DRAM_BYTES}
dram_view_size: {DRAM_BYTES}
dram_views: [
{views}
]
eth: {_places(eth)}
eth_l1_size: {ETHERNET_L1_BYTES}
functional_workers: {_places(_of(Kind.TENSIX))}
worker_l1_size: {L1_SIZE}
router_only: {_places(routers)}
security: {_places(_of(Kind.SECURITY))}
l2cpu: {_places(_of(Kind.L2CPU))}
features:
  noc: {{translation_id_enabled: true}}
  unpacker: {{version: 2, inline_srca_trans_without_srca_trans_instr: true}}
  math: {{dst_size_alignment: {DST_BYTES}}}
  packer: {{version: 2}}
  overlay: {{version: 2}}
"""


def write_soc_descriptor(directory: Path, *, ethernet: bool = True) -> Path:
    """Write the file into the directory that holds the library; returns its path. See `soc_descriptor`.

    Raises:
        ProgramError: it cannot be written.
    """
    path = directory / NAME
    try:
        write_whole(path, soc_descriptor(ethernet=ethernet).encode())
    except OSError as error:
        raise ProgramError(
            f"cannot write {path}: {error.strerror}", remedy="move away what has this name, or name another place"
        ) from None
    return path
