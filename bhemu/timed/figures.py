"""Places of figures in a buffer. Their values are in isa/silicon.py, which compiled code does not depend on."""

from __future__ import annotations


class Figures:
    """Figures that have places in a buffer, one after the other, in the order in which they are asked for.

    Args:
        first: place of the first one.
    """

    def __init__(self, first: int) -> None:
        self.end = first
        self.places: dict[str, int] = {}

    def place(self, name: str) -> int:
        """Give a figure the next place, and return it."""
        self.places[name] = self.end
        self.end += 1
        return self.places[name]
