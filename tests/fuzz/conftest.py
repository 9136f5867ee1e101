"""What tests of the fuzzer share: batches in this process, and a library that is bhemu itself, with faults."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bhemu.fuzz import campaign, layout
from bhemu.fuzz.layout import GPRS, TURN
from bhemu.fuzz.library import Answer, Pieces
from bhemu.fuzz.machine import PAGE, FuzzTile, Program
from bhemu.isa.instruction_table import INSTRUCTIONS


class Here(Executor):
    """Does what is submitted at once."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns and sweeps do their batches here."""

    @contextmanager
    def executor(workers: int, scheduler: str | None) -> Iterator[Executor]:
        yield Here()

    monkeypatch.setattr(campaign, "executor", executor)
    monkeypatch.setattr("bhemu.fuzz.sweep.executor", executor)


@pytest.fixture(autouse=True)
def alarms() -> Iterator[None]:
    """A batch that fails leaves no alarm behind."""
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


REFUSED = "SFPMUL"
FAULTY = "SFPADD"


class FaultyLibrary:
    """bhemu in the place of another library: it refuses SFPMUL, and after SFPADD a byte of L1 is another."""

    def __init__(self, path: Path) -> None:
        self.tile = FuzzTile()

    def run(self, programs: Sequence[tuple[Program, int, Pieces]]) -> list[Answer]:
        return [self._answer(program) for program, _, _ in programs]

    def _answer(self, program: Program) -> Answer:
        opcodes = (program.items >> 24 & 0xFF).tolist()
        if INSTRUCTIONS[REFUSED].opcode in opcodes:
            index = opcodes.index(INSTRUCTIONS[REFUSED].opcode)
            return Answer(refusal=f"UnsupportedFunctionality: sfpmul: {index}", clock=index + 12)
        ran = self.tile.run(Program(program.items, layout.image(program)))
        assert ran.is_whole
        memory = np.array(self.tile.record.l1)
        if INSTRUCTIONS[FAULTY].opcode in opcodes:
            memory[0x100000] ^= 1
        for thread in range(3):
            memory[GPRS + 256 * thread : GPRS + 256 * (thread + 1)] = self.tile.record.gpr[thread].view(np.uint8)
        memory.view(np.uint32)[TURN // 4] = layout.code(program)[1]
        changed = (memory != layout.memory(layout.image(program))).reshape(-1, PAGE).any(axis=1)
        return Answer(
            {int(n): memory[PAGE * n : PAGE * (n + 1)].tobytes() for n in np.flatnonzero(changed)}, ended=True
        )

    def close(self) -> None:
        pass
