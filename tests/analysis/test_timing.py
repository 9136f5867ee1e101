"""Modelled cycles of short sequences: rates, latencies, interlocks and latched waits, by rule."""

from __future__ import annotations

import pytest

import bhemu
from bhemu.analysis import Timing, timing
from bhemu.isa.instructions import encode
from bhemu.recording import Recorder
from bhemu.recording import log as column
from tests.analysis.logs import BOTH_BANKS_FULL, log_of


def issue_cycles(*lines: tuple[int, str], owners: int = BOTH_BANKS_FULL) -> list[int]:
    return timing(log_of(*lines, owners=owners)).issue


def one_thread(text: str, thread: int = 1) -> list[int]:
    return issue_cycles(*[(thread, line) for line in text.splitlines()])


@pytest.mark.rule("math Y12")
def test_each_thread_issues_one_word_a_cycle_and_the_three_at_once() -> None:
    timed = timing(log_of(*[(thread, "NOP") for _ in range(10) for thread in range(3)]))
    assert sorted(timed.issue) == sorted(list(range(10)) * 3)
    assert all(not thread.stalls for thread in timed.threads)


@pytest.mark.rule("math Y13")
@pytest.mark.parametrize(("blocks", "cycles_each"), [(5, 1), (4, 1.25), (1, 5), (8, 1)])
def test_an_accumulation_loop_needs_five_blocks_for_full_rate(blocks: int, cycles_each: float) -> None:
    count = 40
    text = "\n".join(f"MVMUL dst={8 * (i % blocks)}" for i in range(count))
    cycles = one_thread(text)
    assert cycles[-1] == pytest.approx((count - 1) * cycles_each, abs=5)
    stalls = timing(log_of(*[(1, line) for line in text.splitlines()], owners=BOTH_BANKS_FULL)).threads[1].stalls
    assert set(stalls) == ({"Dst scoreboard"} if cycles_each > 1 else set())


@pytest.mark.rule("math Y13")
def test_elwadd_without_accumulation_does_not_read_dst() -> None:
    assert one_thread("ELWADD\nELWADD\nELWADD") == [0, 1, 2]
    assert one_thread("ELWADD dest_accum_en=1\nELWADD dest_accum_en=1") == [0, 5]


@pytest.mark.rule("math Y13")
def test_after_mova2d_accumulating_words_wait_three_cycles_whatever_their_rows() -> None:
    assert one_thread("MOVA2D instr_mod=2\nMVMUL dst=64") == [0, 4]
    assert one_thread("MOVA2D instr_mod=2\nELWADD dst=64") == [0, 1]


@pytest.mark.rule("math Y12")
def test_moves_from_dst_admit_only_their_like_next() -> None:
    assert one_thread("MOVD2A instr_mod=2\nMOVD2A instr_mod=2, dst=64\nSETRWC") == [0, 1, 3]
    assert one_thread("MOVD2B instr_mod=2\nMOVD2B instr_mod=2\nSETRWC") == [0, 1, 5]


@pytest.mark.rule("math Y13")
def test_the_packer_waits_for_the_scoreboard() -> None:
    assert issue_cycles((1, "MVMUL"), (2, "NOP"), (2, "PACR")) == [0, 0, 5]


@pytest.mark.rule("math Y12")
def test_a_dependent_vector_instruction_waits_one_cycle_after_a_two_cycle_one() -> None:
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPMAD 4, 2, 3, 5, 0") == [0, 2]
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPMAD 1, 2, 3, 5, 0") == [0, 1]
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPSTORE 4, 0, 3, 0") == [0, 2]


@pytest.mark.rule("math Y12")
def test_compares_and_reciprocals_wait_for_their_second_operand() -> None:
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPGT 0, 1, 4, 1") == [0, 2]
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPARECIP 4, 1, 5, 1") == [0, 2]
    assert one_thread("SFPMAD 1, 2, 3, 4, 0\nSFPARECIP 4, 1, 5, 0") == [0, 1]
    assert one_thread("SFPMAD 1, 2, 3, 7, 0\nSFPMAD 1, 2, 3, 5, 4") == [0, 2]


@pytest.mark.rule("math Y12")
def test_flag_stack_instructions_read_no_lreg() -> None:
    assert one_thread("SFPMAD 1, 2, 3, 0, 0\nSFPPUSHC 0, 0, 0, 0") == [0, 1]


@pytest.mark.rule("math Y12")
def test_after_sfpswap_only_sfpnop_is_taken() -> None:
    assert one_thread("SFPSWAP 0, 3, 4, 1\nSFPMOV 0, 1, 2, 0") == [0, 2]
    assert one_thread("SFPSWAP 0, 3, 4, 1\nSFPNOP\nSFPMOV 0, 1, 2, 0") == [0, 1, 2]


def test_scalar_arithmetic_takes_three_or_four_cycles_and_holds_its_thread() -> None:
    near = "ADDDMAREG OpBisConst=0, ResultRegIndex=4, OpBRegIndex=5, OpARegIndex=6"
    far = "ADDDMAREG OpBisConst=0, ResultRegIndex=4, OpBRegIndex=9, OpARegIndex=6"
    assert one_thread(f"{near}\nNOP") == [0, 3]
    assert one_thread(f"{far}\nNOP") == [0, 4]
    # The other threads are held only for the scalar unit.
    assert issue_cycles((0, far), (1, "NOP"), (1, "DMANOP"), (2, "NOP")) == [0, 0, 4, 0]


def test_rmwcib_right_after_wrcfg_waits_for_the_pipeline() -> None:
    assert one_thread("WRCFG 4, 0, 12\nWRCFG 5, 0, 13\nWRCFG 6, 0, 14") == [0, 1, 2]
    assert one_thread("WRCFG 4, 0, 12\nRMWCIB0 1, 1, 12") == [0, 2]
    assert one_thread("RMWCIB0 1, 1, 12\nRMWCIB1 1, 1, 12") == [0, 1]
    assert one_thread("CFGSHIFTMASK CfgReg=12\nCFGSHIFTMASK CfgReg=12") == [0, 2]


@pytest.mark.rule("math Y12")
def test_setc16_has_a_slot_for_each_thread_and_rmwcib_one_for_all() -> None:
    assert issue_cycles(*[(thread, "SETC16 1, 0") for thread in range(3)]) == [0, 0, 0]
    assert sorted(issue_cycles(*[(thread, "RMWCIB0 1, 1, 12") for thread in range(3)])) == [0, 1, 2]


@pytest.mark.rule("math Y10")
def test_the_block_of_a_wait_falls_one_cycle_after_its_condition() -> None:
    # The wait is looked at in cycle 1 for the first time, so the next word leaves in cycle 2 at the earliest (Y10).
    assert one_thread("STALLWAIT 0x40, 0x10\nSETRWC") == [0, 2]
    assert one_thread("STALLWAIT 0x40, 0x10\nNOP\nSETRWC") == [0, 1, 2]
    # MVMUL issued in cycle 0 is done in cycle 5; the block falls in cycle 6.
    timed = timing(log_of((1, "MVMUL"), (1, "STALLWAIT 2, 0x10"), (1, "SEMINIT 1, 0, 2"), owners=BOTH_BANKS_FULL))
    assert timed.issue == [0, 1, 6]
    assert timed.threads[1].stalls["STALLWAIT: MATH"] == 3


def test_a_semaphore_wait_ends_with_the_post_and_is_named() -> None:
    lines = [(1, "SEMINIT 2, 0, 2"), (2, "NOP"), (2, "SEMWAIT 1, 2, 1"), *[(1, "NOP")] * 20, (1, "SEMPOST 2")]
    timed = timing(log_of(*lines, (2, "PACR")))
    assert timed.issue[-1] == timed.issue[-2] + 2
    assert timed.threads[2].stalls["SEMWAIT: MATH_PACK is zero"] >= 15
    assert timed.semaphores == [(0, 1, 0), (21, 1, 1)]


def test_unpack_is_bound_by_the_address_phase_and_by_l1() -> None:
    bf16_face = {column.UNPACK_X: 255 << 32, column.UNPACK_TILE: 5}
    log = log_of(
        (0, "UNPACR Unpack_block_selection=0, SetDatValid=1", bf16_face),
        (0, "UNPACR Unpack_block_selection=0, SetDatValid=1", bf16_face),
        (0, "UNPACR Unpack_block_selection=0, SetDatValid=1", bf16_face),
        (1, "MOVA2D instr_mod=2"),
    )
    timed = timing(log)
    # 512 bytes at 128 a cycle; the third waits for a bank that is not handed back before the recorded order says so.
    assert timed.issue[:2] == [0, 4]
    assert timed.issue[3] == 6
    assert timed.at_least == {"UNPACR": 3}
    assert timed.forced == 1


def test_figures_that_no_document_gives_are_counted_as_unknown() -> None:
    timed = timing(
        log_of((2, "PACR"), (2, "PACR Last=1"), (1, "SFPLOADMACRO 0, 0, 3, 0"), (0, "LOADIND 1, 10, 0, 8, 4"))
    )
    assert timed.unknown == {"PACR": 2, "SFPLOADMACRO": 1}
    assert timed.at_least == {"LOADIND": 1}
    assert timed.units["packer"].unknown == 2


def played(*words: int, mop_config: list[int] | None = None) -> Timing:
    """Timing of words that thread 1 really executes, through its expanders."""
    tile = bhemu.Tile()
    if mop_config is not None:
        tile.record.frontend.mop_config[1] = mop_config
    recorder = Recorder()
    recorder.attach(tile)
    for word in words:
        assert tile.coprocessor.push(1, word)
    tile.coprocessor.drain(1)
    return timing(recorder.log())


NOP = encode("NOP")
SETRWC = encode("SETRWC")


def test_replay_plays_one_word_a_cycle_and_loading_takes_a_cycle_a_word() -> None:
    load = [encode("REPLAY", start_idx=0, len=4, load_mode=1)] + [SETRWC] * 4
    play = encode("REPLAY", start_idx=0, len=4)
    timed = played(*load, play, play, NOP)
    # REPLAY and the four words that it stores deliver nothing; then eight words and a NOP, one a cycle.
    assert timed.issue == list(range(5, 14))


def test_mop_expands_one_word_a_cycle_with_one_dead_cycle_unless_a_mop_follows() -> None:
    config = [1, 3, NOP, NOP, NOP, SETRWC, NOP, SETRWC, SETRWC]
    mop = encode("MOP", mop_type=1)
    assert played(mop, mop, NOP, NOP, mop_config=config).issue == [0, 1, 2, 3, 4, 5, 7, 8]


def test_the_cycle_of_a_post_does_not_depend_on_which_thread_is_looked_at_first() -> None:
    for delay in range(3):
        idle = [(1, "NOP")] * delay
        lines = [(1, "SEMINIT 2, 0, 2"), (2, "NOP"), (2, "SEMWAIT 1, 2, 1"), *[(1, "NOP")] * 9, *idle]
        timed = timing(log_of(*lines, (1, "SEMPOST 2"), (2, "PACR")))
        assert timed.issue[-1] == timed.issue[-2] + 2
