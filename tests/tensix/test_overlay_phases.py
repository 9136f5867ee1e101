"""Phases of overlay streams from software to software, and their configuration in L1 (tile K55)."""

from __future__ import annotations

import numpy as np
import pytest

from bhemu import Tile
from bhemu.errors import BhemuError, MissingSpecification, UndefinedBehavior, Unimplemented
from bhemu.isa.assembler import encode

pytestmark = [pytest.mark.plain, pytest.mark.rule("tile K55")]

INCREMENT, ONETIME, MISC, START, SIZE, READ, WRITE, HEADERS, HEADERS_WRITE = 1, 2, 3, 17, 18, 19, 20, 22, 23
PHASE, POINTER, FORMAT, HEADER, STATUS, MESSAGES, COMPRESS, INFO = 29, 31, 33, 34, 257, 259, 276, 329
SOFTWARE_TO_SOFTWARE = 0x50
BLOB, BUFFER, ARRAY = 0x47810, 0x26800, 0x46800
IDLE, RUNNING = 1, 4 | 5 << 3


def store(tile: Tile, stream: int, register: int, value: int) -> None:
    """A store to a stream's register."""
    tile.cores.store(0xFFB40000 + 0x1000 * stream + 4 * register, value)


def load(tile: Tile, stream: int, register: int) -> int:
    """A load from a stream's register."""
    return tile.cores.load(0xFFB40000 + 0x1000 * stream + 4 * register)


def words(tile: Tile, address: int, *values: int) -> None:
    """Words into L1."""
    tile.record.l1_u32[address // 4 : address // 4 + len(values)] = values


def pair(register: int, value: int) -> int:
    """A word of a configuration."""
    return value << 8 | register


def configured(stream: int = 4, *, messages: int = 2, size: int = 0x40) -> Tile:
    """A stream that has gone through a phase without messages, and is in one with some."""
    tile = Tile(allow_open=True)
    words(tile, BLOB, 7 << 24, pair(ONETIME, 7), pair(16, 0), pair(MISC, 0x1810), pair(SIZE, 1), pair(36, 0))
    words(tile, BLOB + 24, pair(FORMAT, 0x800), pair(POINTER, BLOB + 32))
    words(tile, BLOB + 32, messages << 12 | 1, pair(ONETIME, 6), pair(16, 0), pair(START, BUFFER >> 4))
    words(tile, BLOB + 48, pair(HEADERS, ARRAY >> 4), pair(HEADERS_WRITE, ARRAY >> 4), pair(SIZE, size))
    words(tile, BLOB + 60, pair(MISC, 0x1850))
    store(tile, 0, FORMAT, 16 << 7)
    store(tile, stream, POINTER, BLOB)
    store(tile, stream, HEADER, 7 << 24)
    store(tile, stream, MISC, 0x1800)
    assert load(tile, stream, STATUS) == IDLE
    store(tile, stream, ONETIME, 7)
    return tile


def push(tile: Tile, stream: int, length: int, *header: int) -> None:
    """Write a header behind the others and tell the stream of the message."""
    words(tile, 16 * load(tile, stream, HEADERS_WRITE), length, *header)
    store(tile, stream, INCREMENT, length << 12 | 1)


def test_a_stream_takes_its_phases_from_l1_until_one_has_messages() -> None:
    tile = configured()
    assert load(tile, 4, STATUS) == RUNNING
    assert load(tile, 4, PHASE) == 1
    assert load(tile, 4, HEADER) == 2 << 12 | 2
    assert [load(tile, 4, r) for r in (START, SIZE, READ, WRITE, HEADERS, HEADERS_WRITE, MISC)] == [
        *(BUFFER >> 4, 0x40, 0, 0, ARRAY >> 4, ARRAY >> 4, 0x1850),
    ]


def test_messages_show_address_length_and_header_and_move_the_pointers() -> None:
    tile = configured(size=0x28)
    push(tile, 4, 0x12, 0x100000, 0xA, 0xB)
    push(tile, 4, 0x20, 7)
    assert load(tile, 4, MESSAGES) == 2
    assert [load(tile, 4, INFO + i) for i in range(6)] == [BUFFER >> 4, 0x12, 0x12, 0x100000, 0xA, 0xB]
    assert [load(tile, 4, INFO + 6 + i) for i in range(4)] == [(BUFFER >> 4) + 0x12, 0x20, 0x20, 7]
    assert load(tile, 4, INFO + 12) == 0
    assert load(tile, 4, COMPRESS) == 1
    assert load(tile, 4, WRITE) == 0x12 + 0x20 - 0x28
    assert load(tile, 4, HEADERS) == load(tile, 4, HEADERS_WRITE) == (ARRAY >> 4) + 2


def test_popping_frees_the_buffer_and_the_last_message_ends_the_phase() -> None:
    tile = configured()
    push(tile, 4, 0x12)
    push(tile, 4, 0x20)
    pop = encode("UNPACR_NOP", Unpack_Pop=3, Stream_Id=4, Msg_Clr_Cnt=1)
    tile.execute(0, pop)
    assert (load(tile, 4, MESSAGES), load(tile, 4, READ), load(tile, 4, STATUS)) == (1, 0x12, RUNNING)
    assert [load(tile, 4, INFO + i) for i in range(2)] == [(BUFFER >> 4) + 0x12, 0x20]
    tile.execute(0, pop)
    assert (load(tile, 4, MESSAGES), load(tile, 4, READ), load(tile, 4, STATUS)) == (0, 0x32, IDLE)


def test_a_phase_takes_no_more_messages_than_it_has() -> None:
    """As tt-burnin's image goes on to write them: one in each turn of its loop, which takes none off."""
    tile = configured(messages=2)
    for _ in range(5):
        push(tile, 4, 0x12)
    assert load(tile, 4, MESSAGES) == 2
    assert load(tile, 4, WRITE) == 0x24
    assert load(tile, 4, HEADERS_WRITE) == (ARRAY >> 4) + 2
    assert [load(tile, 4, INFO + i) for i in range(2)] == [BUFFER >> 4, 0x12]


def test_other_streams_show_two_words_a_message() -> None:
    tile = configured(9)
    push(tile, 9, 3, 1 << 20)
    push(tile, 9, 5)
    assert [load(tile, 9, INFO + i) for i in range(5)] == [BUFFER >> 4, 3, (BUFFER >> 4) + 3, 5, 0]
    assert load(tile, 9, COMPRESS) == 0


def test_the_length_is_where_the_header_format_says() -> None:
    tile = configured()
    store(tile, 0, FORMAT, 24 | 16 << 7)  # bits 39:24, over the end of the first word
    words(tile, ARRAY, 0x34000000, 0x12)
    store(tile, 4, INCREMENT, 0x1234 << 12 | 1)
    assert load(tile, 4, INFO + 1) == 0x1234


def test_a_plain_counter_stays_one() -> None:
    """A stream that is in no phase counts messages, and its pointers do not move."""
    tile = Tile()
    store(tile, 7, INCREMENT, 0x12 << 12 | 1)
    assert (load(tile, 7, MESSAGES), load(tile, 7, WRITE), load(tile, 7, HEADERS_WRITE)) == (1, 0, 0)


def test_a_start_of_the_buffer_clears_its_pointers_and_headers_begin_where_both_pointers_are() -> None:
    tile = Tile()
    for register in (READ, WRITE):
        store(tile, 8, register, 5)
    store(tile, 8, START, 0x100)
    store(tile, 8, HEADERS, 0x321)
    assert [load(tile, 8, r) for r in (READ, WRITE, HEADERS_WRITE)] == [0, 0, 0x321]


def test_configuration_from_l1_is_an_open_choice() -> None:
    tile = Tile()
    store(tile, 4, POINTER, BLOB)
    with pytest.raises(MissingSpecification, match=r"overlay stream 4 loads its configuration from L1 \(0x47810\)"):
        store(tile, 4, ONETIME, 1)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ([1 << 12, pair(ONETIME, 3), pair(MISC, 0x30)], Unimplemented, "MISC_CFG of overlay stream 4 is 0x30"),
        ([1 << 12, pair(ONETIME, 3), pair(7, 1)], Unimplemented, "sets register 7, which is not built"),
        ([0, pair(ONETIME, 3), pair(POINTER, BLOB)], UndefinedBehavior, "goes through 256 phases"),
    ],
)
def test_configurations_that_mean_nothing_here_are_refused(
    content: list[int], error: type[BhemuError], message: str
) -> None:
    tile = Tile(allow_open=True)
    words(tile, BLOB, *content)
    store(tile, 4, HEADER, (len(content) - 1) << 24)
    store(tile, 4, POINTER, BLOB)
    if content[0] == 0:
        words(tile, BLOB, (len(content) - 1) << 24)
    with pytest.raises(error, match=message):
        store(tile, 4, ONETIME, 3)


@pytest.mark.parametrize("address", [0x47812, 0x180000 - 4])
def test_a_configuration_lies_in_aligned_words_of_l1(address: int) -> None:
    tile = Tile(allow_open=True)
    store(tile, 4, HEADER, 1 << 24)
    store(tile, 4, POINTER, address)
    with pytest.raises(UndefinedBehavior, match=f"loads 2 words of configuration at {address:#x}"):
        store(tile, 4, ONETIME, 1)


def test_a_phase_without_auto_advance_waits() -> None:
    tile = Tile(allow_open=True)
    words(tile, BLOB, 3 << 12, pair(MISC, SOFTWARE_TO_SOFTWARE))
    store(tile, 4, HEADER, 1 << 24)
    store(tile, 4, POINTER, BLOB)
    store(tile, 4, ONETIME, 1)
    assert (load(tile, 4, STATUS), load(tile, 4, HEADER) & 0xFFF) == (IDLE, 3)
    assert np.count_nonzero(tile.record.stream_running) == 0
