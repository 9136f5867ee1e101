"""Programs on bhemu and on another library: the memory and the GPRs that they leave must be the same.

A library ends its process where it refuses something. Then the word that it refuses is looked for, by running shorter
programs, and left out; its signature is avoided from then on, for most of the time.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bhemu.fuzz import keep, layout, words
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.coverage import features
from bhemu.fuzz.library import ALL, Answer, OtherLibrary, Pieces, differences, kind_of, pieces_of
from bhemu.fuzz.machine import FuzzTile, Program
from bhemu.fuzz.programs import Maker, epilogue, with_other_numbers
from bhemu.fuzz.shrink import shrink
from bhemu.isa.assembler import disassemble

POPULATION: Final = 24
"""Programs that are tried at a time."""
CORPUS: Final = 400
LEFT_OUT: Final = 8
"""Words that may be left out of a program before the rest of it is given up."""
REPEATS: Final = 24
"""How often a program is repeated in a case, with other numbers, where there is room for its code."""
LONGEST: Final = 7000
"""Words of a case before those that show its effect."""
VARIANTS: Final = 96
ALL_EVERY: Final = 8
"""All of L1 is looked at in every so-many-th program."""
_PUSH_DELAY: Final = 12
"""Clocks, about, from the start of a core to its first word at the gate."""
_MOST_FINDINGS: Final = 20


def whole(program: Program) -> Program:
    """The program, followed by the words that show what it has left."""
    return program.behind(epilogue())


@dataclass
class _Search:
    """A program for which the longest accepted version is looked for.

    Attributes:
        good: number of its first words that are accepted.
        bad: number of them that are refused; one more than there are: with what shows their effect;
            more: not known yet.
    """

    program: Program
    good: int = 0
    bad: int = 1 << 30
    left_out: int = 0
    probe: int = -1
    guesses: list[int] = field(default_factory=list)
    given_up: bool = False

    def next_program(self) -> Program:
        """What to run next: everything, or a part when everything is refused."""
        if not self.is_refused:
            self.probe = -1
            return whole(self.program)
        low, high = self.good + 1, self.bad - 1
        middle = (low + high) // 2
        guess = self.guesses.pop() if self.guesses else middle
        self.probe = guess if low <= guess <= high else middle
        return Program(self.program.items[: self.probe], self.program.data)

    def accepted(self) -> bool:
        """What was run is accepted; True when that was everything."""
        if self.probe >= 0:
            self.good = self.probe
        return self.probe < 0

    def refused(self, clock: int) -> None:
        """What was run is refused, `clocks` after it began."""
        count = len(self.program)
        if self.probe >= 0:
            self.bad = self.probe
        else:
            self.bad = count + 1
            guess = clock - _PUSH_DELAY - 16 * (len(layout.turns(self.program.items)) - 1)
            self.guesses = [guess + 8, guess - 8, guess + 2, guess - 2]

    @property
    def is_refused(self) -> bool:
        """The whole is refused."""
        return self.bad <= len(self.program) + 1

    @property
    def blamed(self) -> int | None:
        """The word that is refused, once it is known."""
        return self.bad - 1 if self.bad == self.good + 1 and self.bad <= len(self.program) else None

    def leave_out(self, index: int) -> None:
        """Go on without a message; after too many, skip all that follows."""
        self.left_out += 1
        items = self.program.items
        behind = items[:0] if self.left_out >= LEFT_OUT else items[index + 1 :]
        self.program = Program(np.concatenate([items[:index], behind]), self.program.data)
        self.bad = 1 << 30


@dataclass
class Against:
    """Programs on both sides.

    Attributes:
        tile: bhemu's.
        other: the library.
        refusals: of the library, by kind of message, each counted once for each program that was changed for it.
    """

    tile: FuzzTile
    other: OtherLibrary
    refusals: Counter[str] = field(default_factory=Counter)
    executed: int = 0
    looked: int = 0

    def ours(self, program: Program) -> int | None:
        """Execute a program on bhemu, with the code of the cores in L1; the clocks, None when it is not whole."""
        if not layout.fits(program):
            return None
        ran = self.tile.run(Program(program.items, layout.image(program)))
        return int(self.tile.record.clock) if ran.is_whole else None

    def theirs(self, programs: list[Program], pieces: Pieces | None = None) -> list[Answer | None]:
        """What the library makes of programs; None for one that bhemu does not execute whole.

        Args:
            pieces: what to look at in L1; None: what bhemu has changed, and in one program of eight all.
        """
        runnable, is_whole = [], []
        for program in programs:
            clocks = self.ours(program)
            is_whole.append(clocks is not None)
            if clocks is not None:
                looks = pieces
                if looks is None:
                    self.looked += 1
                    looks = ALL if self.looked % ALL_EVERY == 0 else pieces_of(self.tile, program)
                runnable.append((program, clocks, looks))
        answers = iter(self.other.run(runnable))
        return [next(answers) if whole else None for whole in is_whole]

    def accepted(self, programs: list[Program], maker: Maker) -> list[Program]:
        """The programs without the words that the library refuses."""
        searches = [_Search(program) for program in programs]
        found = []
        while searches:
            answers = self.theirs([search.next_program() for search in searches], ())
            left = []
            for search, answer in zip(searches, answers, strict=True):
                if answer is None:
                    continue  # without the words that were left out, bhemu refuses it
                if not answer.refusal and not answer.killed:
                    if search.accepted():
                        found.append(search.program)
                        continue
                else:
                    if search.probe < 0:
                        self.refusals[kind_of(answer.refusal)] += 1
                    search.refused(answer.clock)
                blamed = search.blamed
                if blamed is not None:
                    word = int(search.program.items[blamed]) & 0xFFFFFFFF
                    maker.avoided[words.signature(word)] = maker.avoided.get(words.signature(word), 0) + 1
                    search.leave_out(blamed)
                if search.good >= min(search.bad, len(search.program) + 1) - 1 and blamed is None and search.is_refused:
                    search.given_up = True  # what shows its effect is refused in the state that it leaves
                if not search.given_up and len(search.program):
                    left.append(search)
            searches = left
        return found

    def compared(self, programs: list[Program]) -> list[tuple[Program, list[str]]]:
        """Programs that are executed by both sides, with their differences."""
        found = []
        for program, answer in zip(programs, self.theirs(programs), strict=True):
            if answer is None:
                continue
            if answer.refusal:
                self.refusals[kind_of(answer.refusal)] += 1
                continue
            self.ours(program)
            self.executed += int(self.tile.record.issued.sum())
            found.append((program, differences(self.tile, program, answer)))
        return found

    def differs(self, program: Program) -> bool:
        """Both sides execute it, and differ."""
        return any(differences for _, differences in self.compared([program]))


def repeated(program: Program, number: int) -> Program:
    """The program a few times with other numbers, then what shows its effect."""
    count = max(1, min(REPEATS, LONGEST // len(program)))
    parts = [with_other_numbers(program, REPEATS * number + i) for i in range(count)]
    return Program(np.concatenate([part.items for part in parts] + [epilogue()]), parts[0].data)


def run(task: Task) -> Result:
    """Execute `task.size` instructions on both sides."""
    assert task.library is not None
    chance = random.Random(task.seed)
    tile = FuzzTile()
    maker = Maker(chance, tile)
    result = Result()
    corpus: list[Program] = []
    other = OtherLibrary(task.library)
    against = Against(tile, other)
    titles: set[str] = set()
    try:
        while against.executed < task.size:
            fresh = [
                maker.changed(chance.choice(corpus), chance.choice(corpus))
                if corpus and chance.randrange(3)
                else maker.new()
                for _ in range(POPULATION)
            ]
            for program in against.accepted(fresh, maker):
                result.counts["programs"] += 1
                against.ours(program)
                new = features(tile.record, program.words) - result.features
                if new:
                    result.features |= new
                    corpus.append(program)
                    del corpus[:-CORPUS]
                number = chance.getrandbits(24)
                first = [whole(program), repeated(program, number)]
                rest = [repeated(program, number + 1 + i) for i in range(VARIANTS)]
                compared = against.compared(first)
                compared += against.compared(rest) if len(compared) == len(first) else []
                result.counts["cases"] += len(compared)
                for variant, found in compared:
                    if found:
                        result.counts["differences"] += 1
                        _found(task, result, titles, against, variant)
        result.done = against.executed
    finally:
        other.close()
    result.refusals = against.refusals
    return result


def _found(task: Task, result: Result, titles: set[str], against: Against, program: Program) -> None:
    """Shrink a difference and keep it, unless its like is known."""
    if len(titles) >= _MOST_FINDINGS:
        return
    executed = against.executed
    small = shrink(program, against.differs)
    ((_, found),) = against.compared([small])
    against.executed = executed  # what shrinking executes does not count
    lines = [f"T{thread} {disassemble(word)}" for thread, word in small.words]
    title = f"{disassemble(small.words[-1][1]).split()[0]} of {len(small.words)}: {found[0].split(':')[0].split()[0]}"
    kinds = " ".join(sorted({line.split()[1] for line in lines}))
    if kinds in titles:
        return
    titles.add(kinds)
    answer = against.theirs([small], ALL)[0]
    assert answer is not None
    path = keep.library_vector(task.keep, f"library-{task.seed:x}-{len(titles)}", against.tile, small, answer)
    text = "\n".join([f"seed {task.seed}", *lines, f"{len(found)} differences", *found[:16]])
    result.findings.append(Finding(f"{title} ({kinds})", text, str(path) if path else ""))
