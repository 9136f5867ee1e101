"""What each Tensix instruction reads, writes, waits for and gives away: `data/behaviour.toml`, given types.

The head of the data file explains the notation. A `Role` says which places of a register file an instruction means;
`Role.places(word)` gives them for a word. Handlers do not use this table: an edit of it compiles nothing again.

    >>> from bhemu.isa import encode
    >>> [str(role) for role in ROLES["ADDDMAREG"].reads]
    ['gpr OpARegIndex', 'gpr OpBRegIndex if !OpBisConst']
    >>> ROLES["ADDDMAREG"].reads[0].places(encode("ADDDMAREG", OpARegIndex=5))
    (5,)
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final

from bhemu.isa.instruction_table import INSTRUCTIONS, Instruction
from bhemu.isa.tables import content

_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = MappingProxyType(
    {
        "==": operator.eq,
        "!=": operator.ne,
        "<=": operator.le,
        ">=": operator.ge,
        "<": operator.lt,
        ">": operator.gt,
    }
)
_TEST: Final = re.compile(r"(!?)(\w+)(?:&(\d+))?(?:(==|!=|<=|>=|<|>)(\d+))?")
_PLACE: Final = re.compile(r"(bits:)?([A-Za-z]\w*)(?:([/&+])(\d+))?")
_RANGE: Final = re.compile(r"(\d+)(?:\.\.(\d+))?")
_COUNT: Final = re.compile(r"(x|align)(\d+)")


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on an operand of the word.

    Attributes:
        operand: name of an operand or part.
        mask: applied first; -1 none.
        compare: operator; "" when the value must be nonzero.
        value: it is compared with.
        negated: the value must be zero.
    """

    operand: str
    mask: int = -1
    compare: str = ""
    value: int = 0
    negated: bool = False

    def holds(self, instruction: Instruction, word: int) -> bool:
        """Whether the word meets the condition."""
        value = instruction.field(self.operand).extract(word) & self.mask
        if self.compare:
            return _COMPARE[self.compare](value, self.value)
        return (value == 0) is self.negated


@dataclass(frozen=True, slots=True)
class Role:
    """Places of one register file that an instruction reads, writes, waits for or gives away.

    Attributes:
        mnemonic: of the instruction.
        file: name of the register file, one of `FILES`.
        operand: that names the first place; "" when no operand does.
        bits: the operand is a mask of places.
        operator, number: applied to the operand's value: "/", "&" or "+" with a number.
        fixed: places that do not depend on the word.
        count: how many places, from the first.
        align: the first place is rounded down to a multiple.
        by: function that computes the places where state decides (analysis/access.py, analysis/dst.py).
        maybe: only in states that the word does not show.
        any_thread: of the thread that an operand names.
        unseen: the interlock of two-cycle results does not see the read (math Y14).
        until: condition of STALLWAIT that the write is certain with; "" when later instructions see it.
        tests: conditions on operands, all of which must hold.
        text: as the table writes it.
    """

    mnemonic: str
    file: str
    operand: str = ""
    bits: bool = False
    operator: str = ""
    number: int = 0
    fixed: tuple[int, ...] = ()
    count: int = 1
    align: int = 1
    by: str = ""
    maybe: bool = False
    any_thread: bool = False
    unseen: bool = False
    until: str = ""
    tests: tuple[Test, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        return self.text

    def holds(self, word: int) -> bool:
        """Whether the word's operands meet the conditions of the role."""
        instruction = INSTRUCTIONS[self.mnemonic]
        return all(test.holds(instruction, word) for test in self.tests)

    def first(self, word: int) -> int | None:
        """What the operand names, before rounding; None where no operand names a place."""
        if not self.operand:
            return None
        value = INSTRUCTIONS[self.mnemonic].field(self.operand).extract(word)
        if self.operator == "/":
            return value // self.number
        if self.operator == "&":
            return value & self.number
        return value + self.number

    def places(self, word: int) -> tuple[int, ...] | None:
        """The places that a word means; None when that is up to state (`by`), or any part of the file.

        Rows of Dst are counted from row 0: the counters of the thread must be added (`analysis/dst.py`).
        """
        if self.fixed:
            return self.fixed
        first = self.first(word)
        if first is None:
            return None
        if self.bits:
            return tuple(bit for bit in range(first.bit_length()) if first >> bit & 1)
        first -= first % self.align
        return tuple(range(first, first + self.count))


@dataclass(frozen=True, slots=True)
class Roles:
    """All roles of an instruction.

    Attributes:
        rule: where they are specified.
        reads, writes: upper bounds: what they leave out neither influences the result nor changes.
        waits: what holds the instruction at its unit.
        gives: banks that change hands.
    """

    rule: str
    reads: tuple[Role, ...]
    writes: tuple[Role, ...]
    waits: tuple[Role, ...]
    gives: tuple[Role, ...]


def parse_test(text: str) -> Test:
    """A condition from its text; raises `ValueError` when it is none."""
    match = _TEST.fullmatch(text)
    if match is None or (match[1] and match[4]):
        raise ValueError(f"{text!r} is not a condition on an operand")
    mask = int(match[3]) if match[3] else -1
    return Test(match[2], mask, match[4] or "", int(match[5] or 0), bool(match[1]))


def _place(token: str) -> dict[str, Any]:
    if span := _RANGE.fullmatch(token):
        return {"fixed": tuple(range(int(span[1]), int(span[2] or span[1]) + 1))}
    if place := _PLACE.fullmatch(token):
        return {
            "operand": place[2],
            "bits": bool(place[1]),
            "operator": place[3] or "",
            "number": int(place[4] or 0),
        }
    raise ValueError(f"{token!r} is not a place of a register file")


def parse_role(mnemonic: str, text: str) -> Role:
    """A role from its text; raises `ValueError` when the text is none, `AssemblyError` for an unknown operand."""
    body, _, conditions = text.partition(" if ")
    file, *tokens = body.split()
    if file not in FILES:
        raise ValueError(f"{mnemonic}: {file!r} in {text!r} is not a register file")
    found: dict[str, Any] = {"tests": tuple(parse_test(test) for test in conditions.split(" and ") if test)}
    while tokens:
        token = tokens.pop(0)
        counted = _COUNT.fullmatch(token)
        if token in ("maybe", "any_thread", "unseen"):
            found[token] = True
        elif token in ("by", "until"):
            found[token] = tokens.pop(0)
        elif counted:
            found["count" if counted[1] == "x" else "align"] = int(counted[2])
        else:
            found |= _place(token)
    role = Role(mnemonic, file, text=text, **found)
    instruction = INSTRUCTIONS[mnemonic]
    for name in (role.operand, *(test.operand for test in role.tests)):
        if name:
            instruction.field(name)
    return role


def _parts_of(entry: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (entry, *(parts[name] for name in entry.get("like", ())))


BEHAVIOUR: Final[Mapping[str, Any]] = content("behaviour.toml")
"""Content of the table."""

_PARTS: Final = {part["name"]: part for part in BEHAVIOUR["parts"]}

FILES: Final[Mapping[str, str]] = MappingProxyType(dict(BEHAVIOUR["files"]))
"""Every register file that a role can name, with what it is."""


def _all() -> Mapping[str, Roles]:
    found: dict[str, Roles] = {}
    lists = [field.name for field in fields(Roles) if field.name != "rule"]
    for entry in BEHAVIOUR["roles"]:
        for mnemonic in entry["of"].split():
            if mnemonic in found:
                raise ValueError(f"{mnemonic} has two entries in behaviour.toml")
            missing = {"reads", "writes"} - set(entry)
            if missing:
                raise ValueError(f"{mnemonic} says nothing about what it {' and '.join(sorted(missing))}")
            roles = {
                name: tuple(
                    parse_role(mnemonic, text) for part in _parts_of(entry, _PARTS) for text in part.get(name, ())
                )
                for name in lists
            }
            found[mnemonic] = Roles(entry["rule"], **roles)
    return MappingProxyType(found)


ROLES: Final[Mapping[str, Roles]] = _all()
"""Roles by mnemonic."""
