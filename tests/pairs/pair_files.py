"""Pairs of program and expectation: how the files are read, run and compared.

A program is `FAMILY/NAME.tt`, Tensix assembly as `bhemu asm` reads it, or `NAME.s`, RISC-V assembly of
tests/riscv/rv_asm.py; next to it `NAME.exp` says what holds afterwards. Comments start with `#`.

1. A program begins with `# rules: math F8, I.11` and, from the second line, a sentence that says the behaviour.
2. `.thread N` (0 unpack, 1 math, 2 pack): what follows belongs to that thread; threads run side by side.
   `.core NAME` (B, T0, T1, T2, NC) likewise. A core's program ends with `ebreak`.
3. `.set PLACE = NUMBERS`, before the instructions of its thread or core, gives a place its contents before anything
   executes; all other state is that of a reset.
4. `.exp` has lines `PLACE = NUMBERS`, and the arithmetic that gives them as a comment. It may use `.thread` and
   `.core`; without them it speaks of the program's first.
5. Places are in tests/pairs/places.py: `gpr[3]`, `dst.fp32[0..7]`, `rwc.dst`. `[a..b]` is a range, both ends
   included; an index left out at the end means all.
6. NUMBERS are separated by blanks, `5*3` is 5 three times; one number alone goes to every element. Hexadecimal is the
   bits, all else the value, which the format must hold exactly. `"MVMUL dst=0"` is that instruction's word.
7. A thread that waits at the end is an error unless the expectation says `waits = 1`; so is an expectation that holds
   before the program has run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bhemu import Tile
from bhemu.errors import BhemuError
from bhemu.isa.assembler import assemble, disassemble
from bhemu.machine.agents import CORE_NAMES
from tests.pairs.places import Context, Place, PlaceError, find
from tests.riscv import rv_asm
from tests.riscv.rv_machine import START, put, release
from tests.rules import pair_rules

CYCLES = 10_000
"""More than any program of a pair needs; one that still moves then does not end."""

_LINE = re.compile(r"(?P<place>[a-z]\w*(?:\.\w+)*)(?P<index>(?:\[[^\]]*\])*)\s*=\s*(?P<numbers>.+)")
_INDEX = re.compile(r"\[\s*(\w+)(?:\s*\.\.\s*(\w+))?\s*\]")
_NUMBER = re.compile(r'"(?P<text>[^"]*)"(?:\*(?P<count>\d+))?|(?P<plain>\S+)')


class PairError(ValueError):
    """A file of a pair that is wrong: file, line, what."""


@dataclass(frozen=True)
class Line:
    """`PLACE = NUMBERS`, not yet looked up, and what .thread and .core said before it."""

    file: Path
    number: int
    text: str
    thread: int
    core: str | None

    def error(self, what: object) -> PairError:
        return PairError(f"{self.file}:{self.number}: {self.text}: {what}")

    def elements(self, tile: Tile) -> list[tuple[str, Place, tuple[int, ...], int]]:
        """(name, place, index, bits) of each element that the line names.

        Raises:
            PairError: an unknown place, an index outside of it, numbers that are none or too few.
        """
        match = _LINE.fullmatch(self.text)
        if match is None:
            raise self.error("is not PLACE = NUMBERS")
        try:
            place = find(match["place"], Context(tile, self.thread, self.core))
            bits = [place.format.parse(number) for number in _numbers(match["numbers"])]
            indices = _indices(place, match["index"], len(bits))
        except (PlaceError, BhemuError) as error:
            raise self.error(error) from error
        if len(bits) == 1:
            bits *= len(indices)
        if len(bits) != len(indices):
            raise self.error(f"{len(bits)} numbers for {len(indices)} elements")
        name = match["place"]
        return [
            (name + "".join(f"[{i}]" for i in index), place, index, element)
            for index, element in zip(indices, bits, strict=True)
        ]


def _numbers(text: str) -> list[str]:
    """Each number as written, repetitions written out."""
    found = []
    for match in _NUMBER.finditer(text):
        number, count = match["plain"] or "", match["count"]
        if match["text"] is not None:
            number = hex(assemble(match["text"]))
        elif "*" in number:
            number, count = number.split("*", 1)
        if count is not None and not count.isdigit():
            raise PlaceError(f"{match[0]!r}: write NUMBER*COUNT")
        found += [number] * int(count or 1)
    return found


def _indices(place: Place, text: str, count: int) -> list[tuple[int, ...]]:
    """Every index that `[a..b][c]` names, in their order."""
    ranges = []
    for part in re.findall(r"\[[^\]]*\]", text):
        match = _INDEX.fullmatch(part)
        try:
            first = int(match[1], 0) if match else -1
            last = int(match[2], 0) if match and match[2] else first
        except ValueError as error:
            raise PlaceError(f"{part} is not an index") from error
        ranges.append((first, last))
    if place.width:
        if len(ranges) != 1 or ranges[0][0] != ranges[0][1]:
            raise PlaceError("memory has one address; the numbers follow each other from there")
        first = ranges[0][0]
        ranges = [(first, first + (count - 1) * place.width)]
    elif len(ranges) > len(place.size):
        raise PlaceError(f"has {len(place.size)} indices, {len(ranges)} given")
    ranges += [(0, size - 1) for size in place.size[len(ranges) :]]
    for (first, last), size in zip(ranges, place.size, strict=True):
        if not 0 <= first <= last < size:
            raise PlaceError(f"index {first}..{last} is outside of 0..{size - 1}")
    indices: list[tuple[int, ...]] = [()]
    for first, last in ranges:
        indices = [(*index, i) for index in indices for i in range(first, last + 1, place.width or 1)]
    return indices


@dataclass
class Pair:
    """A program and what holds after it."""

    file: Path
    rules: list[str]
    settings: list[Line] = field(default_factory=list)
    words: dict[int, list[int]] = field(default_factory=dict)
    """Of each thread, in its order."""
    cores: dict[str, str] = field(default_factory=dict)
    """Assembly of each core, with empty lines in the place of others' lines."""
    expected: list[Line] = field(default_factory=list)


def read_pair(file: Path) -> Pair:
    """Read a program (.tt or .s) and the expectation next to it.

    Raises:
        PairError: a file is not as the module's docstring says.
    """
    expectation = file.with_suffix(".exp")
    if not expectation.exists():
        raise PairError(f"{file}: there is no {expectation.name} next to it")
    try:
        pair = Pair(file, pair_rules(file))
    except ValueError as error:
        raise PairError(str(error)) from error
    _read_program(pair)
    thread, core = next(iter(pair.words), 0), next(iter(pair.cores), None)
    if not any(line.lstrip().startswith("#") for line in expectation.read_text().splitlines()):
        raise PairError(f"{expectation}: say in a comment how the numbers come about")
    for line in _lines(expectation, thread, core):
        if line.text.startswith("."):
            raise line.error("an expectation has .thread, .core and PLACE = NUMBERS only")
        pair.expected.append(line)
    if not pair.expected:
        raise PairError(f"{expectation}: expects nothing")
    return pair


def _lines(file: Path, thread: int, core: str | None) -> Iterator[Line]:
    """Lines that are not empty, without comments; .thread and .core are taken out."""
    for number, text in enumerate(file.read_text().splitlines(), start=1):
        stripped = text.split("#", 1)[0].strip()
        line = Line(file, number, stripped, thread, core)
        word, _, name = stripped.partition(" ")
        if word == ".thread":
            if name not in ("0", "1", "2"):
                raise line.error("threads are 0 (unpack), 1 (math) and 2 (pack)")
            thread = int(name)
        elif word == ".core":
            if name not in CORE_NAMES:
                raise line.error(f"cores are {', '.join(CORE_NAMES)}")
            core = name
        elif stripped:
            yield line


def _read_program(pair: Pair) -> None:
    riscv = pair.file.suffix == ".s"
    length = len(pair.file.read_text().splitlines())
    programs: dict[str, list[str]] = {}
    for line in _lines(pair.file, -1, None):
        if line.text.startswith(".set "):
            if line.thread in pair.words or line.core in programs:
                raise line.error("set-up comes before the instructions of its thread or core")
            text = line.text.removeprefix(".set ").strip()
            pair.settings.append(Line(line.file, line.number, text, max(line.thread, 0), line.core))
        elif riscv:
            if line.core is None:
                raise line.error("say .core before it")
            programs.setdefault(line.core, [""] * length)[line.number - 1] = line.text
        else:
            if line.thread < 0:
                raise line.error("say .thread before it")
            try:
                pair.words.setdefault(line.thread, []).append(assemble(line.text))
            except BhemuError as error:
                raise line.error(error) from error
    pair.cores = {core: "\n".join(lines) for core, lines in programs.items()}
    if not pair.words and not pair.cores:
        raise PairError(f"{pair.file}: has no instruction")


def check(pair: Pair) -> None:
    """Run the program on a tile after reset and compare.

    Raises:
        PairError: a line of the files is wrong.
        AssertionError: something is not as expected; the message lists what.
    """
    tile = Tile()
    for line in pair.settings:
        for name, place, index, bits in line.elements(tile):
            if place.put is None:
                raise line.error(f"{name} cannot be set")
            try:
                place.put(index, bits)
            except BhemuError as error:
                raise line.error(error) from error
    if not _differences(pair, tile):
        raise PairError(f"{pair.file.with_suffix('.exp')}: holds before the program has run, so it shows nothing")
    _run_cores(pair, tile) if pair.cores else _run_threads(pair, tile)
    if wrong := _differences(pair, tile):
        raise AssertionError("\n".join(wrong))
    waiting = {thread for thread in range(3) if tile.record.frontend.gate_full[thread]}
    if surprising := waiting - {line.thread for line in pair.expected if line.text.startswith("waits")}:
        words = [
            f"thread {i} waits at {disassemble(int(tile.record.frontend.gate_word[i]))}" for i in sorted(surprising)
        ]
        raise AssertionError("; ".join(words))


def _differences(pair: Pair, tile: Tile) -> list[str]:
    return [
        f"{line.file.name}:{line.number}: {name} should be {place.format.show(bits)}, is {place.format.show(found)}"
        for line in pair.expected
        for name, place, index, bits in line.elements(tile)
        if (found := place.get(index)) != bits
    ]


def _run_threads(pair: Pair, tile: Tile) -> None:
    """All threads side by side, until nothing moves."""
    left = {thread: list(words) for thread, words in pair.words.items()}
    moved = True
    while moved:
        moved = False
        for thread, words in left.items():
            while words and tile.coprocessor.push(thread, words[0]):
                del words[0]
                moved = True
        tile.coprocessor.run(CYCLES)
    tile.coprocessor.settle()


def _run_cores(pair: Pair, tile: Tile) -> None:
    """All cores side by side, until each is at its ebreak."""
    for core, program in pair.cores.items():
        try:
            put(tile, START[core], rv_asm.assemble(program, START[core]))
        except (rv_asm.AsmError, KeyError) as error:
            raise PairError(f"{pair.file}: core {core}: {error}") from error
    release(tile, *(core for core in CORE_NAMES if core in pair.cores))
    tile.clock(CYCLES)
    for core in pair.cores:
        view = tile.cores[core]
        if view.halt_reason != "ebreak":
            raise AssertionError(f"core {core} is {view.state} at {view.pc:#x} and not at its ebreak")
