"""Running the command line in process, and writing small programs."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.cli.cli_programs import Invoke, WriteProgram, invoke


@pytest.fixture
def bhemu() -> Invoke:
    """`bhemu("run", path, ...)`; see `invoke`."""
    return invoke


@pytest.fixture
def write_program(tmp_path: Path) -> WriteProgram:
    """`write_program(unpack="core.NOP()")` -> file with those thread bodies; or `write_program(source=...)`."""

    def write(*, source: str | None = None, declare: str = "", **bodies: str) -> Path:
        if source is None:
            lines = ["from bhemu import Program", 'program = Program("test")', textwrap.dedent(declare)]
            for thread in ("unpack", "math", "pack"):
                body = textwrap.indent(textwrap.dedent(bodies.get(thread, "pass")), "    ")
                lines += [f"@program.{thread}", f"def {thread}(core):", body]
            source = "\n".join(lines)
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(source))
        return path

    return write
