"""Compiling one function at a time, and keeping the machine code on disk.

An *entry* is a Python function `f(t, a, b[, c])` on a record of state, a tile's as a rule, compiled on its own with a
fixed C signature `int64 f(tile *, int64, int64[, int64])`. Its machine code is stored under a name that contains a hash
of the function's module and of every bhemu module and data file that it can reach, of the compiler's versions and of
the processor: an edit anywhere below an entry gives a new name, so stale code cannot run (design section 1). Numba's
own cache checks only the entry's file.

With `NUMBA_DISABLE_JIT=1` nothing is compiled and entries are the plain functions.
"""

from __future__ import annotations

import ast
import atexit
import ctypes
import functools
import hashlib
import itertools
import marshal
import platform
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import llvmlite.binding
import numba
from numba import njit, types
from numba.core import config as _numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from bhemu.machine.cache import cache_directory, fetch, store
from bhemu.machine.state import TILE_TYPE
from bhemu.machine.types import AnyInt

numba_config: Any = _numba_config  # its attributes are made at run time

# Numba tells functions of one name apart by a number that every process counts from 1. Machine code of many processes
# meets here, and of two weak symbols with one name the linker takes either: so each process counts from its own place.
FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))

JIT = not numba_config.DISABLE_JIT
"""False when Numba is disabled: the same text then runs as plain Python."""

_PACKAGE = Path(__file__).resolve().parent.parent
_NAME = _PACKAGE.name
_MARSHAL = 4
"""Version of the format that all supported versions of Python read: processes of several may share a cache."""


class Progress(Protocol):
    """Told before each compilation that the cache could not answer."""

    def __call__(self, name: str) -> None: ...


_progress: Progress | None = None


def on_compile(progress: Progress | None) -> None:
    """Ask to be told about each compilation; None stops it."""
    global _progress
    _progress = progress


def _names_imported(text: bytes, package: tuple[str, ...]) -> tuple[str, ...]:
    """Dotted names of this package that a module's text imports; some may be no modules but what they hold."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join(base + ([node.module] if node.module else []))
            names = [stem] + [f"{stem}.{alias.name}" for alias in node.names]
        found.update(name for name in names if name.split(".")[0] == _NAME)
    return tuple(sorted(found))


class _KnownImports:
    """What modules import, by the hash of their text, kept on disk: parsing all of them takes a third of a second."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, ...]] | None = None
        self._path = Path()
        self._saves = False

    def of(self, text: bytes, package: tuple[str, ...]) -> tuple[str, ...]:
        key = hashlib.sha256(repr(package).encode() + text).digest()
        if self._known is None:
            self._path = cache_directory() / "imports.bin"
            self._known = self._saved()
        if key not in self._known:
            self._known[key] = _names_imported(text, package)
            if not self._saves:
                self._saves = True
                atexit.register(self._save)
        return self._known[key]

    def _saved(self) -> dict[bytes, tuple[str, ...]]:
        content = fetch(self._path)
        return {} if content is None else dict(marshal.loads(content))

    def _save(self) -> None:
        others = self._saved()  # of processes that have ended meanwhile
        store(self._path, marshal.dumps(others | (self._known or {}), _MARSHAL))


_known_imports = _KnownImports()


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of this package that the file imports directly."""
    package = path.relative_to(_PACKAGE.parent).with_suffix("").parts[:-1]
    found: set[Path] = set()
    for name in _known_imports.of(path.read_bytes(), package):
        target = _PACKAGE.joinpath(*name.split(".")[1:])
        for candidate in (target.with_suffix(".py"), target / "__init__.py"):
            if candidate.is_file():
                found.add(candidate)
    return tuple(sorted(found))


_TABLES = _PACKAGE / "isa" / "data"
"""Tables that become constants in compiled code."""


@functools.cache
def _tables_named(path: Path) -> tuple[Path, ...]:
    """Tables that a module's text names: whoever reads a table does."""
    text = path.read_bytes()
    return tuple(table for table in sorted(_TABLES.iterdir()) if table.name.encode() in text)


_started = time.time()


@functools.cache
def _reached(path: Path) -> tuple[Path, ...]:
    """The module and every module of this package that it reaches, sorted."""
    seen: set[Path] = set()
    todo = [path]
    while todo:
        current = todo.pop()
        if current not in seen:
            seen.add(current)
            todo.extend(_imports(current))
    return tuple(sorted(seen))


@functools.cache
def files_reached(path: Path) -> tuple[Path, ...]:
    """The module, every module of this package that it reaches, and the tables that they read."""
    modules = _reached(path)
    return *modules, *sorted({table for module in modules for table in _tables_named(module)})


@functools.cache
def module_stamp(path: Path) -> bytes:
    """Hash of a module and of every module and table of this package that it reaches."""
    digest = hashlib.sha256()
    for current in files_reached(path):
        digest.update(str(current.relative_to(_PACKAGE)).encode() + current.read_bytes())
    return digest.digest()


def _edited_since_start(path: Path) -> bool:
    """True when a file that the module reaches was written after this process began.

    What Python holds may then be older than the file, so the hash of the file does not name what would be compiled.
    """
    return any(current.stat().st_mtime > _started for current in files_reached(path))


@functools.cache
def _toolchain_stamp() -> bytes:
    facts = (
        sys.version_info[:3],
        numba.__version__,
        metadata.version("llvmlite"),
        metadata.version("numpy"),
        platform.machine(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
        bool(numba_config.BOUNDSCHECK),
    )
    return repr(facts).encode()


@dataclass
class Entry:
    """A compiled entry.

    Attributes:
        name: for messages.
        call: from Python: `call(address_of_tile, a, b[, c])`, or `call(record, ...)` when Numba is disabled.
        address: of the machine code, 0 when Numba is disabled.
        keep: what must live as long as the address is used.
    """

    name: str
    call: Callable[..., int]
    address: int
    keep: Any


def compile_entry(
    name: str,
    function: Callable[..., AnyInt],
    *,
    source: str | None = None,
    arguments: int = 2,
    record: types.Record = TILE_TYPE,
) -> Entry:
    """Compile `function(t, a, b[, c])`, or fetch its machine code from the cache.

    Args:
        name: names the file in the cache.
        function: plain Python function on the record; what it calls is compiled with it.
        source: optional text of a wrapper `def entry(t, a, b)` that calls `body` (the function): how an instruction's
            operands are taken out of its word.
        arguments: integers after the record.
        record: which record it is.
    """
    if not JIT:
        scope: dict[str, Any] = {"body": function}
        if source is not None:
            exec(source, scope)  # the text is generated from the instruction table
            return Entry(name, scope["entry"], 0, None)
        return Entry(name, function, 0, None)
    module = Path(sys.modules[function.__module__].__file__ or "").resolve()
    digest = hashlib.sha256(_toolchain_stamp())
    inside = module.is_relative_to(_PACKAGE)
    digest.update(module_stamp(module) if inside else module.read_bytes())
    cached = inside and not _edited_since_start(module)
    digest.update(module_stamp(Path(__file__).resolve()))
    digest.update(f"{function.__qualname__} {arguments} {source}".encode())
    path = cache_directory() / f"{name}-{digest.hexdigest()[:24]}.bin"
    library: Any = None
    known = fetch(path) if cached else None
    if known is not None:
        address = _load(*marshal.loads(known))
    else:
        if _progress is not None:
            _progress(name)
        symbol, library = _compile(function, source, arguments, record)
        address = library.get_pointer_to_function(symbol)
        if cached:
            store(path, marshal.dumps((symbol, _machine_code(library)), _MARSHAL))
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * arguments)
    return Entry(name, prototype(address), address, library)


def record_of(record: types.Record) -> Any:
    """A function for compiled code: the record of this type at an address, an integer.

    Unlike `carray(pointer, 1)[0]` it makes no array, so nothing is reference-counted.
    """

    @intrinsic
    def at(typing_context: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return record(types.int64), code

    return at


def _compile(
    function: Callable[..., AnyInt], source: str | None, arguments: int, record: types.Record
) -> tuple[str, Any]:
    # Without Numba's reference counting (_nrt): all that it would count are views of the record, and machine code from
    # the cache then needs nothing of Numba's runtime. Code that would allocate does not compile.
    compiler: Any = njit  # its annotations leave out _nrt
    body = compiler(function, error_model="numpy", _nrt=False)
    if source is not None:
        scope: dict[str, Any] = {"body": body}
        exec(source, scope)
        body = compiler(scope["entry"], error_model="numpy", _nrt=False)
    record_at = record_of(record)
    if arguments == 2:

        def entry(address: int, a: int, b: int) -> int:
            return body(record_at(address), a, b)  # type: ignore[no-any-return]

    else:

        def entry(address: int, a: int, b: int, c: int) -> int:  # type: ignore[misc]
            return body(record_at(address), a, b, c)  # type: ignore[no-any-return]

    signature = types.int64(types.int64, *[types.int64] * arguments)
    compiled = numba.cfunc(signature, error_model="numpy", _nrt=False)(entry)  # type: ignore[call-arg]
    return compiled._wrapper_name, compiled._library  # type: ignore[attr-defined]


def _machine_code(library: Any) -> bytes:
    """The object file of a compiled library. Numba keeps the module's bitcode beside it, for code that would link."""
    _, _, (object_file, _) = library.serialize_using_object_code()
    return bytes(object_file)


def _load(symbol: str, object_file: bytes) -> int:
    """Address of a function of an object file, which is linked into the process.

    Straight into Numba's engine, which knows what compiled code may call. To make one of Numba's libraries of it would
    parse the bitcode of everything: ten times the time, and megabytes that nobody uses.
    """
    engine: Any = cpu_target.target_context.codegen()._engine._ee
    engine.add_object_file(llvmlite.binding.ObjectFileRef.from_data(object_file))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))
