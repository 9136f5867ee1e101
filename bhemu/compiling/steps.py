"""Numba's steps from the Python text of a kernel to LLVM's intermediate code: those that kernels need, and no more.

A kernel is called by compiled code only. It is kept as intermediate code until an entry is made of it and of all that
it calls: what is optimized and turned into machine code is the entry, once (machine/codegen.py). Numba by itself does
both for each function, which takes twice the time.

What is left is mostly Numba's own Python, for a hundred functions an entry. So steps for what kernels do not have are
left out: Numba then refuses closures, contexts, exceptions, and expressions of whole arrays. And what an operator does
with arguments of some types is looked up once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

from llvmlite.binding import Linkage
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.lowering import Lower
from numba.core.targetconfig import ConfigStack
from numba.core.typed_passes import (
    AnnotateTypes,
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NoPythonSupportedFeatureValidation,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import (
    DeadBranchPrune,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    RewriteSemanticConstants,
    TranslateByteCode,
)

# --- intermediate code of kernels ------------------------------------------------------------------


def _callers_first(library: Any, order: list[Any], seen: set[Any]) -> None:
    """Put a library before all that were put there, after all that it links have been put there."""
    seen.add(library)
    for linked in library._linking_libraries if isinstance(library, KernelLibrary) else ():
        if linked not in seen:
            _callers_first(linked, order, seen)
    order.insert(0, library)


class KernelLibrary(JITCodeLibrary):
    """The intermediate code of a kernel, which is linked with that of what it calls when an entry asks for it.

    Numba by itself links at each level, so that what is called by many is copied many times.
    """

    def finalize(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"  # LLVM may inline it, and leave it out
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._shared_module is None:
            order: list[Any] = []
            _callers_first(self, order, set())
            whole = self._final_module.clone()
            for library in order[1:]:  # LLVM links what is asked for by then
                own = isinstance(library, KernelLibrary)
                whole.link_in(library._final_module if own else library._get_module_for_linking(), preserve=True)
            self._shared_module = whole
        return self._shared_module


# --- the last step ----------------------------------------------------------------------------------

_VECTOR_ROOMS = tuple(f"bhemu.tensix.{room}." for room in ("matrix", "pack", "unpack", "vector"))
_WIDEST = 64
"""Bytes of the widest registers."""


def has_vectors(module: str) -> bool:
    """True for a module of a unit that computes with vectors."""
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
        return has_vectors(module)


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _KernelLowering(NativeLowering):
    """Numba's last step, without machine code."""

    _name = "bhemu_kernel_lowering"

    lowering_class = _KernelLower

    def run_pass(self, state: Any) -> bool:
        context = state.targetctx
        library: Any = KernelLibrary
        state.library = library(context.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        if state.pipeline.is_inlined:
            state.flags.forceinline = True
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


@register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
class _AlignedLowering(NativeLowering):
    """Numba's last step for an entry, into which LLVM inlines kernels with vectors."""

    _name = "bhemu_aligned_lowering"

    lowering_class = _AlignedLower


# --- all steps --------------------------------------------------------------------------------------

_STEPS: Final = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    RewriteSemanticConstants,
    DeadBranchPrune,
    GenericRewrites,
    ReconstructSSA,
    DeadBranchPrune,
    NopythonTypeInference,
    PreLowerStripPhis,
    NoPythonSupportedFeatureValidation,
    IRLegalization,
    AnnotateTypes,
)


class _Steps(PassManager):
    """Steps that are carried out one after the other, without Numba's timers, events and prints around each."""

    def _runPass(self, index: int, step: Any, state: Any) -> None:
        step.analysis = self._analysis
        step.run_initialization(state)
        step.run_pass(state)
        step.run_finalizer(state)


@functools.cache
def _steps(lowering: type[NativeLowering]) -> PassManager:
    make: Any = _Steps
    steps = make("nopython")
    for step in (*_STEPS, lowering, NoPythonBackend):
        steps.add_pass(step, step.__name__)
    steps.finalize()
    return steps  # type: ignore[no-any-return]


class KernelCompiler(Compiler):
    """Numba's steps for a kernel."""

    lowering: type[NativeLowering] = _KernelLowering

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]
        # Numba hands this option on to what the function calls, if that is not compiled yet: machine code would depend
        # on what a process has compiled before.
        flags = self.state.flags
        self.is_inlined = bool(flags.forceinline)
        flags.discard("forceinline")

    def define_pipelines(self) -> list[PassManager]:
        return [_steps(self.lowering)]


class SeldomCompiler(KernelCompiler):
    """The same for a function that LLVM must not inline."""

    lowering = _SeldomLowering


class AlignedCompiler(KernelCompiler):
    """The same for an entry, into which LLVM inlines kernels with vectors."""

    lowering = _AlignedLowering


_numbas_call_type: Any = BaseFunction.get_call_type


def _call_type(function: Any, context: Any, args: Iterable[Any], kws: dict[str, Any]) -> Any:
    """What a call of an operator, or of a function of Numba's, is with these types; see Numba's method."""
    # As Numba does for what it compiles: an implementation belongs to the options of the function that calls it, too.
    options: Any = ConfigStack
    key = (context, options.top_or_none(), *args, *kws.items())
    known = vars(function).setdefault("_bhemu_call_types", {})
    if key not in known:
        known[key] = _numbas_call_type(function, context, args, kws)
    return known[key]


# Numba tries one definition of an operator after the other, again for each of a thousand additions.
BaseFunction.get_call_type = _call_type  # type: ignore[method-assign,assignment]
