"""The functions of the C library: one declaration, from which both sides' views are made.

It is the table by which a simulator under Python serves a client. Python fills it in: functions of Python as C
callbacks, addresses of compiled code, and plain numbers. remote_server.c uses it. Of functions that take nothing but up
to three numbers the rest of the C side is made too: the exported function, and the call in another process.
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
    "int64_t *": ctypes.c_void_p,
    "uint32_t *": ctypes.c_void_p,
    "void": None,
}


_MADE: Final = "/* Made by bhemu/capi/slots.py. */\n\n"
_EXPORTED: Final = """\
{result} simulator_{name}({declared});

EXPORT {result} {exported}({declared})
{{
    lock();
    int runs = check_running(__func__);
    {begin};
    if (runs && chip_is_remote())
        {answer}remote_call({number}, {all_three}, NULL, NULL, 0);
    else if (runs)
        {answer}simulator_{name}({given});
    unlock();{end}
}}
"""
_SOURCE: Final = """\
#include "lock.h"
#include "pace.h"
#include "remote.h"
#include "shim.h"

#include <stddef.h>

{exported}
uint32_t call_made(const struct slots *calls, enum function function, uint64_t a, uint64_t b, uint64_t c)
{{
    switch (function) {{
{cases}
    default:
        break;
    }}
    return 0;
}}
"""
_HEADER: Final = """\
#ifndef BHEMU_SLOTS_H
#define BHEMU_SLOTS_H

#include <stdint.h>

struct slots {{
{members}
}};

/* Numbers of the functions; NOTHING: only what was posted. */
enum function {{ {numbers}, NOTHING }};

/* Call a function that is made from the table. */
uint32_t call_made(const struct slots *calls, enum function function, uint64_t a, uint64_t b, uint64_t c);

#endif
"""


@dataclass(frozen=True)
class Slot:
    """A place of the table: a function where `arguments` are given, else data.

    Attributes:
        name: of the member, in C and in Python.
        result: C type of the function's result, or of the data.
        arguments: C types, or None for data.
        refused_as: the function of the interface that a refusal names; None for compiled code.
        comment: for the C header.
        is_made: the exported function is made from this row; in the client's process it calls `simulator_NAME`.
    """

    name: str
    result: str
    arguments: tuple[str, ...] | None = None
    refused_as: str | None = None
    comment: str = ""
    is_made: bool = False

    def in_c(self) -> str:
        """The member's declaration in C."""
        space = "" if self.result.endswith("*") else " "
        if self.arguments is None:
            declared = f"{self.result}{space}{self.name}"
        else:
            declared = f"{self.result}{space}(*{self.name})({', '.join(self.arguments) or 'void'})"
        return f"    {declared};" + (f" /* {self.comment} */" if self.comment else "")

    @property
    def number(self) -> str:
        """Name in C of the number by which another process calls it."""
        return self.name.upper()

    @property
    def _given(self) -> str:
        return ", ".join("abc"[: len(self.arguments or ())])

    def exported(self) -> str:
        """The exported function, in C."""
        declared = (
            ", ".join(f"{kind} {name}" for kind, name in zip(self.arguments or (), "abc", strict=False)) or "void"
        )
        answers = self.result != "void"
        return _EXPORTED.format(
            result=self.result,
            name=self.name,
            exported=self.refused_as,
            declared=declared,
            begin=f"{self.result} answer = ({self.result})-1" if answers else "pace_begin()",
            answer="answer = " if answers else "",
            number=self.number,
            all_three=", ".join(["a", "b", "c"][: len(self.arguments or ())] + ["0"] * (3 - len(self.arguments or ()))),
            given=self._given,
            end="\n    return answer;" if answers else "",
        )

    def case(self) -> str:
        """Its case in the process that is called, in C."""
        call = f"calls->{self.name}({self._given});"
        return f"    case {self.number}:\n        " + (
            f"{call}\n        break;" if self.result == "void" else f"return {call}"
        )

    def type(self) -> Any:
        """The type of data, or of a Python function as a C function."""
        if self.arguments is None:
            return _C_TYPES[self.result]
        return ctypes.CFUNCTYPE(_C_TYPES[self.result], *(_C_TYPES[argument] for argument in self.arguments))


_COMPILED = "compiled code; NULL where only Python may decide"

SLOTS: Final = (
    Slot("init", "void", ("void *", "void *"), "libttsim_init", "the client's callbacks, NULL where it has none"),
    Slot("exit", "void", (), "libttsim_exit"),
    Slot("config_read", "uint32_t", ("uint32_t", "uint32_t"), "libttsim_pci_config_rd32", is_made=True),
    Slot("config_write", "void", ("uint32_t", "uint32_t", "uint32_t"), "libttsim_pci_config_wr32", is_made=True),
    Slot("memory_read", "void", ("uint64_t", "void *", "uint32_t"), "libttsim_pci_mem_rd_bytes"),
    Slot("memory_write", "void", ("uint64_t", "const void *", "uint32_t"), "libttsim_pci_mem_wr_bytes"),
    Slot("clock", "void", ("uint32_t",), "libttsim_clock"),
    Slot(
        "write_all",
        "void",
        ("const void *", "uint32_t"),
        "libttsim_pci_mem_wr_bytes",
        "writes as they were posted, one behind the other; NULL: they come one by one",
    ),
    Slot("happened", "int64_t", (), "libttsim_clock", "as `what_happened` of stillness.c, of chips elsewhere"),
    Slot("active", "int64_t", comment="tiles that can proceed, of chips elsewhere; 0 when a link fails, too"),
    Slot("attend", "void", (), "libttsim_clock", "do what `run` has stopped for in the middle of clocks"),
    Slot("report_stillness", "void", (), "libttsim_clock"),
    Slot("report_polling", "int64_t", (), "libttsim_clock", "0: a core does more than poll, nothing was said"),
    Slot("run", "int64_t", ("void *", "int64_t", "int64_t"), comment=_COMPILED),
    Slot("find", "int64_t", ("void *", "int64_t", "int64_t", "int64_t"), comment=_COMPILED),
    Slot("chips", "const int64_t *", comment="addresses of their records; NULL: only Python knows them"),
    Slot("clocked", "void *", comment="the record that `run` takes"),
    Slot("handlers", "int64_t"),
    Slot("stopped", "int64_t", comment="a refusal lets no more clocks pass"),
    Slot("help_cluster", "int64_t", ("void *", "int64_t", "int64_t"), comment="what other threads call to help"),
    Slot("help_chip", "int64_t", ("void *", "int64_t", "int64_t"), comment="with that of one chip"),
    Slot("unseen_clocks", "int64_t *", comment="how many may pass before Python has to see the chip; NULL: any number"),
    Slot("watched", "const int64_t *", comment="addresses of words that Python sees changes of, too"),
    Slot("seen", "uint32_t *", comment="what they were when Python looked last; written by C"),
    Slot("watched_count", "int64_t"),
)


class Table(ctypes.Structure):
    """The table. Members that are functions hold addresses."""

    _fields_ = [(slot.name, ctypes.c_void_p if slot.arguments is not None else slot.type()) for slot in SLOTS]


def header() -> str:
    """The C header `slots.h`."""
    members = "\n".join(slot.in_c() for slot in SLOTS)
    return _MADE + _HEADER.format(members=members, numbers=", ".join(slot.number for slot in SLOTS if slot.refused_as))


def source() -> str:
    """The C file of all functions that are made from the table."""
    made = [slot for slot in SLOTS if slot.is_made]
    exported, cases = "\n".join(slot.exported() for slot in made), "\n".join(slot.case() for slot in made)
    return _MADE + _SOURCE.format(exported=exported, cases=cases)


def fill(table: Table, functions: dict[str, Callable[..., Any]]) -> list[Any]:
    """Put Python functions into the table by the names of its members; returns what must be kept alive."""
    kept = []
    for slot in SLOTS:
        if slot.name in functions:
            callback = slot.type()(functions[slot.name])
            setattr(table, slot.name, ctypes.cast(callback, ctypes.c_void_p).value)
            kept.append(callback)
    return kept
