"""Expressions of the debugger's commands: numbers, registers, symbols, memory, with the operators of C.

`$a0` is a register of the chosen core; `main` the address of a function; `flag` the value of a variable of 1, 2 or 4
bytes and the address of a larger one; `&flag` its address; `*x` the word at address x. Numbers have no fixed width.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Protocol

from bhemu.debugger.breakpoints import DebugError

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?![\w])"
    r"|(?P<register>\$\w+)"
    r"|(?P<name>[A-Za-z_][\w.]*(?:::[A-Za-z_]\w*)*)"
    r"|(?P<operator><<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>()]))"
)
_LEVELS: Final = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", "<=", ">", ">="), ("<<", ">>"),
                  ("+", "-"), ("*", "/", "%"))  # fmt: skip
LARGEST_SHIFT: Final = 64
DEEPEST: Final = 50


class Scope(Protocol):
    """What names mean."""

    def register(self, name: str) -> int:
        """Value of a register."""

    def name_value(self, name: str) -> int:
        """Value of a symbol."""

    def name_address(self, name: str) -> int:
        """Address of a symbol."""

    def load(self, address: int) -> int:
        """The 32-bit word at an address."""


def evaluate(text: str, scope: Scope) -> int:
    """The value of an expression.

    Raises:
        DebugError: it is not an expression, or divides by zero.
        BhemuError: a name or an address means nothing.
    """
    return _Parser(text, scope).whole()


class _Parser:
    def __init__(self, text: str, scope: Scope) -> None:
        self._text = text
        self._scope = scope
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self._depth = 0
        place = 0
        text = text.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise self._wrong(f"at {text[place:].strip()!r}")
            assert match.lastgroup is not None
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()

    def _wrong(self, where: str) -> DebugError:
        return DebugError(
            f"{self._text.strip()!r} is not an expression: {where}",
            remedy="use numbers, $registers, symbols, *address, &symbol and the operators of C",
        )

    def whole(self) -> int:
        if not self._tokens:
            raise self._wrong("it is empty")
        value = self._binary(0)
        if self._at < len(self._tokens):
            raise self._wrong(f"at {self._tokens[self._at][1]!r}")
        return value

    def _peek(self) -> str | None:
        if self._at < len(self._tokens) and self._tokens[self._at][0] == "operator":
            return self._tokens[self._at][1]
        return None

    def _binary(self, level: int) -> int:
        if level == len(_LEVELS):
            return self._unary()
        value = self._binary(level + 1)
        while (operator := self._peek()) in _LEVELS[level]:
            self._at += 1
            right = self._binary(level + 1)
            value = self._apply(str(operator), value, right)
        return value

    def _apply(self, operator: str, a: int, b: int) -> int:
        if operator in ("/", "%") and b == 0:
            raise DebugError(f"{self._text.strip()!r} divides by zero", remedy="check the divisor")
        if operator in ("<<", ">>") and not 0 <= b <= LARGEST_SHIFT:
            raise self._wrong(f"a shift by {b}")
        return int(_OPERATORS[operator](a, b))

    def _unary(self) -> int:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._wrong("it is nested too deeply")
        try:
            return self._prefixed()
        finally:
            self._depth -= 1

    def _prefixed(self) -> int:
        operator = self._peek()
        if operator == "&":
            self._at += 1
            return self._scope.name_address(self._take("name"))
        if operator in ("-", "~", "!", "*", "+"):
            self._at += 1
            value = self._unary()
            if operator == "*":
                return self._scope.load(value & 0xFFFFFFFF)
            return {"-": -value, "~": ~value, "!": int(not value), "+": value}[str(operator)]
        if operator == "(":
            self._at += 1
            value = self._binary(0)
            if self._peek() != ")":
                raise self._wrong("a ) is missing")
            self._at += 1
            return value
        if self._at == len(self._tokens):
            raise self._wrong("it ends too early")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            try:
                return int(text, 0)
            except ValueError:
                raise self._wrong(f"{text!r} is not a number") from None
        if kind == "register":
            return self._scope.register(text[1:])
        if kind == "name":
            return self._scope.name_value(text)
        raise self._wrong(f"at {text!r}")

    def _take(self, kind: str) -> str:
        if self._at == len(self._tokens) or self._tokens[self._at][0] != kind:
            raise self._wrong(f"a {kind} is missing")
        self._at += 1
        return self._tokens[self._at - 1][1]


_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "%": lambda a, b: a - b * (abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)),
}
