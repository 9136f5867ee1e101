"""Programs and names that the tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from bhemu.cli.main import app

COPY = """
    from bhemu import Program

    program = Program("copy in L1")
    a = program.input("a", ("M", "N"), "bf16")
    c = program.output("c", ("M", "N"), "bf16")
    program.dimension("M", 32)
    program.dimension("N", 64)
    program.parameter("scale", 1, choices=(1, 2))

    @program.reference
    def reference(a):
        return a

    @program.unpack
    def unpack(core):
        core.SETDMAREG(0x1234, 6)

    @program.math
    def math(core):
        core.SEMINIT(max_value=2, init_value=0, sem_sel=2)
        core.SEMPOST(sem_sel=2)

    @program.pack
    def pack(core):
        l1 = core.tile.l1
        l1[c.address : c.address + c.bytes] = l1[a.address : a.address + a.bytes]
        core.tile_done()
"""
"""Copies its input to its output as the RISC-V core of the pack thread, and issues three instructions."""

Invoke = Callable[..., Any]


def invoke(*arguments: object) -> Any:
    """`bhemu ARGUMENTS`: exit_code, stdout and stderr; an exception fails the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


WriteProgram = Callable[..., Path]


def line_of(path: Path, text: str) -> int:
    """Number of the first line that contains `text`."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), start=1) if text in line)
