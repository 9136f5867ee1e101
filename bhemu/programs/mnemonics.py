"""Which instructions a program will execute, from its text: they are compiled before it starts, by all processors.

What this misses is compiled when it is first executed. What it finds too much costs time at first use.
"""

from __future__ import annotations

import functools
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.programs.program import Program
from bhemu.programs.thread_core import ISSUED_BY


def _members(known: type) -> list[Any]:
    """Methods and properties of a class and its bases; of bhemu's own classes none."""
    own = [base for base in known.__mro__ if str(base.__module__).partition(".")[0] not in ("bhemu", "builtins")]
    return [member for base in own for member in vars(base).values() if not isinstance(member, type)]


def _inside(thing: Any) -> list[Any]:
    """What has the text of something that is called: of a property its getter, of a class its members."""
    if isinstance(thing, type):
        return _members(thing)
    if isinstance(thing, property):
        return [thing.fget]
    if isinstance(thing, MethodType | staticmethod | classmethod):
        return [thing.__func__]
    if isinstance(thing, functools.partial):
        return [thing.func]
    return []


def _attributes(holder: Any, names: set[str]) -> list[Any]:
    """Those of a module, a class or an object with these names, without calling what may compute them."""
    if isinstance(holder, ModuleType):
        return [vars(holder)[name] for name in names & vars(holder).keys()]
    kind = holder if isinstance(holder, type) else type(holder)
    return [vars(base)[name] for base in kind.__mro__ for name in names & vars(base).keys()]


def _content(cell: CellType) -> Any:
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
        if id(thing) in known:
            continue
        known.add(id(thing))
        if not isinstance(thing, FunctionType):
            todo += _inside(thing)
            continue
        codes = [thing.__code__, *(part for part in thing.__code__.co_consts if isinstance(part, CodeType))]
        names = {name for each in codes for name in each.co_names}
        found |= names & INSTRUCTIONS.keys()
        found.update(mnemonic for name in names & ISSUED_BY.keys() for mnemonic in ISSUED_BY[name])
        scope = thing.__globals__
        for name in names & scope.keys():
            todo += [scope[name], *_attributes(scope[name], names)]
        todo += [_content(cell) for cell in thing.__closure__ or ()]
    return found
