"""Ethernet tiles: memory map, reset, cores, network interfaces, the queues of the link (ethernet 1 to 3, tile N29)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu.chip.coordinates import NODES, TENSIX_TILES, TILES, Kind, Node, tile_place
from bhemu.chip.device import Device
from bhemu.chip.nodes.kinds import CLOCKED
from bhemu.errors import BhemuError, MemoryError_, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.machine.core_state import HALTED, IN_RESET, RUNNING
from bhemu.machine.ethernet_state import ERISC0, ERISC1
from tests.chip.noc_programs import ATOMIC, DATA, INCREMENT, READ, WRITE, at, fill, request
from tests.riscv.rv_asm import assemble

pytestmark = pytest.mark.plain

SOFT_RESET, WALL_CLOCK = 0xFFB121B0, 0xFFB121F0
RESET_PC_ERISC0, RESET_PC_ERISC1, MODES = 0xFFB14000, 0xFFB14008, 0xFFB14020
QUEUE, RECEIVE, CONTROL, HEADER = 0xFFB90000, 0xFFB94000, 0xFFB98000, 0xFFB98200
L1_END = 0x80000
HELD = 0x1800
ETHERNET = sorted((node for node in NODES.values() if node.kind is Kind.ETHERNET), key=lambda node: node.index)
PLACE = (20, 25)
"""Translated coordinates of channel 0."""
TENSIX = (1, 2)


class Tile:
    """An Ethernet tile of a chip."""

    def __init__(self, channel: int = 0, **options: object) -> None:
        self.chip = Device(**({"quantum": 1} | options))  # type: ignore[arg-type]
        self.node: Node = ETHERNET[channel]

    @property
    def record(self):  # type: ignore[no-untyped-def]
        return self.chip.tiles[self.node.tile]

    def load(self, address: int) -> int:
        return int.from_bytes(self.chip.read_node(self.node, address, 4), "little")

    def store(self, address: int, value: int) -> None:
        self.chip.write_node(self.node, address, value.to_bytes(4, "little"))

    def run(self, program: str, *, core: int = ERISC0, base: int = 0x1000, clocks: int = 300) -> None:
        """Start a program as a host does: reset pc, then the core's reset bit."""
        self.chip.write_node(self.node, base, assemble(program + "\nend: j end\n", base))
        self.store(RESET_PC_ERISC0 if core == ERISC0 else RESET_PC_ERISC1, base)
        self.store(SOFT_RESET, HELD & ~(0x800 if core == ERISC0 else 0x1000))
        self.chip.clock(clocks)


def stores(*pairs: tuple[int, int]) -> str:
    return "\n".join(f"li a0, {address:#x}\nli a1, {value:#x}\nsw a1, 0(a0)" for address, value in pairs)


def loads(*addresses: int) -> str:
    """Words of addresses into L1 at DATA, one after the other."""
    return f"li a2, {DATA:#x}\n" + "\n".join(
        f"li a0, {address:#x}\nlw a1, 0(a0)\nsw a1, {4 * i}(a2)" for i, address in enumerate(addresses)
    )


# --- the tile ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ethernet 1")
def test_tiles_with_cores_are_numbered_tensix_first() -> None:
    assert [node.tile for node in CLOCKED] == list(range(TILES))
    assert [node.place for node in CLOCKED] == [tile_place(tile) for tile in range(TILES)]
    assert [node.tile for node in ETHERNET] == list(range(TENSIX_TILES, TILES))
    with pytest.raises(ValueError, match="DRAM node has no cores"):
        _ = NODES[0, 0].tile


@pytest.mark.rule("ethernet 1", "tile N10", "tile N11", "tile N12")
@pytest.mark.parametrize("channel", [0, 1, 11, 13])
def test_a_tile_knows_its_place_on_both_networks(channel: int) -> None:
    tile = Tile(channel)
    x = (1, 16, 2, 15, 3, 14, 4, 13, 5, 12, 6, 11, 7, 10)[channel]
    assert tile.load(0xFFB20044) == x | 1 << 6 | 17 << 12 | 12 << 19 | 1 << 28
    assert tile.load(0xFFB30044) == (16 - x) | 10 << 6 | 17 << 12 | 12 << 19
    assert tile.load(0xFFB20048) == channel | 0x0200 << 8
    assert tile.load(0xFFB30048) == channel | 0x0200 << 8 | 1 << 24
    for noc in (0xFFB20000, 0xFFB30000):
        assert tile.load(noc + 0x148) == (at(20 + channel, 25) if channel < 12 else at(x, 1))


@pytest.mark.rule("ethernet 3")
def test_l1_holds_the_results_of_a_boot_without_a_link() -> None:
    tile = Tile(5)
    assert tile.load(0x7CC00) == 0xC0DEA000
    assert (tile.load(0x7CC04), tile.load(0x7CC08)) == (2, 0)
    assert tile.chip.read_node(tile.node, 0x7CFBC, 3) == bytes([0, 6, 1])
    for pointer, function in ((0x7CF00, 0x71574), (0x7CF04, 0x759AC), (0x7CF08, 0x75414)):
        assert tile.load(pointer) == function
        assert tile.load(function) == 0x00008067
    assert tile.chip.read_node(tile.node, 0x7CFC0, 0x40) == bytes(0x40)


@pytest.mark.rule("ethernet 3")
def test_the_heartbeat_counts_at_each_read_of_the_host_until_core_e0_runs_something_else() -> None:
    tile = Tile()
    assert [tile.load(0x7CC70) for _ in range(3)] == [0, 1, 2]
    tile.run("nop", clocks=5)
    assert [tile.load(0x7CC70) for _ in range(3)] == [3, 3, 3]


@pytest.mark.rule("ethernet 1")
def test_an_untouched_tile_is_not_visited_by_the_clock() -> None:
    tile = Tile()
    tile.chip.clock(1000)
    assert not tile.chip.record.active[TENSIX_TILES:].any()
    assert tile.record.clock == 0


@pytest.mark.rule("ethernet 1", "tile N18")
def test_memory_ends_at_512_kib() -> None:
    tile = Tile()
    tile.chip.write_node(tile.node, L1_END - 4, b"last")
    assert tile.chip.read_node(tile.node, L1_END - 4, 4) == b"last"
    for size, address in ((8, L1_END - 4), (4, L1_END), (4, 0x100000), (4, 0xFEFFFFFC)):
        with pytest.raises(MemoryError_, match="L1 ends at 0x80000"):
            tile.chip.read_node(tile.node, address, size)


@pytest.mark.rule("ethernet 1")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (loads(L1_END), r"core ERISC0 at 0x\w+: .*core ERISC0 accesses 0x80000, where an Ethernet tile has nothing"),
        (stores((L1_END, 1)), "core ERISC0 accesses 0x80000, where an Ethernet tile has nothing"),
        (f"li a0, {L1_END:#x}\namoadd.w a1, a1, (a0)", r"outside of L1 \(0..0x80000\)"),
        (f"li a0, {L1_END:#x}\njr a0", r"jumps to 0x80000, which is not an aligned address in L1 \(0..0x80000\)"),
        (".word 0x02000000 << 2 & 0xffffffff", "the tile has no coprocessor"),
        (loads(0xFFE00000), "accesses 0xffe00000, where an Ethernet tile has nothing"),
        ("li a0, 0xffb20000\nlh a1, 0(a0)", "accesses 2 bytes at 0xffb20000"),
    ],
)
def test_a_core_reaches_its_own_memory_and_no_coprocessor(program: str, reason: str) -> None:
    tile = Tile()
    with pytest.raises(UndefinedBehavior, match=reason) as refusal:
        tile.run(program)
    assert refusal.value.tile == (1, 1)
    assert "Ethernet tile 1-1: core ERISC0 at 0x" in str(refusal.value)
    assert tile.record.core_state[ERISC0] == HALTED


# --- cores and reset --------------------------------------------------------------------------------------------------


@pytest.mark.rule("ethernet 2.1")
def test_both_cores_run_from_their_reset_pcs_with_8_kib_each() -> None:
    tile = Tile()
    program = "li a0, 0xffb01ffc\nli a1, {0}\nsw a1, 0(a0)\nlw a2, 0(a0)\nli a3, {1}\nsw a2, 0(a3)"
    tile.run(program.format(0x11, DATA))
    tile.run(program.format(0x22, DATA + 4), core=ERISC1, base=0x2000)
    assert (tile.load(DATA), tile.load(DATA + 4)) == (0x11, 0x22)
    ram = tile.record.core_ram_u32
    assert (ram[ERISC0, 2047], ram[ERISC1, 2047]) == (0x11, 0x22)


@pytest.mark.rule("ethernet 2.1")
def test_soft_reset_keeps_bits_11_and_12_and_ignores_those_of_tensix_cores() -> None:
    tile = Tile()
    assert tile.load(SOFT_RESET) == HELD
    tile.store(SOFT_RESET, 0x47800)
    assert tile.load(SOFT_RESET) == HELD
    tile.store(SOFT_RESET, 0x80046000)
    assert tile.load(SOFT_RESET) == 0
    with pytest.raises(Unimplemented, match="other bits than 11 and 12"):
        tile.store(SOFT_RESET, HELD | 1)


@pytest.mark.rule("ethernet 2.1")
def test_a_core_without_a_reset_pc_stays_where_it_is_until_it_has_one() -> None:
    tile = Tile()
    tile.store(SOFT_RESET, 0)
    tile.chip.clock(10)
    assert tile.record.core_state[[ERISC0, ERISC1]].tolist() == [IN_RESET, IN_RESET]
    tile.chip.write_node(tile.node, 0x1000, assemble("end: j end", 0x1000))
    tile.store(RESET_PC_ERISC0, 0x1000)
    assert tile.load(RESET_PC_ERISC0) == 0x1000
    assert tile.record.core_state[ERISC0] == IN_RESET
    tile.store(SOFT_RESET, 0)
    assert tile.record.core_state[[ERISC0, ERISC1]].tolist() == [RUNNING, IN_RESET]


@pytest.mark.rule("ethernet 2.1")
def test_only_core_e1_gets_a_stack_pointer_and_registers_live_through_a_reset() -> None:
    """But local RAM does not: tt-metal's active firmware copies it to L1 before it has its core reset."""
    tile = Tile()
    tile.run("li s2, 77\nli a0, 0xffb01000\nsw s2, 0(a0)", clocks=5)
    assert tile.record.core_ram_u32[ERISC0, 0x400] == 77
    tile.run("nop", core=ERISC1, base=0x2000, clocks=5)
    assert tile.record.core_x[ERISC1, 2] == 0xFFB02000
    assert tile.record.core_x[ERISC0, 2] == 0
    assert tile.record.core_state[ERISC0] == IN_RESET
    tile.run("nop", clocks=5)
    assert tile.record.core_x[ERISC0, 18] == 77
    assert not tile.record.core_ram[ERISC0].any()


@pytest.mark.rule("ethernet 2.1", "ethernet 1")
def test_a_core_that_another_releases_begins_in_the_next_clock() -> None:
    """ERISC0 starts ERISC1, as idle firmware does; both count the clock in the same clock afterwards."""
    tile = Tile()
    tile.chip.write_node(tile.node, 0x2000, assemble(loads(WALL_CLOCK) + "\nend: j end\n", 0x2000))
    tile.run(
        stores((RESET_PC_ERISC1, 0x2000))
        + f"\nli a0, {SOFT_RESET:#x}\nli a1, 0\nsw a1, 0(a0)\nli a0, {WALL_CLOCK:#x}\n"
        f"lw a1, 0(a0)\nli a2, {DATA + 4:#x}\nsw a1, 0(a2)"
    )
    of_e1, of_e0 = tile.load(DATA), tile.load(DATA + 4)
    # After its store, ERISC0 executes lui, addi and lw; ERISC1, from the next clock on, what comes before its lw.
    assert of_e1 - of_e0 == len(assemble(loads(WALL_CLOCK), 0x2000)) // 4 - 2 - 2
    assert tile.record.core_state[ERISC1] != IN_RESET


@pytest.mark.rule("ethernet 2.1")
def test_a_core_is_held_and_starts_again() -> None:
    tile = Tile()
    counter = f"li a0, {DATA:#x}\nlw a1, 0(a0)\naddi a1, a1, 1\nsw a1, 0(a0)"
    tile.run(counter)
    tile.store(SOFT_RESET, HELD)
    tile.chip.clock(50)
    assert tile.load(DATA) == 1
    tile.store(SOFT_RESET, HELD & ~0x800)
    tile.chip.clock(50)
    assert tile.load(DATA) == 2


@pytest.mark.rule("ethernet 2")
def test_interrupt_modes_take_0_alone() -> None:
    tile = Tile()
    for mode in range(5):
        tile.store(MODES + 4 * mode, 0)
        with pytest.raises(Unimplemented, match="interrupt mode 0x1 is stored to 0xffb140"):
            tile.store(MODES + 4 * mode, 1)
        with pytest.raises(UndefinedBehavior, match="an interrupt mode, which can only be stored"):
            tile.load(MODES + 4 * mode)


@pytest.mark.rule("ethernet 2")
@pytest.mark.parametrize("address", [0xFFB12000, 0xFFB14004, 0xFFB14010])
def test_registers_that_are_not_built_are_refused_by_address(address: int) -> None:
    tile = Tile()
    with pytest.raises(Unimplemented, match=f"tile 1-1: register {address:#x} of an Ethernet tile is not built"):
        tile.load(address)
    with pytest.raises(Unimplemented, match=f"register {address:#x} of an Ethernet tile is not built"):
        tile.store(address, 0)


@pytest.mark.rule("ethernet 2")
@pytest.mark.parametrize("address", [0xFFB11000, 0xFFB13000, 0xFFB16000, 0xFFB60000, 0xFFB93000, 0xFFB98700])
def test_where_nothing_is_the_host_is_told_so(address: int) -> None:
    tile = Tile()
    for access in (lambda: tile.load(address), lambda: tile.store(address, 0)):
        with pytest.raises(UndefinedBehavior, match=f"the host accesses {address:#x}, where an Ethernet tile has"):
            access()


@pytest.mark.rule("ethernet 2")
def test_the_wall_clock_is_that_of_the_chip() -> None:
    tile = Tile()
    tile.chip.clock(123)
    assert (tile.load(WALL_CLOCK), tile.load(WALL_CLOCK + 4), tile.load(WALL_CLOCK + 8)) == (123, 0, 0)
    tile.store(WALL_CLOCK, 0)
    with pytest.raises(Unimplemented):
        tile.store(WALL_CLOCK + 4, 0)


# --- streams and network interfaces -----------------------------------------------------------------------------------


@pytest.mark.rule("ethernet 2.3", "tile K50", "tile K52")
def test_streams_have_the_registers_that_fabrics_use() -> None:
    tile = Tile()
    stream = 0xFFB40000 + 0x1000 * 30
    tile.store(stream + 0x10, 0x12345678)
    assert tile.load(stream + 0x10) == 0x345678
    tile.store(stream + 0x28, 0x10)
    assert tile.load(stream + 0x4A4) == 0x10
    tile.store(stream + 0x438, 0xFFFFFFC0)
    assert tile.load(stream + 0x4A4) == 0x0F
    tile.store(stream + 0x438, 0x40)
    assert tile.load(stream + 0x4A4) == 0x10


@pytest.mark.rule("ethernet 2.3")
def test_other_registers_of_streams_are_an_open_choice() -> None:
    phase = 0xFFB40074
    with pytest.raises(MissingSpecification, match="what register 29 of stream 0 of an Ethernet tile does"):
        Tile().load(phase)
    tile = Tile(allow_open=True)
    tile.store(phase, 5)
    assert tile.load(phase) == 5
    assert len(tile.chip.open_choices) == 1


@pytest.mark.rule("ethernet 2.4", "tile N16", "tile N20")
@pytest.mark.parametrize("noc", [0, 1])
@pytest.mark.parametrize("simulator_order", [False, True])
def test_a_core_reads_writes_and_counts_over_the_network(noc: int, simulator_order: bool) -> None:
    tile = Tile(3, simulator_order=simulator_order)
    own, other = at(23, 25), at(*TENSIX)
    there = NODES[TENSIX]
    content = fill(7, 256).tobytes()
    tile.chip.write_node(there, DATA, content)
    add = {"ctrl": ATOMIC, "target": DATA + 0x800, "target_hi": other, "length": INCREMENT}
    tile.run(
        request(noc=noc, ctrl=READ, target=DATA, target_hi=other, back=DATA, back_hi=own, length=256)
        + request(noc=noc, ctrl=WRITE, target=DATA, target_hi=own, back=DATA + 0x400, back_hi=other, length=256)
        + request(noc=noc, **add, back=DATA + 0x900, back_hi=own, data=5)
    )
    assert tile.chip.read_node(tile.node, DATA, 256) == content
    assert tile.chip.read_node(there, DATA + 0x400, 256) == content
    assert tile.chip.read_node(there, DATA + 0x800, 4) == (5).to_bytes(4, "little")
    counters = {i: n for i, n in enumerate(tile.record.niu_counter[noc].tolist()) if n}
    assert (counters[5], counters[10], counters[4]) == (1, 1, 3)
    assert tile.load(0xFFB20240 + 0x10000 * noc) == 0


@pytest.mark.rule("ethernet 2.4", "tile N18", "tile N26")
def test_a_tensix_tile_reaches_memory_registers_and_counters_of_an_ethernet_tile() -> None:
    chip = Device(quantum=1)
    node, own = ETHERNET[0], at(*TENSIX)
    word = {"length": 4, "target_hi": own, "back_hi": at(*PLACE)}
    program = (
        stores((DATA, 0x1234), (DATA + 16, 0x2000))
        + "\n"
        + request(ctrl=WRITE, target=DATA, back=DATA + 0x100, **word)
        + request(ctrl=WRITE, target=DATA + 16, back=RESET_PC_ERISC1, **word)
        + request(ctrl=READ, target=RESET_PC_ERISC1, target_hi=at(*PLACE), back=DATA + 32, back_hi=own, length=4)
    )
    chip.write_node(NODES[TENSIX], 0, assemble(program + "\nend: j end\n", 0))
    chip.write_node(NODES[TENSIX], SOFT_RESET, (0x47000).to_bytes(4, "little"))
    chip.clock(300)
    assert chip.read_node(node, DATA + 0x100, 4) == (0x1234).to_bytes(4, "little")
    assert chip.tiles[node.tile].reset_pc[ERISC1] == 0x2000
    assert chip.read_node(NODES[TENSIX], DATA + 32, 4) == (0x2000).to_bytes(4, "little")
    served = {i: n for i, n in enumerate(chip.tiles[node.tile].niu_counter[0].tolist()) if n}
    assert (served[58], served[53]) == (2, 1)


@pytest.mark.rule("ethernet 2.1", "tile N26")
def test_a_tensix_tile_starts_an_ethernet_core_over_the_network() -> None:
    chip = Device(quantum=1)
    node, own = ETHERNET[0], at(*TENSIX)
    chip.write_node(node, 0x1000, assemble(stores((DATA, 99)) + "\nend: j end\n", 0x1000))
    chip.write_node(node, RESET_PC_ERISC0, (0x1000).to_bytes(4, "little"))
    program = stores((DATA, 0x1000)) + "\n"
    program += request(ctrl=WRITE, target=DATA, target_hi=own, back=SOFT_RESET, back_hi=at(*PLACE), length=4)
    chip.write_node(NODES[TENSIX], 0, assemble(program + "\nend: j end\n", 0))
    chip.write_node(NODES[TENSIX], SOFT_RESET, (0x47000).to_bytes(4, "little"))
    chip.clock(200)
    assert chip.read_node(node, DATA, 4) == (99).to_bytes(4, "little")


@pytest.mark.rule("ethernet 1", "tile N18")
def test_requests_past_the_end_of_an_ethernet_tiles_memory_are_refused_from_both_sides() -> None:
    tile = Tile()
    own, other = at(*PLACE), at(*TENSIX)
    with pytest.raises(BhemuError, match="whose memory ends at 0x80000"):
        tile.run(request(ctrl=READ, target=0, target_hi=other, back=L1_END - 16, back_hi=own, length=32))
    chip = Device(quantum=1)
    program = request(ctrl=READ, target=L1_END - 16, target_hi=own, back=0, back_hi=other, length=32)
    chip.write_node(NODES[TENSIX], 0, assemble(program, 0))
    chip.write_node(NODES[TENSIX], SOFT_RESET, (0x47000).to_bytes(4, "little"))
    with pytest.raises(BhemuError, match=r"32 bytes at 0x7fff0 of Ethernet tile 1-1, whose memory ends at 0x80000"):
        chip.clock(200)


# --- the link ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("ethernet 2.2")
def test_queues_come_out_of_reset_as_two_that_are_enabled_and_one_that_is_not() -> None:
    tile = Tile(allow_open=True)
    assert [tile.load(QUEUE + 0x1000 * n) for n in range(3)] == [1, 1, 0]
    assert [tile.load(RECEIVE + 0x1000 * n) for n in range(3)] == [2, 2, 0]
    assert [(tile.load(QUEUE + 0x1000 * n + 4), tile.load(QUEUE + 0x1000 * n + 8)) for n in range(3)] == [(0, 0)] * 3
    assert [tile.load(QUEUE + 0x1000 * n + 0x80) for n in range(3)] == [0, 0x111, 0]
    assert [tile.load(QUEUE + 0x1000 * n + 0x84) for n in range(3)] == [0, 1, 0]
    assert [tile.load(HEADER + 0x80 * n + 0x18) for n in range(3)] == [0xFFFFFFFF, 1, 0]
    assert [tile.load(HEADER + 0x80 * n + 0x1C) for n in range(3)] == [0xFFFF, 0x100, 0]
    assert (tile.load(CONTROL + 0xC), tile.load(CONTROL + 0x154)) == (1, 0xA00)


@pytest.mark.rule("ethernet 2.2")
@pytest.mark.parametrize(
    ("address", "value", "category", "reason"),
    [
        (QUEUE, 0, Unimplemented, "0x0 is stored to register 0xffb90000"),
        (QUEUE + 4, 1, Unimplemented, "command 0x1 of transmit queue 0"),
        (QUEUE + 4, 8, Unimplemented, "command 0x8 of transmit queue 0"),
        (QUEUE + 0x2004, 4, Unimplemented, "queue 2 sends no register writes"),
        (QUEUE + 8, 0, UndefinedBehavior, "register 0xffb90008 .* can only be loaded"),
        (QUEUE + 0x20, 0, Unimplemented, "register 0xffb90020 of the link"),
        (QUEUE + 0x80, 0xA, UndefinedBehavior, "entries 0 to 9"),
        (QUEUE + 0x80, 0x1000, UndefinedBehavior, "entries 0 to 9"),
        (QUEUE + 0x84, 0xA, UndefinedBehavior, "entries 0 to 9"),
        (RECEIVE, 1, Unimplemented, "0x1 is stored to register 0xffb94000"),
        (RECEIVE + 4, 1, Unimplemented, "register 0xffb94004"),
        (CONTROL + 0xC, 1, UndefinedBehavior, "register 0xffb9800c .* can only be loaded"),
        (CONTROL + 0x150, 1, Unimplemented, "0x1 is stored to register 0xffb98150"),
        (CONTROL, 1, Unimplemented, "register 0xffb98000"),
        (HEADER + 0x1C, 0x10000, UndefinedBehavior, "16 bits"),
        (HEADER, 0, Unimplemented, "register 0xffb98200"),
    ],
)
def test_what_a_link_does_not_take_is_said_by_register_and_value(
    address: int, value: int, category: type[BhemuError], reason: str
) -> None:
    with pytest.raises(category, match=reason):
        Tile().store(address, value)


@pytest.mark.rule("ethernet 2.2")
def test_what_a_load_of_a_frames_registers_gives_is_an_open_choice() -> None:
    strict, tile = Tile(), Tile(allow_open=True)
    for offset in (0x14, 0x18, 0x1C, 0x44, 0x6C, 0x80, 0x84):
        with pytest.raises(MissingSpecification, match="no source says what it gives"):
            strict.load(QUEUE + offset)
    tile.store(QUEUE + 0x6C, 0x20)
    assert tile.load(QUEUE + 0x6C) == 0x20
    with pytest.raises(MissingSpecification, match="no source says what it gives"):
        strict.load(HEADER + 0x18)


@pytest.mark.rule("ethernet 2.2")
@pytest.mark.parametrize("command", [2, 4])
def test_without_a_partner_a_command_is_refused(command: int) -> None:
    tile = Tile()
    program = stores((QUEUE + 0x14, 0x1000), (QUEUE + 0x18, 32), (QUEUE + 0x1C, 0x2000), (QUEUE + 4, command))
    with pytest.raises(Unimplemented, match=f"command {command} of transmit queue 0, and no tile is at the other end"):
        tile.run(program)


@pytest.mark.rule("ethernet 2.2")
@pytest.mark.parametrize(
    ("start", "size", "target", "command", "reason"),
    [
        (8, 32, 0x2000, 2, "sends 32 bytes from 0x8 to 0x2000"),
        (0, 24, 0x2000, 2, "sends 24 bytes"),
        (0, 32, 0x2004, 2, "to 0x2004"),
        (0, 0, 0x2000, 2, "sends 0 bytes"),
        (L1_END - 16, 32, 0x2000, 2, "not all in L1 or a register"),
        (0, 32, L1_END - 16, 2, "not all in L1 or a register"),
        (0, 0, 0x2002, 4, "sends 4 bytes from 0x0 to 0x2002"),
        (0, 0, L1_END, 4, "not all in L1 or a register"),
        (0, 0, 0xFFB20040, 4, "not all in L1 or a register"),
    ],
)
def test_frames_that_cannot_be_sent_are_refused(start: int, size: int, target: int, command: int, reason: str) -> None:
    tile = Tile()
    for offset, value in ((0x14, start), (0x18, size), (0x1C, target)):
        tile.store(QUEUE + offset, value)
    with pytest.raises(UndefinedBehavior, match=reason):
        tile.store(QUEUE + 4, command)


@pytest.mark.rule("ethernet 1")
def test_cores_of_both_kinds_of_tiles_share_the_chips_clock() -> None:
    """In a clock Tensix tiles come first: a Tensix core sees the mark of an Ethernet core one clock later."""
    tile = Tile()
    waits = f"li a0, {DATA:#x}\nagain: lw a1, 0(a0)\nbeqz a1, again\n" + loads(WALL_CLOCK).replace("a2", "a4")
    tile.chip.write_node(NODES[TENSIX], 0, assemble(waits + "\nend: j end\n", 0))
    tile.chip.write_node(NODES[TENSIX], SOFT_RESET, (0x47000).to_bytes(4, "little"))
    word = {"length": 4, "target_hi": at(*PLACE), "back_hi": at(*TENSIX)}
    tile.run(stores((DATA, 1)) + "\n" + request(ctrl=WRITE, target=DATA, back=DATA, **word) + loads(WALL_CLOCK))
    after, of_tensix = tile.load(DATA), int.from_bytes(tile.chip.read_node(NODES[TENSIX], DATA, 4), "little")
    assert after > 0
    assert abs(of_tensix - after) < 12
    assert np.count_nonzero(tile.chip.tiles["core_retired"]) == 2
