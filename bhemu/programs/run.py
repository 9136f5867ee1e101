"""Running a program: arrays in, arrays and a report out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bhemu.checks as checks
from bhemu.api.ahead import Ahead
from bhemu.api.tile import Recorder, Tile
from bhemu.checks import checked
from bhemu.errors import FormatError, ProgramError
from bhemu.formats import as_numpy, decode
from bhemu.formats.files import save
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.programs.mnemonics import mnemonics_of
from bhemu.programs.program import Program
from bhemu.programs.schedule import Schedule
from bhemu.programs.tensors import Tensor
from bhemu.programs.thread_core import Core
from bhemu.tensix.coprocessor import expect

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Error:
    """Largest difference of an output from its float64 reference."""

    absolute: float
    relative: float
    """Largest absolute difference over the largest magnitude of the reference."""


@dataclass
class Report:
    """What a run did.

    Attributes:
        units: executed instructions by unit and mnemonic.
        tiles: tiles written.
        cycles: machine cycles in which something moved (an issue count, not silicon time).
        seconds: wall time of the run, compilation included.
        errors: by output, where the program declares a reference.
        open_choices: fault codes of open cases that were executed with the recommended choice.
    """

    units: dict[str, dict[str, int]] = field(default_factory=dict)
    tiles: int = 0
    cycles: int = 0
    seconds: float = 0.0
    errors: dict[str, Error] = field(default_factory=dict)
    open_choices: list[int] = field(default_factory=list)


@checked
@dataclass
class Result:
    """Outputs by name (float32, integer, or the format's own dtype) and the report."""

    outputs: dict[str, Array]
    report: Report
    tile: Tile

    def save(self, name: str, path: str | Path) -> Path:
        """Save an output as a `.npy` file that NumPy and bhemu's commands read: floats as float32, which is exact.

        Raises:
            ProgramError: there is no such output.
            FormatError: the file cannot be written.
        """
        if checks.text(name, "name") not in self.outputs:
            raise ProgramError(f"there is no output {name!r}", remedy=f"outputs are {', '.join(self.outputs)}")
        return save(path, self.outputs[name])

    def plot(self, name: str | None = None, *, ax: Any = None) -> Any:
        """Draw an output with matplotlib, by default the first one; returns the axes.

        Raises:
            ProgramError: there is no such output.
            ConfigurationError: matplotlib is not installed.
        """
        from bhemu.pictures.plot import matrix

        known = list(self.outputs)
        name = known[0] if name is None and known else name
        if name not in self.outputs:
            raise ProgramError(f"there is no output {name!r}", remedy=f"outputs are {', '.join(known) or 'none'}")
        return matrix(self.outputs[name].astype(np.float64), name, ax=ax)

    def _repr_html_(self) -> str:
        from bhemu.api.html import outputs_html
        from bhemu.pictures import html

        report = self.report
        title = f"{report.tiles} tiles, {report.cycles:,} cycles of issue, {report.seconds:.3g} s"
        counts = [(unit, name, n) for unit, found in report.units.items() for name, n in found.items()]
        errors = [(name, f"{e.absolute:.4g}", f"{e.relative:.2g}") for name, e in report.errors.items()]
        parts = [html.heading(title), html.table(("unit", "instruction", "executed"), counts)]
        if errors:
            parts.append(html.table(("output", "largest difference", "of its largest value"), errors))
        return "".join(parts) + outputs_html(self.outputs)


def random_input(tensor: Tensor, rng: np.random.Generator) -> Array:
    """A generated input: standard normal floats, or small integers."""
    if tensor.format.is_integer:
        low, high = (0, 100) if tensor.format.needs_unsigned_bit else (-100, 100)
        return rng.integers(low, high, tensor.shape).astype(tensor.format.dtype)
    return rng.standard_normal(tensor.shape).astype(np.float32)


def _arrays(inputs: Mapping[str, Any]) -> dict[str, Array]:
    return {name: as_numpy(values) for name, values in checks.mapping(inputs, "inputs").items()}


@checked
def run_program(
    program: Program,
    inputs: Mapping[str, Array] | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    max_cycles: int | None = None,
    allow_open: bool = False,
    progress: Callable[[list[Core]], Any] | None = None,
    recorder: Recorder | None = None,
) -> Result:
    """Run a program on a fresh tile.

    Args:
        program: from `load_program`, or built in Python.
        inputs: arrays by tensor name; inputs that are not given are generated.
        settings: parameters and dimension sizes by name, as values or as text.
        seed: of generated inputs.
        max_cycles: stop after this many cycles.
        allow_open: use the recommended choice where no source settles what silicon does.
        progress: called now and then with the three cores.
        recorder: keeps what is executed, for `bhemu.recording`; the run is slower then, its outputs are the same.

    Raises:
        BhemuError: whatever went wrong; no output exists then.
    """
    checks.instance(program, "program", Program)
    seed = checks.integer(seed, "seed", 0)
    max_cycles = checks.optional(max_cycles, checks.integer, "max_cycles", 1, checks.MAX_CLOCKS)
    checks.optional(progress, checks.function, "progress")
    given = {} if inputs is None else _arrays(inputs)
    program.choose({} if settings is None else settings)
    program.bind(given)
    rng = np.random.default_rng(seed)
    opcodes = {INSTRUCTIONS[name].opcode for name in mnemonics_of(program)}
    expect(opcodes)
    with Ahead(opcodes):
        tile = Tile(allow_open=allow_open)  # compiles a part itself
    for tensor in program.inputs:
        values = given.get(tensor.name)
        if values is None:
            values = random_input(tensor, rng)
        try:
            tile.write_tensor(tensor.address, values, tensor.format, tile_shape=tensor.tile_shape)
        except FormatError as error:
            raise FormatError(f"input {tensor.name}: {error.message}", remedy=error.remedy) from None
        tensor.values = tile.read_tensor(tensor.address, tensor.shape, tensor.format, tile_shape=tensor.tile_shape)
    if recorder is not None:
        recorder.attach(tile)
    start = time.perf_counter()
    schedule = Schedule(tile, program, max_cycles=max_cycles, progress=progress)
    schedule.run()
    seconds = time.perf_counter() - start
    outputs = {t.name: tile.read_tensor(t.address, t.shape, t.format, tile_shape=t.tile_shape) for t in program.outputs}
    report = Report(
        units=instructions_by_unit(tile.record.issued),
        tiles=sum(t.tiles for t in program.outputs),
        cycles=int(tile.record.clock),
        seconds=seconds,
        errors=_errors(program, tile),
        open_choices=[int(code) for code in tile.record.open_used if code],
    )
    return Result(outputs, report, tile)


def instructions_by_unit(issued: Array) -> dict[str, dict[str, int]]:
    """Executed instructions by unit and mnemonic, from the counts [thread, opcode] of a tile."""
    totals = issued.sum(axis=0)
    units: dict[str, dict[str, int]] = {}
    for name, row in INSTRUCTIONS.items():
        if totals[row.opcode]:
            units.setdefault(row.unit, {})[name] = int(totals[row.opcode])
    return units


def _errors(program: Program, tile: Tile) -> dict[str, Error]:
    """Differences from the program's float64 reference, which gets the inputs as they are in L1."""
    if program.reference_function is None:
        return {}
    arguments = [np.asarray(t.values).astype(np.float64) for t in program.inputs]
    expected = program.reference_function(*arguments)
    if not isinstance(expected, tuple):
        expected = (expected,)
    if len(expected) != len(program.outputs):
        raise ProgramError(
            f"the reference gives {len(expected)} arrays for {len(program.outputs)} outputs",
            remedy="return one array for each output, in order of declaration",
        )
    errors = {}
    for tensor, model in zip(program.outputs, expected, strict=True):
        region = tile.l1[tensor.address : tensor.address + tensor.bytes].copy()
        got = decode(region, tensor.format, tensor.shape, tile_shape=tensor.tile_shape).astype(np.float64)
        want = np.asarray(model, np.float64)
        if want.shape != got.shape:
            raise ProgramError(
                f"the reference of {tensor.name} has shape {want.shape}, the output {got.shape}",
                remedy="return the output's shape",
            )
        with np.errstate(invalid="ignore"):
            difference = np.abs(got - want)
        difference[got == want] = 0.0  # equal infinities
        largest = float(difference.max())
        scale = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
        errors[tensor.name] = Error(largest, largest / scale if scale else largest)
    return errors
