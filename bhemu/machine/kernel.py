"""How the functions below an entry are compiled: to be called from compiled code only.

Without the wrappers that Python and C callers would need they compile a good deal faster. Python calls compiled code by
its entry (machine/compiler.py). A test that calls a kernel wraps it in a function of its own, compiled with plain
`njit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar, overload

from numba.core.registry import CPUDispatcher

from bhemu.machine.codegen import KERNEL, SELDOM

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")

if TYPE_CHECKING:  # what callers see; Numba's own annotations describe objects that only compiled code can use

    def njit(function: F, **options: Any) -> F: ...

    def intrinsic(function: Callable[Concatenate[Any, P], Any]) -> Callable[P, Any]: ...

    def register_jitable(function: F) -> F: ...

else:
    from numba import njit
    from numba.extending import intrinsic, register_jitable

__all__ = ["Kernel", "intrinsic", "kernel", "njit", "plain", "register_jitable"]


class Kernel(CPUDispatcher):
    """A compiled function that Python cannot call: there is no wrapper, so a call would end the process."""

    def __call__(self, *arguments: Any, **named: Any) -> NoReturn:
        """Refuse a call from Python, also one that the Python text of another kernel makes."""
        raise TypeError(f"{self.py_func.__qualname__} can only be called from compiled code: call it through an entry")


def _compile(function: Any, seldom: bool = False, **options: bool) -> Any:
    compiled = njit(function, **(SELDOM if seldom else KERNEL), **options)
    if isinstance(compiled, CPUDispatcher):  # with Numba disabled it is the function itself
        compiled.__class__ = Kernel
    return compiled


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(function: None = None, **options: bool) -> Callable[[F], F]: ...


def kernel(function: Any = None, **options: bool) -> Any:
    """Decorator, with or without an option.

    Args:
        forceinline: inline it wherever it is called. Without the option LLVM decides.
        seldom: inline it nowhere: it is called seldom, from a loop that is executed often or at several places.
    """
    if function is None:
        return functools.partial(kernel, **options)
    return _compile(function, **options)


def plain(function: Any) -> Callable[..., Any]:
    """The Python text of a compiled function that calls no other one: for the host, on integers or integer arrays."""
    text: Callable[..., Any] = getattr(function, "py_func", function)
    return text
