"""Observers of a coprocessor's words, called from inside its clock (run.py).

An observer is a set of kernels and a buffer of the host, whose address they get as `log`. It sees the machine and must
not change it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, LogAddress, TileRecord

NO_LOG: Final = 0
"""In the place of a buffer when there is no observer."""


@dataclass(frozen=True)
class WordObserver:
    """What is called when a word passes; kernels.

    Attributes:
        is_full: `is_full(log)`: there may be no room for the words of another cycle.
        before_fetch: `before_fetch(t, log, thread)`: the expanders look for the thread's next word.
        after_fetch: `after_fetch(t, log, thread, arrived)`: they have found one, or not.
        before_word: `before_word(t, log, thread, word)`: the word is tried; it may still have to wait.
        after_word: `after_word(t, log, thread)`: it has been executed, and is still at the gate.
    """

    is_full: Any
    before_fetch: Any
    after_fetch: Any
    before_word: Any
    after_word: Any


@kernel(forceinline=True)
def never_full(log: LogAddress) -> bool:
    """There is no buffer."""
    return False


@kernel(forceinline=True)
def _ignore_fetch(t: TileRecord, log: LogAddress, thread: Int) -> None:
    pass


@kernel(forceinline=True)
def _ignore_arrival(t: TileRecord, log: LogAddress, thread: Int, arrived: bool) -> None:
    pass


@kernel(forceinline=True)
def _ignore_word(t: TileRecord, log: LogAddress, thread: Int, word: Int) -> None:
    pass


NO_OBSERVER: Final = WordObserver(never_full, _ignore_fetch, _ignore_arrival, _ignore_word, _ignore_fetch)
"""The observer of the plain clock."""
