"""Bytes over each link of the NoCs, from recorded requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu.chip.coordinates import Place
from bhemu.recording.noc_requests import READ, WRITE, Request
from bhemu.report.model import make_report
from bhemu.report.noc import LinkTraffic, end_name
from bhemu.report.noc import link_traffic_as_json as report_of
from bhemu.report.text import report_as_json
from tests.chip.test_chip_recording import RECEIVER, SENDER, running

pytestmark = pytest.mark.plain

DRAM: Place = (17, 12)


def asked(kind: str, other: Place, size: int, *, noc: int = 0, last: Place | None = None) -> Request:
    """A request as a recording has it; with `last`, the corner from which it starts, a multicast."""
    ends = {"other": other, "multicast": last is not None, "last": last or other}
    return Request(0, 0, 0, noc, kind, address=0, size=size, local=0, tag=0, answered=True, channel=-1, **ends)  # type: ignore[arg-type]


def bytes_of(traffic: LinkTraffic) -> dict[tuple[int, Place, Place], int]:
    return {(noc, begin, end): size for noc, begin, end, size in traffic.links()}


def test_written_data_leave_the_tile_and_read_data_come_to_it() -> None:
    traffic = LinkTraffic()
    traffic.add((1, 2), [asked(WRITE, (2, 3), 100), asked(READ, (16, 2), 64), asked(WRITE, (2, 2), 8)])
    assert bytes_of(traffic) == {
        (0, (1, 2), (2, 2)): 108,
        (0, (2, 2), (2, 3)): 100,
        (0, (16, 2), (0, 2)): 64,
        (0, (0, 2), (1, 2)): 64,
    }
    assert traffic.links()[0] == (0, (1, 2), (2, 2), 108)


def test_dram_is_where_translated_coordinates_say() -> None:
    """17-12 is the bank at column 9, row 0: up from row 2 on NoC 1 (tile N8)."""
    traffic = LinkTraffic()
    traffic.add((10, 2), [asked(WRITE, DRAM, 32, noc=1)])
    assert end_name(DRAM, 1) == "DRAM 17-12"
    up = [(1, (10, 2), (10, 1)), (1, (10, 1), (10, 0)), (1, (10, 0), (9, 0))]
    assert bytes_of(traffic) == dict.fromkeys(up, 32)


def test_a_multicast_passes_each_link_of_its_branches_once() -> None:
    """To column 2, down through rows 3 and 4, and right from each node there."""
    traffic = LinkTraffic()
    traffic.add((1, 2), [asked(WRITE, (3, 4), 16, last=(2, 3))])
    down = [((1, 2), (2, 2)), ((2, 2), (2, 3)), ((2, 3), (2, 4))]
    right = [((2, 3), (3, 3)), ((2, 4), (3, 4))]
    assert bytes_of(traffic) == {(0, *link): 16 for link in down + right}
    assert report_of(traffic)["multicast_bytes"] == [16, 0]


def test_a_request_to_nowhere_is_said() -> None:
    traffic = LinkTraffic()
    traffic.add((1, 2), [asked(READ, (30, 30), 16)])
    assert (traffic.links(), traffic.unknown) == ([], 16)


def test_a_report_has_the_links_of_what_was_recorded(tmp_path: Path) -> None:
    chip = running()
    recording = chip.record(tiles=[SENDER, RECEIVER])
    chip.clock(300)
    recording.stop()
    recording.save(tmp_path / "out")
    told = report_as_json(make_report(tmp_path / "out"))["noc"]
    assert [(one["noc"], one["name"], one["bytes"]) for one in told["links"]] == [
        (0, "tile 1-2 to tile 2-2", 16),
        (0, "tile 2-2 to tile 3-2", 16),
        (0, "tile 3-2 to tile 3-3", 16),
        (0, "tile 3-3 to tile 3-4", 16),
    ]
    assert "multicast" in told["counted"]
