"""Zicsr and the cores' registers (tile T12, T13)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bhemu import Tile
from bhemu.errors import BhemuError, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.compiler import JIT
from bhemu.tensix.vector_queue import LATE
from tests.riscv.rv_machine import SCRATCH, hold, machine, release, word, words

pytestmark = pytest.mark.plain


def read(csr: int, core: str = "B", before: str = "") -> int:
    """What a core reads from a CSR, after other instructions."""
    tile = machine({core: f"{before}\ncsrr a0, {csr}\nli s0, {SCRATCH}\nsw a0, 0(s0)\nebreak"}, 200)
    assert tile.cores[core].halt_reason == "ebreak", tile.cores[core]
    return word(tile)


# --- what the six instructions do ------------------------------------------------------------------------------------


def test_the_six_instructions() -> None:
    tile = machine(
        f"""
        li s0, {SCRATCH}
        li a0, 0xf0f0f0f0
        li a1, 0x00ff00ff
        csrrw zero, 0x7c3, a0
        csrrs a2, 0x7c3, a1
        sw a2, 0(s0)
        csrrc a2, 0x7c3, a0
        sw a2, 4(s0)
        csrrwi a2, 0x7c3, 21
        sw a2, 8(s0)
        csrrsi a2, 0x7c3, 10
        sw a2, 12(s0)
        csrrci a2, 0x7c3, 3
        sw a2, 16(s0)
        csrrw a0, 0x7c3, a0     # swaps
        sw a0, 20(s0)
        csrrs a2, 0x7c3, zero
        sw a2, 24(s0)
        ebreak
        """,
        100,
    )
    assert words(tile, 7) == [0xF0F0F0F0, 0xF0FFF0FF, 0x000F000F, 21, 31, 28, 0xF0F0F0F0]


def test_sets_and_clears_of_nothing_do_not_write() -> None:
    """So that they are allowed on a register that can only be read."""
    for instruction in ("csrrs a0, 0x300, zero", "csrrc a0, 0x300, zero", "csrrsi a0, 0x300, 0", "csrrci a0, 0x300, 0"):
        tile = machine(f"{instruction}\nli s0, {SCRATCH}\nsw a0, 0(s0)\nebreak", 20)
        assert word(tile) == 0x80006600


def test_a_set_through_a_register_of_value_zero_writes() -> None:
    with pytest.raises(UndefinedBehavior, match="0x300 can only be read"):
        machine("li a1, 0\ncsrrs a0, 0x300, a1", 20)


def test_x0_stays_zero() -> None:
    tile = machine("li a0, 5\ncsrrw zero, 0x7c4, a0\ncsrrs zero, 0x7c4, a0\nebreak", 20)
    assert int(tile.cores["B"].x[0]) == 0


# --- registers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("csr", "value"), [(0x300, 0x80006600), (0x301, 0x40201123), (0xF14, 0), (0x7C0, 16 << 13), (0x7C3, 0), (0xBCA, 0)]
)
def test_values_after_reset(csr: int, value: int) -> None:
    assert read(csr) == value
    assert read(csr, "T2") == value


@pytest.mark.parametrize("csr", [0x7C0, 0x7C1, 0x7C2, 0x7C3, 0x7C4, 0x7C5, 0x7C6, *range(0xBC2, 0xBCA)])
def test_plain_registers_hold_what_is_written_and_are_all_different(csr: int) -> None:
    before = f"li a0, 0x5a5a0fa5\ncsrw {csr}, a0\nli a1, 7"
    before += "".join(f"\ncsrw {other}, a1" for other in (0x7C1, 0x7C3, 0x7C6, 0xBC2, 0xBC9) if other != csr)
    assert read(csr, "NC", before) == 0x5A5A0FA5


def test_each_core_has_its_own() -> None:
    programs = {core: f"li a0, {i}\ncsrw 0x7c3, a0\nebreak" for i, core in enumerate(("B", "T0", "T1", "T2", "NC"), 1)}
    tile = machine(programs, 20)
    assert [int(tile.record.core_scratch[core, 0]) for core in range(5)] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("csr", [0xBC2, 0xBC9])
def test_stream_counters_of_t_cores_are_refused(csr: int) -> None:
    for instruction in (f"csrr a0, {csr}", f"csrw {csr}, a0"):
        with pytest.raises(Unimplemented, match="overlay stream"):
            machine({"T0": instruction}, 10)


@pytest.mark.parametrize(
    ("csr", "error", "message"),
    [
        (0x001, UndefinedBehavior, "0x1 does not exist"),
        (0x305, UndefinedBehavior, "0x305 does not exist"),
        (0xB01, UndefinedBehavior, "0xb01 does not exist"),
        (0xC01, UndefinedBehavior, "0xc01 does not exist"),
        (0xD00, UndefinedBehavior, "0xd00 does not exist"),
        (0xBCB, UndefinedBehavior, "0xbcb does not exist"),
        (0xB03, Unimplemented, "0xb03 belongs to the performance counters"),
        (0x320, Unimplemented, "0x320 belongs to the performance counters"),
        (0x008, UndefinedBehavior, "0x8 belongs to the vector extension"),
        (0xC22, UndefinedBehavior, "0xc22 belongs to the vector extension"),
    ],
)
def test_other_registers_are_refused_with_their_number(csr: int, error: type[BhemuError], message: str) -> None:
    for instruction in (f"csrr a0, {csr}", f"csrw {csr}, a0", f"csrrwi zero, {csr}, 1"):
        with pytest.raises(error, match=message) as refusal:
            machine({"T1": f"nop\n{instruction}"}, 10)
        assert (refusal.value.core, refusal.value.pc) == (2, 0xA004)


@pytest.mark.parametrize("csr", [0x300, 0x301, 0xF14])
def test_constants_cannot_be_written(csr: int) -> None:
    with pytest.raises(UndefinedBehavior, match=f"{csr:#x} can only be read"):
        machine(f"csrw {csr}, a0", 10)


def test_the_copy_of_the_interrupted_pc_cannot_be_written() -> None:
    with pytest.raises(NonContractualBehavior, match="0xbca"):
        machine("csrw 0xbca, a0", 10)


def test_a_handler_reads_but_does_not_write() -> None:
    tile = machine("csrr a0, 0x7c0\ncsrw 0x7c3, a0")
    tile.record.core_in_handler[0] = 1
    with pytest.raises(NonContractualBehavior, match="interrupt handler writes CSR 0x7c3"):
        tile.clock(10)
    assert tile.cores["B"].retired == 1


# --- counters --------------------------------------------------------------------------------------------------------


def test_minstret_counts_what_has_retired_before() -> None:
    assert read(0xB02) == 0
    assert read(0xB02, before="nop\nnop\nnop") == 3
    assert read(0xC02, before="nop") == 1


def test_mcycle_is_the_tiles_clock() -> None:
    tile = machine({"NC": f"li s0, {SCRATCH}\ncsrr a0, 0xb00\nsw a0, 0(s0)\ncsrr a0, 0xc00\nsw a0, 4(s0)\nebreak"})
    hold(tile, "NC")
    tile.clock(1000)
    release(tile, "NC")
    tile.clock(10)
    assert words(tile, 2) == [1001, 1003]


def test_counters_can_be_written_in_halves() -> None:
    write = "li a1, 5\ncsrw 0xb82, a1\nli a1, 100\ncsrw 0xb02, a1"
    assert read(0xB02, before=write) == 100  # the instruction that writes does not count itself
    assert read(0xB82, before=write) == 5
    write = "li a1, -1\ncsrw 0xc80, a1\ncsrw 0xc00, a1\nnop"
    assert read(0xB00, before=write) == 1
    assert read(0xB80, before=write) == 0  # carried


def test_an_alias_is_written_for_both() -> None:
    assert read(0xB02, before="li a1, 77\ncsrw 0xc02, a1\nnop") == 78


# --- qstatus and bstatus ---------------------------------------------------------------------------------------------

Q, B_STATUS = 0xBC0, 0xBC1
SFPU_ON = 1 << 11 | 1 << 24
STALL = 0xA2000000 | 0x1FF << 15 | 1 << 7  # hold everything until SrcA has a valid bank: forever here
NOP = 0x02000000


def _group(*bits: int) -> int:
    return sum(1 << bit for bit in bits)


def _status(fill: Callable[[Tile], None], csr: int, core: str = "T1") -> int:
    tile = machine({core: f"csrr a0, {csr}\nli s0, {SCRATCH}\nsw a0, 0(s0)\nebreak"})
    fill(tile)
    tile.clock(20)
    return word(tile)


def _held(*mnemonic_words: int, thread: int = 1) -> Callable[[Tile], None]:
    def fill(tile: Tile) -> None:
        tile.coprocessor.push(thread, STALL)
        tile.coprocessor.drain(thread)
        for each in (NOP, *mnemonic_words):  # NOP is at the gate, the others in the FIFO
            tile.coprocessor.push(thread, each)

    return fill


@pytest.mark.parametrize(
    ("code", "bits"),
    [
        (0x04000000, [0]),  # REPLAY that plays
        (0x04000001, []),  # REPLAY that loads and does not execute
        (0x04000003, [0]),  # REPLAY that loads and executes
        (0x01000000, [1]),  # MOP
        (0x03000000, []),  # MOP_CFG
        (0x45000000, [2, 8]),  # SETDMAREG
        (0x40000000, [3, 8]),  # XMOV
        (0x42000000, [4, 8]),  # UNPACR
        (0x41000000, [5, 8]),  # PACR
        (0xB2000000, [6]),  # SETC16
        (0xA4000000, [7]),  # SEMPOST
        (0xA2000000, [7]),  # STALLWAIT
        (0x50000000, [8]),  # SETADC
        (0x70000000, [9]),  # SFPLOAD
        (0x26000000, [10]),  # MVMUL
        (0x02000000, []),  # NOP
    ],
)
def test_what_is_queued_shows_its_type(code: int, bits: list[int]) -> None:
    own = _group(*bits)
    assert _status(_held(code), Q) == own | own << 13 | SFPU_ON
    busy = own | _group(7)  # the latched wait itself is in flight
    assert _status(_held(code), B_STATUS) == busy | busy << 11


def test_expanders_and_core_bs_queue_count_too() -> None:
    held = _held()

    def expanding(field: str) -> Callable[[Tile], None]:
        def fill(tile: Tile) -> None:
            held(tile)
            tile.coprocessor.drain(1)  # NOP comes to the gate
            tile.record.frontend[field][1] = 1

        return fill

    assert _status(expanding("mop_active"), Q) == _group(1) | _group(1) << 13 | SFPU_ON
    assert _status(expanding("replay_play_left"), Q) == _group(0) | _group(0) << 13 | SFPU_ON

    def pushed_by_b(tile: Tile) -> None:
        held(tile)
        tile.cores.store(0xFFE50000, 0x45000000, agent=0)

    assert _status(pushed_by_b, Q) == _group(2, 8) | _group(2, 8) << 13 | SFPU_ON


@pytest.mark.skipif(JIT, reason="compiling what executes macros takes long; the text is the same")
def test_scheduled_vector_instructions_are_busy_and_not_queued() -> None:
    def scheduled(tile: Tile) -> None:
        tile.record.macro.pending = LATE

    assert _status(scheduled, Q) == SFPU_ON
    assert _status(scheduled, B_STATUS) == _group(9) | _group(9) << 11


def test_b_and_nc_see_all_threads_and_others_their_own() -> None:
    pack = _group(5, 8)
    assert _status(_held(0x41000000, thread=2), Q, "B") == pack | pack << 13 | SFPU_ON
    assert _status(_held(0x41000000, thread=2), Q, "NC") == pack | pack << 13 | SFPU_ON
    assert _status(_held(0x41000000, thread=2), Q, "T0") == pack << 13 | SFPU_ON


def test_an_idle_coprocessor_shows_its_lanes_only() -> None:
    assert _status(lambda tile: None, Q) == SFPU_ON
    assert _status(lambda tile: None, B_STATUS) == 0

    def no_lane(tile: Tile) -> None:
        tile.record.vector.lane_flags = 0

    assert _status(no_lane, Q) == 0


def test_cfg0_freezes_the_status() -> None:
    program = f"""
    li s0, {SCRATCH}
    li a0, {1 << 29}
    csrrs zero, 0x7c0, a0
    .ttinsn {STALL}
    .ttinsn 0x41000000
    csrr a1, {Q}
    sw a1, 0(s0)
    csrrwi zero, {Q}, 9
    csrr a1, {Q}
    sw a1, 4(s0)
    csrrc zero, 0x7c0, a0
    csrr a1, {Q}
    sw a1, 8(s0)
    ebreak
    """
    tile = machine({"T0": program}, 40)
    live = _group(5, 8)
    assert words(tile, 3) == [SFPU_ON, 9, live | live << 13 | SFPU_ON]
