"""The support table: every instruction and mode, and how far each can be trusted.

It is made from the registered handlers, so it cannot promise more than the code holds; a test demands a conformance
vector behind every `verified`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from bhemu.checks import checked
from bhemu.conformance.run import VECTORS
from bhemu.conformance.vector_file import VectorFile
from bhemu.isa.instructions import INSTRUCTIONS, decode
from bhemu.tensix import units  # registers every instruction
from bhemu.tensix.instruction import DOCUMENTED, HANDLERS, MISSING, OPEN, VERIFIED, Mode

assert units

MOP: Final = INSTRUCTIONS["MOP"].opcode
REPLAY: Final = INSTRUCTIONS["REPLAY"].opcode
FIRST_MOP_WORD: Final = 2
"""MopCfg words below are counts and flags (math Y6)."""

FIDELITIES: Final = (VERIFIED, DOCUMENTED, OPEN, MISSING)
"""From the best to the worst."""


@dataclass(frozen=True)
class Row:
    """One mode of one instruction.

    Attributes:
        mnemonic, unit: as in the instruction table.
        mode: way to use it.
        fidelity: one of FIDELITIES.
        vectors: for verified modes, `family:label` (several are separated by commas).
        rule: rule ids.
    """

    mnemonic: str
    unit: str
    mode: str
    fidelity: str
    vectors: str = ""
    rule: str = ""


def table() -> list[Row]:
    """Every instruction in opcode order, a row for each mode; an instruction that nothing executes is missing."""
    return [
        Row(row.mnemonic, row.unit, mode.name, mode.fidelity, mode.vectors, mode.rule)
        for row in INSTRUCTIONS.values()
        for mode in (HANDLERS[row.opcode].modes if row.opcode in HANDLERS else (Mode("any", MISSING),))
    ]


@checked
class Evidence:
    """What the conformance vectors execute.

    Args:
        folder: holds `<family>.npz`.
    """

    def __init__(self, folder: Path = VECTORS) -> None:
        self._folder = folder
        self._file = cache(self._open)
        self._opcodes = cache(self._opcodes_of)

    def missing(self, row: Row) -> str | None:
        """Why the vectors that the row names do not show its instruction at work; None when they do, or need not."""
        if row.fidelity != VERIFIED:
            return f"{row.fidelity} modes name no vectors" if row.vectors else None
        claims = [claim.strip() for claim in row.vectors.split(",")]
        for claim in claims:
            family, colon, label = claim.partition(":")
            file = self._file(family)
            if not colon or file is None:
                return f"{claim!r} names no vector file"
            if label not in file.labels:
                return f"{family} has no label {label!r}"
            if INSTRUCTIONS[row.mnemonic].opcode not in self._opcodes(family, label):
                return f"no case of {claim} executes {row.mnemonic}"
        return None

    def _open(self, family: str) -> VectorFile | None:
        path = self._folder / f"{family}.npz"
        return VectorFile(path) if path.is_file() else None

    def _opcodes_of(self, family: str, label: str) -> frozenset[int]:
        file = self._file(family)
        assert file is not None
        opcodes: set[int] = set()
        for case in file:
            if label in case.labels:
                opcodes.update(word >> 24 for word in _words(file, case.index, case.program))
        return frozenset(opcodes)


def _words(file: VectorFile, index: int, program: tuple[tuple[int, int], ...]) -> Iterator[int]:
    """Words of a case's program, and those that its MOP and REPLAY words can take from the initial state."""
    yield from (word for _, word in program)
    if not any(word >> 24 in (MOP, REPLAY) for _, word in program):
        return
    state = file.initial(index)
    mop_config, replay_buffer = state["mop"][:27].reshape(3, 9), state["replay"].reshape(3, 32)
    for thread in range(3):
        words = [word for user, word in program if user == thread]
        if any(word >> 24 == MOP for word in words):
            expanded = [int(word) for word in mop_config[thread, FIRST_MOP_WORD:]]
            yield from expanded
            words += expanded
        for word in words:
            if word >> 24 == REPLAY and not decode(word)["load_mode"]:
                start, length = decode(word)["start_idx"], decode(word)["len"]
                yield from (int(replay_buffer[thread, slot % 32]) for slot in range(start, start + (length or 32)))
