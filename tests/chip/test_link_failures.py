"""Failures as experiments: links that are down, lose frames or retrain, chips that are missing (ethernet 6.1)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import bhemu
from bhemu.api.cluster import Cluster
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.topology import End, Failure, Topology, load_topology
from bhemu.errors import ConfigurationError, Deadlock
from bhemu.ethernet.failures import DOWN, EVENTS
from tests.chip.test_links import DATA, SENT, WALL_CLOCK, ends, pair, register_frame, start

pytestmark = pytest.mark.plain

PORT, TRAINED, RETRAINS, LINK_UP, PCS = 0x7CC04, 0x7CC08, 0x7CE00, 0x7CE04, 0xFFB9800C


def shown(cluster: Cluster, name: str = "0:2") -> list[tuple[int, ...]]:
    """What both ends show of a link: port, training, retrain count, link, PCS_STATUS."""
    tiles = [cluster[end.chip].ethernet[end.channel] for end in cluster.links[name].ends]
    return [tuple(tile.read_word(at) for at in (PORT, TRAINED, RETRAINS, LINK_UP, PCS)) for tile in tiles]


def counting(count: int = 40) -> str:
    """Frames with 1, 2, ..., each to a word of its own, some dozen clocks apart."""
    return "".join(register_frame(SENT + 4 * n, n) for n in range(1, count + 1))


def arrived(cluster: Cluster, count: int = 40) -> list[int]:
    tile = ends(cluster)[1]
    return [n for n in range(1, count + 1) if tile.read_word(SENT + 4 * n) == n]


@pytest.mark.rule("ethernet 6.1")
def test_a_link_that_is_taken_down_says_so_at_both_ends_at_once() -> None:
    cluster = pair()
    assert shown(cluster) == [(1, 2, 0, 1, 1)] * 2
    cluster.links["0:2"].take_down()
    assert shown(cluster) == [(2, 0, 0, 0, 0)] * 2
    cluster.links["1:9"].bring_up()
    assert shown(cluster) == [(1, 2, 1, 1, 1)] * 2


@pytest.mark.rule("ethernet 6.1")
def test_what_is_on_its_way_or_sent_while_a_link_is_down_is_lost() -> None:
    cluster = pair(60)
    link = cluster.links["0:2 - 1:9"]
    link.take_down(at=200)
    link.bring_up(at=400)
    start(ends(cluster)[0], counting())
    cluster.clock(1000)
    found = arrived(cluster)
    lost = sorted(set(range(1, 41)) - set(found))
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert 1 < lost[0] < lost[-1] < 40
    assert link.lost == len(lost)
    assert (link.is_up, link.state) == (True, f"up, frames lost: {len(lost)}")
    # A frame leaves every 13 clocks or so; those of 200 clocks and one latency are gone.
    assert 16 <= len(lost) <= 24


@pytest.mark.rule("ethernet 6.1")
def test_a_link_that_retrains_loses_nothing_and_keeps_the_order() -> None:
    cluster = pair(60)
    own, other = ends(cluster)
    start(own, "".join(register_frame(SENT, n) for n in range(1, 20)))
    cluster.links["0:2"].retrain(500, at=50)
    cluster.clock(51)
    assert shown(cluster) == [(2, 0, 0, 0, 0)] * 2
    assert not cluster.links["0:2"].is_up
    assert cluster.links["0:2"].state == "retrains until clock 550"
    seen = []
    while cluster.time < 1000:
        cluster.clock(1)
        word = other.read_word(SENT)
        if not seen or seen[-1][1] != word:
            seen.append((cluster.time, word))
    assert seen[-1][1] == 19
    assert [word for _, word in seen] == sorted(word for _, word in seen)
    assert all(at > 550 for at, word in seen if word)
    assert cluster.links["0:2"].lost == 0
    assert shown(cluster) == [(1, 2, 1, 1, 1)] * 2


@pytest.mark.rule("ethernet 6.1")
def test_as_many_frames_are_lost_as_were_asked_for_and_only_those_of_the_sender() -> None:
    cluster = pair(60)
    own, other = ends(cluster)
    cluster.links["0:2"].lose(3, sender="0:2")
    for tile in (own, other):
        start(tile, counting(6))
    cluster.clock(300)
    assert arrived(cluster, 6) == [4, 5, 6]
    assert own.read_word(SENT + 4) == 1
    assert cluster.links["0:2"].lost == 3


@pytest.mark.rule("ethernet 6.1")
@pytest.mark.parametrize("what", ["down", "lose", "retrain"])
def test_what_happens_does_not_depend_on_how_clocks_are_asked_for(what: str) -> None:
    found = set()
    for step, quantum in itertools.product((1, 37, 5000), (1, 1024)):
        cluster = pair(60, quantum=quantum)
        link = cluster.links["0:2"]
        if what == "down":
            link.take_down(at=155)
            link.bring_up(at=290)
        elif what == "lose":
            link.lose(5, at=155)
        else:
            link.retrain(111, at=155)
            link.take_down(at=300)
        start(ends(cluster)[0], counting())
        while cluster.time < 900:
            cluster.clock(min(step, 900 - cluster.time))
        found.add((tuple(arrived(cluster)), link.lost, link.state))
    assert len(found) == 1
    assert found.pop()[1] > 0


@pytest.mark.rule("ethernet 6.1")
def test_failures_of_a_description_are_those_of_the_links(tmp_path: Path) -> None:
    path = tmp_path / "weak.yaml"
    path.write_text(
        """
name: weak
latency: 50
chips:
  - {board_id: [0x440, 1], asic_location: 0}
  - {board_id: [0x440, 1], asic_location: 1}
  - {board_id: [0x440, 2], asic_location: 0, missing: true}
  - {board_id: [0x440, 3], asic_location: 0}
links:
  - 0:2 - 1:9
  - 0:3 - 1:8
  - 0:4 - 2:4
  - 1:2 - 3:2
failures:
  - {link: 0:2 - 1:9, down: true}
  - {link: 0:3 - 1:8, at: 500, retrain: 100}
  - {link: 0:4 - 2:4, down: true}
  - {link: 3:2 - 1:2, at: 70, lose: 2}
"""
    )
    cluster = Cluster(path)
    assert [str(link) for link in cluster.links] == [
        "<Link 0:2 - 1:9: down since clock 0>",
        "<Link 0:3 - 1:8: up>",
        "<Link 1:2 - 2:2: up>",
    ]
    assert len(cluster) == 3
    assert cluster.topology.failures[-1] == Failure(End(2, 2), 3, 70, 2)
    assert shown(cluster) == [(2, 0, 0, 0, 0)] * 2
    assert cluster[0].ethernet[4].read_word(PORT) == 2
    assert cluster[2].ethernet[2].read_word(0x7CFC4) == 0x440
    assert cluster[2].ethernet[2].read_word(0x7CFC8) == 3
    cluster.clock(501)
    assert cluster.links["0:3"].state == "retrains until clock 600"


@pytest.mark.rule("ethernet 6.1")
def test_chips_are_missing_or_harvested_in_python_too() -> None:
    cluster = Cluster("p300x2", missing=(1,), harvesting={2: Harvesting(columns=(13,), ethernet=(6, 9))})
    assert len(cluster) == 3
    assert len(cluster.links) == 4
    assert [len(chip.tensix) for chip in cluster.chips] == [140, 130, 140]
    assert {(link.ends[0].chip, link.ends[1].chip) for link in cluster.links} == {(0, 2), (1, 2)}
    # What led to the missing chip has found no partner.
    assert [cluster[0].ethernet[channel].read_word(PORT) for channel in (2, 4, 8, 9)] == [1, 1, 2, 2]


@pytest.mark.rule("ethernet 6.1")
def test_a_firmware_that_waits_for_a_partner_behind_a_link_that_is_down_is_told_with_the_link() -> None:
    cluster = pair(10)
    own, other = ends(cluster)
    cluster.links["0:2"].take_down(at=5)
    wait = f"li a0, {DATA:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n"
    start(own, register_frame(SENT, 7) + register_frame(SENT, 8) + wait)
    start(other, f"li a0, {SENT:#x}\nback: lw a1, 0(a0)\nbeqz a1, back\n" + register_frame(DATA, 1))
    expected = (
        r"(?s)chip 0:\n  tile 22-25\n    core ERISC1 at 0x\w+: polls 0x20000, which holds 0x0\n"
        r"chip 1:\n  tile 29-25\n    core ERISC1 at 0x\w+: polls 0x30000, which holds 0x0\n"
        r"link 0:2 - 1:9: down since clock 5, frames lost: 2\n.*remedy: .*whether a link has failed"
    )
    with pytest.raises(Deadlock, match=expected):
        cluster.run(lambda: False)


@pytest.mark.rule("ethernet 6.1")
def test_a_failure_that_is_to_come_is_waited_for() -> None:
    cluster = pair(10)
    own, _ = ends(cluster)
    wait = f"li a0, {PORT:#x}\nli a2, 2\nagain: lw a1, 0(a0)\nbne a1, a2, again\n"
    start(own, wait + f"li a0, {WALL_CLOCK:#x}\nlw a1, 0(a0)\nli a0, {DATA:#x}\nsw a1, 0(a0)\n")
    cluster.links["0:2"].take_down(at=20_000)
    cluster.run(lambda: bool(own.read_word(DATA)))
    assert 20_000 <= own.read_word(DATA) < 20_020


# --- bad input --------------------------------------------------------------------------------------------------------


def test_a_link_that_does_not_exist_is_refused_by_name() -> None:
    links = pair().links
    for name in ("0:3", "1:9 - 0:3", (7, 2), End(0, 12)):
        with pytest.raises(ConfigurationError, match=r"no link (ends at (0:3|7:2|0:12)|joins 1:9 and 0:3)"):
            _ = links[name]
    with pytest.raises(ConfigurationError, match="link 'somewhere'"):
        _ = links["somewhere"]
    with pytest.raises(ConfigurationError, match="1:8 is not an end of link 0:2 - 1:9"):
        links["0:2"].lose(sender=(1, 8))


def test_a_failure_in_the_past_is_refused() -> None:
    cluster = pair()
    cluster.clock(500)
    with pytest.raises(ConfigurationError, match="at clock 499, and 500 have passed"):
        cluster.links["0:2"].take_down(at=499)


def test_more_failures_than_a_chip_keeps_are_refused() -> None:
    link = pair().links["0:2"]
    for n in range(EVENTS):
        link.lose(sender="0:2", at=1000 - n)
    with pytest.raises(ConfigurationError, match=f"chip 0 has {EVENTS} failures"):
        link.take_down(at=5000)


@pytest.mark.parametrize("numbers", [(2,), (0, 9), (-1,)])
def test_a_missing_chip_that_does_not_exist_is_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match=rf"p300: chip {numbers[-1]} does not exist"):
        Cluster("p300", missing=numbers)
    with pytest.raises(ConfigurationError, match="p300: chip 5 does not exist"):
        Cluster("p300", harvesting={5: Harvesting()})
    with pytest.raises(ConfigurationError, match="0 chips"):
        Cluster("p300", missing=(0, 1))


def test_harvesting_that_takes_a_links_channel_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="link 0:2 - 1:9: chip 1 has no channel 9"):
        Cluster("p300", harvesting={1: Harvesting(ethernet=tuple(range(8)))})


def test_a_description_in_python_is_checked_as_one_of_a_file() -> None:
    chips = load_topology("p300").chips
    with pytest.raises(ConfigurationError, match="two: no link ends at 0:5"):
        Topology("two", chips, ((End(0, 2), End(1, 9)),), failures=(Failure(End(0, 5), DOWN),))


def test_links_are_listed() -> None:
    cluster = bhemu.Cluster("p300x2")
    assert len(cluster.links) == 8
    assert [str(link.ends[0]) for link in cluster.links.of(2)] == ["1:4", "1:5", "2:8", "2:9"]
    for link in cluster.links.of(2):
        link.take_down()
    assert repr(cluster.links) == "<8 links, 4 of them down or training>"
