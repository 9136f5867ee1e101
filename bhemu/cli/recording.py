"""What `--trace`, `--profile` and `--timing` make of a run of ELF files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.analysis import print_timing, timing_as_json

if TYPE_CHECKING:
    from bhemu.analysis.found import FoundHazard
    from bhemu.api.machine import Machine
    from bhemu.recording import CoreRecorder


class Recording:
    """The recorder of a run and its reports.

    Args:
        trace: file of the trace: text for a name that ends in .txt, else JSON for Perfetto.
        show_profile: report functions, source lines and waits of the cores.
        show_timing: report how the cores spent their rounds, and the modelled time of the coprocessor.
        check: kinds of hazards to report, as text; None: none.
        suppressions: a file with hazards to leave out.

    Raises:
        ConfigurationError: a kind does not exist, or the file is not one of suppressions.
    """

    def __init__(
        self,
        trace: Path | None,
        *,
        show_profile: bool,
        show_timing: bool,
        check: str | None = None,
        suppressions: Path | None = None,
    ) -> None:
        from bhemu.analysis.check_tile import parse_kinds
        from bhemu.analysis.suppressions import Suppressions

        self.trace = trace
        self._kinds = parse_kinds(check) if check is not None else ()
        self._hidden = Suppressions.read(suppressions) if suppressions is not None else None
        self._initiators: Any = None
        self.reports = show_profile or show_timing
        self._show_profile = show_profile
        self._show_timing = show_timing
        self._recorder: CoreRecorder | None = None

    def attach(self, machine: Machine) -> None:
        """Record what the machine's tile executes from now on, if anything is wanted of it."""
        if self.trace is None and not self.reports and not self._kinds:
            return
        from bhemu.recording import CoreRecorder

        self._recorder = CoreRecorder(instructions=self.trace is not None or bool(self._kinds))
        self._initiators = machine.tile.record["niu_initiator"].copy()
        self._recorder.attach(machine.tile, machine.executable_at)

    def files(self) -> dict[Path, bytes]:
        """The trace, by its file's name."""
        if self.trace is None or self._recorder is None:
            return {}
        from bhemu.analysis import core_trace

        return {self.trace: core_trace(self._recorder.log(), self.trace)}

    def hazards(self) -> list[FoundHazard] | None:
        """What the check has found; None: it was not asked for."""
        if not self._kinds or self._recorder is None:
            return None
        from bhemu.analysis.found import check_log

        return check_log(self._recorder.log(), self._initiators, self._kinds, self._hidden)

    def show(self) -> None:
        """Print the reports."""
        if not self.reports or self._recorder is None:
            return
        from bhemu.analysis import timing
        from bhemu.recording import core_lines, profile, profile_lines

        log = self._recorder.log()
        found = profile(log)
        typer.echo("\n" + "\n".join(core_lines(found)))
        if self._show_profile:
            typer.echo("\n" + "\n".join(profile_lines(found)))
        if self._show_timing and len(log.tensix):
            if log.tensix_dropped:
                typer.echo(f"\ncoprocessor: the last {len(log.tensix):,} words; {log.tensix_dropped:,} are left out")
            print_timing(timing(log.tensix))

    def as_json(self) -> dict[str, Any]:
        """The same as plain data."""
        if not self.reports or self._recorder is None:
            return {}
        from bhemu.analysis import timing
        from bhemu.recording import profile, profile_as_json

        log = self._recorder.log()
        report: dict[str, Any] = {"profile": profile_as_json(profile(log))}
        if self._show_timing:
            report["timing"] = timing_as_json(timing(log.tensix)) | {"words_left_out": log.tensix_dropped}
        return report
