"""What was kept, run again."""

from __future__ import annotations

from pathlib import Path

from bhemu.conformance.run import conformance, describe
from bhemu.fuzz import parsers
from bhemu.fuzz.keep import read_programs
from bhemu.fuzz.library import ALL, OtherLibrary, differences
from bhemu.fuzz.machine import FuzzTile


def replayed(path: Path, library: Path | None) -> list[str]:
    """What is still wrong with a kept input: how a program differs from what the file says, or from a library.

    Raises:
        FormatError: it is not a vector file.
        LibraryError: the library cannot be loaded.
    """
    if path.name.startswith(parsers.PREFIX):
        return parsers.replay(path)
    if library is None:
        return [describe(difference) for report in conformance([path]) for difference in report.differences]
    tile, found = FuzzTile(), []
    other = OtherLibrary(library)
    try:
        for program in read_programs(path):
            if not tile.run(program).is_whole:
                found.append("bhemu does not execute all of it")
                continue
            answer = other.run([(program, int(tile.record.clock), ALL)])[0]
            found += (
                [f"the library refuses: {answer.refusal}"] if answer.refusal else differences(tile, program, answer)
            )
    finally:
        other.close()
    return found
