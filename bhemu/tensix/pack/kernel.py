"""How the packer's inner functions are compiled: to be called from compiled code only.

Without the wrappers for Python and C callers PACR compiles a fifth faster. A test calls them through a function of
its own that is compiled with plain `njit`.
"""

from __future__ import annotations

from typing import Any

from numba import njit

kernel: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
