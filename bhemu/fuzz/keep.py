"""Programs that differ, as files of conformance vectors: `bhemu conformance FILE` replays them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from bhemu.conformance.vector_file import INFORMATIVE, SHAPES, State, VectorFile
from bhemu.files import write_whole
from bhemu.fuzz import layout
from bhemu.fuzz.library import Answer
from bhemu.fuzz.machine import PAGE, FuzzTile, Program
from bhemu.machine.state import L1_SIZE

Array = np.ndarray[Any, Any]
_POINTERS: Final = np.uint32


def _runs(changed: Array) -> tuple[Array, Array]:
    """Starts and lengths of the runs of true elements."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], changed.astype(np.int8), [0]])))
    return edges[::2], edges[1::2] - edges[::2]


def _group(name: str, before: Array, after: Array) -> dict[str, Array]:
    changed = before != after
    starts, lengths = _runs(changed)
    if len(starts) == 0:
        return {}
    return {
        f"{name}_ptr": np.array([0, len(starts)], _POINTERS),
        f"{name}_start": starts.astype(_POINTERS),
        f"{name}_len": lengths.astype(_POINTERS),
        f"{name}_val": after[changed],
    }


def write_vector(path: Path, program: Program, expected: State, label: str) -> None:
    """Write one program, from the state after reset, with what it should leave.

    Args:
        program: with all that L1 holds.
        expected: state after it, as of `FuzzTile.state`; arrays that are left out are not written.
        label: of the case.

    Raises:
        OSError: the file cannot be written.
    """
    meta = {"format": "bhemu fuzz", "version": 1, "family": "fuzz", "cases": 1, "l1_base": 0, "l1_size": L1_SIZE}
    threads, instructions = zip(*program.words, strict=True)
    arrays: dict[str, Array] = {
        "meta": np.array(json.dumps(meta)),
        "label_names": np.array([label.encode()]),
        "label_ptr": np.array([0, 1], _POINTERS),
        "label_id": np.array([0], np.uint16),
        "name": np.array([path.stem.encode()]),
        "state": np.array([0], np.uint16),
        "prog_ptr": np.array([0, len(program.words)], _POINTERS),
        "prog_thread": np.array(threads, np.uint8),
        "prog_word": np.array(instructions, np.uint32),
    }
    initial = _after_reset()
    initial["l1"] = layout.memory(program.data)
    arrays |= _group("init_l1", np.zeros(L1_SIZE, np.uint8), initial["l1"])
    for name, values in expected.items():
        if name not in INFORMATIVE:
            arrays |= _group(f"exp_{name}", initial[name], values.astype(initial[name].dtype))
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content.getvalue())


def _after_reset() -> State:
    state = {name: np.zeros(count, kind) for name, (kind, count) in SHAPES.items()}
    state["l1"] = np.zeros(L1_SIZE, np.uint8)
    tile = FuzzTile()
    return state | {name: values.copy() for name, values in tile.state().items()}


def library_vector(directory: Path, name: str, tile: FuzzTile, program: Program, answer: Answer) -> Path | None:
    """Keep a program with the memory that a library leaves; bhemu's state for all that a library does not show."""
    if not answer.ended:
        return None
    with_code = Program(program.items, layout.image(program))
    tile.run(with_code)
    expected = {key: values.copy() for key, values in tile.state().items()}
    theirs = layout.memory(layout.image(program))
    for number, content in answer.pages.items():
        theirs[PAGE * number : PAGE * (number + 1)] = np.frombuffer(content, np.uint8)
    for thread in np.unique(program.items >> 32).tolist():
        start = layout.GPRS + 256 * thread
        expected["gpr"][64 * thread : 64 * (thread + 1)] = theirs[start : start + 256].view(np.uint32)
    for number in layout.OWN_PAGES:
        theirs[PAGE * number : PAGE * (number + 1)] = expected["l1"][PAGE * number : PAGE * (number + 1)]
    expected["l1"] = theirs
    path = directory / f"{name}.npz"
    write_vector(path, with_code, expected, "library")
    return path


def read_programs(path: Path) -> list[Program]:
    """The programs of a vector file that was kept, with all that L1 holds.

    Raises:
        FormatError: it is not a vector file.
    """
    file = VectorFile(path)
    found = []
    for case in file:
        memory = file.initial(case.index)["l1"]
        starts, lengths = _runs(np.asarray(memory.reshape(-1, PAGE).any(axis=1)))
        data = tuple(
            (file.l1_base + PAGE * int(start), memory[PAGE * start : PAGE * (start + length)].tobytes())
            for start, length in zip(starts, lengths, strict=True)
        )
        found.append(Program.of(case.program, data))
    return found
