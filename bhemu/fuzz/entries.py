"""Tensix programs in each of bhemu's ways: whatever executes the same words must leave the same state."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.conformance.vector_file import State
from bhemu.errors import BhemuError
from bhemu.fuzz import keep, layout
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.coverage import features
from bhemu.fuzz.machine import PAGE, FuzzTile, Program
from bhemu.fuzz.plain_child import PlainProcess, digests
from bhemu.fuzz.programs import Maker
from bhemu.fuzz.shrink import shrink
from bhemu.isa.assembler import disassemble
from bhemu.isa.instruction_table import INSTRUCTIONS
from bhemu.loader.boot import start_stores
from bhemu.recording.recorder import Recorder
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tensix.frontend.run import STOPPED

PLAIN_EVERY: Final = 12
"""Every so-many-th program also runs as plain Python, which takes a thousand times as long."""
CORPUS: Final = 400
LONG: Final = 1 << 20
_SCHEDULES: Final = INSTRUCTIONS["SFPLOADMACRO"].opcode
_MOST_FINDINGS: Final = 20


def _fill(tile: Tile, program: Program) -> None:
    for address, content in program.data:
        tile.l1[address : address + len(content)] = np.frombuffer(content, np.uint8)


def _state(tile: Tile) -> State:
    return FuzzTile(tile._tiles).state()


def _feed(coprocessor: Coprocessor, words: list[tuple[int, int]], clocks: int) -> None:
    """Execute words with `run`, a number of clocks at a time; each turn of a thread to its end."""
    for number, (thread, word) in enumerate(words):
        if number and words[number - 1][0] != thread:
            _settle(coprocessor, clocks)
        while not coprocessor.push(thread, word):
            coprocessor.run(clocks)
    _settle(coprocessor, clocks)


def _settle(coprocessor: Coprocessor, clocks: int) -> None:
    while coprocessor.run(clocks) != STOPPED:
        pass


def _word_by_word(tile: Tile, program: Program) -> State:
    _fill(tile, program)
    for thread, word in program.words:
        tile.coprocessor.push(thread, word)
        tile.coprocessor.drain(thread)
    return _state(tile)


def one_word(program: Program) -> State:
    """A word at a time, as `Tile.execute` and the conformance vectors do."""
    return _word_by_word(Tile(), program)


def one_clock(program: Program, clocks: int = 1) -> State:
    """The clock of all threads, a clock at a time."""
    tile = Tile()
    _fill(tile, program)
    _feed(tile.coprocessor, program.words, clocks)
    return _state(tile)


def long_run(program: Program) -> State:
    """The clock of all threads, as long as it goes."""
    return one_clock(program, LONG)


def recorded(program: Program) -> State:
    """With a recorder."""
    tile = Tile()
    Recorder().attach(tile)
    return _word_by_word(tile, program)


def restored(program: Program) -> State:
    """The second half on another tile, from a snapshot."""
    first, second = Tile(), Tile()
    _fill(first, program)
    half = len(program) // 2
    for number, (thread, word) in enumerate(program.words):
        if number == half:
            second.restore(first.snapshot())
        tile = first if number < half else second
        tile.coprocessor.push(thread, word)
        tile.coprocessor.drain(thread)
    return _state(second if len(program) else first)


def cores(program: Program) -> State:
    """Pushed by the T cores, from code in L1."""
    tile = Tile()
    _fill(tile, Program(program.items, layout.image(program)))
    _, end = layout.code(program)
    for address, value in start_stores(layout.entries(program)):
        tile.cores.store(address, value)
    for _ in range(1000):
        tile.clock(1000)
        if int(tile.record.l1_u32[layout.TURN // 4]) == end:
            break
    return _state(tile)


WAYS: Final[dict[str, Callable[[Program], State]]] = {
    "one word": one_word,
    "one clock": one_clock,
    "long run": long_run,
    "recorder": recorded,
    "snapshot": restored,
    "cores": cores,
}
"""Ways to execute a program, by name; `FuzzTile` has a further one."""
_CLOCKED: Final = frozenset({"one clock", "long run", "cores"})
"""Ways in which other words than the next one may be executed in the clock of a scheduled instruction (V.7)."""


def fits(way: str, program: Program) -> bool:
    """The way is one for this program."""
    if way in _CLOCKED and (program.items >> 24 & 0xFF == _SCHEDULES).any():
        return False
    return way != "cores" or layout.fits(program)


def differing(tile: FuzzTile, program: Program, way: str) -> list[str]:
    """Arrays of the state that a way leaves otherwise than compiled code that executes all words at once does."""
    as_cores = way == "cores"
    ran = tile.run(Program(program.items, layout.image(program)) if as_cores else program)
    if not ran.is_whole or not fits(way, program):
        return []
    expected = tile.state()
    try:
        found = WAYS[way](program)
    except BhemuError as error:
        return [f"refused: {error.message}"]
    if as_cores:
        for number in layout.OWN_PAGES:
            found["l1"][PAGE * number : PAGE * (number + 1)] = expected["l1"][PAGE * number : PAGE * (number + 1)]
    return [name for name in expected if not np.array_equal(expected[name], found[name])]


def run(task: Task) -> Result:
    """Execute programs of `task.size` instructions in every way."""
    chance = random.Random(task.seed)
    tile, result = FuzzTile(), Result()
    maker = Maker(chance, tile)
    corpus: list[Program] = []
    plain = PlainProcess()
    titles: set[str] = set()
    try:
        while result.done < task.size:
            if corpus and chance.randrange(3):
                program = maker.changed(chance.choice(corpus), chance.choice(corpus))
            else:
                program = maker.new()
            ran = tile.run(program)
            if not ran.is_whole or len(program) == 0:
                continue
            new = features(tile.record, program.words) - result.features
            if new:
                result.features |= new
                corpus.append(program)
                del corpus[:-CORPUS]
            executed = int(tile.record.issued.sum())
            result.done += executed
            result.counts["programs"] += 1
            expected = tile.state()
            if result.counts["programs"] % PLAIN_EVERY == 1:
                count, found = plain.run(program)
                result.counts["plain"] += executed
                different = [name for name, digest in digests(expected).items() if found[name] != digest]
                if different or count != len(program):
                    _found(task, result, titles, "plain", program, different, tile, plain)
            for way in WAYS:
                result.counts[way] += executed if fits(way, program) else 0
                different = differing(tile, program, way)
                if different:
                    _found(task, result, titles, way, program, different, tile, plain)
    finally:
        plain.close()
    result.counts["refused by bhemu"] = maker.refused
    return result


def _found(
    task: Task,
    result: Result,
    titles: set[str],
    way: str,
    program: Program,
    different: list[str],
    tile: FuzzTile,
    plain: PlainProcess,
) -> None:
    """Shrink a difference and keep it, unless its like is known."""
    result.counts["differences"] += 1
    title = f"{way}: {', '.join(sorted(different))[:80]}"
    if title in titles or len(titles) >= _MOST_FINDINGS:
        return
    titles.add(title)

    def shows(candidate: Program) -> bool:
        if way != "plain":
            return bool(differing(tile, candidate, way))
        ran = tile.run(candidate)
        return ran.is_whole and digests(tile.state()) != plain.run(candidate)[1]

    small = shrink(program, shows)
    path = task.keep / f"entries-{task.seed:x}-{len(titles)}.npz"
    tile.run(small)
    keep.write_vector(path, small, tile.state(), way)
    lines = [f"T{thread} {disassemble(word)}" for thread, word in small.words]
    result.findings.append(Finding(title, "\n".join([f"seed {task.seed}", *lines, *different]), str(path)))
