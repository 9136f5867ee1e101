"""The unmodified tt-umd 0.9.14, without tt-exalens, on bhemu's C library (`make test-clients`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.clients

OPEN = """
import os
import tt_umd
options = tt_umd.SimulationConnectorOptions()
options.simulator_directory = os.environ["TT_METAL_SIMULATOR"]
connection, devices, cluster = tt_umd.SimulationConnector.discover(options)
device = devices[0]
"""

Umd = Callable[[str], str]


@pytest.fixture
def umd(python: Path, run_client: Callable[..., str]) -> Umd:
    """Run Python text behind OPEN in the clients' environment; returns its output."""
    return lambda text: run_client([str(python), "-c", OPEN + text])


def test_discovery_and_telemetry(umd: Umd) -> None:
    umd(
        """
def check(name, seen, expected):
    assert seen == expected, (name, seen)
opened = (connection.role.name, connection.backend.name, connection.arch.name)
check("connection", opened, ("HOST", "TTSIM", "BLACKHOLE"))
check("chips", (sorted(devices), sorted(cluster.get_all_chips())), ([0], [0]))
soc = device.get_soc_descriptor()
kinds = (tt_umd.CoreType.TENSIX, tt_umd.CoreType.DRAM, tt_umd.CoreType.ETH)
check("cores", [len(soc.get_cores(kind)) for kind in kinds], [140, 24, 12])
device.init_tt_device()
check("board", device.get_board_type(), tt_umd.BoardType.P150)
check("clock", device.get_clock(), 1000)
check("translation", device.get_noc_translation_enabled(), True)
check("hung", (device.is_pcie_hung(), device.is_noc_hung(tt_umd.NocId.NOC0)), (False, False))
firmware = device.get_firmware_info_provider()
check("clocks", (firmware.get_aiclk(), firmware.get_axiclk(), firmware.get_arcclk()), (1000, 900, 540))
check("firmware", str(firmware.get_firmware_version()), "18.5.0")
check("temperature", firmware.get_board_temperature(), 35.0)
check("message", device.arc_msg(0x90, True, [1, 2]), (0, 0, 0))
device.set_power_state(tt_umd.TTDevice.PowerState.BUSY)
"""
    )


def test_a_megabyte_of_every_kind_of_memory(umd: Umd) -> None:
    umd(
        """
soc = device.get_soc_descriptor()
for kind in (tt_umd.CoreType.TENSIX, tt_umd.CoreType.DRAM):
    for number, core in enumerate(soc.get_cores(kind)[:: 5]):
        content = os.urandom(1 << 20)
        at = soc.translate_coord_to(core, tt_umd.CoordSystem.TRANSLATED)
        device.noc_write(at.x, at.y, 0x1000 + 4 * number, content)
        assert device.noc_read(at.x, at.y, 0x1000 + 4 * number, len(content)) == content, core
        assert device.noc_read(at.x, at.y, 0x1003 + 4 * number, 5) == content[3:8], core
        word = int.from_bytes(content[8:12], "little")
        assert device.noc_read32(at.x, at.y, 0x1008 + 4 * number) == word, core
"""
    )


def test_multicast_and_broadcast(umd: Umd) -> None:
    umd(
        """
columns, rows = [*range(1, 8), *range(10, 17)], range(2, 12)
def holders(address, content):
    return [(x, y) for y in rows for x in columns if device.noc_read(x, y, address, len(content)) == content]
content = os.urandom(4096)
device.noc_multicast(6, 3, 11, 4, 0x5000, content)
assert holders(0x5000, content) == [(x, y) for y in (3, 4) for x in (6, 7, 10, 11)]
device.noc_multicast32(1, 2, 2, 2, 0x6000, 0x12345678)
assert holders(0x6000, bytes.fromhex("78563412")) == [(1, 2), (2, 2)]
device.noc_broadcast(0x7000, content)
assert len(holders(0x7000, content)) == 140
"""
    )


def test_resets(umd: Umd) -> None:
    """A loop at address 0 counts in L1 while core B is out of reset, and only then."""
    umd(
        """
core = device.get_soc_descriptor().get_cores(tt_umd.CoreType.TENSIX)[0]
program = (0x00000537, 0x10052583, 0x00158593, 0x10b52023, 0xff5ff06f)
for place, word in enumerate(program):
    device.noc_write32(1, 2, 4 * place, word)
def passes():
    before = device.noc_read32(1, 2, 0x100)
    for _ in range(20):
        device.noc_read32(1, 2, 0)
    return device.noc_read32(1, 2, 0x100) - before
assert device.get_risc_reset_state(1, 2) == 0x47800 and passes() == 0
device.deassert_risc_reset(core, tt_umd.RiscType.BRISC)
assert device.get_risc_reset_state(1, 2) == 0x47000 and passes() >= 4
device.assert_risc_reset(core, tt_umd.RiscType.BRISC)
assert device.get_risc_reset_state(1, 2) == 0x47800 and passes() == 0
device.set_risc_reset_state(1, 2, 0x47000)
assert passes() >= 4
"""
    )


def test_a_message_that_is_not_built_ends_the_process(python: Path, run_client: Callable[..., str]) -> None:
    text = OPEN + "device.init_tt_device()\ndevice.arc_msg(0x77, True, [1, 2])\nprint('still there')\n"
    out = run_client([str(python), "-c", text], status=1)
    assert "ERROR: UnimplementedFunctionality: libttsim_pci_mem_wr_bytes: message 0x77" in out
    assert "remedy: known: 0x11, " in out
    assert "still there" not in out
