"""Suppressions: reports of the hazard check that a user knows and does not want to see, as a TOML file.

Each `[[suppress]]` says which: `kind` (order, l1, noc, cb), `function` and `place` (`file.cpp` or `file.cpp:12`) of one
of the two ends, `message`; all that are given must fit, `*` and `?` stand for any text. `reason` says why, for readers.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from bhemu.analysis.hazard import KINDS, ORDER, Hazard
from bhemu.errors import ConfigurationError

_KEYS: Final = ("kind", "function", "place", "message", "reason")
_REMEDY: Final = f"an entry is [[suppress]] with some of {', '.join(_KEYS)}, each a text"


@dataclass(frozen=True)
class End:
    """Where one of the two ends of a hazard is.

    Attributes:
        function: name, empty when unknown.
        place: `file.cpp:12`, empty when unknown.
    """

    function: str = ""
    place: str = ""


@dataclass
class Suppressions:
    """The entries of a file.

    Attributes:
        entries: as written.
        used: how often each was.
    """

    entries: list[dict[str, str]] = field(default_factory=list)
    used: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Suppressions:
        """Read a file.

        Raises:
            ConfigurationError: it cannot be read, or holds something else.
        """
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigurationError(f"{path}: {error.strerror}", remedy="name a TOML file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{path}: {error}", remedy="fix the TOML syntax") from None
        entries: Any = content.pop("suppress", [])
        if content or not isinstance(entries, list):
            raise ConfigurationError(f"{path}: {next(iter(content), 'suppress')!r} is not expected", remedy=_REMEDY)
        for number, entry in enumerate(entries, 1):
            _check(path, number, entry)
        return cls(entries, [0] * len(entries))

    def hides(self, hazard: Hazard, ends: Iterable[End]) -> bool:
        """A report is to be left out."""
        both = list(ends)
        for number, entry in enumerate(self.entries):
            if _fits(entry, hazard, both):
                self.used[number] += 1
                return True
        return False

    def left(self, found: Iterable[Hazard], program: Path) -> list[Hazard]:
        """Hazards of a Python program that are not to be left out."""

        def ends(hazard: Hazard) -> list[End]:
            return [End("", f"{program.name}:{place.line}") for place in (hazard.producer, hazard.consumer)]

        return [hazard for hazard in found if not self.hides(hazard, ends(hazard))]

    def unused(self) -> list[str]:
        """Entries that have not fitted anything, as text."""
        return [
            ", ".join(f"{key} = {value!r}" for key, value in entry.items() if key != "reason")
            for entry, count in zip(self.entries, self.used, strict=True)
            if not count
        ]


def _check(path: Path, number: int, entry: Any) -> None:
    if not isinstance(entry, dict):
        raise ConfigurationError(f"{path}: entry {number} is not a table", remedy=_REMEDY)
    wrong = [key for key, value in entry.items() if key not in _KEYS or not isinstance(value, str)]
    if wrong:
        raise ConfigurationError(f"{path}: entry {number} has {wrong[0]!r}", remedy=_REMEDY)
    if not set(entry) - {"reason"}:
        raise ConfigurationError(f"{path}: entry {number} fits every report", remedy=_REMEDY)
    if "kind" in entry and entry["kind"] not in KINDS:
        raise ConfigurationError(
            f"{path}: entry {number}: kind {entry['kind']!r} does not exist", remedy=f"kinds are {', '.join(KINDS)}"
        )


def _fits(entry: dict[str, str], hazard: Hazard, ends: list[End]) -> bool:
    if entry.get("kind", hazard.kind) != hazard.kind or not fnmatchcase(hazard.message, entry.get("message", "*")):
        return False
    return any(
        fnmatchcase(end.function, entry.get("function", "*")) and _is_at(end.place, entry.get("place", "*"))
        for end in ends
    )


def _is_at(place: str, wanted: str) -> bool:
    return fnmatchcase(place, wanted) or fnmatchcase(place.rpartition(":")[0], wanted)


def order_alone(kinds: str, path: Path | None) -> Suppressions:
    """What the check of a program without cores is to leave out.

    Raises:
        ConfigurationError: only kinds are asked for in which such a program has no part, or the file is wrong.
    """
    names = [name.strip() for name in kinds.split(",")]
    if not {ORDER, "all"} & set(names):
        raise ConfigurationError("a Python program is checked for order alone", remedy="say --check, or --check=order")
    return Suppressions.read(path) if path is not None else Suppressions()
