"""What a client is told that waits for ever, chip by chip, wherever the chips are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bhemu.capi.attach import Say
from bhemu.capi.refusals import waiting_text

_DESCRIBED: Final = 4
"""Chips of which is said what waits on them, at most."""


def say_who_waits(say: Say, time: int, chips: int, failed: Sequence[int], explain: Callable[[int, bool], str]) -> None:
    """Say what waits for what: of several chips those whose links fail, or the first.

    Args:
        say: tells the client.
        time: clocks that have passed.
        chips: how many there are.
        failed: numbers of those whose links fail.
        explain: (number of a chip, whether all tiles are described): what waits there.
    """
    concerned = sorted(set(failed)) or range(chips)
    for number in concerned[:_DESCRIBED]:
        if who := explain(number, bool(failed)):
            if chips > 1:
                say(f"[{time}] bhemu: chip {number}:\n")
            say(waiting_text(time, who, link_fails=bool(failed)))
    if len(concerned) > _DESCRIBED:
        say(f"[{time}] bhemu: {len(concerned) - _DESCRIBED} more chips are not described\n")


def who_polls(time: int, chips: int, explain: Callable[[int], str | None]) -> str | None:
    """What the cores poll, chip by chip; None when one of those that are looked at does more than poll.

    Args:
        explain: what cores of a chip poll, by its number.
    """
    text = ""
    for number in range(min(chips, _DESCRIBED)):
        polled = explain(number)
        if polled is None:
            return None
        text += (f"[{time}] bhemu: chip {number}:\n" if chips > 1 else "") + polled
    left = chips - _DESCRIBED
    return text + (f"[{time}] bhemu: {left} more chips are not described\n" if left > 0 else "")
