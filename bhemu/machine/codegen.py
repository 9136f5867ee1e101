"""How Numba makes machine code here: what decides it besides the text that is compiled.

Code is position-independent, for the small code model. Numba by itself asks LLVM for static code of the large model,
whose sections may be anywhere in the address space; a linker cannot put that into a shared library. Sections of
the small model must be within 2 GiB of each other, so those of an object get one piece of memory (llvmlite's memory
manager). How large that has to be LLVM counts too low: `give_room` says more.

The functions below an entry are kernels (compiling/steps.py): intermediate code until the entry is made of them.
"""

from __future__ import annotations

import functools
import gc
import itertools
import platform
import secrets
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

import llvmlite.binding
import numba
from numba import njit, types
from numba.core import config as _numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from bhemu.compiling.steps import AlignedCompiler, KernelCompiler, SeldomCompiler, has_vectors
from bhemu.machine.types import AnyInt

numba_config: Any = _numba_config  # its attributes are made at run time

# Numba tells functions of one name apart by a number that every process counts from 1. Machine code of many processes
# meets here, and of two weak symbols with one name the linker takes either: so each process counts from its own place.
FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))

JIT = not numba_config.DISABLE_JIT
"""False when Numba is disabled: the same text then runs as plain Python."""

_numbas_options: Any = JITCPUCodegen._customize_tm_options
_linkable: weakref.WeakSet[Any] = weakref.WeakSet()


def _options(codegen: Any, options: dict[str, Any]) -> None:
    _numbas_options(codegen, options)
    options.pop("jit", None)
    options["reloc"], options["codemodel"] = "pic", "small"
    numba_config.USE_LLVMLITE_MEMORY_MANAGER = 1  # read when the options are known
    _linkable.add(codegen)


JITCPUCodegen._customize_tm_options = _options  # type: ignore[method-assign]


_ROOM = """
@bhemu_room = common global i64 0, align 2048
"""


def give_room(module: Any) -> None:
    """Let a module's object have room for what LLVM forgets, else the process ends where its data nearly fill a page.

    Each external function that is called needs a pointer in writable memory, which LLVM does not count when it says how
    much memory the object will take. It counts each kind of writable data in multiples of the largest alignment, so one
    word with a large one makes room for some hundred pointers. Objects that are linked share the word.

    Args:
        module: of llvmlite, optimized.
    """
    module.link_in(llvmlite.binding.parse_assembly(_ROOM))


_numbas_finish: Any = JITCodeLibrary._finalize_specific


def _finish(library: Any) -> None:
    if library.codegen in _linkable:
        give_room(library._final_module)
    _numbas_finish(library)


JITCodeLibrary._finalize_specific = _finish  # type: ignore[method-assign]

_numbas_optimize: Any = JITCodeLibrary._optimize_final_module


def _optimize(library: Any) -> None:
    """What an entry calls has no callers outside of its module: LLVM inlines functions with one caller.

    It removes what is left over, and may give a function fewer arguments. So these get names of their own: where Numba
    loads a module that has a function of the same name, it takes the one that was loaded first, of whatever linkage.
    Modules of other libraries of Numba's are linked into entries, and keep their names.
    """
    functions = [function for function in library._final_module.functions if not function.is_declaration]
    if library.codegen in _linkable and any(function.name.startswith(_ENTRY) for function in functions):
        for function in functions:
            if not function.name.startswith(_ENTRY):
                function.linkage = "internal"
                function.name += _INTERNAL
    _numbas_optimize(library)


_INTERNAL = ".of_entry"
"""A suffix, as compilers give to clones: tools that show names leave it out, or show it."""
# Numba's name of the C function that `compile_function` makes.
_ENTRY = "cfunc._ZN5bhemu7machine7codegen16compile_function"
JITCodeLibrary._optimize_final_module = _optimize  # type: ignore[method-assign]


def makes_linkable_code() -> bool:
    """False when a program has compiled something with Numba before it has imported bhemu.

    The process then has a code generator of Numba's kind, and only one. Its code runs, but does not belong into the
    cache, and it does not load what is there.
    """
    return cpu_target.target_context.codegen() in _linkable


@functools.cache
def toolchain() -> tuple[object, ...]:
    """Versions of what makes machine code, and the processor that it is made for."""
    host = llvmlite.binding
    return (
        sys.version_info[:3],
        numba.__version__,
        metadata.version("llvmlite"),
        metadata.version("numpy"),
        platform.machine(),
        numba_config.CPU_NAME or host.get_host_cpu_name(),
        host.get_host_cpu_features().flatten() if numba_config.CPU_NAME is None else numba_config.CPU_FEATURES,
        bool(numba_config.BOUNDSCHECK),
    )


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


KERNEL: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": KernelCompiler}
"""Options of `njit` for what only compiled code calls: no wrapper for Python or C, no machine code of its own."""
SELDOM: dict[str, Any] = {**KERNEL, "pipeline_class": SeldomCompiler, "forceinline": False}
"""For what a loop calls seldom: inlined, it would take registers of the processor away from the loop."""


_record: Any = types.Record
_numbas_text_of_record = _record.__repr__


def _text_of_record(record: Any) -> str:
    if "_text" not in vars(record):
        record._text = _numbas_text_of_record(record)
    return str(record._text)


# Each of Numba's steps writes the types of its arguments out, and a tile's record is a page long.
_record.__repr__ = _text_of_record


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Let garbage be until an entry is compiled: to look for it takes a tenth of the time, to keep it some 50 MB."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_garbage_kept()
def compile_function(
    function: Callable[..., AnyInt], source: str | None, arguments: int, record: types.Record
) -> tuple[str, Any]:
    """(symbol, compiled library) of `int64 f(record *, int64, int64[, int64])`; see `bhemu.machine.compiler`."""
    # Without Numba's reference counting (_nrt): all that it would count are views of the record, and machine code from
    # the cache then needs nothing of Numba's runtime. Code that would allocate does not compile.
    compiler: Any = functools.partial(njit, error_model="numpy", _nrt=False, **KERNEL)
    body = compiler(function)
    if source is not None:
        scope: dict[str, Any] = {"body": body}
        exec(source, scope)
        body = compiler(scope["entry"])
    record_at = record_of(record)
    if arguments == 2:

        def entry(address: int, a: int, b: int) -> int:
            return body(record_at(address), a, b)  # type: ignore[no-any-return]

    else:

        def entry(address: int, a: int, b: int, c: int) -> int:  # type: ignore[misc]
            return body(record_at(address), a, b, c)  # type: ignore[no-any-return]

    signature = types.int64(types.int64, *[types.int64] * arguments)
    compiler_class = AlignedCompiler if has_vectors(function.__module__) else Compiler
    compiled = numba.cfunc(signature, pipeline_class=compiler_class, error_model="numpy", _nrt=False)(entry)  # type: ignore[call-arg]
    return compiled._wrapper_name, compiled._library  # type: ignore[attr-defined]


def object_file(library: Any) -> bytes:
    """The object file of a compiled library. Numba keeps the module's bitcode beside it, for code that would link."""
    _, _, (content, _) = library.serialize_using_object_code()
    return bytes(content)


_engines: list[Any] = []
"""Of all objects that are linked into the process: an engine that is gone takes its code along."""


def load_object(symbol: str, content: bytes) -> int:
    """Address of a function of an object file, which is linked into the process.

    Into an engine of its own: functions that several objects have copies of are weak symbols, and one engine would link
    all objects with the first copy. That may be more than 2 GiB away, which the small code model cannot reach, since
    recordings and chips take gigabytes between two objects.
    To make one of Numba's libraries of it would parse the bitcode of everything: ten times the time.
    """
    options: dict[str, Any] = {"opt": numba_config.OPT}
    cpu_target.target_context.codegen()._customize_tm_options(options)
    machine = llvmlite.binding.Target.from_triple(llvmlite.binding.get_process_triple()).create_target_machine(
        **options
    )
    engine = llvmlite.binding.create_mcjit_compiler(llvmlite.binding.parse_assembly(""), machine, use_lmm=True)
    engine.add_object_file(llvmlite.binding.ObjectFileRef.from_data(content))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(symbol))
