"""What is known to be over: how waits, semaphores, mutexes and bank hand-overs order instructions of three threads.

`Knowledge` of a thread says, for every thread, up to which instruction its words have been issued, and up to which
instruction its work in each unit is complete. A wait adds to it when the first word that it holds passes the gate; a
semaphore, a mutex or a source bank carries it to another thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from bhemu.isa.names import Condition
from bhemu.machine.state import THREADS

CONDITIONS: Final = 13


def bit_of(condition: Condition) -> int:
    """Index of a STALLWAIT condition, C0..C12."""
    return int(condition).bit_length() - 1


class Knowledge:
    """What a thread may rely on.

    Attributes:
        issued: by thread, number of its words that have been issued.
        done: by thread and condition, number of its words whose work under the condition is complete.
        fenced: by thread, number of words that its core had pushed when its own accesses were last waited for (C10).
    """

    __slots__ = ("done", "fenced", "issued")

    def __init__(self) -> None:
        self.issued = [0] * THREADS
        self.done = [[0] * CONDITIONS for _ in range(THREADS)]
        self.fenced = [0] * THREADS

    def copy(self) -> Knowledge:
        """An independent copy."""
        other = Knowledge.__new__(Knowledge)
        other.issued = list(self.issued)
        other.done = [list(row) for row in self.done]
        other.fenced = list(self.fenced)
        return other

    def join(self, other: Knowledge | None) -> None:
        """Learn all that `other` knows."""
        if other is None:
            return
        self.issued = [max(a, b) for a, b in zip(self.issued, other.issued, strict=True)]
        self.done = [[max(x, y) for x, y in zip(a, b, strict=True)] for a, b in zip(self.done, other.done, strict=True)]
        self.fenced = [max(a, b) for a, b in zip(self.fenced, other.fenced, strict=True)]

    def complete(self, thread: int, condition: int, number: int) -> None:
        """The thread's work under the condition is complete up to its word `number`."""
        row = self.done[thread]
        row[condition] = max(row[condition], number)


@dataclass
class SemaphoreOrder:
    """Posts and gets of one semaphore, with what was known at each.

    Passing a wait for "not zero" when g gets have been made means that post g has been made; passing a wait for "below
    the maximum m" when p posts have been made means that get p - m has been made (Y11a).
    """

    maximum: int = 15
    posts: list[Knowledge | None] = field(default_factory=list)
    gets: list[Knowledge | None] = field(default_factory=list)

    def init(self, value: int, maximum: int, known: Knowledge) -> None:
        """SEMINIT."""
        self.maximum = maximum
        self.posts = [known] * value
        self.gets = []

    def post(self, known: Knowledge | None) -> None:
        """SEMPOST, or a core's post, which carries nothing."""
        self.posts.append(known)

    def get(self, known: Knowledge | None) -> None:
        """SEMGET."""
        if len(self.gets) < len(self.posts):
            self.gets.append(known)

    def passed_zero(self, gets: int) -> Knowledge | None:
        """What a wait for "not zero", placed after `gets` gets, brings."""
        return self.posts[gets] if gets < len(self.posts) else None

    def passed_max(self, posts: int) -> Knowledge | None:
        """What a wait for "below the maximum", placed after `posts` posts, brings."""
        at = posts - self.maximum
        return self.gets[at] if 0 <= at < len(self.gets) else None


@dataclass
class BankOrder:
    """Hand-overs of one source file. There are two banks: fill n waits for hand-back n - 2."""

    filled: list[Knowledge] = field(default_factory=list)
    returned: list[Knowledge] = field(default_factory=list)

    def for_matrix(self) -> Knowledge | None:
        """What the matrix unit learns when it waits for its current bank."""
        at = len(self.returned)
        return self.filled[at] if at < len(self.filled) else None

    def for_unpacker(self) -> Knowledge | None:
        """What an unpacker learns when it waits for its current bank."""
        at = len(self.filled) - 2
        return self.returned[at] if 0 <= at < len(self.returned) else None
