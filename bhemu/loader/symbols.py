"""Symbols of an executable: names of addresses, for messages, traces, breakpoints and the profile."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

SymbolKind = Literal["function", "object", "other"]
AddressRange = tuple[int, int]
"""First address and the address after the last one."""


@dataclass(frozen=True)
class Symbol:
    """A named address.

    Attributes:
        name: as the linker knows it (mangled for C++).
        address: byte address.
        size: in bytes, 0 where the file does not say.
        kind: function and object as the file declares them; labels of assembly code are `other`.
    """

    name: str
    address: int
    size: int
    kind: SymbolKind

    @property
    def display(self) -> str:
        """The name as the source has it, without parameters: see `display_name`."""
        return display_name(self.name)


_QUALIFIERS: Final = re.compile(r"[rVK]*[RO]?")
_SUBSTITUTION: Final = re.compile(r"[ST][0-9A-Z]*_|S[tabsiod]")
_VALUE: Final = re.compile(r"n?[0-9]+E")
_LENGTH: Final = re.compile(r"[1-9][0-9]*")


def display_name(name: str) -> str:
    """The qualified name in a mangled C++ name (Itanium ABI), with `<...>` for template arguments, without parameters.

    Covers plain, nested, static and anonymous-namespace names and GCC's clone suffixes; any other name is returned as
    it is.
    """
    if not name.startswith("_Z"):
        return name
    mangled, dot, clone = name.partition(".")
    at = 2
    nested = mangled[at : at + 1] == "N"
    if nested:
        at += 1
        qualifiers = _QUALIFIERS.match(mangled, at)
        at = qualifiers.end() if qualifiers else at
    parts: list[str] = []
    while True:
        if mangled.startswith("St", at) and not parts:
            parts.append("std")
            at += 2
            continue
        if mangled.startswith("L", at):  # internal linkage
            at += 1
        digits = _LENGTH.match(mangled, at)
        if digits is None:
            break
        start = digits.end()
        at = start + int(digits[0])
        if at > len(mangled):
            return name
        part = mangled[start:at]
        parts.append("(anonymous namespace)" if part.startswith("_GLOBAL__N") else part)
        if nested and mangled.startswith("I", at):
            behind = _behind_arguments(mangled, at)
            if behind is None:
                return name
            parts[-1] += "<...>"
            at = behind
        if not nested and parts[0] != "std":
            break
    if not parts or parts == ["std"]:
        return name
    if nested and not mangled.startswith("E", at):
        return name  # constructors, operators, substitutions
    if mangled.startswith("I", at):
        parts[-1] += "<...>"
    return "::".join(parts) + dot + clone


def _behind_arguments(mangled: str, at: int) -> int | None:
    """The offset after the template arguments that begin at `at`, or None where they hold more than names and values.

    Arguments are builtin types (small letters), names with their lengths, nested names (N...E), arguments again
    (I...E), packs (J...E), substitutions, and values (L, a type, digits, E).
    """
    brackets: list[str] = []
    while True:
        is_type = True
        if length := _LENGTH.match(mangled, at):
            at = length.end() + int(length[0])
        elif substitution := _SUBSTITUTION.match(mangled, at):
            at = substitution.end()
        else:
            letter = mangled[at : at + 1]
            at += 1
            if letter and letter in "INJL":
                brackets.append(letter)
                is_type = False
            elif letter == "E":
                is_type = brackets.pop() == "N"
                if not brackets:
                    return at
            elif letter and letter in "PRKVO":
                is_type = False
            elif not letter.islower():
                return None
        if is_type and brackets[-1] == "L":
            value = _VALUE.match(mangled, at)
            if value is None:
                return None
            brackets.pop()
            at = value.end()


class SymbolTable:
    """The symbols of one executable.

    Args:
        symbols: each with whether other object files see it.
        labels: symbols without a type that lie in code and that other files see, such as `_start`.
        code: the ranges of executable segments.
    """

    def __init__(
        self, symbols: Iterable[tuple[Symbol, bool]], labels: Iterable[Symbol], code: Sequence[AddressRange]
    ) -> None:
        ordered = sorted(symbols, key=lambda item: (item[0].address, not item[1], item[0].name))
        self.symbols = tuple(symbol for symbol, _ in ordered)
        self._code = code
        self._by_name: dict[str, int] = {}
        for symbol, _ in sorted(ordered, key=lambda item: not item[1]):  # of two names, the one that all files see
            self._by_name.setdefault(symbol.name, symbol.address)
        for symbol in self.symbols:
            if symbol.kind != "other":
                self._by_name.setdefault(symbol.display, symbol.address)
        self._functions = self._one_per_address(s for s in self.symbols if s.kind == "function")
        self._function_addresses = [s.address for s in self._functions]
        self._places = self._one_per_address([*self._functions, *labels])
        self._place_addresses = [s.address for s in self._places]

    @staticmethod
    def _one_per_address(symbols: Iterable[Symbol]) -> list[Symbol]:
        best: dict[int, Symbol] = {}
        # Sized functions say most; names with two underscores are mostly those of linker scripts.
        for symbol in sorted(symbols, key=lambda s: (s.kind != "function", s.size == 0, s.name.startswith("__"))):
            best.setdefault(symbol.address, symbol)
        return [best[address] for address in sorted(best)]

    def address_of(self, name: str) -> int | None:
        """The address of a symbol, by its linker name or its display name."""
        return self._by_name.get(name)

    def at(self, address: int) -> tuple[Symbol, int] | None:
        """The function or code label that holds an address, and the offset in it.

        One without a size reaches to the next one or to the end of its segment.
        """
        index = bisect_right(self._function_addresses, address) - 1
        if index >= 0:
            function = self._functions[index]
            if address - function.address < function.size:
                return function, address - function.address
        index = bisect_right(self._place_addresses, address) - 1
        if index < 0:
            return None
        place = self._places[index]
        if place.size or not any(start <= place.address <= address < end for start, end in self._code):
            return None
        return place, address - place.address
