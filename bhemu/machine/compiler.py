"""Compiling one function at a time, and keeping the machine code on disk.

An *entry* is a Python function `f(t, a, b[, c])` on a record of state, a tile's as a rule, compiled on its own with a
fixed C signature `int64 f(tile *, int64, int64[, int64])`. Its machine code is stored under a name that contains a hash
of the code of the function's module and of every bhemu module and data file that it can reach, of the compiler's
versions and of the processor: an edit of code below an entry gives a new name, so stale code cannot run (design
section 1). Numba's own cache checks only the entry's file.

With `NUMBA_DISABLE_JIT=1` nothing is compiled and entries are the plain functions.
"""

from __future__ import annotations

import ast
import atexit
import ctypes
import functools
import hashlib
import marshal
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Protocol

from numba import types

from bhemu.machine.cache import cache_directory, fetch, store
from bhemu.machine.codegen import JIT as JIT
from bhemu.machine.codegen import compile_function, load_object, makes_linkable_code, object_file, toolchain
from bhemu.machine.linked import addresses
from bhemu.machine.state import TILE_TYPE
from bhemu.machine.types import AnyInt

_PACKAGE = Path(__file__).resolve().parent.parent
_NAME = _PACKAGE.name
_CODEGEN = Path(__file__).resolve().with_name("codegen.py")
_MARSHAL = 4
"""Version of the format that all supported versions of Python read: processes of several may share a cache."""


class Progress(Protocol):
    """Told before each compilation that the cache could not answer."""

    def __call__(self, name: str) -> None: ...


_progress: Progress | None = None


def on_compile(progress: Progress | None, *, unless_asked: bool = False) -> None:
    """Ask to be told about each compilation; None stops it.

    Args:
        progress: what is called.
        unless_asked: leave it as it is when another caller has asked already.
    """
    global _progress
    if not (unless_asked and _progress is not None):
        _progress = progress


def tell(name: str) -> None:
    """Say that a function is being compiled, here or elsewhere."""
    if _progress is not None:
        _progress(name)


@dataclass(frozen=True)
class _Module:
    """What a module's text says, as far as compiled code depends on it.

    Attributes:
        imports: dotted names of this package; some may not be modules but what modules contain.
        tables: file names of tables in its strings.
        code: hash of Python's code of it: comments, docstrings and lines do not count.
    """

    imports: tuple[str, ...]
    tables: tuple[str, ...]
    code: bytes


def _without_texts(tree: ast.Module) -> list[ast.AST]:
    """All statements of a module, those in blocks too, after those that are only strings have been taken away.

    These are docstrings, and the strings below constants, which would become docstrings where they come first.
    """
    found: list[Any] = [tree]
    for node in found:
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                kept = [line for line in block if not _is_text(line)]
                setattr(node, name, kept or [ast.copy_location(ast.Pass(), block[0])])
                found += kept
    return found


def _is_text(line: ast.AST) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


def _constant_text(value: object) -> str:
    """A constant of a code, in the same text in each process: sets of strings have another order in each."""
    if isinstance(value, CodeType):
        return _code_text(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant_text, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant_text, value)))}}}"
    return repr(value)


def _code_text(code: CodeType) -> str:
    """All that a code is, without its lines."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_name
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    table = getattr(code, "co_exceptiontable", b"")
    return f"<{code.co_code!r} {table!r} {names} {counts} {_constant_text(code.co_consts)}>"


def _read(text: bytes, package: tuple[str, ...]) -> _Module:
    tree = ast.parse(text)
    imports: set[str] = set()
    for node in _without_texts(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            stem = ".".join(base + ([node.module] if node.module else []))
            names = [stem] + [f"{stem}.{alias.name}" for alias in node.names]
        imports.update(name for name in names if name.split(".")[0] == _NAME)
    code = _code_text(compile(tree, "", "exec", dont_inherit=True, optimize=0))
    tables = re.findall(r"\w+\.(?:toml|tsv)\b", code)
    return _Module(tuple(sorted(imports)), tuple(sorted(set(tables))), hashlib.sha256(code.encode()).digest())


class _KnownModules:
    """What modules say, by the hash of their text, kept on disk: parsing all of them takes long."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Any, ...]] | None = None
        self._path = Path()
        self._saves = False

    def of(self, text: bytes, package: tuple[str, ...]) -> _Module:
        # Versions of Python differ in their code.
        key = hashlib.sha256(repr((sys.version_info[:3], package)).encode() + text).digest()
        if self._known is None:
            self._path = cache_directory() / "modules.bin"
            self._known = self._saved()
        if key not in self._known:
            module = _read(text, package)
            self._known[key] = (module.imports, module.tables, module.code)
            if not self._saves:
                self._saves = True
                atexit.register(self._save)
        return _Module(*self._known[key])

    def _saved(self) -> dict[bytes, tuple[Any, ...]]:
        content = fetch(self._path)
        return {} if content is None else dict(marshal.loads(content))

    def _save(self) -> None:
        others = self._saved()  # of processes that have ended meanwhile
        store(self._path, marshal.dumps(others | (self._known or {}), _MARSHAL))


_known_modules = _KnownModules()


@functools.cache
def _module(path: Path) -> _Module:
    """What a file of this package says."""
    return _known_modules.of(path.read_bytes(), path.relative_to(_PACKAGE.parent).with_suffix("").parts[:-1])


@functools.cache
def _files() -> dict[str, Path]:
    """The modules of this package by their dotted names."""
    found = {}
    for path in _PACKAGE.rglob("*.py"):
        parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def _imports(path: Path) -> tuple[Path, ...]:
    """Files of this package that the file imports directly."""
    files = _files()
    return tuple(sorted(files[name] for name in _module(path).imports if name in files))


_TABLES = _PACKAGE / "isa" / "data"
"""Tables that become constants in compiled code."""


def _tables_named(path: Path) -> tuple[Path, ...]:
    """Tables that a module's strings name: a module that reads a table names it."""
    return tuple(_TABLES / name for name in _module(path).tables if (_TABLES / name).is_file())


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
    """Hash of a module and of every module and table of this package that it reaches.

    Comments, docstrings and formatting of a module do not change it; compiled code has no line numbers.
    """
    digest = hashlib.sha256()
    for current in files_reached(path):
        content = _module(current).code if current.suffix == ".py" else current.read_bytes()
        digest.update(str(current.relative_to(_PACKAGE)).encode() + content)
    return digest.digest()


def package_path() -> Path:
    """The directory of this package."""
    return _PACKAGE


def _edited_since_start(path: Path) -> bool:
    """True when a file that the module reaches was written after this process began.

    What Python holds may then be older than the file, so the hash of the file does not name what would be compiled.
    """
    return any(current.stat().st_mtime > _started for current in files_reached(path))


@dataclass
class Entry:
    """A compiled entry.

    Attributes:
        name: for messages.
        call: from Python: `call(address_of_tile, a, b[, c])`, or `call(record, ...)` when Numba is disabled.
        address: of the machine code, 0 when Numba is disabled.
        keep: what must live as long as the address is used.
        key: names its machine code: `name` and a hash of all that it depends on; empty when Numba is disabled.
    """

    name: str
    call: Callable[..., int]
    address: int
    keep: Any
    key: str = ""


Objects = dict[str, tuple[str, bytes]]
"""(symbol, object file) of entries by their keys."""
_collected: Objects | None = None
_compiles = True


def collect(objects: Objects, *, compiles: bool = True) -> None:
    """From now on put machine code there instead of loading it: for linking. This process cannot call entries then.

    Args:
        objects: gets the machine code.
        compiles: False: entries are only named, for a machine that is made to be looked at.
    """
    global _collected, _compiles
    _collected, _compiles = objects, compiles


def _key(
    name: str, function: Callable[..., AnyInt], source: str | None, arguments: int, record: types.Record
) -> tuple[str, bool]:
    """(name of an entry's machine code, whether the cache may have it); see `compile_entry`."""
    module = Path(sys.modules[function.__module__].__file__ or "").resolve()
    digest = hashlib.sha256(repr(toolchain()).encode())
    inside = module.is_relative_to(_PACKAGE)
    digest.update(module_stamp(module) if inside else module.read_bytes())
    digest.update(module_stamp(_CODEGEN))
    # A function takes the record as it is given, so it need not reach the module that lays the record out.
    digest.update(f"{function.__qualname__} {arguments} {source} {record!r}".encode())
    return f"{name}-{digest.hexdigest()[:24]}", inside and not _edited_since_start(module)


def is_compiled(
    name: str,
    function: Callable[..., AnyInt],
    *,
    source: str | None = None,
    arguments: int = 2,
    record: types.Record = TILE_TYPE,
) -> bool:
    """True when `compile_entry` would not have to compile, as far as names of files tell."""
    if not JIT:
        return True
    key, cached = _key(name, function, source, arguments, record)
    return cached and (key in addresses(toolchain()) or (cache_directory() / f"{key}.bin").is_file())


def compile_entry(
    name: str,
    function: Callable[..., AnyInt],
    *,
    source: str | None = None,
    arguments: int = 2,
    record: types.Record = TILE_TYPE,
) -> Entry:
    """Compile `function(t, a, b[, c])`, or find its machine code in the library of all entries or in the cache.

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
    key, cached = _key(name, function, source, arguments, record)
    if not _compiles:
        return Entry(name, _not_loaded, 0, None, key)
    library: Any = None
    address = addresses(toolchain()).get(key, 0) if cached and _collected is None else 0
    if not address:
        cached = cached and makes_linkable_code()
        path = cache_directory() / f"{key}.bin"
        known = fetch(path) if cached else None
        if known is not None:
            symbol, content = marshal.loads(known)
        else:
            tell(name)
            symbol, library = compile_function(function, source, arguments, record)
            content = object_file(library)
            if cached:
                store(path, marshal.dumps((symbol, content), _MARSHAL))
        if _collected is not None:
            _collected[key] = symbol, content
            return Entry(name, _not_loaded, 0, None, key)
        address = load_object(symbol, content) if library is None else library.get_pointer_to_function(symbol)
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * arguments)
    return Entry(name, prototype(address), address, library, key)


def _not_loaded(*arguments: int) -> int:
    raise RuntimeError("machine code is collected in this process, not run")
