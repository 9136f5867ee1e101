"""Chips of a recording side by side: operations that several chips have executed, told apart by their turn."""

from __future__ import annotations

from dataclasses import replace

from bhemu.report.chips import (
    NOT_RECORDED,
    ChipFigures,
    ChipOperation,
    chip_lines,
    chips_as_json,
    chips_on_page,
    shared_operations,
)

TILE = {"rounds": 40, "running": 30, "blocked": 10, "polling": 20, "words": 5, "read": 64, "written": 32}


def chip(number: int, *operations: tuple[str, int, int], tiles: int = 2) -> ChipFigures:
    places = {(1 + n, 2): TILE for n in range(tiles)}
    return ChipFigures(number, places, tuple(ChipOperation(name, begin, end, tiles) for name, begin, end in operations))


FIRST = chip(0, ("gather", 100, 150), ("add", 160, 170), ("gather", 200, 260))
SECOND = chip(1, ("gather", 90, 180), ("gather", 210, 240), tiles=1)


def test_the_nth_operation_of_a_name_is_the_same_on_all_chips() -> None:
    told = [
        {number: (one.name, one.begin) for number, one in row.items()} for row in shared_operations([FIRST, SECOND])
    ]
    assert told == [
        {0: ("gather", 100), 1: ("gather", 90)},
        {0: ("add", 160)},
        {0: ("gather", 200), 1: ("gather", 210)},
    ]


def test_lines_say_what_chips_have_done_and_how_long_an_operation_took_where() -> None:
    lines = chip_lines([FIRST, SECOND], 10)
    assert [line.split() for line in lines[1:3]] == [
        ["0", "2", "80", "5%", "10%", "128", "64", "3"],
        ["1", "1", "40", "5%", "10%", "64", "32", "2"],
    ]
    assert [" ".join(line.split()) for line in lines[5:]] == [
        "gather 90 2 50 on chip 0 to 90 on chip 1",
        "add 160 1 10 on chip 0",
        "gather 200 2 30 on chip 1 to 60 on chip 0",
    ]


def test_bytes_that_were_not_recorded_are_not_said_to_be_none() -> None:
    counted = replace(SECOND, has_requests=False)
    assert chip_lines([FIRST, counted], 10)[2].split() == ["1", "1", "40", "5%", "10%", *["not", "recorded"] * 2, "2"]
    assert [one["noc_recorded"] for one in chips_as_json([FIRST, counted])] == [True, False]
    assert [one["read"] for one in chips_on_page([FIRST, counted])] == [128, NOT_RECORDED]


def test_the_longest_operations_are_shown_and_the_others_counted() -> None:
    assert [line.split()[0] for line in chip_lines([FIRST, SECOND], 1)[5:]] == ["gather", "(2"]


def test_a_chip_alone_has_no_such_table() -> None:
    assert chip_lines([FIRST], 10) == []


def test_plain_data_has_each_tile() -> None:
    told = chips_as_json([FIRST, SECOND])
    assert told[1]["tiles"] == [{"x": 1, "y": 2, **TILE}]
    assert told[1]["operations"][0] == {"name": "gather", "begin": 90, "end": 180, "tiles": 1}
