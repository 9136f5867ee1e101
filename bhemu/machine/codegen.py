"""How Numba makes machine code here: what decides it besides the text that is compiled.

Code is position-independent, for the small code model. Numba by itself asks LLVM for static code of the large model,
whose sections may be anywhere in the address space; a linker cannot put that into a shared library. Sections of
the small model must be within 2 GiB of each other, so those of an object get one piece of memory (llvmlite's memory
manager). How large that has to be LLVM counts too low: `give_room` says more.

A kernel, which only compiled code calls, is kept as LLVM's intermediate code until an entry is made of it and of all
that it calls: what is optimized and turned into machine code is the entry, once. Numba by itself does both for each
function, which takes twice the time.
"""

from __future__ import annotations

import functools
import itertools
import platform
import secrets
import sys
import weakref
from collections.abc import Callable
from importlib import metadata
from typing import Any

import llvmlite.binding
import numba
from numba import _dynfunc, njit, types  # type: ignore[attr-defined]
from numba.core import config as _numba_config
from numba.core.bytecode import FunctionIdentity
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.extending import intrinsic

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


class _KernelLibrary(JITCodeLibrary):
    """The intermediate code of a kernel and of all that it calls, to be linked into entries."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            intermediate: Any = library
            self._final_module.link_in(intermediate._get_module_for_linking(), preserve=True)
        self._finalized = True


_VECTOR_ROOMS = tuple(f"bhemu.tensix.{room}." for room in ("matrix", "pack", "unpack", "vector"))
_WIDEST = 64
"""Bytes of the widest registers."""


def _has_vectors(module: str) -> bool:
    return module.startswith(_VECTOR_ROOMS)


class _AlignedLower(Lower):
    """A function whose frame is aligned to the widest registers.

    LLVM keeps what does not fit into registers on the stack, which is aligned to 16 bytes. There up to every second
    access of 32 bytes, and most of 64, are to two lines of the processor's cache.
    """

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)  # type: ignore[no-untyped-call]
        if self._is_aligned(fndesc.modname):
            self.function.attributes.alignstack = _WIDEST
            self.function.attributes.add("nounwind")  # llvmlite writes the alignment only beside another attribute

    def _is_aligned(self, module: str) -> bool:
        return True


class _KernelLower(_AlignedLower):
    """The same, of functions of units with vectors alone."""

    def _is_aligned(self, module: str) -> bool:
        return _has_vectors(module)


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _KernelLowering(NativeLowering):
    """Numba's last step, without machine code."""

    _name = "bhemu_kernel_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _KernelLower

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library: Any = _KernelLibrary
        state.library = library(context.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)  # type: ignore[no-untyped-call]
        lowered = state["cr"]
        # What Numba knows the function by: an object that Python could call, at no address.
        fndesc = lowered.fndesc
        key = _dynfunc.make_function(
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "kernel", 0, lowered.env, (state.library,)
        )
        context.insert_user_function(key, fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=key)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _SeldomLowering(_KernelLowering):
    """The same for a function that LLVM must not inline."""

    _name = "bhemu_seldom_lowering"

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        name = state["cr"].fndesc.mangled_name
        state.library._final_module.get_function(name).add_function_attribute("noinline")
        return True


class _KernelCompiler(Compiler):
    """Numba's steps for a kernel."""

    lowering: type[NativeLowering] = _KernelLowering

    def define_pipelines(self) -> list[PassManager]:
        builder: Any = DefaultPassBuilder
        steps: Any = builder.define_nopython_pipeline(self.state)
        steps.passes = [
            (self.lowering, description) if step is NativeLowering else (step, description)
            for step, description in steps.passes
        ]
        steps._finalized = False
        steps.finalize()
        return [steps]


class _SeldomCompiler(_KernelCompiler):
    lowering = _SeldomLowering


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _AlignedLowering(NativeLowering):
    """Numba's last step for an entry, into which LLVM inlines kernels with vectors."""

    _name = "bhemu_aligned_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        return _AlignedLower


class _AlignedCompiler(_KernelCompiler):
    lowering = _AlignedLowering


KERNEL: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": _KernelCompiler}
"""Options of `njit` for what only compiled code calls: no wrapper for Python or C, no machine code of its own."""
SELDOM: dict[str, Any] = {**KERNEL, "pipeline_class": _SeldomCompiler, "forceinline": False}
"""For what a loop calls seldom: inlined, it would take registers of the processor away from the loop."""


_record: Any = types.Record
_numbas_text_of_record = _record.__repr__


def _text_of_record(record: Any) -> str:
    if "_text" not in vars(record):
        record._text = _numbas_text_of_record(record)
    return str(record._text)


# Each of Numba's steps writes the types of its arguments out, and a tile's record is a page long.
_record.__repr__ = _text_of_record


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
    compiler_class = _AlignedCompiler if _has_vectors(function.__module__) else Compiler
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
