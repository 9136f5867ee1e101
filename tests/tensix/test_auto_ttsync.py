"""Auto TTSync (tile K19, T33)."""

from __future__ import annotations

import pytest

from bhemu import Tile
from bhemu.errors import UndefinedBehavior
from bhemu.isa.instructions import INSTRUCTIONS, encode
from bhemu.machine.agents import NC, T0, B
from bhemu.tensix.frontend.auto_ttsync import CONFIG, GPRS, TDMA, USES, WRITES
from tests.riscv.rv_machine import SCRATCH, machine, word, words

pytestmark = pytest.mark.plain

GPR, CONFIG_WORD, THREAD_CONFIG, TDMA_WORD = 0xFFE00000, 0xFFEF0000 + 4 * 40, 0xFFEF0A80, 0xFFB1102C
TRACK_CONFIG, TRACK_GPR, TRACK_TDMA, TRACK_INSTRUCTIONS = 1, 4, 8, 16
WAIT0 = encode("SEMWAIT", stall_res=0x1FF, wait_sem_cond=1, sem_sel=1)
ALL = 0x1D
RESOURCES = {GPR: GPRS, GPR + 0xFFC: GPRS, CONFIG_WORD: CONFIG, THREAD_CONFIG: CONFIG, TDMA_WORD: TDMA}
BITS = {GPRS: TRACK_GPR, CONFIG: TRACK_CONFIG, TDMA: TRACK_TDMA}


def held(thread: int, *pushed: int, tracked: int = ALL) -> Tile:
    """A tile whose thread holds words after a wait that never ends."""
    tile = Tile()
    tile.record.sync.semaphore_max[:] = 15
    tile.record.thread_config[thread, 56] = tracked
    for instruction in (WAIT0, *pushed):
        tile.coprocessor.push(thread, instruction)
    tile.coprocessor.run(10)
    return tile


def waits(tile: Tile, address: int, agent: int, *, load: bool) -> bool:
    try:
        tile.cores.load(address, agent) if load else tile.cores.store(address, 0, agent)
    except UndefinedBehavior as error:
        if "would block" in str(error):
            return True
        assert address == THREAD_CONFIG  # a core can only load it
        assert not load
    return False


# What instructions read and write, by the page on auto TTSync
CASES = {
    "NOP": (0, 0),
    "MOP_CFG": (0, 0),
    "RESOURCEDECL": (0, 0),
    "ADDDMAREG": (GPRS, GPRS),
    "ATSWAP": (GPRS, GPRS),
    "STOREIND": (GPRS, GPRS),
    "REG2FLOP": (GPRS | TDMA, GPRS | TDMA),
    "CFGSHIFTMASK": (CONFIG, CONFIG),
    "STOREREG": (GPRS, 0),
    "LOADREG": (0, GPRS),
    "FLUSHDMA": (0, TDMA),
    "WRCFG": (GPRS, CONFIG),
    "RDCFG": (CONFIG, GPRS),
    "XMOV": (GPRS | CONFIG, GPRS | CONFIG),
    "UNPACR": (TDMA | CONFIG, TDMA),
    "PACR": (TDMA | CONFIG, TDMA),
    "MOP": (GPRS | CONFIG | TDMA, GPRS | CONFIG | TDMA),
    "REPLAY": (GPRS | CONFIG | TDMA, GPRS | CONFIG | TDMA),
    "SFPMAD": (CONFIG, 0),
    "SETC16": (CONFIG, 0),
    "SEMPOST": (CONFIG, 0),
}


@pytest.mark.rule("tile K19")
@pytest.mark.parametrize("name", CASES)
def test_stores_wait_for_users_and_loads_for_writers(name: str) -> None:
    reads, writes = CASES[name]
    opcode = INSTRUCTIONS[name].opcode
    assert (USES[opcode], WRITES[opcode]) == (reads | writes, writes)
    for where in ("fifo", "gate"):
        tile = held(1)
        if where == "gate":
            tile.record.frontend.gate_full[1], tile.record.frontend.gate_word[1] = 1, opcode << 24
        else:
            tile.coprocessor.push(1, encode("NOP"))
            tile.coprocessor.push(1, opcode << 24)
        for address, resource in RESOURCES.items():
            assert waits(tile, address, T0 + 1, load=True) == bool(writes & resource), (where, hex(address))
            assert waits(tile, address, T0 + 1, load=False) == bool((reads | writes) & resource), (where, hex(address))


@pytest.mark.rule("tile K19")
@pytest.mark.parametrize("tracked", range(32))
def test_a_resource_is_tracked_when_its_bit_and_that_of_instructions_are_set(tracked: int) -> None:
    tile = held(2, encode("XMOV"), encode("REG2FLOP"), tracked=tracked)
    for address, resource in RESOURCES.items():
        expected = bool(tracked & TRACK_INSTRUCTIONS and tracked & BITS[resource])
        for load in (True, False):
            assert waits(tile, address, T0 + 2, load=load) == expected


@pytest.mark.rule("tile K19")
def test_other_cores_threads_and_windows_are_not_covered() -> None:
    tile = held(0, encode("XMOV"), encode("REG2FLOP"))
    for agent in (B, T0 + 1, T0 + 2):
        for address in (GPR, CONFIG_WORD, TDMA_WORD):
            assert not waits(tile, address, agent, load=False)
            assert not waits(tile, address, agent, load=True)
    for address in (0xFFE80020, 0xFFB12228, 0xFFB20000, 0xFFB40010):
        assert not waits(tile, address, T0, load=False)
    assert not waits(tile, 0xFFB80000, T0, load=False)  # the configuration of the MOP expander
    assert not waits(tile, 0xFFB20000, NC, load=False)
    tile = Tile()
    tile.record.thread_config[0, 56] = ALL
    tile.record.sync.semaphore_max[:] = 15
    for instruction in (WAIT0, encode("XMOV")):
        tile.cores.store(0xFFE40000, instruction, B)  # what B pushes is not tracked
    assert not waits(tile, GPR, T0, load=False)


@pytest.mark.rule("tile K19")
def test_a_mop_and_a_replay_count_until_their_last_word_has_left() -> None:
    tile = held(0)
    tile.record.frontend.mop_config[0] = [3, 3, *[encode("NOP")] * 7]
    tile.coprocessor.push(0, encode("MOP", mop_type=1))
    tile.coprocessor.run(10)
    assert tile.record.frontend.fifo_count[0] == 0
    assert waits(tile, GPR, T0, load=True)
    tile.record.sync.semaphore[0] = 1
    tile.coprocessor.run(100)
    assert not waits(tile, GPR, T0, load=True)
    tile = held(0)
    tile.record.frontend.replay_play_left[0] = 1
    assert waits(tile, TDMA_WORD, T0, load=False)


def program(core_part: str) -> str:
    """Push a wait for semaphore 0 and ADDDMAREG r1 = r2 + r3, then touch GPRs, and only then let the thread go on."""
    return f"""
        li a0, {GPR:#x}
        li a1, {SCRATCH:#x}
        li a2, 0xffe80020
        .ttinsn {WAIT0:#x}
        .ttinsn {encode("ADDDMAREG", 0, 1, 3, 2):#x}
        li t0, 1000
        {core_part}
        fence
        sw a2, 12(a1)
    end: j end
    """


POST = "li a2, 0xffe80020\n li t0, 60\nturn: addi t0, t0, -1\n bnez t0, turn\n sw zero, 0(a2)\nend: j end"


@pytest.mark.rule("tile K19", "tile T33")
@pytest.mark.parametrize(("tracked", "sum_"), [(TRACK_GPR | TRACK_INSTRUCTIONS, 7), (0, 1004)])
def test_a_tracked_store_comes_after_the_instruction_before_it(tracked: int, sum_: int) -> None:
    """r2 = 3, r3 = 4; the core stores 1000 to r2 behind the sum. Without tracking it comes first."""
    tile = Tile()
    tile.record.sync.semaphore_max[:] = 15
    tile.record.thread_config[0, 56] = tracked
    tile.record.gpr[0, 2:4] = (3, 4)
    machine({"T0": program("sw t0, 8(a0)"), "T1": POST}, 300, tile=tile)
    assert list(tile.record.gpr[0, 1:4]) == [sum_, 1000, 4]
    assert word(tile, SCRATCH + 12) == 0xFFE80020


@pytest.mark.rule("tile K19")
@pytest.mark.parametrize(("tracked", "seen"), [(TRACK_GPR | TRACK_INSTRUCTIONS, 7), (0, 55)])
def test_a_tracked_load_after_a_fence_sees_the_result(tracked: int, seen: int) -> None:
    tile = Tile()
    tile.record.sync.semaphore_max[:] = 15
    tile.record.thread_config[0, 56] = tracked
    tile.record.gpr[0, 1:4] = (55, 3, 4)
    machine({"T0": program("fence\n lw t1, 4(a0)\n sw t1, 0(a1)"), "T1": POST}, 300, tile=tile)
    assert words(tile, 1) == [seen]


@pytest.mark.rule("tile K19")
def test_an_access_is_complete_before_what_is_pushed_after_it() -> None:
    tile = Tile()
    tile.record.gpr[0, 1:4] = (55, 3, 4)
    push = f"lw t1, 4(a0)\n sw t0, 8(a0)\n .ttinsn {encode('ADDDMAREG', 0, 1, 3, 2):#x}\n sw t1, 0(a1)"
    body = program("").replace(f".ttinsn {WAIT0:#x}", "").replace(f".ttinsn {encode('ADDDMAREG', 0, 1, 3, 2):#x}", "")
    machine({"T0": body.replace("fence", push)}, 60, tile=tile)
    assert (word(tile), tile.record.gpr[0, 1]) == (55, 1004)


@pytest.mark.rule("tile K19")
def test_resourcedecl_has_no_effect() -> None:
    tile = Tile()
    names = ("gpr", "config", "thread_config", "adc", "rwc", "sync")
    before = {name: tile.record[name].tobytes() for name in names}
    tile.execute(1, encode("RESOURCEDECL"))
    assert before == {name: tile.record[name].tobytes() for name in names}
