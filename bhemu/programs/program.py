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
`bhemu.programs.thread_core.Core`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import bhemu.checks as checks
from bhemu.checks import checked
from bhemu.errors import MemoryError_, ProgramError
from bhemu.formats import DataFormat, TileShape
from bhemu.formats.layout import check_tile_shape
from bhemu.programs.tensors import Dimension, Tensor, check_whole_tiles, match, place

Array = np.ndarray[Any, Any]
ThreadFunction = Callable[..., None]
"""Takes the thread's `bhemu.programs.thread_core.Core`."""


@dataclass
class Parameter:
    """A choice that the user makes with `--set name=value`."""

    name: str
    default: Any
    choices: tuple[Any, ...] = ()
    help: str = ""


@checked
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
        checks.text(name, "name")
        checks.optional(address, checks.integer, "address", 0, error=MemoryError_)
        if isinstance(shape, (str, bytes)):
            raise ProgramError(f"tensor {name!r} has shape {shape!r}", remedy='give a tuple, for example ("M", "N")')
        sizes = checks.items(shape, "shape")
        shape = tuple(d if isinstance(d, str) else checks.integer(d, "a dimension", 1) for d in sizes)
        if tile_shape is not None:
            tile_shape = check_tile_shape(tile_shape)
        if name in self.tensors:
            raise ProgramError(f"tensor {name!r} is declared twice", remedy="give each tensor its own name")
        if not shape:
            raise ProgramError(f"tensor {name!r} has no dimensions", remedy="declare rows and columns")
        tensor = Tensor(name, shape, DataFormat.parse(data_format), tile_shape, is_output, address)
        self.tensors[name] = tensor
        return tensor

    def dimension(self, name: str, default: int) -> None:
        """Size of a named dimension where no input file binds it."""
        self.defaults[checks.text(name, "name")] = checks.integer(default, "default", 1)

    def parameter(self, name: str, default: Any, *, choices: tuple[Any, ...] = (), help: str = "") -> None:
        """Declare a choice for `--set name=value`; read it from `program.parameters[name]`."""
        known = tuple(checks.items(choices, "choices"))
        self.declared[checks.text(name, "name")] = Parameter(name, default, known, checks.text(help, "help"))
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
        self.threads[index] = checks.function(function, "function")
        return function

    def reference(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: a float64 NumPy model, `f(inputs..., in order of declaration)` -> output or tuple of outputs."""
        self.reference_function = checks.function(function, "function")
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

    def choose(self, settings: Mapping[str, Any]) -> None:
        """Set parameters and default sizes of named dimensions, by value or by text, as from `--set`."""
        for name, value in checks.mapping(settings, "settings").items():
            text = str(value)
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
                match(tensor, given.shape, sizes)
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
            check_whole_tiles(tensor)
        place(self.tensors.values())


def _choice(declared: Parameter, text: str) -> Any:
    known = declared.choices or ((True, False) if isinstance(declared.default, bool) else ())
    for choice in known:
        if str(choice).lower() == text.lower():
            return choice
    if known:
        raise ProgramError(
            f"{declared.name} = {text!r} is not a choice", remedy=f"choose from: {', '.join(map(str, known))}"
        )
    try:
        return type(declared.default)(text)
    except ValueError:
        raise ProgramError(
            f"{declared.name} = {text!r} is not of type {type(declared.default).__name__}",
            remedy=f"for example {declared.default!r}",
        ) from None
