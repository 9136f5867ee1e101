"""Reports of state by name: `info dst 0 16` of the command line, `monitor dst 0 16` of GDB."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches

from bhemu.debugger import show, show_tensix
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.formats.data_format import DataFormat
from bhemu.formats.dump import show_tile

Words = list[str]


@dataclass(frozen=True)
class Report:
    """A command that shows a part of the state.

    Attributes:
        text: makes it, of a session and the words after the name.
        usage: name and what may follow.
        help: what it shows, in one sentence.
        words: how many words may follow.
    """

    text: Callable[[DebugSession, Words], str]
    usage: str
    help: str
    words: int


def _optional(session: DebugSession, words: Words, at: int, default: int | None = None) -> int | None:
    return session.value(words[at]) if len(words) > at else default


def _dst(session: DebugSession, words: Words) -> str:
    how = words.pop() if words and words[-1].isidentifier() else None
    row, rows = _optional(session, words, 0, 0), _optional(session, words, 1, show_tensix.FACE)
    assert row is not None
    assert rows is not None
    return show_tensix.dst(session, row, rows, how)


def _source(file: int) -> Callable[[DebugSession, Words], str]:
    def text(session: DebugSession, words: Words) -> str:
        raw = bool(words) and words[-1] == "raw"
        return show_tensix.source(session, file, _optional(session, words[: len(words) - raw], 0), raw=raw)

    return text


def _config(session: DebugSession, words: Words) -> str:
    if not words:
        raise DebugError("which field?", remedy="give a name or a part of one: `config Out_data_format`")
    return show_tensix.config(session, words[0], _optional(session, words, 1))


def _gprs(session: DebugSession, words: Words) -> str:
    return show_tensix.gprs(session, _optional(session, words, 0, 0) or 0)


def _tile(session: DebugSession, words: Words) -> str:
    if len(words) < 2:
        raise DebugError("which tile?", remedy="give address and format: `tile 0x21000 bf16`")
    address, data_format = session.value(words[0]), DataFormat.parse(words[1])
    rows, _, columns = (words[2] if len(words) > 2 else "32x32").partition("x")
    if not (rows.isdigit() and columns.isdigit()):
        raise DebugError(f"{words[2]!r} is not a tile shape", remedy="use 32x32, 16x32, 32x16 or 16x16")
    shape = (int(rows), int(columns))
    size = data_format.tile_bytes(shape)
    return show_tile(session.read_memory(address, size), data_format, shape)


REPORTS: dict[str, Report] = {
    "tensix": Report(
        lambda s, w: show_tensix.tensix(s),
        "tensix",
        "The pending instruction of each thread of the coprocessor, and what it waits for.",
        0,
    ),
    "queues": Report(
        lambda s, w: show_tensix.queues(s, _optional(s, w, 0)),
        "queues [THREAD]",
        "The instructions in the FIFOs of the coprocessor's threads, with the places that pushed them.",
        1,
    ),
    "semaphores": Report(
        lambda s, w: show_tensix.semaphores(s), "semaphores", "Values and limits of the semaphores; mutexes.", 0
    ),
    "mailboxes": Report(
        lambda s, w: show_tensix.mailboxes(s), "mailboxes", "The words in mailboxes and PCBufs, left where they are.", 0
    ),
    "config": Report(
        _config,
        "config NAME [BANK | THREAD]",
        "Configuration fields by official name, or all whose names contain a text.",
        2,
    ),
    "dst": Report(
        _dst, "dst [ROW [ROWS]] [raw | bf16 | fp16 | fp32 | int32]", "Rows of Dst, by default decoded as configured.", 3
    ),
    "srca": Report(_source(0), "srca [BANK] [raw]", "SrcA, by default the bank that the matrix unit uses.", 2),
    "srcb": Report(_source(1), "srcb [BANK] [raw]", "SrcB, by default the bank that the matrix unit uses.", 2),
    "lregs": Report(
        lambda s, w: show_tensix.lregs(s, _optional(s, w, 0)), "lregs [REGISTER]", "LRegs of the vector unit.", 1
    ),
    "gprs": Report(_gprs, "gprs [THREAD]", "General registers of a thread of the coprocessor.", 1),
    "tile": Report(
        _tile, "tile ADDRESS FORMAT [SHAPE]", "A tile in memory face by face: `tile 0x21000 bf16 32x32`.", 3
    ),
    "threads": Report(lambda s, w: show.threads(s), "threads", "What each core does.", 0),
    "clock": Report(lambda s, w: f"clock {s.clock:,}", "clock", "Clocks of the tile that have passed.", 0),
}


def report(session: DebugSession, line: str) -> str:
    """The text for a name and what follows it.

    Raises:
        BhemuError: there is nothing of that name, or it is asked for wrongly.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise DebugError(f"{line!r}: {error}", remedy="close the quotes") from None
    if not words or words[0] == "help":
        return "\n".join(f"{item.usage:58} {item.help}" for item in REPORTS.values())
    found = REPORTS.get(words[0])
    if found is None:
        close = get_close_matches(words[0], REPORTS, n=2) or sorted(REPORTS)
        raise DebugError(f"there is no report {words[0]!r}", remedy=f"try {', '.join(close)}")
    if len(words) - 1 > found.words:
        raise DebugError(f"too many arguments after {words[0]!r}", remedy=f"say: {found.usage}")
    return found.text(session, words[1:])
