"""The coprocessor in timed mode: units shared by threads, occupied units, the queue, banks."""

from __future__ import annotations

import pytest

from bhemu.bench.silicon_micro import NotReproduced, measure
from bhemu.isa.silicon import INSTRUCTION_TIMES, figure

pytestmark = pytest.mark.plain


ALONE = 18 / 16
"""Cycles a word of one thread alone, at least: its core has a loop of two instructions around sixteen."""


def per_word(name: str, threads: int, thread: int = 1, counts: tuple[int, int] = (64, 96)) -> float:
    """Cycles of a further word of a run that ends with the end of its work."""
    few, many = measure("q", f"q_{name.lower()}_sync", 1, threads, thread, counts)
    return (many - few) / (counts[1] - counts[0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_vector_unit_fairly(threads: int) -> None:
    times = [per_word("SFPADD", threads, thread) for thread in range(threads)]
    assert times == pytest.approx([max(threads, ALONE)] * threads, rel=0.04)


def test_every_thread_issues_a_nop_in_a_cycle() -> None:
    assert per_word("NOP", 3) == pytest.approx(ALONE, rel=0.04)


def test_arithmetic_on_gprs_occupies_the_scalar_unit() -> None:
    assert per_word("ADDDMAREG", 1) == pytest.approx(INSTRUCTION_TIMES["ADDDMAREG"].occupancy, rel=0.04)
    assert per_word("ADDDMAREG", 3) == pytest.approx(3 * INSTRUCTION_TIMES["ADDDMAREG"].occupancy, rel=0.04)


def test_products_on_the_same_rows_of_dst_wait_for_each_other() -> None:
    assert per_word("MVMUL", 1, counts=(4, 12)) == pytest.approx(figure("tensix.dst.again").value, rel=0.04)


def test_the_queue_takes_words_until_it_is_full() -> None:
    few, many = measure("s", "s_co_plain", 1, 1, 1, (16, 128))
    assert few < 16 * 3
    assert 128 * 3 - 40 * 3 < many < 128 * 3


def test_a_load_that_waits_for_the_coprocessor_sees_the_end_of_its_work() -> None:
    (cycles,) = measure("q", "q_adddmareg_sync", 1, 1, 1, (32,))
    assert cycles >= 32 * 3


def test_a_series_of_one_thread_among_several_has_that_of_math() -> None:
    assert measure("s", "s_solo_sync", 1, 3, 1, (8, 16))[1] > 16 * 3
    with pytest.raises(NotReproduced, match="does not run on thread 0"):
        measure("s", "s_solo_sync", 1, 3, 0, (8, 16))


def test_a_probe_that_is_not_known_is_named() -> None:
    with pytest.raises(NotReproduced, match="rv_unheard_of"):
        measure("r", "rv_unheard_of", 16, 1, 1, (2, 4))
