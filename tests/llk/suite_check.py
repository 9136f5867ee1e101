"""Hazards in what a run of the LLK suite has recorded: `run_suite --check order,l1`.

Each test is a program of its own for the check. A hazard is told once, with the kernels in which it was found.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bhemu.analysis.check_tile import TileCheck
from bhemu.analysis.found import FoundHazard
from bhemu.analysis.suppressions import End
from bhemu.chip.coordinates import Place
from bhemu.loader.by_content import CodeIndex, Moved
from bhemu.recording.parts import Part, Reader
from bhemu.report.names import PartNames

_SETTLE_SECONDS = 5.0
_NUMBER = re.compile(r"0x[0-9a-f]+|\b\d+\b")


def _settled(directory: Path) -> None:
    """Wait for simulators whose client has ended: they write what is left."""
    size = -1
    while size != (size := sum(path.stat().st_size for path in directory.glob("*"))):
        time.sleep(_SETTLE_SECONDS)


def _programs(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """The parts of each program of each tile; the last ones may belong to programs that have not ended."""
    waiting: dict[Place, list[Part]] = defaultdict(list)
    for part in parts:
        waiting[part.place].append(part)
        if part.launch:
            yield waiting.pop(part.place)
    yield from waiting.values()


def _holder(names: Sequence[PartNames], pc: int | None) -> tuple[PartNames, Moved] | None:
    found = ((one, one.at(pc)) for one in names) if pc is not None else iter(())
    return next(((one, piece) for one, piece in found if piece is not None), None)


def _end(names: Sequence[PartNames], pc: int | None) -> End:
    """Function and source line of an instruction."""
    holder = _holder(names, pc)
    if holder is None or pc is None:
        return End("", "" if pc is None else f"{pc:#x}")
    symbol = holder[1].symbol_at(pc)
    return End("" if symbol is None else symbol[0].display, holder[0].place(pc))


def _kernel(names: Sequence[PartNames], pc: int | None, builds: Path) -> str:
    """The kernel that an instruction is from, as the suite names its directories."""
    holder = _holder(names, pc)
    if holder is None:
        return "?"
    return "/".join(
        part for part in holder[1].path.relative_to(builds).parts[:-1] if not re.fullmatch(r"[0-9a-f]{16,}", part)
    )


def check_recordings(directory: Path, builds: Path, kinds: Sequence[str]) -> str:
    """What the check says of the recordings in a directory.

    Args:
        directory: with recordings, one of each process that had a chip.
        builds: the directory below which the suite has compiled its kernels.
        kinds: of checks.
    """
    _settled(directory)
    index = CodeIndex(sorted(path for path in builds.rglob("*.elf") if path.is_file()))
    pieces: dict[bytes, list[Moved]] = {}
    found: dict[tuple[str, ...], FoundHazard] = {}
    kernels: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    programs, left_out = 0, 0
    reader = Reader(directory)
    for path in reader.files:
        checks: dict[Place, TileCheck] = {}
        for parts in _programs(reader.parts(path)):
            programs += 1
            left_out += sum(part.log.dropped + part.log.tensix_dropped for part in parts)
            hazards = checks.setdefault(parts[0].place, TileCheck(kinds)).program(parts)
            names = [PartNames(part, index, pieces) for part in parts] if hazards else []
            for hazard in hazards:
                ends = _end(names, hazard.producer.code), _end(names, hazard.consumer.code)
                key = hazard.kind, _NUMBER.sub("#", hazard.message), *(f"{end.function} {end.place}" for end in ends)
                found.setdefault(key, FoundHazard(None, hazard, ends))
                kernels[key][_kernel(names, hazard.consumer.code, builds)] += 1
    lines = [f"{programs} programs checked, {left_out:,} rows left out, {len(found)} hazards"]
    for key, one in sorted(found.items(), key=lambda item: (item[0][0], -sum(kernels[item[0]].values()))):
        often = ", ".join(f"{name} {count}" for name, count in kernels[key].most_common(8))
        lines += ["", *one.lines(), f"  in:      {often}"]
    return "\n".join(lines) + "\n"
