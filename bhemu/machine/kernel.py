"""How the functions below an entry are compiled: to be called from compiled code only.

Without the wrappers that Python and C callers would need they compile a good deal faster. Python calls compiled code by
its entry (machine/compiler.py). A test that calls a kernel wraps it in a function of its own, compiled with plain
`njit`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar, overload

from numba import njit
from numba.core.registry import CPUDispatcher

F = TypeVar("F", bound=Callable[..., Any])


class Kernel(CPUDispatcher):
    """A compiled function that Python cannot call: there is no wrapper, so a call would end the process."""

    def __call__(self, *arguments: Any, **named: Any) -> NoReturn:
        """Refuse a call from Python, also one that the Python text of another kernel makes."""
        raise TypeError(f"{self.py_func.__qualname__} is compiled code for compiled code: call it by an entry")


def _compile(function: Any, options: dict[str, Any]) -> Any:
    compile_: Any = njit  # its annotations leave out some of the options
    compiled = compile_(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    if isinstance(compiled, CPUDispatcher):  # with Numba disabled it is the function itself
        compiled.__class__ = Kernel
    return compiled


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(function: None = None, **options: Any) -> Callable[[F], F]: ...


def kernel(function: Any = None, **options: Any) -> Any:
    """Decorator, with or without further options: `@kernel`, `@kernel(forceinline=True)`."""
    if function is None:
        return functools.partial(kernel, **options)
    return _compile(function, options)
