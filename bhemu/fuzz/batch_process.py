"""A process for each batch: what a batch may end is this process, and a Dask worker's threads cannot have its alarms.

python -m bhemu.fuzz.batch_process MODULE      a task as JSON on standard input, what came of it on descriptor 1
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bhemu import errors
from bhemu.errors import BhemuError
from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.machine.processes import end_with_parent


def run(task: Task, module: str) -> Result:
    """Do a batch in another process.

    Raises:
        BhemuError: the batch could not be done, for example as a library cannot be loaded.
    """
    process = subprocess.run(
        [sys.executable, "-m", "bhemu.fuzz.batch_process", module],
        input=json.dumps(dataclasses.asdict(task), default=str).encode(),
        stdout=subprocess.PIPE,
        check=False,
    )
    if process.returncode == 0:
        content = json.loads(process.stdout)
        if "refused" in content:
            raise _error(*content["refused"])
        return _result(content)
    code = process.returncode
    how = signal.Signals(-code).name if code < 0 else f"status {code}"
    title = f"{task.kind}: the process of a batch ends with {how}"
    return Result(findings=[Finding(title, f"batch with seed {task.seed} and size {task.size}")])


def _error(name: str, message: str, remedy: str | None) -> BhemuError:
    kind = getattr(errors, name, BhemuError)
    return kind(message, remedy=remedy)


def _result(content: dict[str, Any]) -> Result:
    return Result(
        content["done"],
        Counter(content["counts"]),
        Counter(content["refusals"]),
        set(content["features"]),
        [Finding(**finding) for finding in content["findings"]],
    )


def main() -> None:
    """The process."""
    end_with_parent()
    given = json.loads(sys.stdin.buffer.read())
    library = given["library"]
    task = Task(given["kind"], given["seed"], given["size"], library and Path(library), Path(given["keep"]))
    answer = os.dup(1)
    os.dup2(2, 1)  # what is printed is not the answer
    content: dict[str, Any]
    try:
        result = importlib.import_module(f"bhemu.fuzz.{sys.argv[1]}").run(task)
        findings = [dataclasses.asdict(finding) for finding in result.findings]
        content = vars(result) | {"features": sorted(result.features), "findings": findings}
    except BhemuError as error:
        content = {"refused": (type(error).__name__, error.message, error.remedy)}
    with os.fdopen(answer, "w") as stream:
        json.dump(content, stream)


if __name__ == "__main__":
    main()
