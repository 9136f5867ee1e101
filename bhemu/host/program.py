"""Programs: what a `.py` file for `bhemu run` declares.

    from bhemu import Program

    program = Program("add one to every datum")
    a = program.input("a", ("M", "N"), "bf16")
    c = program.output("c", ("M", "N"), "bf16")

    @program.unpack
    def unpack(core): ...

    @program.math
    def math(core): ...

    @program.pack
    def pack(core): ...

Each function plays the RISC-V core of one Tensix thread: it issues instructions, writes configuration and waits (see
`bhemu.host.core.Core`).
"""

from __future__ import annotations

import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bhemu.errors import BhemuError, FormatError, MemoryError_, ProgramError
from bhemu.formats import DataFormat, TileShape, tensor_size
from bhemu.machine.state import L1_SIZE

if TYPE_CHECKING:
    from bhemu.host.core import Core

Array = np.ndarray[Any, Any]
ThreadFunction = Callable[["Core"], None]
Dimension = int | str

FIRST_ADDRESS = 0x8000
"""Where buffers without an address of their own begin; what lies below is left to the program."""


@dataclass
class Tensor:
    """A tensor that a program reads or writes.

    Attributes:
        name: as `--in name=file.npy` and `--out name=file.npy` use it.
        dimensions: shape, integers or names that inputs bind (`"M"`).
        format: of its datums in L1.
        tile_shape: rows and columns of a tile, or None for row-major order.
        is_output: written by the program.
        address: byte address in L1; chosen by bhemu unless the program names one.
        shape: the shape of this run.
        values: an input's values, for the reference.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    format: DataFormat
    tile_shape: TileShape | None
    is_output: bool
    address: int = -1
    shape: tuple[int, ...] = ()
    values: Array | None = None

    @property
    def bytes(self) -> int:
        """Size in L1 in bytes."""
        return tensor_size(self.shape, self.format, tile_shape=self.tile_shape)

    @property
    def tiles(self) -> int:
        """Number of tiles (1 for row-major order)."""
        if self.tile_shape is None:
            return 1
        return math.prod(self.shape) // (self.tile_shape[0] * self.tile_shape[1])

    @property
    def tile_bytes(self) -> int:
        """Bytes of one tile."""
        return self.bytes // self.tiles

    def tile_grid(self) -> tuple[int, int]:
        """Tile rows and tile columns of the last two dimensions."""
        if self.tile_shape is None:
            return 1, 1
        return self.shape[-2] // self.tile_shape[0], self.shape[-1] // self.tile_shape[1]

    def tile_address(self, index: int) -> int:
        """Byte address of tile `index` in row-major tile order."""
        if not 0 <= index < self.tiles:
            raise MemoryError_(f"tensor {self.name} has no tile {index}", remedy=f"it has tiles 0 to {self.tiles - 1}")
        return self.address + index * self.tile_bytes


@dataclass
class Parameter:
    """A choice that the user makes with `--set name=value`."""

    name: str
    default: Any
    choices: tuple[Any, ...] = ()
    help: str = ""


@dataclass
class Program:
    """Three threads, their tensors and parameters.

    Attributes:
        title: one line for the report.
        parameters: value of each parameter in this run, by name.
        dimensions: value of each named dimension in this run.
    """

    title: str = ""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    declared: dict[str, Parameter] = field(default_factory=dict)
    defaults: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    dimensions: dict[str, int] = field(default_factory=dict)
    threads: list[ThreadFunction | None] = field(default_factory=lambda: [None, None, None])
    reference_function: Callable[..., Any] | None = None
    path: Path | None = None

    def input(
        self,
        name: str,
        shape: tuple[Dimension, ...],
        format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        address: int | None = None,
    ) -> Tensor:
        """Declare a tensor that the program reads.

        Args:
            name: for `--in name=file.npy`.
            shape: integers, or names that the file's shape binds.
            format: of the datums in L1.
            tile_shape: tile rows and columns, None for row-major order.
            address: byte address in L1 (multiple of 16); bhemu chooses one if None.
        """
        return self._tensor(name, shape, format, tile_shape, address, False)

    def output(
        self,
        name: str,
        shape: tuple[Dimension, ...],
        format: DataFormat | str,
        *,
        tile_shape: TileShape | None = (32, 32),
        address: int | None = None,
    ) -> Tensor:
        """Declare a tensor that the program writes; arguments as for `input`."""
        return self._tensor(name, shape, format, tile_shape, address, True)

    def _tensor(
        self,
        name: str,
        shape: tuple[Dimension, ...],
        data_format: DataFormat | str,
        tile_shape: TileShape | None,
        address: int | None,
        is_output: bool,
    ) -> Tensor:
        if name in self.tensors:
            raise ProgramError(f"tensor {name!r} is declared twice", remedy="give each tensor its own name")
        if not shape:
            raise ProgramError(f"tensor {name!r} has no dimensions", remedy="declare rows and columns")
        tensor = Tensor(name, tuple(shape), DataFormat.parse(data_format), tile_shape, is_output)
        if address is not None:
            tensor.address = address
        self.tensors[name] = tensor
        return tensor

    def dimension(self, name: str, default: int) -> None:
        """Size of a named dimension where no input file binds it."""
        self.defaults[name] = default

    def parameter(self, name: str, default: Any, *, choices: tuple[Any, ...] = (), help: str = "") -> None:
        """Declare a choice for `--set name=value`; read it from `program.parameters[name]`."""
        self.declared[name] = Parameter(name, default, choices, help)
        self.parameters[name] = default

    def unpack(self, function: ThreadFunction) -> ThreadFunction:
        """Decorator: the function of thread 0."""
        return self._thread(0, function)

    def math(self, function: ThreadFunction) -> ThreadFunction:
        """Decorator: the function of thread 1."""
        return self._thread(1, function)

    def pack(self, function: ThreadFunction) -> ThreadFunction:
        """Decorator: the function of thread 2."""
        return self._thread(2, function)

    def _thread(self, index: int, function: ThreadFunction) -> ThreadFunction:
        if self.threads[index] is not None:
            raise ProgramError(f"thread {index} has two functions", remedy="keep one")
        self.threads[index] = function
        return function

    def reference(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: a float64 NumPy model, `f(inputs..., in order of declaration)` -> output or tuple of outputs."""
        self.reference_function = function
        return function

    @property
    def inputs(self) -> list[Tensor]:
        """Tensors that the program reads, in order of declaration."""
        return [t for t in self.tensors.values() if not t.is_output]

    @property
    def outputs(self) -> list[Tensor]:
        """Tensors that the program writes, in order of declaration."""
        return [t for t in self.tensors.values() if t.is_output]

    # --- preparing a run --------------------------------------------------------------------------------------------

    def choose(self, settings: Mapping[str, str]) -> None:
        """Set parameters (by text, as from `--set`) and default sizes of named dimensions."""
        for name, text in settings.items():
            declared = self.declared.get(name)
            if declared is not None:
                self.parameters[name] = _choice(declared, text)
            elif any(name in t.dimensions for t in self.tensors.values()):
                if not text.isdigit() or int(text) == 0:
                    raise ProgramError(
                        f"--set {name}={text}: a dimension is a positive integer", remedy=f"--set {name}=64"
                    )
                self.defaults[name] = int(text)
            else:
                known = ", ".join([*self.declared, *self.named_dimensions()]) or "nothing"
                raise ProgramError(f"the program has no parameter {name!r}", remedy=f"it has: {known}")

    def named_dimensions(self) -> list[str]:
        """Names of dimensions, in order of appearance."""
        names = [d for t in self.tensors.values() for d in t.dimensions if isinstance(d, str)]
        return list(dict.fromkeys(names))

    def bind(self, inputs: Mapping[str, Array]) -> None:
        """Fix every shape and address from the shapes of the given inputs and the default sizes.

        Raises:
            ProgramError: an unknown tensor, a shape that contradicts the declaration, a size that nothing fixes.
            FormatError: a shape that is not whole tiles.
            MemoryError_: the buffers do not fit into L1, or overlap.
        """
        for name in inputs:
            if name not in self.tensors or self.tensors[name].is_output:
                raise ProgramError(
                    f"the program has no input {name!r}", remedy=f"its inputs: {', '.join(t.name for t in self.inputs)}"
                )
        sizes: dict[str, int] = {}
        for tensor in self.inputs:
            given = inputs.get(tensor.name)
            if given is not None:
                _match(tensor, given.shape, sizes)
        for name in self.named_dimensions():
            if name not in sizes:
                if name not in self.defaults:
                    raise ProgramError(
                        f"nothing fixes the size of dimension {name}",
                        remedy=f"give an input that has it, or --set {name}=64",
                    )
                sizes[name] = self.defaults[name]
        self.dimensions = sizes
        for tensor in self.tensors.values():
            tensor.shape = tuple(sizes[d] if isinstance(d, str) else d for d in tensor.dimensions)
            _whole_tiles(tensor)
        self._place()

    def _place(self) -> None:
        fixed = [t for t in self.tensors.values() if t.address >= 0]
        taken: list[tuple[int, int, str]] = []
        for tensor in fixed:
            if tensor.address % 16 or tensor.address + tensor.bytes > L1_SIZE:
                raise MemoryError_(
                    f"tensor {tensor.name}: {tensor.bytes} bytes at {tensor.address:#x} are no aligned range of L1 "
                    f"(0..{L1_SIZE:#x})",
                    remedy="use a multiple of 16 and leave room for the whole tensor",
                )
            for first, last, other in taken:
                if tensor.address < last and first < tensor.address + tensor.bytes:
                    raise MemoryError_(
                        f"tensor {tensor.name} at {tensor.address:#x}..{tensor.address + tensor.bytes:#x} overlaps "
                        f"{other} at {first:#x}..{last:#x}",
                        remedy="move one of them, or let bhemu choose the address",
                    )
            taken.append((tensor.address, tensor.address + tensor.bytes, tensor.name))
        for tensor in self.tensors.values():
            if tensor in fixed:
                continue
            at = FIRST_ADDRESS
            for first, last, _name in sorted(taken):
                if at + tensor.bytes > first and at < last:
                    at = (last + 63) & ~63
            if at + tensor.bytes > L1_SIZE:
                total = sum(t.bytes for t in self.tensors.values())
                raise MemoryError_(
                    f"tensor {tensor.name} ({tensor.bytes} bytes) does not fit: the tensors need {total} bytes of L1, "
                    f"which has {L1_SIZE - FIRST_ADDRESS}",
                    remedy="use smaller tensors or a denser format, or work on them in parts",
                )
            tensor.address = at
            taken.append((at, at + tensor.bytes, tensor.name))


def _choice(declared: Parameter, text: str) -> Any:
    known = declared.choices or ((True, False) if isinstance(declared.default, bool) else ())
    for choice in known:
        if str(choice).lower() == text.lower():
            return choice
    if known:
        raise ProgramError(
            f"{declared.name} = {text!r} is no choice", remedy=f"choose from: {', '.join(map(str, known))}"
        )
    try:
        return type(declared.default)(text)
    except ValueError:
        raise ProgramError(
            f"{declared.name} = {text!r} is no {type(declared.default).__name__}",
            remedy=f"for example {declared.default!r}",
        ) from None


def _match(tensor: Tensor, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    if len(shape) != len(tensor.dimensions):
        raise ProgramError(
            f"input {tensor.name} has shape {shape}, the program declares {len(tensor.dimensions)} dimensions "
            f"({', '.join(map(str, tensor.dimensions))})",
            remedy="reshape the array",
        )
    for declared, given in zip(tensor.dimensions, shape, strict=True):
        known = sizes.setdefault(declared, given) if isinstance(declared, str) else declared
        if known != given:
            raise ProgramError(
                f"input {tensor.name} has shape {shape}, but {declared} is {known}",
                remedy="give inputs whose shapes agree",
            )


def _whole_tiles(tensor: Tensor) -> None:
    try:
        size = tensor.bytes
    except BhemuError as error:
        raise FormatError(f"tensor {tensor.name}: {error.message}", remedy=error.remedy) from None
    if size == 0:
        raise FormatError(f"tensor {tensor.name} has no datums (shape {tensor.shape})", remedy="give it some")


def _line_of(error: BaseException, path: Path) -> int | None:
    """The innermost line of the program in the error's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None


def load_program(path: str | Path) -> Program:
    """The program that a Python file declares.

    Raises:
        ProgramError: the file is missing, fails, or declares no program with three threads.
    """
    source = Path(path)
    if not source.is_file():
        raise ProgramError(f"{source}: no such file", remedy="name a Python file that declares a bhemu.Program")
    name = f"bhemu_program_{source.stem}"
    absolute = source.absolute()  # as code objects name it, so that lines of the program are found in tracebacks
    spec = importlib.util.spec_from_file_location(name, absolute)
    if spec is None or spec.loader is None:
        raise ProgramError(f"{source} is no Python file", remedy="a program's name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(
        0, str(source.resolve().parent)
    )  # as Python itself does for a script, so that it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BhemuError as error:
        error.file, error.line = absolute, error.line or _line_of(error, absolute)
        raise
    except SyntaxError as error:
        failure = ProgramError(f"{error.msg}: {(error.text or '').strip()}", remedy="mend the syntax")
        failure.file, failure.line = Path(error.filename or absolute), error.lineno
        raise failure from None
    except Exception as error:
        failure = ProgramError(f"{type(error).__name__}: {error}", remedy="mend the program")
        failure.file, failure.line = absolute, _line_of(error, absolute)
        raise failure from None
    finally:
        sys.path.remove(str(source.resolve().parent))
    programs = [value for value in vars(module).values() if isinstance(value, Program)]
    if len(programs) != 1:
        raise ProgramError(
            f"{source} declares {len(programs)} programs", remedy="declare one: program = bhemu.Program('title')"
        )
    program = programs[0]
    program.path = absolute
    missing = [n for n, f in zip(("unpack", "math", "pack"), program.threads, strict=True) if f is None]
    if missing:
        raise ProgramError(
            f"{source}: no function for thread {', '.join(missing)}", remedy=f"decorate one with @program.{missing[0]}"
        )
    return program
