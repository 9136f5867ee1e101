"""Links between chips: frames of the transmit queues, their latency and order (ethernet 2.2, 3, 5, 6)."""

from __future__ import annotations

import itertools

import pytest

import bhemu
from bhemu.api.cluster import Cluster
from bhemu.api.ethernet_tile import EthernetTile
from bhemu.chip.coordinates import Harvesting
from bhemu.cluster.topology import KNOWN, ChipOf, End, Topology, load_topology
from bhemu.errors import BhemuError, ConfigurationError, CycleLimit, Deadlock, ProgramError, UndefinedBehavior
from bhemu.ethernet.boot import Identity
from tests.chip.noc_programs import fill
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

QUEUE = 0xFFB90000
WALL_CLOCK = 0xFFB121F0
DATA = 0x20000
SENT = 0x30000
SPACE = 0xFFB444A4
UPDATE = 0xFFB44438


def stores(*pairs: tuple[int, int]) -> str:
    return "\n".join(f"li a0, {address:#x}\nli a1, {value:#x}\nsw a1, 0(a0)" for address, value in pairs) + "\n"


def data_frame(source: int, size: int, target: int, queue: int = 0) -> str:
    base = QUEUE + 0x1000 * queue
    return stores((base + 0x14, source), (base + 0x18, size), (base + 0x1C, target), (base + 4, 2))


def register_frame(target: int, value: int, queue: int = 0) -> str:
    base = QUEUE + 0x1000 * queue
    return stores((base + 0x1C, target), (base + 0x44, value), (base + 4, 4))


def stamp(address: int) -> str:
    """Keep the wall clock."""
    return f"li a0, {WALL_CLOCK:#x}\nlw a1, 0(a0)\nli a0, {address:#x}\nsw a1, 0(a0)\n"


def start(tile: EthernetTile, program: str, core: str = "ERISC1", at: int = 0x1000) -> None:
    tile.write(at, assemble(program + "end: j end\n", at))
    tile.start(core, at)


def pair(latency: int = 100, **options: object) -> Cluster:
    """Two chips: channel 2 of the first leads to channel 9 of the second."""
    chips = (ChipOf(Identity((0x440, 1), 1, 0, 1)), ChipOf(Identity((0x440, 1), 2, 1, 4)))
    return Cluster(Topology("pair", chips, ((End(0, 2), End(1, 9)),), latency), **options)  # type: ignore[arg-type]


def ends(cluster: Cluster) -> tuple[EthernetTile, EthernetTile]:
    return cluster[0].ethernet[2], cluster[1].ethernet[9]


@pytest.mark.rule("ethernet 2.2")
@pytest.mark.parametrize("size", [16, 48, 4096, 0x40000])
@pytest.mark.parametrize("queue", [0, 1, 2])
def test_data_go_from_l1_to_l1(size: int, queue: int) -> None:
    cluster = pair()
    own, other = ends(cluster)
    content = fill(3, size).tobytes()
    own.write(DATA, content)
    start(own, data_frame(DATA, size, 0x30000, queue))
    cluster.clock(400)
    assert other.read(0x30000, size) == content
    assert other.read(0x30000 + size, 16) == bytes(16)


@pytest.mark.rule("ethernet 2.2", "ethernet 2.3")
def test_a_register_write_reaches_streams_and_l1_of_the_partner() -> None:
    cluster = pair()
    own, other = ends(cluster)
    start(own, register_frame(UPDATE, 5 << 6) + register_frame(SENT, 0xABCD, 1))
    cluster.clock(400)
    assert other.read_word(SPACE) == 5
    assert other.read_word(SENT) == 0xABCD


@pytest.mark.rule("ethernet 2.2")
@pytest.mark.parametrize("latency", [1, 7, 100])
def test_a_frame_arrives_after_the_links_latency_whatever_the_clock_is_cut_into(latency: int) -> None:
    """The partner counts clocks until a word comes: as many for any steps, quantum and order of words."""
    found = set()
    for step, quantum in itertools.product((1, 13, 5000), (1, 1024)):
        cluster = pair(latency, quantum=quantum)
        own, other = ends(cluster)
        wait = f"li a0, {SENT:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n" + stamp(DATA)
        start(other, wait)
        start(own, stamp(DATA) + register_frame(SENT, 1))
        while cluster.time < 1300:
            cluster.clock(min(step, 1300 - cluster.time))
        found.add((own.read_word(DATA), other.read_word(DATA)))
    ((sent, received),) = found
    # Between its stamp and its command the sender executes a dozen instructions, the receiver a few after the word.
    assert latency < received - sent < latency + 24


@pytest.mark.rule("ethernet 2.2")
def test_frames_of_a_link_arrive_in_the_order_in_which_they_were_sent() -> None:
    cluster = pair(50)
    own, other = ends(cluster)
    program = "".join(register_frame(SENT, n) + register_frame(SENT + 4 * n, n) for n in range(1, 20))
    start(own, program)
    seen = []
    for _ in range(700):
        cluster.clock(1)
        word = other.read_word(SENT)
        if not seen or seen[-1] != word:
            seen.append(word)
    assert seen == list(range(20))


@pytest.mark.rule("ethernet 2.2")
def test_the_bytes_of_a_frame_are_those_of_the_clock_in_which_it_was_sent() -> None:
    cluster = pair(300)
    own, other = ends(cluster)
    start(own, stores((DATA, 1)) + data_frame(DATA, 16, SENT) + stores((DATA, 2)))
    cluster.clock(600)
    assert (own.read_word(DATA), other.read_word(SENT)) == (2, 1)


@pytest.mark.rule("ethernet 2.2")
def test_both_ends_send_at_the_same_time() -> None:
    """Each adds one to a number, and gives it back: ten rounds."""
    cluster = pair(20)
    tiles = ends(cluster)
    for mine, tile in enumerate(tiles):
        program = f"li s1, {SENT:#x}\nli s2, {10 + mine}\n"
        if mine == 0:
            program += "li s0, 1\n" + f"li a0, {QUEUE:#x}\nsw s1, 0x1c(a0)\nsw s0, 0x44(a0)\nli a1, 4\nsw a1, 4(a0)\n"
        program += (
            f"li s3, 0\nround: lw s0, 0(s1)\nble s0, s3, round\nmv s3, s0\naddi s0, s0, 1\n"
            f"li a0, {QUEUE:#x}\nsw s1, 0x1c(a0)\nsw s0, 0x44(a0)\nli a1, 4\nsw a1, 4(a0)\nblt s0, s2, round\n"
        )
        start(tile, program)
    cluster.clock(1500)
    assert max(tile.read_word(SENT) for tile in tiles) >= 10


@pytest.mark.rule("ethernet 2.2")
def test_the_host_can_give_the_command() -> None:
    cluster = pair(10)
    own, other = ends(cluster)
    own.write(DATA, b"sixteen letters!")
    for offset, value in ((0x14, DATA), (0x18, 16), (0x1C, SENT), (4, 2)):
        own.write_word(QUEUE + offset, value)
    cluster.clock(10)
    assert other.read(SENT, 16) == bytes(16)
    cluster.clock(1)
    assert other.read(SENT, 16) == b"sixteen letters!"


@pytest.mark.rule("ethernet 2.1", "ethernet 2.2")
def test_a_frame_starts_a_core_of_the_partner() -> None:
    cluster = pair(10)
    own, other = ends(cluster)
    other.write(0x2000, assemble(stores((DATA, 7)) + "end: j end\n", 0x2000))
    start(own, register_frame(0xFFB14008, 0x2000) + register_frame(0xFFB121B0, 0))
    cluster.clock(200)
    assert other.read_word(DATA) == 7


@pytest.mark.rule("ethernet 2.2")
def test_what_the_partner_refuses_is_said_with_chip_and_tile_and_the_rest_goes_on() -> None:
    cluster = pair(10)
    own, other = ends(cluster)
    start(own, register_frame(0xFFB93000, 1) + register_frame(SENT, 5))
    with pytest.raises(UndefinedBehavior, match=r"chip 1: Ethernet tile \d+-1: the host accesses 0xffb93000"):
        cluster.clock(200)
    cluster.clock(200)
    assert other.read_word(SENT) == 5


@pytest.mark.rule("ethernet 3")
def test_l1_of_a_joined_tile_says_who_is_at_the_other_end() -> None:
    cluster = bhemu.Cluster("p300")
    tile = cluster[0].ethernet[2]
    words = {0x7CC00: 0xC0DEA000, 0x7CC04: 1, 0x7CC08: 2, 0x7CE00: 0, 0x7CE04: 1}
    words |= {0x7CFC4: 0x440, 0x7CFC8: 1, 0x7CFD4: 0, 0x7CFD8: 1, 0x7CFE4: 0x440, 0x7CFE8: 1, 0x7CFF4: 0, 0x7CFF8: 2}
    assert {address: tile.read_word(address) for address in words} == words
    assert tile.read(0x7CFC1, 3) == bytes([0, 2, 0])
    assert tile.read(0x7CFE1, 3) == bytes([1, 9, 9])
    assert tile.read_word(0xFFB121B0) == 0x1000
    assert cluster[0].ethernet[4].read_word(0x7CC04) == 2


@pytest.mark.rule("ethernet 5")
@pytest.mark.parametrize(
    ("name", "boards", "locations", "usage"),
    [
        ("p150", [(0x400, 1)], [0], [1]),
        ("p300", [(0x440, 1)] * 2, [0, 1], [1, 4]),
        ("p300x2", [(0x440, 1)] * 2 + [(0x440, 2)] * 2, [1, 0, 1, 0], [4, 1, 4, 1]),
        ("galaxy", [(0x470, 1)] * 32, list(range(32)), [4 if n % 2 else 1 for n in range(32)]),
    ],
)
def test_chips_of_known_systems_have_identities_of_their_own(
    name: str, boards: list[tuple[int, int]], locations: list[int], usage: list[int]
) -> None:
    identities = [chip.identity for chip in load_topology(name).chips]
    assert [identity.board_id for identity in identities] == boards
    assert [identity.asic_location for identity in identities] == locations
    assert [identity.pcie_usage for identity in identities] == usage
    assert [identity.asic_id for identity in identities] == list(range(1, len(boards) + 1))


@pytest.mark.rule("ethernet 5")
def test_telemetry_shows_the_identity() -> None:
    cluster = bhemu.Cluster("p300")
    for number, chip in enumerate(cluster.chips):
        words = chip.device.record.arc.memory_u32
        count = int(words[0x104 // 4])
        entries = [int(word) for word in words[0x108 // 4 : 0x108 // 4 + count]]
        tags = {entry & 0xFFFF: int(words[0x200 // 4 + (entry >> 16)]) for entry in entries}
        assert [tags[tag] for tag in (1, 2, 3, 61, 62, 52, 38)] == [
            0x440,
            1,
            1 + number,
            0,
            1 + number,
            number,
            1 + 3 * number,
        ]


@pytest.mark.rule("ethernet 6")
def test_a_galaxy_is_a_mesh_of_four_by_eight() -> None:
    topology = load_topology("galaxy")
    assert len(topology.links) == 104
    neighbours: dict[int, set[int]] = {}
    for end, other in topology.ends.items():
        neighbours.setdefault(end.chip, set()).add(other.chip)
    for chip, others in neighbours.items():
        row, column = divmod(chip, 8)
        places = {(row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)}
        assert others == {8 * r + c for r, c in places if 0 <= r < 4 and 0 <= c < 8}


@pytest.mark.rule("ethernet 6")
def test_chips_of_two_boards_form_a_ring() -> None:
    topology = load_topology("p300x2")
    assert {frozenset((a.chip, b.chip)) for a, b in topology.links} == {
        frozenset(pair) for pair in ((0, 1), (1, 2), (2, 3), (3, 0))
    }


# --- bad input --------------------------------------------------------------------------------------------------------

TWO = "name: two\nchips:\n  - {board_id: [1, 2], asic_location: 0}\n  - {board_id: [1, 2], asic_location: 1}\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (TWO + "links: ['0:2 - 2:9']", "link 0:2 - 2:9: chip 2 does not exist"),
        (TWO + "links: ['0:2 - 1:12']", "link 0:2 - 1:12: chip 1 has no channel 12"),
        (TWO + "links: ['0:2 - 1:9', '0:3 - 1:9']", r"two links end at channel 9 of chip 1: 1:9 - 0:2 and 1:9 - 0:3"),
        (TWO + "links: ['0:2 - 0:2']", "link 0:2 - 0:2 joins a channel to itself"),
        (TWO + "links: ['0:2 - 1:9', '1:9 - 0:2']", "two links end at channel 9 of chip 1"),
        (TWO + "links: ['0:2 to 1:9']", "link '0:2 to 1:9'"),
        (TWO + "links: 7", "links is 7"),
        (TWO + "latency: 0", "latency is 0"),
        (TWO + "latency: soon", "latency is 'soon'"),
        (TWO + "cables: []", "'cables' is not known"),
        ("name: none\nchips: []", "0 chips"),
        ("name: one\nchips: [{asic_location: 0}]", "chip 0: board_id is missing"),
        ("name: one\nchips: [{board_id: 5, asic_location: 0}]", "chip 0: board_id is 5"),
        ("name: one\nchips: [{board_id: [1, 2], asic_location: -1}]", "asic_location is -1"),
        ("name: one\nchips: [{board_id: [1, 2], asic_location: 0, colour: 1}]", "chip 0: 'colour' is not known"),
        ("chips: []", "name is missing"),
        (TWO.replace("0}", "0, missing: 1}", 1), "chip 0: missing is 1"),
        (
            TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:3 - 1:9', down: true}]",
            "there is no link 0:3 - 1:9",
        ),
        (TWO + "links: ['0:2 - 1:9', '0:3 - 1:8']\nfailures: [{link: '0:2 - 1:8', down: true}]", "no link 0:2 - 1:8"),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '4:2 - 1:9', down: true}]", "no link 4:2 - 1:9"),
        (TWO.replace("0}", "0, missing: true}").replace("1}", "1, missing: true}"), "all chips are missing"),
        (TWO.replace("0}", "0, harvesting: {columns: [99]}}", 1), r"chip 0: Tensix columns \(99,\) are off"),
        (
            TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:2 - 1:9'}]",
            "failure of link '0:2 - 1:9' has nothing that happens",
        ),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:2 - 1:9', lose: 1, up: true}]", "has up, lose"),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:2 - 1:9', lose: 0}]", "failure: lose is 0"),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:2 - 1:9', down: false}]", "failure: down is false"),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: '0:2 - 1:9', down: true, at: -1}]", "failure: at is -1"),
        (TWO + "links: ['0:2 - 1:9']\nfailures: [{link: here, down: true}]", "link 'here'"),
        ("[", "expected the node content"),
        ("7", "is 7"),
    ],
)
def test_a_wrong_description_is_refused_by_name(tmp_path, text: str, reason: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "system.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        load_topology(path)


def test_a_chip_without_ethernet_tiles_has_no_links() -> None:
    chips = (ChipOf(harvesting=Harvesting(ethernet=tuple(range(14)))), ChipOf())
    with pytest.raises(ConfigurationError, match="chip 0 has no channel 2") as refusal:
        Topology("bare", chips, ((End(0, 2), End(1, 9)),))
    assert "no Ethernet tiles" in (refusal.value.remedy or "")


def test_an_unknown_system_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ProgramError, match="cannot read the system p600") as refusal:
        bhemu.Cluster("p600")
    assert all(name in (refusal.value.remedy or "") for name in KNOWN)


def test_a_run_that_does_not_end_says_what_each_chip_does() -> None:
    cluster = pair(10)
    _, other = ends(cluster)
    start(other, f"li a0, {WALL_CLOCK:#x}\nagain: lw a1, 0(a0)\nj again\n")
    with pytest.raises(CycleLimit, match=r"(?s)chip 1:\n  tile 29-25\n    core ERISC1 at 0x\w+: running"):
        cluster.run(lambda: False, max_clocks=3000)


def test_a_run_in_which_nothing_can_proceed_ends_at_once_and_says_what_each_chip_waits_for() -> None:
    cluster = pair(10)
    _, other = ends(cluster)
    start(other, f"li a0, {SENT:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n")
    with pytest.raises(Deadlock, match=r"(?s)chip 1:\n  tile 29-25\n    core ERISC1 at 0x\w+: polls 0x30000"):
        cluster.run(lambda: False)
    assert cluster.time < 10_000


def test_a_linked_chip_is_not_copied_alone() -> None:
    with pytest.raises(ConfigurationError, match="has no copy of its own"):
        pair()[0].snapshot()
    assert Cluster("p150")[0].snapshot() is not None


def test_cluster_without_links_moves_all_chips() -> None:
    chips = (ChipOf(), ChipOf())
    cluster = Cluster(Topology("apart", chips))
    cluster.clock(100)
    assert [chip.time for chip in cluster.chips] == [100, 100]
    with pytest.raises(BhemuError):
        _ = cluster[2]
