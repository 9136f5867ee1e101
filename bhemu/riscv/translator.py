"""The translator as the host sees it: where there is one, memory for machine code, and the switch that turns it off."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from typing import Any, Final

import numpy as np

from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.riscv.code_memory import READ_EXECUTE
from bhemu.riscv.translate import translate_entry
from bhemu.riscv.translation_state import ENTER_PLACE, FIRST_CODE, PLACE, TRANSLATOR_PLACE

SWITCH: Final = "BHEMU_TRANSLATE"
"""Environment variable: with 0 the interpreter executes everything."""
MEMORY_BYTES: Final = 4 << 20
_MACHINES: Final = ("x86_64", "AMD64")

_entries: list[Entry] = []
_kept: list[Any] = []
"""Memory lives as long as the process, as the code caches do."""
_seen: dict[int, Any] = {}

CodeCache = np.ndarray[Any, Any]


def is_available() -> bool:
    """True when this processor and system can have translated code, and nobody has turned it off."""
    return (
        JIT and platform.machine() in _MACHINES and platform.system() == "Linux" and os.environ.get(SWITCH, "1") != "0"
    )


def attach(cache: CodeCache) -> None:
    """Let the code of a cache (riscv/decode.py) be translated, where that can be done; once for each cache."""
    if id(cache) in _seen:
        return
    _seen[id(cache)] = cache
    if not is_available():
        return
    code = cache[0]
    protect = _mprotect()
    memory = mmap.mmap(-1, MEMORY_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    if protect is None or not _may_execute(protect, address):
        return
    if not _entries:
        _entries.append(compile_entry("translate", translate_entry))
    _kept.append(memory)
    code.protect = ctypes.cast(protect, ctypes.c_void_p).value
    code.memory = address
    code.memory_bytes = MEMORY_BYTES
    code.memory_used = FIRST_CODE
    code.entry_count = 1
    code.native[TRANSLATOR_PLACE] = _entries[0].address


def forget(cache: CodeCache, enabled: bool) -> None:
    """Forget what has been translated.

    Args:
        enabled: whether code is translated from now on.
    """
    code = cache[0]
    places = code.entry[1 : int(code.entry_count), PLACE]
    code.word[places, 0] = 0
    code.first[places] = 0
    code.heat[places] = 0
    code.entry_count = 1
    code.memory_used = FIRST_CODE
    code.native[ENTER_PLACE] = 0
    code.native[TRANSLATOR_PLACE] = _entries[0].address if enabled and code.memory else 0


def _mprotect() -> Any:
    try:
        protect = ctypes.CDLL(None).mprotect
    except (OSError, AttributeError):
        return None
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return protect


def _may_execute(protect: Any, address: int) -> bool:
    """True when the system lets memory that was written be executed (some do not, by policy)."""
    return protect(address + FIRST_CODE, mmap.PAGESIZE, READ_EXECUTE) == 0
