"""What notebooks show of tiles, chips and results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from bhemu.api.summary import CoreSummary
from bhemu.isa.instructions import BY_OPCODE
from bhemu.isa.names import Semaphore
from bhemu.machine.agents import CORE_NAMES, CORES
from bhemu.machine.core_state import ASLEEP, BLOCKED, HALTED, IN_RESET, RUNNING
from bhemu.pictures import html
from bhemu.tile.cores import STATES

Place = tuple[int, int]

_COLOURS: Final = {
    RUNNING: ("#2a9d4b", "a core runs"),
    BLOCKED: ("#d62728", "a core is blocked"),
    ASLEEP: ("#e6a117", "a core polls"),
    HALTED: ("#3572b0", "halted"),
    IN_RESET: ("#c8c8c8", "in reset"),
}
"""By the state of a tile's cores, the first that one of them has."""


def tile_html(record: Any, title: str) -> str:
    """Cores, executed instructions, semaphores and source banks of a tile.

    Args:
        record: the tile.
        title: above the tables.
    """
    parts = [html.heading(title)]
    cores = [core for core in range(CORES) if record.core_state[core] != IN_RESET]
    if cores:
        rows = [
            (CORE_NAMES[core], STATES[int(record.core_state[core])], int(record.core_retired[core])) for core in cores
        ]
        parts.append(html.table(("core", "state", "instructions"), rows))
    counts = record.issued.sum(axis=0)
    executed = [
        (row.unit, row.mnemonic, int(counts[row.opcode])) for row in filter(None, BY_OPCODE) if counts[row.opcode]
    ]
    if executed:
        parts.append(html.table(("unit", "instruction", "executed"), sorted(executed)))
    values, limits = record.sync.semaphore, record.sync.semaphore_max
    used = [number for number in range(8) if values[number] or limits[number]]
    if used:
        names = [(f"{n} {Semaphore(n).name}", int(values[n]), int(limits[n])) for n in used]
        parts.append(html.table(("semaphore", "value", "maximum"), names))
    owners = ("unpacker", "matrix unit")
    banks = [
        f"Src{'AB'[file]} bank {bank}: {owners[int(record.src_owner[file, bank])]}"
        for file in (0, 1)
        for bank in (0, 1)
    ]
    parts.append(html.paragraph("; ".join(banks)))
    parts.append(html.paragraph(f"Dst: {int(record.dst_valid.sum())} of 1024 rows valid"))
    return "".join(parts)


def cores_html(title: str, cores: Iterable[CoreSummary]) -> str:
    """The cores at the end of a run."""
    rows = [
        (
            core.name,
            core.state if core.exit_code is None else f"main returned {core.exit_code}",
            core.retired,
            core.place,
        )
        for core in cores
    ]
    return html.heading(title) + html.table(("core", "state", "instructions", "at"), rows)


def chip_html(title: str, states: dict[Place, Any], retired: dict[Place, int]) -> str:
    """The grid of a chip's tiles, coloured by what their cores do.

    Args:
        title: above it.
        states: states of the cores of each tile.
        retired: instructions of the cores of each tile.
    """
    tiles = {}
    for place, cores in states.items():
        state = next(state for state in _COLOURS if state == IN_RESET or state in cores)
        text = ", ".join(f"{CORE_NAMES[c]} {STATES[int(s)]}" for c, s in enumerate(cores) if s != IN_RESET)
        tiles[place] = (_COLOURS[state][0], f"{text or 'in reset'}; {retired[place]:,} instructions")
    return html.heading(title) + html.grid(tiles, dict(_COLOURS.values()))


def outputs_html(outputs: dict[str, np.ndarray[Any, Any]]) -> str:
    """Arrays by name, each with its picture."""
    return "".join(
        html.heading(f"{name}: {' x '.join(map(str, array.shape))}, {array.dtype}")
        + html.picture(array.astype(np.float64), title=name)
        for name, array in outputs.items()
    )
