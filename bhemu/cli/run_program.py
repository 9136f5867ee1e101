"""Running a Python program for `bhemu run`, and its report."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bhemu.cli.analysis import hazards_as_json, print_hazards, print_timing, timing_as_json
from bhemu.cli.progress import Progress
from bhemu.cli.report import (
    REFUSED,
    assignments,
    open_choices,
    output,
    plain_table,
    print_json,
    print_units,
    refuse_usage,
    shown_path,
)
from bhemu.cli.run_options import RunOptions
from bhemu.cli.run_report import first_run, print_open_choices
from bhemu.errors import BhemuError, ProgramError

if TYPE_CHECKING:
    from bhemu.programs.program import Program
    from bhemu.programs.run import Result
    from bhemu.programs.thread_core import Core


def run_program_file(options: RunOptions) -> None:
    """Run a Python program with the options of `bhemu run`."""
    program, trace, show_timing = Path(options.programs[0]), options.trace, options.show_timing
    check = options.check is not None
    seed, as_json, quiet = options.seed, options.as_json, options.quiet
    sources = _paths(assignments(options.inputs, "--in", "a=a.npy"))
    targets = _paths(assignments(options.outputs, "--out", "c=c.npy"))
    chosen = assignments(options.settings, "--set", "M=64")

    from bhemu.analysis.suppressions import Suppressions, order_alone
    from bhemu.cli.arrays import check_target, write_files
    from bhemu.formats.files import load, portable
    from bhemu.programs.load import load_program
    from bhemu.programs.run import run_program

    files = {name: check_target(path) for name, path in targets.items()}
    trace_file = [check_target(trace)] if trace is not None else []
    if len({*files.values(), *trace_file}) < len(files) + len(trace_file):
        refuse_usage("two options write the same file", "give each output, and the trace, a file of its own")
    recorder = None
    hidden = order_alone(options.check, options.suppressions) if options.check is not None else Suppressions()
    if show_timing or check or trace_file:
        from bhemu.analysis import HAZARD, hazards, timing, trace_json
        from bhemu.recording import Recorder

        recorder = Recorder()
        recorder.file = program
    try:
        loaded = load_program(program)
        _check_names(loaded, sources, targets)
        arrays = {name: load(path) for name, path in sources.items()}
        with RunProgress(loaded, silent=quiet) as progress:
            result = run_program(
                loaded,
                arrays,
                settings=chosen,
                seed=seed,
                max_cycles=options.max_cycles,
                allow_open=options.allow_open,
                progress=progress.update,
                recorder=recorder,
            )
    except BhemuError as error:
        error.file = error.file or program
        if recorder is not None and check:
            print_hazards(hidden.left(hazards(recorder.log()), program), error=True)
        raise
    except SystemExit:
        raise ProgramError(f"{program} called sys.exit", remedy="let the thread functions return") from None
    except Exception as error:
        raise _failure_of(error, program) from error
    contents: dict[Path, Any] = {files[name]: portable(result.outputs[name]) for name in files}
    timed, found = None, None
    if recorder is not None:
        log = recorder.log()
        timed = timing(log) if show_timing or trace_file else None
        found = hidden.left(hazards(log), program) if check else None
        contents |= {path: trace_json(log, timed) for path in trace_file if timed is not None}
    write_files(contents)
    if as_json:
        report = _as_json(loaded, result, sources, targets, seed, progress.compiled)
        report |= {"timing": timing_as_json(timed)} if timed is not None else {}
        report |= {"hazards": hazards_as_json(found)} if found is not None else {}
        print_json(report)
    elif not quiet:
        _print(loaded, result, sources, targets, seed, progress.compiled)
        if timed is not None and show_timing:
            print_timing(timed)
        if found is not None:
            print_hazards(found)
    if found is not None and any(hazard.severity == HAZARD for hazard in found):
        if quiet and not as_json:
            print_hazards(found, error=True)
        raise typer.Exit(REFUSED)


def _paths(texts: dict[str, str]) -> dict[str, Path]:
    return {name: Path(text) for name, text in texts.items()}


def _failure_of(error: Exception, program: Path) -> Exception:
    """What a program's own failure, such as one of its reference, is reported as; a failure of bhemu stays as it is."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(program.absolute())]
    if not lines:
        return error
    failure = ProgramError(f"{type(error).__name__}: {error}", remedy="fix the program")
    failure.file, failure.line = program, lines[-1]
    return failure


def _check_names(program: Program, sources: dict[str, Path], targets: dict[str, Path]) -> None:
    """Refuse tensors that the program does not declare, before anything is read or run."""
    for option, given, known in (("input", sources, program.inputs), ("output", targets, program.outputs)):
        names = [tensor.name for tensor in known]
        for name in given:
            if name not in names:
                raise ProgramError(
                    f"the program has no {option} {name!r}", remedy=f"its {option}s: {', '.join(names) or 'none'}"
                )


class RunProgress(Progress):
    """Progress in tiles and cycles.

    Args:
        program: for the number of tiles, once it is bound.
        silent: show nothing.
    """

    def __init__(self, program: Program, *, silent: bool) -> None:
        super().__init__(silent=silent)
        self._program = program

    def __enter__(self) -> RunProgress:
        super().__enter__()
        return self

    def update(self, cores: list[Core]) -> None:
        """Called by the schedule, often."""
        if not self.is_due:
            return
        tiles = sum(tensor.tiles for tensor in self._program.outputs)
        done = max(core.tiles_done for core in cores)
        cycles = int(cores[0].tile.record.clock)
        self.show(f"{done} of {tiles} tiles, {cycles:,} cycles" if done else f"{cycles:,} cycles")


def _as_json(
    program: Program,
    result: Result,
    sources: dict[str, Path],
    targets: dict[str, Path],
    seed: int,
    compiled: list[str],
) -> dict[str, Any]:
    report = result.report
    return {
        "program": str(program.path),
        "title": program.title,
        "dimensions": program.dimensions,
        "parameters": program.parameters,
        "inputs": [
            {
                "name": t.name,
                "shape": list(t.shape),
                "format": t.format.name,
                "file": str(sources[t.name]) if t.name in sources else None,
                "seed": None if t.name in sources else seed,
            }
            for t in program.inputs
        ],
        "outputs": [
            {
                "name": t.name,
                "shape": list(t.shape),
                "format": t.format.name,
                "file": str(targets[t.name]) if t.name in targets else None,
                "difference": vars(report.errors[t.name]) if t.name in report.errors else None,
            }
            for t in program.outputs
        ],
        "instructions": report.units,
        "tiles": report.tiles,
        "cycles": report.cycles,
        "seconds": report.seconds,
        "compiled": compiled,
        "open_choices": open_choices(result.report.open_choices),
    }


def _print(
    program: Program,
    result: Result,
    sources: dict[str, Path],
    targets: dict[str, Path],
    seed: int,
    compiled: list[str],
) -> None:
    console, report = output(), result.report
    console.print(program.title or shown_path(program.path or Path()), style="bold", markup=False)
    choices = [f"{name} = {value}" for name, value in program.parameters.items()]
    if choices:
        console.print(", ".join(choices), markup=False)

    tensors = plain_table("tensor", "shape", "format", "")
    for t in program.tensors.values():
        if t.is_output:
            origin = f"written to {targets[t.name]}" if t.name in targets else "not saved (--out)"
        else:
            origin = f"from {sources[t.name]}" if t.name in sources else f"generated, seed {seed}"
        shape = " x ".join(map(str, t.shape))
        tensors.add_row(f"{'output' if t.is_output else 'input'} {t.name}", shape, t.format.name, origin)
    console.print(tensors)
    console.print()

    print_units(console, report.units)

    taken = f"{report.seconds:.3g} s{first_run(compiled)}"
    console.print(f"{report.tiles} tiles, {report.cycles:,} cycles of issue, {taken}")
    for name, error in report.errors.items():
        console.print(
            f"largest difference of {name} from the float64 reference: {error.absolute:.4g} "
            f"({error.relative:.2g} of its largest value)",
            markup=False,
        )
    if not report.errors:
        console.print("no difference measured: the program declares no reference")
    print_open_choices(console, report.open_choices)
