"""How the functions below an entry are compiled: to be called from compiled code only.

Without the wrappers that Python and C callers would need they compile a good deal faster. A test that calls one wraps
it in a function of its own, compiled with plain `njit`.
"""

from __future__ import annotations

import functools
from typing import Any

from numba import njit

_compile: Any = njit  # its annotations leave out some of the options
kernel: Any = functools.partial(_compile, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""Decorator, with or without further options: `@kernel`, `@kernel(forceinline=True)`."""
