"""Call traces: what is written is read back, and what cannot be read is said with its line."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bhemu.compare.calls import CLOCK, CONFIG_READ, CONFIG_WRITE, EXIT, INIT, READ, WRITE, Call, Ended, Outcome, clock
from bhemu.compare.trace import Again, TraceError, TraceWriter, find_repeats, read_trace, repeat, write_trace

pytestmark = pytest.mark.plain

HEADER = '{"trace": "libttsim", "version": 1}'
CALLS = [
    Call(INIT),
    Call(CONFIG_READ, 8, 0x10, answer=b"\x04\x00\x00\xff"),
    Call(CONFIG_WRITE, 0, 4, content=b"\x05\x00\x00\x00"),
    Call(WRITE, 0x1_1FC0_0000, content=b"\x01\x02\x03"),
    Call(WRITE, 0x1_2000_0104, content=b"\x01\0\0\0", host=((0x1000, b"abc"), (1 << 40, b"\0"))),
    clock(5_000_000_000),
    Call(READ, 0x8_0000_0000, size=3, answer=b"\xaa\xbb\xcc"),
    Call(EXIT),
    Call(INIT),
    Call(READ, 1, size=4, answer=Ended("refused", "UndefinedBehavior", "f: nothing is there", 12)),
]


def written(path: Path, calls: list[Call]) -> Path:
    writer = TraceWriter(path)
    for call in calls:
        outcome: Outcome = b"" if call.answer is None else call.answer
        writer.call(call, outcome)
    writer.close()
    return path


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_what_is_written_is_read_back(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, CALLS)
    assert read_trace(path) == CALLS
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")


def test_compression_is_seen_from_the_content(tmp_path: Path) -> None:
    path = written(tmp_path / "trace.gz", CALLS).rename(tmp_path / "trace")
    assert read_trace(path) == CALLS


def test_numbers_may_be_hexadecimal_and_lines_empty(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(f'{HEADER}\n\n{{"call": "init"}}\n{{"call": "clock", "clocks": "0x10"}}\n')
    assert read_trace(path) == [Call(INIT), clock(16)]


def test_a_last_line_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(f'{HEADER}\n{{"call": "init"}}\n{{"call": "clo')
    assert read_trace(path) == [Call(INIT)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "is not a call trace"),
        (["{}"], "is not a call trace"),
        (['{"trace": "libttsim", "version": 3}'], "version 3"),
        ([HEADER], "has no calls"),
        ([HEADER, "[1]"], ":2: a line is a JSON object"),
        ([HEADER, "{", '{"call": "init"}'], ":2: not JSON"),
        ([HEADER, '{"call": "reset"}'], ":2: there is no call 'reset'"),
        ([HEADER, '{"call": "clock"}'], ":2: 'clocks' is missing"),
        ([HEADER, '{"call": "clock", "clocks": -1}'], "clocks is -1"),
        ([HEADER, '{"call": "clock", "clocks": true}'], "clocks is True"),
        ([HEADER, '{"call": "clock", "clocks": 1.5}'], "clocks is 1.5"),
        ([HEADER, '{"call": "pci_mem_rd_bytes", "address": "0x1zz", "size": 4}'], ":2: "),
        ([HEADER, '{"call": "pci_mem_wr_bytes", "address": 0, "bytes": "abc"}'], ":2: "),
        ([HEADER, '{"call": "pci_mem_wr_bytes", "address": 0, "bytes": 5}'], ":2: "),
        ([HEADER, '{"call": "init"}', '{"answer": "00"}'], ":3: an answer of 1 bytes"),
        ([HEADER, '{"call": "pci_mem_rd_bytes", "address": 0, "size": 4}', '{"answer": "00"}'], "an answer of 1 bytes"),
        ([HEADER, '{"answer": ""}'], ":2: "),
        ([HEADER, '{"call": "init"}', '{"what": 1}'], 'a line has "call"'),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "trace"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TraceError) as raised:
        read_trace(path)
    assert message in raised.value.message
    assert raised.value.remedy


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no such file"):
        read_trace(tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(128, 256)))
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(binary)
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress((HEADER + "\n" + json.dumps({"call": "init"}) + "\n").encode())[:-9])
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(cut)
    with pytest.raises(TraceError, match="cannot write"):
        TraceWriter(tmp_path / "no" / "trace")


ALPHABET = (clock(1), clock(2), Call(READ, 8, size=1, answer=b"\0"), Call(READ, 8, size=1, answer=b"\1"))


@given(st.lists(st.sampled_from(ALPHABET), max_size=60), st.integers(1, 40))
def test_repeats_are_named_and_made_again(calls: list[Call], times: int) -> None:
    whole = calls * times
    made: list[Call] = []
    items = list(find_repeats(whole))
    for item in items:
        if isinstance(item, Again):
            repeat(made, item)
        else:
            made.append(item)
    assert made == whole
    assert len(items) <= len(whole)


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz", "trace.jsonl.xz"])
def test_a_packed_trace_is_read_back(tmp_path: Path, name: str) -> None:
    wrote = Call(CLOCK, 1, host_writes=((0x40, b"abc"), (0x80, b"d")))
    polls = [Call(READ, 8, size=4, answer=bytes(4)), clock(1)]
    calls = [*CALLS[:-1], *1000 * polls, wrote, *500 * [clock(1)], CALLS[-1]]
    write_trace(tmp_path / name, calls)
    assert read_trace(tmp_path / name) == calls
    assert (tmp_path / name).stat().st_size < 2000


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"again": 1, "calls": 1}'], "repeats 1 calls, and there are 0"),
        (['{"call": "init"}', '{"again": 1, "calls": 2}'], "repeats 2 calls, and there are 1"),
        (['{"call": "init"}', '{"again": 0, "calls": 1}'], "again is 0"),
        (['{"call": "init"}', '{"again": 1000000000000, "calls": 1}'], "again is 1000000000000"),
        (['{"call": "init"}', '{"again": 1}'], "'calls' is missing"),
    ],
)
def test_wrong_repeats_are_said(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "trace"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    with pytest.raises(TraceError) as raised:
        read_trace(path)
    assert message in raised.value.message


@given(st.integers(0, 10**6), st.integers(0, 255))
def test_a_damaged_file_gives_one_error_or_the_calls(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "trace.jsonl.xz"
    write_trace(path, CALLS)
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    path.write_bytes(content)
    with contextlib.suppress(TraceError):
        assert read_trace(path) == CALLS
