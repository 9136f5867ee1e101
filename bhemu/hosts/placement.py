"""Which worker has which chips."""

from __future__ import annotations


def place_chips(chips: int, workers: int) -> list[tuple[int, ...]]:
    """Numbers of the chips of each worker: blocks of neighbours by number, of which none is larger by more than one.

    Args:
        chips: how many there are.
        workers: how many; at most as many as chips.
    """
    share, more = divmod(chips, workers)
    first, placed = 0, []
    for worker in range(workers):
        count = share + (worker < more)
        placed.append(tuple(range(first, first + count)))
        first += count
    return placed
