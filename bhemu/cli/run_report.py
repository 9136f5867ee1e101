"""What the reports of `bhemu run` on a tile and on a chip have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.report import open_choices

if TYPE_CHECKING:
    from rich.console import Console

    from bhemu.api.semihosting import Semihosting
    from bhemu.api.summary import CoreSummary


def state_of(core: CoreSummary) -> str:
    """What a core was doing at the end."""
    if core.exit_code is not None:
        return f"main returned {core.exit_code}"
    if core.state == "halted":
        return f"halted by {core.why}"
    return {"idle": "idle in an endless loop"}.get(core.state, core.state)


def new_semihosting(*, as_json: bool) -> Semihosting:
    """Serves `ecall`; with a report as JSON, which has standard output for itself, it writes to standard error."""
    from bhemu.api.semihosting import Semihosting

    def to_errors(_stream: int, content: bytes) -> None:
        typer.echo(content.decode("utf-8", "replace"), err=True, nl=False)

    return Semihosting(to_errors) if as_json else Semihosting()


def first_run(compiled: list[str]) -> str:
    """What a time has in it besides the run."""
    return f", of which the compilation of {len(compiled)} functions (first run only)" if compiled else ""


def speed_as_json(retired: int, seconds: float, compiled: list[str], open_used: Iterable[int]) -> Mapping[str, Any]:
    """Instructions of the cores, how long they took, what was compiled, and open cases that were executed."""
    return {
        "retired": retired,
        "seconds": seconds,
        "mips": _mips(retired, seconds),
        "compiled": compiled,
        "open_choices": open_choices(open_used),
    }


def print_speed(console: Console, clocks: int | None, retired: int, seconds: float, compiled: list[str]) -> None:
    """The same as a line; None where a run has no count of clocks."""
    passed = "" if clocks is None else f"{clocks:,} clocks, "
    taken = f"{seconds:.3g} s{first_run(compiled)}, {_mips(retired, seconds):.2f} MIPS"
    console.print(f"{passed}{retired:,} instructions of the cores, {taken}")


def _mips(retired: int, seconds: float) -> float:
    return retired / seconds / 1e6 if seconds > 0 else 0.0


def print_guessed(console: Console, share: float) -> None:
    """Of a run in timed mode: the share of guessed figures, 0 to 1."""
    console.print(f"clocks are estimates of cycles of silicon; {share:.1%} of what they are made of is guessed")


def print_open_choices(console: Console, open_used: Iterable[int]) -> None:
    """Open cases that were executed."""
    for choice in open_choices(open_used):
        console.print(f"open choice used: {choice}", style="yellow", markup=False)
