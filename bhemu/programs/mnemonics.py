"""Which instructions a program will execute, from its text: they are compiled before it starts, by all processors.

What this misses is compiled when it is first executed. What it finds too much costs time at first use.
"""

from __future__ import annotations

from types import CellType, CodeType
from typing import Any

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.programs.program import Program
from bhemu.programs.thread_core import ISSUED_BY


def _functions(known: type) -> list[Any]:
    """Methods and properties of a class and its bases; of bhemu's own classes none."""
    own = [base for base in known.__mro__ if base.__module__.partition(".")[0] not in ("bhemu", "builtins")]
    members = [member for base in own for member in vars(base).values()]
    return [getattr(member, "fget", getattr(member, "__func__", member)) for member in members]


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def mnemonics_of(program: Program) -> set[str]:
    """Instructions that the threads' functions mention, and the functions and classes that those call by name."""
    found: set[str] = set()
    todo: list[Any] = [function for function in program.threads if function is not None]
    known: set[int] = set()
    while todo:
        thing = todo.pop()
        if isinstance(thing, type):
            todo += [] if id(thing) in known else _functions(thing)
            known.add(id(thing))
            continue
        code = getattr(thing, "__code__", None)
        if code is None or id(code) in known:
            continue
        known.add(id(code))
        codes = [code, *(constant for constant in code.co_consts if isinstance(constant, CodeType))]
        names = {name for each in codes for name in each.co_names}
        found |= names & INSTRUCTIONS.keys()
        found.update(mnemonic for name in names & ISSUED_BY.keys() for mnemonic in ISSUED_BY[name])
        scope = getattr(thing, "__globals__", {})
        todo += [scope[name] for name in names if name in scope]
        todo += [getattr(scope[module], name, None) for module in names & scope.keys() for name in names]
        todo += [_contents(cell) for cell in getattr(thing, "__closure__", None) or ()]
    return found
