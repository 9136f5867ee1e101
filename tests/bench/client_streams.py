"""Streams that a client of the small chip (small_chip.c) would leave behind, and of bhemu's own."""

from __future__ import annotations

from bhemu.compare.calls import CONFIG_READ, EXIT, INIT, READ, Call, clock, write
from bhemu.compare.places import aim

TILE = (1, 2)
HOST = 0x1000
HOST_RESULT = 0x4000_0000
PIECE = 64
AIM, BASE = aim(0, TILE, 0)
ENGINE, DONE, CARD, RESULT = (BASE + offset for offset in (0x10, 0x14, 0x18, 0x100))


def answered(address: int, answer: bytes | int) -> Call:
    """A read with what it gave."""
    content = answer.to_bytes(4, "little") if isinstance(answer, int) else answer
    return Call(READ, address, size=len(content), answer=content)


def poll(value: int) -> list[Call]:
    """A look at the engine's count, as tt-umd does it."""
    return [*AIM, answered(DONE, value), clock(1)]


def contents(piece: int) -> tuple[bytes, bytes]:
    """What the host puts into its memory for a piece of work, and what comes of it."""
    return bytes((piece + i) % 200 for i in range(PIECE)), bytes((piece + i) % 200 + 1 for i in range(PIECE))


def worked(piece: int, call: Call) -> Call:
    """The call in which the engine does a piece."""
    given, result = contents(piece)
    host, written = ((HOST + PIECE * piece, given),), ((HOST_RESULT + PIECE * piece, result),)
    return Call(call.name, call.a, host=host, host_writes=written)


def polling_stream(pieces: int = 3, clocks: int = 40) -> list[Call]:
    """A client that polls the engine's count."""
    calls = [Call(INIT), Call(CONFIG_READ, 0, 0, answer=(0xB1401E52).to_bytes(4, "little")), *AIM, answered(CARD, 7)]
    for piece in range(pieces):
        calls += [write(ENGINE, clocks), *(clocks - 1) * poll(piece), *AIM, answered(DONE, piece)]
        calls += [worked(piece, clock(1)), *poll(piece + 1), answered(RESULT, contents(piece)[1]), clock(1)]
    return [*calls, Call(EXIT)]


def waiting_stream(pieces: int = 3, clocks: int = 40) -> list[Call]:
    """A client that lets clocks pass until its own memory changes."""
    calls = [Call(INIT), *AIM]
    for piece in range(pieces):
        calls += [write(ENGINE, clocks), *(clocks - 1) * [clock(1)], worked(piece, clock(1)), clock(1)]
    return [*calls, *AIM, answered(DONE, pieces), clock(1), Call(EXIT)]
