"""NoC requests between the nodes of a chip (tile N1 to N27)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.chip.coordinates import NODES, Harvesting, tensix_index
from bhemu.chip.device import Device
from bhemu.chip.pcie.host_memory import HostMemory
from bhemu.errors import BhemuError, MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from tests.chip.noc_programs import (
    ATOMIC,
    DATA,
    INCLUDE_SOURCE,
    INCREMENT,
    INLINE,
    MULTICAST,
    READ,
    WRITE,
    Board,
    DramChannel,
    at,
    fill,
    rectangle,
    request,
    run,
)
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

A, B = (1, 2), (16, 11)
OVERLAY = 0xFFB40010
"""A plain register of an overlay stream."""


@pytest.mark.rule("tile N16")
@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("simulator_order", [False, True])
@pytest.mark.parametrize("size", [1, 16, 1000, 16384])
def test_reads_and_writes_copy_bytes_between_tiles(noc: int, simulator_order: bool, size: int) -> None:
    """A reads from B and writes to B; translated coordinates name the same tile on both NoCs (N7)."""
    own = {"noc": noc, "length": size}
    board = Board(
        {
            A: request(**own, ctrl=READ, target=DATA + 5, target_hi=at(*B), back=DATA + 0x10005, back_hi=at(*A))
            + request(**own, ctrl=WRITE, target=DATA + 5, target_hi=at(*A), back=DATA + 0x10005, back_hi=at(*B))
        },
        simulator_order=simulator_order,
    )
    here, there = fill(1, 0x30000), fill(2, 0x30000)
    board.l1(A)[DATA : DATA + 0x30000], board.l1(B)[DATA : DATA + 0x30000] = here, there
    board.start(A)
    board.chip.clock(300)
    read, written = here.copy(), there.copy()
    read[0x10005 : 0x10005 + size] = there[5 : 5 + size]
    written[0x10005 : 0x10005 + size] = here[5 : 5 + size]
    assert np.array_equal(board.l1(A)[DATA : DATA + 0x30000], read)
    assert np.array_equal(board.l1(B)[DATA : DATA + 0x30000], written)
    flits = -(-size // 64)
    assert board.counters(A, noc) == {1: 1, 2: 1, 3: flits, 4: 2, 5: 1, 8: flits, 10: 1, 12: 1, 14: 1}
    assert board.counters(B, noc) == {49: 1, 50: 1, 51: flits, 52: 1, 53: 1, 56: flits, 58: 1, 60: 1}
    assert board.counters(A, 1 - noc) == board.counters(B, 1 - noc) == {}


@pytest.mark.rule("tile N10", "tile N11")
@pytest.mark.parametrize("noc", [0, 1])
def test_every_tile_knows_its_place(noc: int) -> None:
    chip = Device()
    base = 0xFFB20000 + 0x10000 * noc
    for place in ((1, 2), (7, 5), (10, 2), (16, 11)):
        node = NODES[place]
        number = int.from_bytes(chip.read_node(node, base + 0x44, 4), "little")
        assert number & 0xFFF == (at(16 - place[0], 11 - place[1]) if noc else at(*place))
        assert int.from_bytes(chip.read_node(node, base + 0x148, 4), "little") == at(*place)
        assert int.from_bytes(chip.read_node(node, base + 0x48, 4), "little") & 0xFF == tensix_index(place)
    assert int.from_bytes(chip.read_node(NODES[A], base + 0x44, 4), "little") == (0x0061124F if noc else 0x10611081)


@pytest.mark.rule("tile N7")
def test_a_harvested_card_translates_to_its_good_columns() -> None:
    """Column 0 is off: translated 1-2 is physical 2-2, and the tile's own registers say so."""
    board = Board(
        {(2, 2): request(ctrl=WRITE, target=DATA, target_hi=at(1, 2), back=DATA, back_hi=at(2, 2), length=4)},
        harvesting=Harvesting(columns=(0,)),
    )
    board.l1((2, 2))[DATA] = 77
    board.start((2, 2))
    board.chip.clock(200)
    assert board.word((3, 2), DATA) == 77
    assert int.from_bytes(board.chip.read_node(NODES[2, 2], 0xFFB20148, 4), "little") == at(1, 2)


@pytest.mark.rule("tile N5")
def test_without_translation_coordinates_are_those_of_the_noc() -> None:
    program = """
        li a0, 0xffb30100
        sw zero, 0(a0)
    """ + request(noc=1, ctrl=WRITE, target=DATA, target_hi=at(15, 9), back=DATA, back_hi=at(0, 9), length=4)
    board = Board({A: program})
    board.l1(A)[DATA] = 99
    board.start(A)
    board.chip.clock(200)
    assert board.word(B, DATA) == 0
    assert board.word((16, 2), DATA) == 99


@pytest.mark.rule("tile E47")
def test_the_official_simulator_translates_always() -> None:
    program = """
        li a0, 0xffb30100
        sw zero, 0(a0)
    """ + request(noc=1, ctrl=WRITE, target=DATA, target_hi=at(*A), back=DATA, back_hi=at(*B), length=4)
    board = Board({A: program}, simulator_order=True)
    board.l1(A)[DATA] = 99
    board.start(A)
    board.chip.clock(200)
    assert board.word(B, DATA) == 99


# --- registers, inline writes, byte enables ---------------------------------------------------------------------------


@pytest.mark.rule("tile N18")
@pytest.mark.parametrize("noc", [0, 1])
def test_registers_of_another_tile_are_read_and_written(noc: int) -> None:
    board = run(
        {
            A: request(noc=noc, ctrl=INLINE, target=OVERLAY, target_hi=at(*B), data=0x12345)
            + request(noc=noc, ctrl=READ, target=OVERLAY, target_hi=at(*B), back=DATA + 4, back_hi=at(*A), length=4)
            + request(noc=noc, ctrl=WRITE, target=DATA + 4, target_hi=at(*A), back=OVERLAY, back_hi=at(3, 3), length=4)
        }
    )
    assert board.word(A, DATA + 4) == 0x12345
    assert int.from_bytes(board.chip.read_node(NODES[3, 3], OVERLAY, 4), "little") == 0x12345


@pytest.mark.rule("tile N26")
def test_a_tile_releases_the_cores_of_another() -> None:
    board = Board(
        {
            A: request(ctrl=INLINE, target=0xFFB121B0, target_hi=at(*B), data=0x47000),
            B: f"li t0, {DATA:#x}\nli t1, 5\nsw t1, 0(t0)",
        }
    )
    board.start(A)
    board.chip.clock(300)
    assert board.word(B, DATA) == 5


@pytest.mark.rule("tile N19")
def test_a_write_between_tiles_obeys_its_byte_enables() -> None:
    mask = 0x8000_0001_0000_F00F
    board = Board(
        {
            A: request(
                ctrl=WRITE | 4,
                target=DATA,
                target_hi=at(*A),
                back=DATA + 0x100,
                back_hi=at(*B),
                length=mask & 0xFFFFFFFF,
                mask_high=mask >> 32,
            )
        }
    )
    board.l1(A)[DATA : DATA + 64] = np.arange(1, 65)
    board.start(A)
    board.chip.clock(200)
    expected = [i + 1 if mask >> i & 1 else 0 for i in range(64)]
    assert board.l1(B)[DATA + 0x100 : DATA + 0x140].tolist() == expected


@pytest.mark.rule("tile E25")
def test_inline_writes_to_l1_are_an_open_choice() -> None:
    program = {A: request(ctrl=INLINE, target=DATA + 4, target_hi=at(*B), data=0xAABBCCDD, length=0xF0)}
    with pytest.raises(NonContractualBehavior, match="inline"):
        run(program)
    board = run(program, allow_open=True)
    assert board.word(B, DATA + 4) == 0xAABBCCDD
    assert board.word(B, DATA) == 0
    assert board.chip.open_choices


# --- DRAM, host memory, Ethernet --------------------------------------------------------------------------------------


@pytest.mark.rule("tile N4", "tile N8")
@pytest.mark.parametrize("place", [(0, 0), (0, 1), (18, 12), (18, 13), (18, 14)])
@pytest.mark.parametrize("simulator_order", [False, True])
def test_the_ports_of_a_channel_show_the_same_memory(place: tuple[int, int], simulator_order: bool) -> None:
    """Channel 0, by physical and by translated coordinates of the official simulator's table."""
    address = 0x9000_0040
    board = Board(
        {A: request(ctrl=READ, target=address, target_hi=at(*place), back=DATA, back_hi=at(*A), length=64)},
        simulator_order=simulator_order,
    )
    content = fill(3, 64).tobytes()
    DramChannel(board.chip, 0).write(address, content)
    board.start(A)
    board.chip.clock(200)
    assert board.l1(A)[DATA : DATA + 64].tobytes() == content


@pytest.mark.rule("tile N9")
def test_physical_rows_of_dram_have_names() -> None:
    """The base tables are the identity (N7); the official simulator refuses them."""
    program = {A: request(ctrl=READ, target=0, target_hi=at(0, 9), back=DATA, back_hi=at(*A), length=64)}
    assert run(program).counters(A)[2] == 1
    assert run(program, simulator_order=True).counters(A)[2] == 1


@pytest.mark.parametrize("noc", [0, 1])
def test_dram_is_read_changed_and_written_back(noc: int) -> None:
    """Each of two tiles adds 1 to a word of DRAM five times, one after the other."""
    place = at(17, 15)

    def adder() -> str:
        one = (
            request(noc=noc, ctrl=READ, target=0x1000, target_hi=place, back=DATA, back_hi=own, length=64)
            + f"""
            li t1, {DATA:#x}
            lw t2, 0(t1)
            addi t2, t2, 1
            sw t2, 0(t1)
        """
            + request(noc=noc, ctrl=WRITE, target=DATA, target_hi=own, back=0x1000, back_hi=place, length=16)
        )
        return one * 5

    programs = {}
    for tile in (A, B):
        own = at(*tile)
        programs[tile] = adder()
    board = Board(programs)
    board.start(A)
    board.chip.clock(2000)
    board.start(B)
    board.chip.clock(2000)
    node = board.chip.node((17, 15))
    assert int.from_bytes(board.chip.read_node(node, 0x1000, 4), "little") == 10
    assert DramChannel(board.chip, node.index).read(0x1004, 4) == bytes(4)


@pytest.mark.rule("tile N27")
def test_host_memory_is_reached_through_the_pcie_tile() -> None:
    memory = bytearray(fill(4, 0x2000).tobytes())
    before = bytes(memory)

    def write(address: int, content: bytes) -> None:
        memory[address : address + len(content)] = content

    program = {
        A: request(
            ctrl=READ, target=0x40, target_mid=1 << 28, target_hi=at(19, 24), back=DATA, back_hi=at(*A), length=100
        )
        + request(
            ctrl=WRITE, target=DATA, target_hi=at(*A), back=0x1000, back_mid=1 << 28, back_hi=at(19, 24), length=100
        )
    }
    board = run(program, host=HostMemory(lambda address, size: bytes(memory[address : address + size]), write))
    assert board.l1(A)[DATA : DATA + 100].tobytes() == before[0x40 : 0x40 + 100]
    assert bytes(memory) == before[:0x1000] + before[0x40 : 0x40 + 100] + before[0x1000 + 100 :]
    with pytest.raises(BhemuError, match="callback"):
        run(program)


@pytest.mark.rule("tile N29")
def test_ethernet_tiles_are_memory_with_atomics() -> None:
    place = at(20, 25)
    add = {
        "ctrl": ATOMIC,
        "target": 0x1004,
        "target_hi": place,
        "back": DATA,
        "back_hi": at(*A),
        "length": INCREMENT | 1,
    }
    board = run(
        {
            A: request(ctrl=WRITE, target=DATA, target_hi=at(*A), back=0x1000, back_hi=place, length=4)
            + request(**add, data=7)
            + request(**add, data=8)
        }
    )
    assert board.chip.read_node(board.chip.node((20, 25)), 0x1004, 4) == (15).to_bytes(4, "little")
    assert board.word(A, DATA) == 7


@pytest.mark.rule("tile N8")
@pytest.mark.parametrize("simulator_order", [False, True])
def test_without_translation_x_of_rows_0_and_1_counts_as_noc_1_does(simulator_order: bool) -> None:
    """Silicon takes x of rows 0 and 1 as NoC 1 counts it; the official simulator does as on NoC 0."""
    own = {"noc": 1, "back_hi": at(*A), "length": 64, "ctrl": READ}
    x = 0 if simulator_order else 16
    board = Board({A: request(**own, target=0x40, target_hi=at(x, 1), back=DATA)}, simulator_order=simulator_order)
    content = fill(7, 64).tobytes()
    DramChannel(board.chip, 0).write(0x40, content)
    board.start(A)
    board.chip.clock(200)
    assert board.l1(A)[DATA : DATA + 64].tobytes() == content


# --- multicasts -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("tile N21")
@pytest.mark.parametrize("simulator_order", [False, True])
@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("noc", [0, 1])
def test_a_rectangle_skips_columns_without_tensix_tiles(noc: int, include: bool, simulator_order: bool) -> None:
    """NoC 1 flows the other way: its rectangles begin at the lower right corner."""
    low, high = (6, 4), (11, 5)
    sender = (7, 4)
    corners = (high, low) if noc else (low, high)
    board = Board(
        {
            sender: request(
                noc=noc,
                ctrl=WRITE | MULTICAST | (INCLUDE_SOURCE if include else 0),
                target=DATA,
                target_hi=at(*sender),
                back=DATA + 0x1000,
                back_hi=rectangle(*corners),
                length=128,
            )
        },
        simulator_order=simulator_order,
    )
    content = fill(5, 128)
    board.l1(sender)[DATA : DATA + 128] = content
    board.start(sender)
    board.chip.clock(200)
    receivers = {(x, y) for x in (6, 7, 10, 11) for y in (4, 5)} - (set() if include else {sender})
    for place, node in NODES.items():
        if node.kind.value == "Tensix":
            got = board.l1(place)[DATA + 0x1000 : DATA + 0x1080]
            assert np.array_equal(got, content if place in receivers else np.zeros(128)), place
    counters = board.counters(sender, noc)
    assert {i: counters[i] for i in (1, 4, 8, 10, 12)} == {1: len(receivers), 4: 1, 8: 2, 10: 1, 12: 1}
    assert counters[16] == (1 - len(receivers)) & 0xFF  # nets 1 - n (N20)
    assert board.counters((11, 5), noc) == {49: 1, 56: 2, 58: 1, 60: 1}


@pytest.mark.rule("tile N21")
def test_a_rectangle_that_begins_behind_its_end_goes_over_the_edge() -> None:
    """From column 16 to 1: columns 16, 0 and 1, of which 0 takes no multicasts."""
    board = Board(
        {
            (3, 3): request(
                ctrl=WRITE | MULTICAST,
                target=DATA,
                target_hi=at(3, 3),
                back=DATA,
                back_hi=rectangle((16, 4), (1, 4)),
                length=16,
            )
        }
    )
    board.l1((3, 3))[DATA] = 1
    board.start((3, 3))
    board.chip.clock(200)
    got = {p for p, n in NODES.items() if n.kind.value == "Tensix" and board.word(p, DATA)}
    assert got == {(16, 4), (1, 4), (3, 3)}


@pytest.mark.rule("tile N21")
def test_a_tile_opts_columns_and_rows_out() -> None:
    program = """
        li a0, 0xffb20108
        lw t0, 0(a0)
        ori t0, t0, 8
        sw t0, 0(a0)
        li a0, 0xffb20110
        lw t0, 0(a0)
        ori t0, t0, 16
        sw t0, 0(a0)
    """ + request(ctrl=INLINE | MULTICAST, target=OVERLAY, target_hi=rectangle((2, 3), (4, 5)), data=9)
    board = run({A: program})
    for x in (2, 3, 4):
        for y in (3, 4, 5):
            value = int.from_bytes(board.chip.read_node(NODES[x, y], OVERLAY, 4), "little")
            assert value == (0 if x == 3 or y == 4 else 9), (x, y)


@pytest.mark.rule("tile N23")
@pytest.mark.parametrize("noc", [0, 1])
def test_a_multicast_atomic_is_performed_by_each_tile(noc: int) -> None:
    corners = ((3, 3), (2, 2)) if noc else ((2, 2), (3, 3))
    board = Board(
        {
            A: request(
                noc=noc,
                ctrl=ATOMIC | MULTICAST,
                target=DATA + 8,
                target_hi=rectangle(*corners),
                back=DATA,
                back_hi=at(*A),
                length=INCREMENT | 2,
                data=5,
            )
        }
    )
    for n, place in enumerate([(2, 2), (3, 2), (2, 3), (3, 3)]):
        board.l1(place)[DATA + 8] = 10 * n
    board.start(A)
    board.chip.clock(200)
    assert [board.word(p, DATA + 8) for p in [(2, 2), (3, 2), (2, 3), (3, 3)]] == [5, 15, 25, 35]
    assert board.counters(A, noc)[0] == 4
    assert board.counters((3, 3), noc) == {48: 1, 52: 1, 54: 1}


# --- refusals ---------------------------------------------------------------------------------------------------------

COPY = {"target": DATA, "back": DATA, "length": 64}
TO_B = {"ctrl": WRITE, "target_hi": at(*A), "back_hi": at(*B), **COPY}
FROM_B = {"ctrl": READ, "target_hi": at(*B), "back_hi": at(*A), **COPY}
REFUSALS = {
    "not aligned": ({**TO_B, "back": DATA + 8}, UndefinedBehavior, "modulo 16"),
    "not aligned with DRAM": ({**FROM_B, "target_hi": at(17, 12), "back": DATA + 16}, UndefinedBehavior, "modulo 64"),
    "over the end of L1": ({**FROM_B, "target": 0x17FFD0}, MemoryError_, "16-11.*0x180000"),
    "over the end of the own L1": ({**FROM_B, "back": 0x17FFD0}, MemoryError_, "1-2, whose memory"),
    "over the end of DRAM": (
        {**FROM_B, "target": 0xFFFFFFC0, "target_hi": at(17, 12), "length": 65},
        MemoryError_,
        "DRAM",
    ),
    "64-bit address": ({**FROM_B, "target_mid": 1}, MemoryError_, "0x100020000"),
    "no node": ({**FROM_B, "target_hi": at(40, 3)}, UndefinedBehavior, "40-3"),
    "a router": ({**FROM_B, "target_hi": at(3, 0)}, Unimplemented, "3-0"),
    "security": ({**FROM_B, "target_hi": at(8, 30)}, Unimplemented, "8-2"),
    "no bytes": ({**TO_B, "length": 0}, UndefinedBehavior, "no bytes"),
    "long and not aligned to 64": (
        {**TO_B, "back": DATA + 16, "target": DATA + 16, "length": 16400},
        UndefinedBehavior,
        "of 64",
    ),
    "register width": ({**FROM_B, "target": OVERLAY, "length": 8}, UndefinedBehavior, "words of 4 bytes"),
    "starts another": (
        {"ctrl": INLINE, "target": 0xFFB20040, "target_hi": at(*B), "data": 1},
        Unimplemented,
        "start another",
    ),
    "starts another with what it reads": (
        {**FROM_B, "back": 0xFFB20040, "length": 4},
        Unimplemented,
        "start another",
    ),
    "unknown register": ({**FROM_B, "target": 0xFFB7F000 + 0x40000, "length": 4}, BhemuError, "tile 16-11"),
    "own side": ({**TO_B, "target_hi": at(*B)}, Unimplemented, "own side"),
    "multicast read": (
        {**FROM_B, "ctrl": READ | MULTICAST, "target_hi": rectangle((2, 2), (3, 3))},
        UndefinedBehavior,
        "cannot be a multicast",
    ),
    "multicast with DRAM": (
        {**TO_B, "ctrl": WRITE | MULTICAST, "back_hi": rectangle((2, 2), (9, 3))},
        UndefinedBehavior,
        "9-3 .*not a Tensix",
    ),
    "atomic to DRAM": (
        {"ctrl": ATOMIC, "target": 0, "target_hi": at(17, 12), "back_hi": at(*A), "length": INCREMENT},
        UndefinedBehavior,
        "atomic",
    ),
    "atomic to a register": (
        {"ctrl": ATOMIC, "target": OVERLAY, "target_hi": at(*B), "back_hi": at(*A), "length": INCREMENT},
        UndefinedBehavior,
        "atomic",
    ),
    "no such atomic": (
        {"ctrl": ATOMIC, "target": DATA, "target_hi": at(*B), "back_hi": at(*A), "length": 0},
        UndefinedBehavior,
        "names no NoC atomic",
    ),
}


START = int.from_bytes(assemble("sw t0, 0x40(a0)"), "little")


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_who_and_where_and_change_nothing(name: str) -> None:
    fields, error, text = REFUSALS[name]
    board = Board({A: request(**fields)})
    content = fill(6, 0x10000)
    board.l1(B)[DATA : DATA + 0x10000] = content
    board.start(A)
    with pytest.raises(error, match=text) as raised:
        board.chip.clock(200)
    assert raised.value.core == 0
    assert board.word(A, raised.value.pc) == START
    assert raised.value.tile == A
    assert "tile 1-2" in str(raised.value)
    assert np.array_equal(board.l1(B)[DATA : DATA + 0x10000], content)
    assert board.counters(A) == board.counters(B) == {}
    assert board.chip.cores(tensix_index(A))["B"].halt_reason == "refused"


@pytest.mark.rule("tile N18")
@pytest.mark.parametrize(("other", "error"), [(A, UndefinedBehavior), (B, MemoryError_)])
def test_a_length_whose_sum_with_the_address_overflows_is_refused(
    other: tuple[int, int], error: type[BhemuError]
) -> None:
    """2**63 - 64 bytes: the sum of address and length is a negative number of 64 bits."""
    fields = {"length": 0xFFFFFFC0, "mask_high": 0x7FFFFFFF}
    with pytest.raises(error, match="9223372036854775744 bytes"):
        run({A: request(ctrl=WRITE, target=DATA, target_hi=at(*A), back=DATA + 64, back_hi=at(*other), **fields)})


@pytest.mark.rule("tile N19")
def test_a_misaligned_read_from_the_pcie_tile_that_is_not_connected_is_refused() -> None:
    with pytest.raises(UndefinedBehavior, match="differ modulo 16"):
        run(
            {A: request(ctrl=READ, target=4, target_hi=at(11, 0), back=DATA, back_hi=at(*A), length=4)},
            simulator_order=True,
        )
