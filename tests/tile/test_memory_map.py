"""The memory map: every range, for every agent, every width, loads and stores (tile T19 to T28; E6, E7, E8, E11, E12).

The table below is written down from T24, not derived from the code.
"""

from __future__ import annotations

import itertools

import pytest

from bhemu import Tile
from bhemu.errors import BhemuError, MissingSpecification, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.agents import AGENT_NAMES, CORE_NAMES, NC, NOC, T0, T1, T2, TENSIX, B
from tests.riscv.rv_asm import assemble
from tests.riscv.rv_machine import RESET_BIT, START, hold, machine, put, release

pytestmark = pytest.mark.plain

ANY = (1, 2, 4)
WORDS = (4,)
NONE = ()
T = ("T0", "T1", "T2")
ALL = ("B", *T, "NC", "HOST", "TENSIX")
CORES = ("B", *T, "NC")
B_AND_T = ("B", *T)

# (range, addresses, who loads, widths of loads, who stores, widths of stores)
Row = tuple[str, tuple[int, ...], tuple[str, ...], tuple[int, ...], tuple[str, ...], tuple[int, ...]]
MAP: list[Row] = [
    ("L1", (0x30000, 0x17FFFC), (*CORES, "HOST"), ANY, (*CORES, "HOST"), ANY),
    ("own local RAM", (0xFFB00000, 0xFFB00FFC), CORES, ANY, CORES, ANY),
    ("own local RAM, upper half", (0xFFB01000, 0xFFB01FFC), ("B", "NC"), ANY, ("B", "NC"), ANY),
    ("below TDMA-RISC", (0xFFB02000, 0xFFB10FFC), (), NONE, (), NONE),
    ("TDMA-RISC", (0xFFB1102C,), B_AND_T, WORDS, B_AND_T, WORDS),
    ("control", (0xFFB12228, 0xFFB12234), ALL, WORDS, ALL, WORDS),
    ("interrupt controller", (0xFFB13000, 0xFFB13018, 0xFFB13134), ALL, WORDS, ALL, WORDS),
    ("pc snapshots", (0xFFB13138, 0xFFB13148), ALL, WORDS, (), NONE),
    ("above the snapshots", (0xFFB1314C, 0xFFB13FFC), (), NONE, (), NONE),
    ("local RAMs, second address", tuple(range(0xFFB14000, 0xFFB1E000, 0x1000)), ALL, WORDS, ALL, WORDS),
    ("above the local RAMs", (0xFFB1E000, 0xFFB1FFFC), (), NONE, (), NONE),
    ("NIU of NoC 0", (0xFFB20000, 0xFFB20100, 0xFFB21828), ALL, WORDS, ALL, WORDS),
    ("NIU of NoC 1", (0xFFB30000, 0xFFB3182C), ALL, WORDS, ALL, WORDS),
    ("overlay", (0xFFB40010, 0xFFB7F028), ALL, WORDS, ALL, WORDS),
    ("MOP configuration", (0xFFB80000, 0xFFB80020), (), NONE, T, WORDS),
    ("above it", (0xFFB80024, 0xFFBD7FFC, 0xFFBE0000, 0xFFDFFFFC), (), NONE, (), NONE),
    ("Dst window, 32-bit elements", (0xFFBD8000, 0xFFBDFFFC), T, WORDS, T, WORDS),
    ("GPRs", (0xFFE00000, 0xFFE002FC), B_AND_T, WORDS, B_AND_T, WORDS),
    ("GPRs again", (0xFFE00300, 0xFFE00FFC), T, WORDS, T, WORDS),
    ("above the GPRs", (0xFFE01000, 0xFFE3FFFC), (), NONE, (), NONE),
    ("push, own thread", (0xFFE40000, 0xFFE4FFFC), (), NONE, B_AND_T, WORDS),
    ("push, thread 1", (0xFFE50000, 0xFFE5FFFC), (), NONE, ("B",), WORDS),
    ("push, thread 2", (0xFFE60000, 0xFFE6FFFC), (), NONE, ("B",), WORDS),
    ("above the push windows", (0xFFE70000, 0xFFE7FFFC), (), NONE, (), NONE),
    ("PCBuf 0", (0xFFE80000,), B_AND_T, WORDS, B_AND_T, WORDS),
    ("TTSync and semaphores", (0xFFE80004, 0xFFE80008, 0xFFE80020, 0xFFE8003C), B_AND_T, WORDS, B_AND_T, WORDS),
    ("PCBuf 0, rest", (0xFFE8000C, 0xFFE80040, 0xFFE8FFFC), ("B",), WORDS, ("B",), WORDS),
    ("PCBuf 1 and 2", (0xFFE90000, 0xFFE9FFFC, 0xFFEA0000, 0xFFEAFFFC), ("B",), WORDS, ("B",), WORDS),
    ("above the PCBufs", (0xFFEB0000, 0xFFEBFFFC), (), NONE, (), NONE),
    ("mailboxes", (0xFFEC0000, 0xFFEC1000, 0xFFEC2000, 0xFFEC3000, 0xFFEC3FF8), B_AND_T, WORDS, B_AND_T, WORDS),
    ("above the mailboxes", (0xFFEC4000, 0xFFEEFFFC), (), NONE, (), NONE),
    ("Config", (0xFFEF0000, 0xFFEF037C, 0xFFEF0380, 0xFFEF06FC), B_AND_T, ANY, B_AND_T, WORDS),
    ("ThreadConfig", (0xFFEF0A80, 0xFFEF0DAC), B_AND_T, ANY, (), NONE),
    ("above ThreadConfig", (0xFFEF0DB0, 0xFFEFFFFC), (), NONE, (), NONE),
    ("nothing", (0x180000, 0x7FFFFFFC, 0xFEFFFFFC, 0xFFAFFFFC, 0xFFF00000, 0xFFFFFFFC), (), NONE, (), NONE),
]
AGENTS = {name: number for number, name in enumerate(AGENT_NAMES)}
LOAD = {1: "lbu", 2: "lhu", 4: "lw"}
STORE = {1: "sb", 2: "sh", 4: "sw"}
SYNC_CHECKS = (0xFFE80004, 0xFFE80008)
REACHED, WAITS, REFUSED = "reached", "waits", "refused"


def outcome_of_core(tile: Tile, core: str, address: int, size: int, *, load: bool) -> str:
    """What an instruction of a core does there: the core goes on, blocks, or is refused."""
    access = LOAD[size] if load else STORE[size]
    source = f"li a0, {address:#x}\n li a1, 0x10000000\n {access} a1, 0(a0)\nend: j end"
    put(tile, START[core], assemble(source, START[core]))
    release(tile, core)
    try:
        tile.clock(8)
        return WAITS if tile.cores[core].state == "blocked" else REACHED
    except (UndefinedBehavior, NonContractualBehavior, MissingSpecification):
        assert tile.cores[core].state == "halted"
        return REFUSED
    finally:
        hold(tile, core)


def outcome_of_other(tile: Tile, agent: str, address: int, size: int, *, load: bool) -> str:
    """The same for the host and the coprocessor, which access the map directly."""
    try:
        if load:
            tile.cores.load(address, AGENTS[agent], size)
        else:
            tile.cores.store(address, 0x10000000 & (1 << 8 * size) - 1, AGENTS[agent], size)
    except (UndefinedBehavior, NonContractualBehavior, MissingSpecification) as error:
        return WAITS if "would block" in str(error) else REFUSED
    return REACHED


@pytest.mark.rule("tile T24", "tile T25", "tile T26", "tile E6", "tile E7", "tile E8", "tile E12")
@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_each_place_of_the_map_takes_the_accesses_of_its_row_and_refuses_others(row: Row) -> None:
    name, addresses, loads, load_widths, stores, store_widths = row
    for agent, address, size in itertools.product(ALL, addresses, ANY):
        for load, who, widths in ((True, loads, load_widths), (False, stores, store_widths)):
            tile = Tile()
            if name == "L1" and agent == "TENSIX":
                continue  # it has instructions of its own for L1
            outcome = outcome_of_core if agent in CORES else outcome_of_other
            seen = outcome(tile, agent, address, size, load=load)
            where = (name, agent, hex(address), size, "load" if load else "store")
            if agent not in who or size not in widths:
                assert seen == REFUSED, where
            elif name == "TTSync and semaphores" and agent == "B" and not load and address in SYNC_CHECKS:
                assert seen == REFUSED, where  # no source settles what B's store does (K17)
            elif load and (
                name in ("PCBuf 0", "PCBuf 0, rest", "PCBuf 1 and 2", "mailboxes")
                or (name == "TTSync and semaphores" and agent == "B")
            ):
                assert seen == WAITS, where  # nothing is pushed: the load is mapped and blocks
            else:
                assert seen == REACHED, where


@pytest.mark.rule("tile T27", "tile E6")
@pytest.mark.parametrize("core", CORES)
def test_misaligned_accesses_are_refused(core: str) -> None:
    for address, size in ((0x30001, 2), (0x30002, 4), (0x30003, 4), (0xFFB00001, 4), (0xFFB12229, 4), (0xFFB20002, 4)):
        for load in (True, False):
            tile = Tile()
            assert outcome_of_core(tile, core, address, size, load=load) == REFUSED


@pytest.mark.rule("tile T24", "tile T25")
@pytest.mark.parametrize(
    ("address", "core", "text"),
    [
        (0xFFE50000, "T0", "instruction window of another thread: silicon hangs"),
        (0xFFB80024, "T1", "core T1 accesses 0xffb80024, which is unmapped"),
        (0xFFB13138, "B", "core B stores to 0xffb13138, which can only be loaded"),
        (0xFFB11024, "NC", "not mapped for core NC"),
        (0xFFEF0A80, "T2", "ThreadConfig: cores can only read it"),
    ],
)
def test_refusals_name_the_core_its_pc_and_the_address(address: int, core: str, text: str) -> None:
    tile = machine({core: f"li a0, {address:#x}\n sw a0, 0(a0)\nend: j end"})
    with pytest.raises(UndefinedBehavior, match=text) as raised:
        tile.clock(10)
    assert raised.value.core == CORE_NAMES.index(core)
    assert raised.value.pc in (START[core] + 4, START[core] + 8)


# --- what the ranges are ----------------------------------------------------------------------------------------------


@pytest.mark.rule("tile T19", "tile T20")
def test_five_local_rams_with_two_addresses_each() -> None:
    """Stores of each core at its own address appear at the second address of its RAM and nowhere else."""
    second = {"B": 0xFFB14000, "NC": 0xFFB16000, "T0": 0xFFB18000, "T1": 0xFFB1A000, "T2": 0xFFB1C000}
    tile = Tile()
    accesses = "sw a1, 0x7c(a0)\n sb a1, 0x41(a0)\n lw a2, 0x7c(a0)\nend: j end"
    for number, core in enumerate(CORES):
        machine({core: f"li a0, 0xffb00000\n li a1, {0x1000 + number}\n {accesses}"}, 10, tile=tile)
    for number, core in enumerate(CORES):
        for agent in range(7):
            assert tile.cores.load(second[core] + 0x7C, agent) == 0x1000 + number
            assert tile.cores.load(second[core] + 0x40, agent) == number << 8
        assert tile.cores[core].x[12] == 0x1000 + number
        if core in T:  # 4 KiB repeat
            assert tile.cores.load(second[core] + 0x107C, NC) == 0x1000 + number
            tile.cores.store(second[core] + 0x1FFC, 5, T0)
            assert tile.cores[core].local_ram[0xFFC] == 5
        else:
            tile.cores.store(second[core] + 0x1FFC, 6, T1)
            assert tile.cores[core].local_ram[0x1FFC] == 6
            assert tile.cores[core].local_ram[0xFFC] == 0


@pytest.mark.rule("tile T19")
def test_a_core_reaches_its_own_ram_through_the_map_too() -> None:
    tile = Tile()
    for core in range(5):
        tile.cores.store(0xFFB00010, 0x44332211, core)
        tile.cores.store(0xFFB00012, 0xBEEF, core, 2)
        tile.cores.store(0xFFB00011, 0x77, core, 1)
        assert tile.cores.load(0xFFB00010, core) == 0xBEEF7711
        assert [tile.cores.load(0xFFB00010 + i, core, 1) for i in range(4)] == [0x11, 0x77, 0xEF, 0xBE]
        assert tile.cores.load(0xFFB00012, core, 2) == 0xBEEF


@pytest.mark.rule("tile T24", "tile E7")
def test_pc_snapshots_in_the_order_b_nc_t0_t1_t2() -> None:
    tile = machine({core: "\n".join(["nop"] * (5 + i)) + "\nebreak" for i, core in enumerate(CORES)}, 30)
    for place, core in enumerate(("B", "NC", "T0", "T1", "T2")):
        assert tile.cores.load(0xFFB13138 + 4 * place, NOC) == START[core] + 4 * (6 + CORES.index(core))


@pytest.mark.rule("tile T24")
def test_the_snapshot_of_a_polling_core_moves_on() -> None:
    tile = machine({"T1": "nop\nnop\nagain: nop\nnop\nnop\nj again"}, 403)
    assert tile.cores["T1"].state == "polling"
    for clocks in (1, 1, 1, 1, 1, 7, 1001):
        tile.clock(clocks)
        seen = tile.cores.load(0xFFB13144)
        assert seen == tile.cores["T1"].pc


@pytest.mark.rule("tile E8", "tile E12")
def test_the_whole_windows_are_one_place() -> None:
    tile = Tile()
    for i, address in enumerate((0xFFE50000, 0xFFE50004, 0xFFE5FFFC)):
        tile.cores.store(address, 0x02000000, B)
        assert tile.record.frontend.side_count[1] == i + 1
    for core in (T0, T1, T2):
        tile.cores.store(0xFFE41238, 0x02000000, core)
        assert tile.record.frontend.fifo_count[core - T0] == 1
        tile.cores.store(0xFFE00F08, core, core)
        assert tile.record.gpr[core - T0, 2] == core
        assert tile.cores.load(0xFFE00008 + 0x100 * (core - T0), B) == core


@pytest.mark.rule("tile K5")
def test_the_mop_configuration_of_a_core_is_its_own() -> None:
    tile = Tile()
    for core in (T0, T1, T2):
        for k in range(9):
            tile.cores.store(0xFFB80000 + 4 * k, 100 * core + k, core)
    assert tile.record.frontend.mop_config.tolist() == [[100 * core + k for k in range(9)] for core in (T0, T1, T2)]


@pytest.mark.rule("tile T22", "tile E11")
@pytest.mark.parametrize("base", [0xFFEF0000, 0xFFEF0380, 0xFFEF0700])
def test_instruction_caches_are_emptied_by_a_mask_of_five_bits(base: int) -> None:
    tile = Tile()
    for core in (B, T0, T1, T2):
        for mask in range(1, 32):
            tile.cores.store(base + 4 * 185, mask, core)
        for mask in (0, 32, 33, 0xFFFFFFFF):
            with pytest.raises(UndefinedBehavior, match="instruction caches"):
                tile.cores.store(base + 4 * 185, mask, core)
    with pytest.raises(UndefinedBehavior, match="core NC"):
        tile.cores.store(base + 4 * 185, 1, NC)


@pytest.mark.rule("tile T22")
def test_code_that_changes_in_l1_is_executed_as_it_is_now() -> None:
    """T0 runs a loop; B writes other instructions over it, empties T0's cache, and T0 follows."""
    tile = Tile()
    loop = assemble("end: addi a0, a0, 1\n j end", START["T0"])
    other = assemble("end: addi a1, a1, 1\n j end", START["T0"])
    b = f"""
        li a0, {START["T0"]:#x}
        li a1, {int.from_bytes(other[:4], "little"):#x}
        li t0, 100
    turn: addi t0, t0, -1
        bnez t0, turn
        sw a1, 0(a0)
        li a2, {0xFFEF0000 + 4 * 185:#x}
        li a3, 2
        sw a3, 0(a2)
    end: j end
    """
    put(tile, START["T0"], loop)
    machine({"T0": loop, "B": b}, 400, tile=tile)
    assert tile.cores["T0"].x[10] > 90
    assert tile.cores["T0"].x[11] > 50


@pytest.mark.rule("tile T26")
def test_narrow_loads_of_configuration_are_not_extended_by_sign() -> None:
    tile = Tile()
    tile.cores.store(0xFFEF0000 + 4 * 12, 0xFFFFFFFF, B)
    kept = tile.cores.load(0xFFEF0000 + 4 * 12, B)
    for offset in range(4):
        assert tile.cores.load(0xFFEF0000 + 4 * 12 + offset, T1, 1) == kept >> 8 * offset & 0xFF
    for offset in (0, 2):
        assert tile.cores.load(0xFFEF0000 + 4 * 12 + offset, T1, 2) == kept >> 8 * offset & 0xFFFF
    signed = machine(
        {"B": f"li a0, {0xFFEF0000 + 4 * 12:#x}\n lb a1, 0(a0)\n lbu a2, 0(a0)\nend: j end"}, 10, tile=tile
    )
    low = kept & 0xFF
    assert signed.cores["B"].x[12] == low
    assert signed.cores["B"].x[11] == (low | 0xFFFFFF00 if low & 0x80 else low)


@pytest.mark.rule("tile T28", "tile T24")
def test_nc_the_host_and_the_coprocessor_do_not_see_the_windows_above_the_overlay() -> None:
    tile = Tile()
    for agent in (NC, NOC, TENSIX):
        for address in range(0xFFB80000, 0x100000000, 0x8000):
            for load in (True, False):
                with pytest.raises(BhemuError) as raised:
                    tile.cores.load(address, agent) if load else tile.cores.store(address, 0, agent)
                assert not isinstance(raised.value, Unimplemented)


@pytest.mark.rule("tile T14")
def test_the_reset_bits_of_the_helper_are_those_of_the_rule() -> None:
    assert RESET_BIT == {"B": 11, "T0": 12, "T1": 13, "T2": 14, "NC": 18}
