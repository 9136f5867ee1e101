"""Call traces: files of lines, each a JSON object (docs/compare.md has the format).

The first line is `{"trace": "libttsim", "version": 2}`. A line with "call" is a call; one with "answer" or "refused"
says what came of it; lines with "host_read" and "host_write" say which of the host's memory the chip read and wrote
meanwhile. A line with "again" repeats the calls above, with what came of them: a client that polls makes the same calls
thousands of times.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from bhemu.compare.calls import CLOCK, CONFIG_READ, CONFIG_WRITE, NAMES, READ, WRITE, Call, Ended, Outcome
from bhemu.errors import BhemuError
from bhemu.files import write_whole

VERSION: Final = 2
"""Version 1 has no "again"."""
HEADER: Final = {"trace": "libttsim", "version": VERSION}
MOST_CALLS: Final = 100_000_000
"""A trace that repeats more than this is damaged."""
LONGEST_REPEAT: Final = 256
"""Calls that are looked for again directly after themselves."""
_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7"
_XZ_PRESET: Final = 6
_U32, _U64 = 1 << 32, 1 << 64


class TraceError(BhemuError):
    """A call trace that cannot be read."""


def _open(path: Path, mode: str) -> Any:
    """Text or compressed text, by the name when it is written and by its content when it is read."""
    if "r" in mode:
        with path.open("rb") as stream:
            begins = stream.read(2)
    else:
        begins = {".gz": _GZIP, ".xz": _XZ}.get(path.suffix, b"")
    if begins == _GZIP:
        return gzip.open(path, mode + "t", encoding="utf-8")
    if begins == _XZ:
        return lzma.open(path, mode + "t", encoding="utf-8")
    return path.open(mode, encoding="utf-8")


# --- repeats ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Again:
    """The last `calls` calls come `times` times more."""

    times: int
    calls: int


def find_repeats(calls: Sequence[Call]) -> Iterator[Call | Again]:
    """The same calls, with repeats of what comes directly before named as such."""
    numbers: dict[Call, int] = {}
    coded = [numbers.setdefault(call, len(numbers)) for call in calls]
    latest: dict[int, int] = {}
    at = 0
    while at < len(coded):
        distance = at - latest.get(coded[at], at)
        end = at
        while 0 < distance <= LONGEST_REPEAT and coded[end : end + distance] == coded[at - distance : at]:
            end += distance
        if end - at > 1:
            yield Again((end - at) // distance, distance)
        else:
            end = at + 1
            yield calls[at]
        latest.update((coded[place], place) for place in range(max(at, end - LONGEST_REPEAT), end))
        at = end


def repeat(calls: list[Call], again: Again) -> None:
    """Make the repeated calls.

    Raises:
        ValueError: there are not as many calls to repeat, or the numbers are beyond all measure.
    """
    if not 1 <= again.calls <= len(calls):
        raise ValueError(f"again repeats {again.calls} calls, and there are {len(calls)} above it")
    if again.times < 1 or len(calls) + again.times * again.calls > MOST_CALLS:
        raise ValueError(f"again is {again.times}, of {again.calls} calls")
    calls += calls[-again.calls :] * again.times


# --- writing ----------------------------------------------------------------------------------------------------------


def _line(call: Call) -> dict[str, Any]:
    line: dict[str, Any] = {"call": call.name}
    if call.name in (READ, WRITE):
        line["address"] = hex(call.a)
    if call.name in (CONFIG_READ, CONFIG_WRITE):
        line |= {"bdf": call.a, "offset": call.b}
    if call.name == READ:
        line["size"] = call.size
    elif call.name == WRITE:
        line["bytes"] = call.content.hex()
    elif call.name == CONFIG_WRITE:
        line["value"] = int.from_bytes(call.content, "little")
    elif call.name == CLOCK:
        line["clocks"] = call.a
    return line


def _after(call: Call, outcome: Outcome | None) -> Iterator[dict[str, Any]]:
    """Lines that say what came of a call."""
    for address, content in call.host:
        yield {"host_read": hex(address), "bytes": content.hex()}
    for address, content in call.host_writes:
        yield {"host_write": hex(address), "bytes": content.hex()}
    if isinstance(outcome, bytes) and call.name in (READ, CONFIG_READ):
        yield {"answer": outcome.hex()}
    if isinstance(outcome, Ended):
        yield {"refused": outcome.category, "text": outcome.text, "clock": outcome.clock}


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"


def write_trace(path: Path, calls: Sequence[Call]) -> None:
    """Write calls with their answers, repeats named as such; a name that ends with .gz or .xz is compressed.

    Raises:
        TraceError: it cannot be written.
    """
    texts = "".join(_packed_lines(calls)).encode()
    if path.suffix == ".gz":
        texts = gzip.compress(texts, mtime=0)
    elif path.suffix == ".xz":
        texts = lzma.compress(texts, preset=_XZ_PRESET)
    try:
        write_whole(path, texts)
    except OSError as error:
        raise TraceError(f"cannot write {path}: {error.strerror}", remedy="choose another file") from None


def _packed_lines(calls: Sequence[Call]) -> Iterator[str]:
    yield _text(HEADER)
    for item in find_repeats(calls):
        if isinstance(item, Again):
            yield _text({"again": item.times, "calls": item.calls})
        else:
            yield _text(_line(item))
            yield from (_text(line) for line in _after(item, item.answer))


class TraceWriter:
    """Writes a trace; each line is written whole.

    Args:
        path: the file; a name that ends with .gz or .xz is compressed.

    Raises:
        TraceError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._stream = _open(path, "w")
        except OSError as error:
            raise TraceError(f"cannot write {path}: {error.strerror}", remedy="choose another file") from None
        self._put(HEADER)

    def _put(self, line: dict[str, Any]) -> None:
        self._stream.write(_text(line))

    def call(self, call: Call, outcome: Outcome) -> None:
        """A call and what came of it."""
        self._put(_line(call))
        for line in _after(call, outcome):
            self._put(line)

    def close(self) -> None:
        """Finish the file."""
        self._stream.close()


# --- reading ----------------------------------------------------------------------------------------------------------


def _number(line: dict[str, Any], name: str, limit: int) -> int:
    value = line[name]
    number = int(value, 0) if isinstance(value, str) else value
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < limit:
        raise ValueError(f"{name} is {value!r}")
    return number


def _parse(line: dict[str, Any]) -> Call:
    name = line["call"]
    if name not in NAMES:
        raise ValueError(f"there is no call {name!r}; calls are {', '.join(NAMES)}")
    if name == READ:
        return Call(name, _number(line, "address", _U64), size=_number(line, "size", _U32))
    if name == WRITE:
        return Call(name, _number(line, "address", _U64), content=bytes.fromhex(line["bytes"]))
    if name == CLOCK:
        return Call(name, _number(line, "clocks", _U64))
    if name in (CONFIG_READ, CONFIG_WRITE):
        content = _number(line, "value", _U32).to_bytes(4, "little") if name == CONFIG_WRITE else b""
        return Call(name, _number(line, "bdf", _U32), _number(line, "offset", _U32), content=content)
    return Call(name)


def _with(call: Call, **changes: Any) -> Call:
    values = {name: getattr(call, name) for name in Call.__slots__}
    return Call(**(values | changes))


def _check_header(path: Path, line: dict[str, Any]) -> None:
    if line.get("trace") != HEADER["trace"]:
        raise TraceError(
            f"{path} is not a call trace: its first line lacks {json.dumps(HEADER)}",
            remedy="make one with `bhemu compare PROGRAM --record FILE`, or with a library of `bhemu library --record`",
        )
    if line.get("version") not in (1, VERSION):
        raise TraceError(
            f"{path} is a trace of version {line.get('version')!r}, and this bhemu reads versions 1 and {VERSION}",
            remedy="record it again, or use the bhemu that made it",
        )


def _lines(path: Path, stream: IO[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    previous = ""
    try:
        for number, text in enumerate(stream, 1):
            if previous:
                raise TraceError(f"{path}:{number - 1}: {previous}", remedy="fix the line, or record the trace again")
            if not text.strip():
                continue
            try:
                line = json.loads(text)
            except ValueError as error:
                previous = f"not JSON: {error}"  # the last line of a process that has been killed may be cut off
                continue
            if not isinstance(line, dict):
                raise TraceError(f"{path}:{number}: a line is a JSON object", remedy="see docs/compare.md")
            yield number, line
    except (UnicodeDecodeError, EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise TraceError(f"{path} cannot be read: {error}", remedy="record the trace again") from None


def read_trace(path: Path) -> list[Call]:
    """The calls of a trace, with the answers that it has.

    Raises:
        TraceError: there is no such file, or a line of it is wrong.
    """
    if not path.is_file():
        raise TraceError(f"{path}: no such file", remedy="name a call trace")
    calls: list[Call] = []
    with _open(path, "r") as stream:
        lines = _lines(path, stream)
        _check_header(path, next(lines, (1, {}))[1])
        for number, line in lines:
            try:
                _add(calls, line)
            except (KeyError, ValueError, TypeError, IndexError) as error:
                what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
                raise TraceError(f"{path}:{number}: {what}", remedy="see docs/compare.md for the format") from None
    if not calls:
        raise TraceError(f"{path} has no calls", remedy="record a client that uses the library")
    return calls


def _add(calls: list[Call], line: dict[str, Any]) -> None:
    if "call" in line:
        calls.append(_parse(line))
        return
    if "again" in line:
        repeat(calls, Again(_number(line, "again", _U64), _number(line, "calls", _U64)))
        return
    last = calls[-1]
    if "answer" in line:
        answer = bytes.fromhex(line["answer"])
        wanted = {READ: last.size, CONFIG_READ: 4}.get(last.name, 0)
        if len(answer) != wanted:
            raise ValueError(f"an answer of {len(answer)} bytes to {last}")
        calls[-1] = _with(last, answer=answer)
    elif "refused" in line:
        refusal = Ended("refused", str(line["refused"]), str(line.get("text", "")), line.get("clock"))
        calls[-1] = _with(last, answer=refusal)
    elif "host_read" in line:
        piece = (_number(line, "host_read", _U64), bytes.fromhex(line["bytes"]))
        calls[-1] = _with(last, host=(*last.host, piece))
    elif "host_write" in line:
        piece = (_number(line, "host_write", _U64), bytes.fromhex(line["bytes"]))
        calls[-1] = _with(last, host_writes=(*last.host_writes, piece))
    else:
        raise ValueError('a line has "call", "again", "answer", "refused", "host_read" or "host_write"')
