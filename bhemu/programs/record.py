"""Running a program with a recorder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from bhemu.programs.program import Program
from bhemu.programs.run import Result, run_program
from bhemu.recording.log import Log
from bhemu.recording.recorder import Recorder


def record(
    program: Program, inputs: Mapping[str, np.ndarray[Any, Any]] | None = None, **options: Any
) -> tuple[Result, Log]:
    """Run a program and keep its log.

    Args:
        program: from `load_program`, or built in Python.
        inputs: arrays by tensor name.
        options: those of `run_program`.

    Raises:
        BhemuError: whatever went wrong. To look at the log of a failed run, make a `Recorder` and pass it to
            `run_program`.
    """
    recorder = Recorder()
    recorder.file = program.path
    result = run_program(program, inputs, recorder=recorder, **options)
    return result, recorder.log()
