"""The table by which a simulator under Python serves a client: one declaration, from which both sides' views are made.

Python fills it in: functions of Python as C callbacks, addresses of compiled code, and plain numbers. remote_server.c
uses it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

_C_TYPES: Final[dict[str, Any]] = {
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "int64_t": ctypes.c_int64,
    "void *": ctypes.c_void_p,
    "const void *": ctypes.c_void_p,
    "const int64_t *": ctypes.c_void_p,
    "void": None,
}


@dataclass(frozen=True)
class Slot:
    """A place of the table: a function where `arguments` are given, else data.

    Attributes:
        name: of the member, in C and in Python.
        result: C type of the function's result, or of the data.
        arguments: C types, or None for data.
        refused_as: the function of the interface that a refusal names; None for compiled code.
        comment: for the C header.
    """

    name: str
    result: str
    arguments: tuple[str, ...] | None = None
    refused_as: str | None = None
    comment: str = ""

    def in_c(self) -> str:
        """The member's declaration in C."""
        space = "" if self.result.endswith("*") else " "
        if self.arguments is None:
            declared = f"{self.result}{space}{self.name}"
        else:
            declared = f"{self.result}{space}(*{self.name})({', '.join(self.arguments) or 'void'})"
        return f"    {declared};" + (f" /* {self.comment} */" if self.comment else "")

    def type(self) -> Any:
        """The type of data, or of a Python function as a C function."""
        if self.arguments is None:
            return _C_TYPES[self.result]
        return ctypes.CFUNCTYPE(_C_TYPES[self.result], *(_C_TYPES[argument] for argument in self.arguments))


_COMPILED = "compiled code; NULL where only Python may decide"

SLOTS: Final = (
    Slot("init", "void", ("void *", "void *"), "libttsim_init", "the client's callbacks, NULL where it has none"),
    Slot("exit", "void", (), "libttsim_exit"),
    Slot("config_read", "uint32_t", ("uint32_t", "uint32_t"), "libttsim_pci_config_rd32"),
    Slot("config_write", "void", ("uint32_t", "uint32_t", "uint32_t"), "libttsim_pci_config_wr32"),
    Slot("memory_read", "void", ("uint64_t", "void *", "uint32_t"), "libttsim_pci_mem_rd_bytes"),
    Slot("memory_write", "void", ("uint64_t", "const void *", "uint32_t"), "libttsim_pci_mem_wr_bytes"),
    Slot("clock", "void", ("uint32_t",), "libttsim_clock"),
    Slot("finish_clock", "void", (), "libttsim_clock", "go on after `run` has returned in the middle of clocks"),
    Slot("report_stillness", "void", (), "libttsim_clock"),
    Slot("run", "int64_t", ("void *", "int64_t", "int64_t"), comment=_COMPILED),
    Slot("find", "int64_t", ("void *", "int64_t", "int64_t", "int64_t"), comment=_COMPILED),
    Slot("chip", "void *"),
    Slot("handlers", "int64_t"),
    Slot("active_tiles", "const int64_t *"),
    Slot("worth_threads", "int64_t", comment="clocks of all tiles together from which on Python starts threads"),
)


class Table(ctypes.Structure):
    """The table. Members that are functions hold addresses."""

    _fields_ = [(slot.name, ctypes.c_void_p if slot.arguments is not None else slot.type()) for slot in SLOTS]


def header() -> str:
    """The C header `slots.h`, which declares `struct slots`."""
    members = "\n".join(slot.in_c() for slot in SLOTS)
    return f"/* Made by bhemu/capi/slots.py. */\n\n#include <stdint.h>\n\nstruct slots {{\n{members}\n}};\n"


def fill(table: Table, functions: dict[str, Callable[..., Any]]) -> list[Any]:
    """Put Python functions into the table by the names of its members; returns what must be kept alive."""
    kept = []
    for slot in SLOTS:
        if slot.name in functions:
            callback = slot.type()(functions[slot.name])
            setattr(table, slot.name, ctypes.cast(callback, ctypes.c_void_p).value)
            kept.append(callback)
    return kept
