"""Analytical models of NoC, DRAM and matmul: what they must say whatever their figures are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import FIGURES, INSTRUCTION_TIMES, KINDS, figure
from bhemu.predict.matmul import Matmul, predict
from bhemu.predict.noc import Traffic, cycles, dram_readers, wire
from bhemu.timed import layout, net_layout

pytestmark = pytest.mark.plain

WRITE = Traffic(reads=False, count=64, size=4096)
SQUARE = Matmul(1280, 1408, 1408, 11, 10, "BFLOAT16", "HiFi2")


def test_every_figure_has_a_kind_and_a_source() -> None:
    for one in (*FIGURES.values(), *INSTRUCTION_TIMES.values()):
        assert one.kind in KINDS
        assert one.source


def test_timed_mode_finds_each_of_its_figures() -> None:
    for timed in (layout.FIGURES, net_layout.FIGURES):
        assert set(timed.places) <= set(FIGURES)


def test_small_writes_take_the_pace_of_the_issuing_core() -> None:
    step = cycles(replace(WRITE, size=64, count=65)) - cycles(replace(WRITE, size=64, count=64))
    assert step == pytest.approx(figure("noc.issue.write").value)


def test_large_writes_take_the_pace_of_the_link() -> None:
    step = cycles(replace(WRITE, count=65)) - cycles(WRITE)
    assert step == pytest.approx(wire(4096))


def test_a_transaction_of_several_packets_is_as_long_as_its_packets() -> None:
    one, four = cycles(replace(WRITE, size=16384, count=4)), cycles(replace(WRITE, size=65536, count=1))
    assert one == four


def test_the_neighbour_in_the_column_is_nearer_than_one_in_another() -> None:
    near, far = replace(WRITE, count=1, same_axis=True), replace(WRITE, count=1)
    assert cycles(far) - cycles(near) == figure("noc.hop").value * figure("noc.ring.x").value


def test_a_linked_multicast_is_not_slower_than_one_that_releases_its_path() -> None:
    multicast = replace(WRITE, multicast=True, destinations=25, columns=5, rows=5, size=64)
    assert cycles(replace(multicast, linked=True)) < cycles(multicast)


def test_all_cores_together_are_slower_than_one() -> None:
    for memory in ("sharded", "interleaved"):
        one = replace(WRITE, memory=memory)
        assert cycles(replace(one, everybody=True)) > cycles(one)


def test_senders_of_a_row_share_the_time_in_which_paths_are_free() -> None:
    multicast = replace(WRITE, multicast=True, destinations=11, columns=11)
    together = cycles(replace(multicast, everybody=True))
    assert together == pytest.approx(11 * figure("noc.multicast.together").value * cycles(multicast))


def test_one_bank_gives_the_same_to_any_number_of_readers() -> None:
    assert dram_readers(1, 1, 4096) == dram_readers(120, 1, 4096)


def test_fidelity_costs_where_math_is_the_bound() -> None:
    low, high = predict(replace(SQUARE, fidelity="LoFi")), predict(replace(SQUARE, fidelity="HiFi4"))
    assert (low.bound, high.bound) == ("data movement", "math")
    assert high.ideal == 4 * low.ideal
    assert high.cycles > low.cycles > low.ideal


def test_output_blocks_move_their_operands_again() -> None:
    assert predict(replace(SQUARE, blocks_high=2, blocks_wide=2)).cycles > predict(SQUARE).cycles


def test_an_unknown_data_type_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="FLOAT64"):
        predict(replace(SQUARE, dtype="FLOAT64"))
