"""How this unit's inner functions are compiled: for being called from compiled code only.

Without the wrappers that Python and C callers would need, UNPACR compiles a fifth faster. A test calls them through a
function of its own that is compiled with plain `njit`.
"""

from __future__ import annotations

from numba import njit

kernel = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
