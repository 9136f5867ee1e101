"""The translator as the host sees it: where there is one, its memory, and the variable that turns it off."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import time
from typing import Any, Final

import numpy as np

from bhemu.compiling import progress as compile_progress
from bhemu.errors import ConfigurationError
from bhemu.machine.compiler import JIT, Entry, compile_entry, is_compiled
from bhemu.riscv.code_memory import READ_EXECUTE
from bhemu.riscv.translate import translate_entry
from bhemu.riscv.translation_state import (
    ENTER_PLACE,
    FIRST_CODE,
    HOT,
    LEAST_ROUNDS,
    MEMORY_BYTES,
    PLACE,
    TRANSLATOR_PLACE,
)

VARIABLE: Final = "BHEMU_TRANSLATE"
"""Environment variable: with 0 the interpreter executes everything."""
WORDS: Final = ("0", "1")
REMEDY: Final = "set it to 0 or 1, or not at all"
_MACHINES: Final = ("x86_64", "AMD64")

WORTH_COMPILING: Final = 5.0
"""Seconds that cores have executed in this process from which on the translator itself is compiled, if it is not yet:
that takes ten seconds."""
_NAME: Final = "translate"

_entries: list[Entry] = []
_kept: list[Any] = []
"""Memory lives as long as the process, as the code caches do."""
_seen: dict[int, Any] = {}

CodeCache = np.ndarray[Any, Any]


def translate_function() -> Entry:
    """The translator, compiled or from the cache."""
    if not _entries:
        with compile_progress.getting(_NAME):
            _entries.append(compile_entry(_NAME, translate_entry))
    return _entries[0]


def why_not() -> str | None:
    """Why code of the cores is interpreted only, in this process; None when it is translated.

    Raises:
        ConfigurationError: the variable has a value that means nothing.
    """
    text = os.environ.get(VARIABLE) or "1"
    if text not in WORDS:
        raise ConfigurationError(f"{VARIABLE} is {text!r}", remedy=REMEDY)
    if text == "0":
        return f"turned off by {VARIABLE}=0"
    if not JIT:
        return "Numba is disabled"
    if platform.machine() not in _MACHINES or platform.system() != "Linux":
        return f"there are templates for x86-64 under Linux only, and this is {platform.system()} {platform.machine()}"
    return None if _new_memory(mmap.PAGESIZE) is not None else "this system does not let written memory be executed"


def is_available() -> bool:
    """True when this processor and system can have translated code, and it is not turned off."""
    return why_not() is None


def attach(cache: CodeCache, *, hot: int = HOT) -> None:
    """Let the code of a cache (riscv/decode.py) be translated, where that can be done; once for each cache.

    Args:
        hot: arrivals at an instruction until it is translated.
    """
    if id(cache) in _seen:
        return
    if is_available():
        memory = _new_memory(MEMORY_BYTES)
        if memory is not None:
            code = cache[0]
            code.protect = ctypes.cast(_mprotect(), ctypes.c_void_p).value
            code.memory = np.frombuffer(memory, np.uint8).ctypes.data
            code.memory_bytes = MEMORY_BYTES
            code.memory_used = FIRST_CODE
            code.entry_count = 1
            code.hot = hot
            code.least_rounds = LEAST_ROUNDS
            code.native[TRANSLATOR_PLACE] = translate_function().address
            _kept.append(memory)
    _seen[id(cache)] = cache


class Patience:
    """Attaches a code cache as soon as that is worth while: at once, unless the translator must be compiled first."""

    def __init__(self) -> None:
        self.is_over = False
        """The cache is attached, or will not be."""
        self._seconds = 0.0
        self._begun: float | None = None

    def begin(self, cache: CodeCache) -> None:
        """Cores begin to execute."""
        if self._begun is None:
            self._seconds = 0.0 if is_available() and not is_compiled(_NAME, translate_entry) else WORTH_COMPILING
        if self._seconds >= WORTH_COMPILING:
            attach(cache)
            self.is_over = True
        self._begun = time.perf_counter()

    def end(self) -> None:
        """They have stopped."""
        if self._begun is not None:
            self._seconds += time.perf_counter() - self._begun


def forget(cache: CodeCache) -> None:
    """Forget what has been translated: breakpoints change."""
    code = cache[0]
    places = code.entry[1 : int(code.entry_count), PLACE]
    code.key[places] = 0
    code.first[places] = 0
    code.heat[places] = 0
    code.entry_count = 1
    code.memory_used = FIRST_CODE
    code.native[ENTER_PLACE] = 0


def _mprotect() -> Any:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect


def _new_memory(size: int) -> mmap.mmap | None:
    """Memory whose pages after the first can be made executable; None where the system refuses, by policy."""
    memory = mmap.mmap(-1, FIRST_CODE + size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    first = np.frombuffer(memory, np.uint8).ctypes.data + FIRST_CODE
    return memory if _mprotect()(first, mmap.PAGESIZE, READ_EXECUTE) == 0 else None
