"""Packets of GDB's protocol: whatever comes, the reader lives on and the stub answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bhemu.gdb.packets import INTERRUPT, LARGEST, PacketReader, checksum, escape, frame, unescape
from bhemu.gdb.stub import Stub
from tests.debugger.debug_programs import CALL_NAMES, CALLS, session_of

pytestmark = pytest.mark.plain


@given(st.binary(max_size=200))
def test_escaping_is_undone(content: bytes) -> None:
    assert unescape(escape(content)) == content
    assert not set(b"#$*") & set(escape(content))


@given(st.lists(st.binary(max_size=40), max_size=5), st.integers(1, 9))
def test_packets_are_found_in_any_pieces(contents: list[bytes], size: int) -> None:
    stream = b"+".join(frame(escape(content)) for content in contents)
    reader = PacketReader()
    found: list[bytes] = []
    replies = b""
    for at in range(0, len(stream), size):
        packets, reply = reader.feed(stream[at : at + size])
        found += packets
        replies += reply
    assert [unescape(packet) for packet in found] == contents
    assert replies == b"+" * len(contents)


@given(st.binary(max_size=300))
def test_noise_does_not_stop_the_reader(noise: bytes) -> None:
    reader = PacketReader()
    reader.feed(noise)
    reader.feed(b"#00")  # ends whatever packet the noise began
    assert reader.feed(frame(b"g"))[0][-1:] == [b"g"]


def test_wrong_checksums_are_asked_for_again() -> None:
    reader = PacketReader()
    assert reader.feed(b"$g#00") == ([], b"-")
    assert reader.feed(b"$g#" + checksum(b"g")) == ([b"g"], b"+")
    reader.acknowledges = False
    assert reader.feed(b"$g#00") == ([b"g"], b"")


def test_a_packet_without_an_end_is_given_up() -> None:
    reader = PacketReader()
    reader.feed(b"$" + b"x" * (3 * LARGEST))
    assert reader.feed(frame(b"g")) == ([b"g"], b"+")


def test_ctrl_c_between_packets() -> None:
    assert PacketReader().feed(frame(b"c") + b"\x03" + frame(b"g"))[0] == [b"c", INTERRUPT, b"g"]


_heads = ["", "g", "G", "p", "P", "m", "M", "X", "Z0,", "z0,", "Z2,", "Z9", "H", "Hg", "T", "q", "qXfer:features:read:"]
_heads += ["qXfer:threads:read::", "qRcmd,", "qThreadExtraInfo,", "v", "vCont;", "vCont;s:", "Q", "?", "s", "S", "D"]
_tails = st.text(alphabet="0123456789abcdef,:;=-xtarget.ml", max_size=24)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(_heads), _tails), min_size=1, max_size=6), st.binary(max_size=20))
def test_the_stub_answers_whatever_it_is_asked(parts: list[tuple[str, str]], raw: bytes) -> None:
    session = session_of({"T0": CALLS}, functions=CALL_NAMES)
    console: list[bytes] = []
    stub = Stub(session, None, console.append)
    for packet in (*[(head + tail).encode() for head, tail in parts], raw):
        if packet[:1] in (b"c", b"C", b"k") or packet.startswith(b"vCont;c"):
            continue
        answer = stub.answer(packet)
        assert answer is None or isinstance(answer, bytes)
        assert len(frame(answer or b"")) <= LARGEST + 4
    stub.close()
    assert session.points() == []
