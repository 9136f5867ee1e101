"""Ids of rules: how the source cites them, and where docs/rules explains them.

    python3 tools/rule_ids.py F12              where the rule is explained, and which lines cite it
    python3 tools/rule_ids.py "tile T1"        T1 and T2 are cores too, B0 to B8 bits of a mask: these need their family
    python3 tools/rule_ids.py                  how many ids are cited, and in how many places

The grammar of citations, which tests/docs/test_rules.py holds the source to:

    citation = [family " "] id {separator [family " "] id}
             | "ethernet " section, such as 2.1
    family    = "math" | "tile" | "rules" | "rule"               holds for the rest of the list
    separator = ", " | " and " | " or " | " to " | ".." | "-"    the last three make a range
    id        = F12, V.5, Y11a, K14 (letters of math and tile) | U5, P10 | I.11, III.17 | 001.3.2e
              | behind math or tile: the letter of a section; math 0

- The letter tells the family (F, R, V, Y, O: math; T, K, N, H, B, E, Q: tile), so its name may be left out, except for
  T1, T2 and B1 to B8. Without it these are no citations.
- Comments, docstrings and the descriptions in data files are read for citations; of other strings only what has a
  family in front, what has a dot (I.11, 001.3.2e), the values of `rule=` and the
  `rule` marks of tests.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
RULES: Final = ROOT / "docs" / "rules"
CITING: Final = ("bhemu", "tests")
_SAMPLES: Final = ("test_rule_ids.py", "test_rules.py")
"""Tests of this grammar, whose citations are examples."""

MATH: Final = "FRVYO"
TILE: Final = "TKNHBEQ"
PLAIN: Final = "UP"
_LETTERS: Final = MATH + TILE + PLAIN
_AMBIGUOUS: Final = re.compile(r"T[0-2]|B[0-8]")
"""Cores T0 to T2, and bits B0 to B8 of a block mask: rules only behind `tile`."""

_DOTTED: Final = r"00[0-4]\.\d+(?:\.\d+)*(?:[a-z]\d?)?|I{1,3}\.\d+"
_LETTERED: Final = rf"[{_LETTERS}]\d{{1,2}}[a-c]?|[{MATH}{TILE}]\.\d{{1,2}}"
_ID: Final = rf"(?:{_DOTTED}|{_LETTERED})(?![\w])"
_SEPARATOR: Final = r"(?:, | and | or | to |\.\.|-)"
_SECTION: Final = r"[FRVYOTZKNHBEQ](?![\w.])"
GROUP: Final = re.compile(
    rf"(?<![\w.-])(?:(?P<family>math|tile|rules?) (?:{_ID}|{_SECTION}|(?<=math )0(?![\w.]))|{_ID})"
    rf"(?:{_SEPARATOR}{_ID})*|(?<!\w)ethernet \d(?:\.\d)?(?![\w.])"
)
PART: Final = re.compile(rf"({_SEPARATOR})?({_ID}|{_SECTION}|0(?![\w.]))")
_RULE_ARGUMENT: Final = re.compile(r'\brule\s*=\s*"[^"{]+"|\bmark\.rule\([^)]*\)')


@dataclass(frozen=True)
class Citation:
    """A rule, or all from `first` to `last`; ids are as `entries` has them."""

    first: str
    last: str

    def __str__(self) -> str:
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Entry:
    """What docs/rules has under an id.

    Attributes:
        page: file name in docs/rules.
        anchor: of the page.
        title: heading, or the first words of a table's row.
        remark: `Grade: ...` of a rule; empty for a section, which only holds rules.
    """

    page: str
    anchor: str
    title: str
    remark: str

    @property
    def needs_no_citation(self) -> bool:
        """The entry says why no line cites it: open, not built, background, a section, an instruction's encoding."""
        remark = self.remark.lower()
        grades = remark.removeprefix("grade:").split(".")[0]
        return (
            not remark
            or grades.strip() == "open"
            or "not built" in remark
            or "background" in remark
            or self.page == "instructions.md"
        )


def identify(name: str, family: str = "") -> str | None:
    """The id that a name stands for, None if it stands for none; `family` is the word in front of it, if any."""
    if "." in name and name[0] in "0I":
        return name
    if (family == "math" and name[0] in MATH + "TZ0") or (family == "tile" and name[0] in TILE):
        return f"{family} {name}"
    if len(name) == 1:
        return None
    if name[0] in PLAIN:
        return name
    if family not in ("rule", "rules") and _AMBIGUOUS.fullmatch(name):
        return None
    return f"{'math' if name[0] in MATH else 'tile'} {name}"


def cited(text: str, *, strictly: bool = False) -> list[Citation]:
    """The citations in a text.

    Args:
        text: a comment, a docstring, a description.
        strictly: only those with a family in front or a dot inside, as in messages, where U8 may be a format.
    """
    found: list[Citation] = []
    for group in GROUP.finditer(" ".join(text.split())):
        if group.group().startswith("ethernet"):
            found.append(Citation(group.group(), group.group()))
            continue
        family = group["family"] or ""
        rest = group.group().removeprefix(family).lstrip()
        follows = False
        for separator, name in PART.findall(rest):
            rule = identify(name, family)
            if rule is None or (strictly and not family and "." not in name):
                follows = False
                continue
            is_range = separator in (" to ", "..", "-") and follows
            if is_range and _place(found[-1].first)[:2] == _place(rule)[:2]:
                found[-1] = Citation(found[-1].first, rule)
            else:
                found.append(Citation(rule, rule))
            follows = True
    return found


def is_id(text: str) -> bool:
    """Whether a text is one id, written out: `P6`, `math V12`, `tile K42`."""
    return cited(text) == [Citation(text, text)]


def _place(rule: str) -> tuple[str, str, int, str]:
    """(family, what precedes the last number, that number, letters behind it): the order of ids."""
    match = re.fullmatch(r"(?:(\w+) )?(.*?)(\d*)([a-z]\d?)?", rule)
    assert match is not None
    return match[1] or "", match[2], int(match[3] or 0), match[4] or ""


def expand(citation: Citation, known: Iterable[str]) -> list[str]:
    """Both ends of a citation, and the known ids between them."""
    if citation.first == citation.last:
        return [citation.first]
    first, last = _place(citation.first), _place(citation.last)
    inner = [rule for rule in known if _place(rule)[:2] == first[:2] and first < _place(rule) < last]
    return [citation.first, *inner, citation.last]


# --- what is explained ------------------------------------------------------------------------------------------------

_HEADING: Final = re.compile(r"^#+ (.*?) \{ #(\S+) \}$")
_ANCHOR: Final = re.compile(r'<a id="([^"]+)"></a>')


def entries(folder: Path = RULES) -> dict[str, Entry]:
    """All ids of docs/rules.

    Raises:
        ValueError: an anchor stands twice.
    """
    found: dict[str, Entry] = {}
    for path in sorted(folder.glob("*.md")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            heading = _HEADING.match(line)
            if heading is not None:
                below = lines[number + 2] if number + 2 < len(lines) else ""
                remark = below.strip("*.") if re.match(r"^\*(Grade:|Background)", below) else ""
                _add(found, Entry(path.name, heading[2], heading[1], remark))
                continue
            anchors = _ANCHOR.findall(line)
            cells = [_ANCHOR.sub("", cell).strip() for cell in line.strip("| ").split(" | ")]
            for anchor in anchors:
                # A row of a chapter may begin with the anchors of its sections, which are no rules.
                own = line.startswith("|") and anchor.split("-")[-1] in _range_of(cells[0])
                _add(found, Entry(path.name, anchor, " ".join(cells[2:])[:70], f"Grade: {cells[1]}" if own else ""))
    return found


def _range_of(cell: str) -> list[str]:
    """Ids that the first cell of a row names: one, or `002.14.2 to 002.14.4`."""
    ends = cell.split(" to ")
    if len(ends) == 1:
        return ends
    head, _, low = ends[0].rpartition(".")
    return [f"{head}.{i}" for i in range(int(low), int(ends[1].rpartition(".")[2]) + 1)]


def _add(found: dict[str, Entry], entry: Entry) -> None:
    rule = re.sub(r"^(math|tile|ethernet|book)-", r"\1 ", entry.anchor)
    if rule in found:
        raise ValueError(f"{entry.page}: the anchor {entry.anchor} is in {found[rule].page} already")
    found[rule] = entry


# --- what is cited ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A citation and the line where it stands."""

    path: Path
    line: int
    citation: Citation


def citations(folders: Iterable[str] = CITING, root: Path = ROOT) -> list[Place]:
    """Every citation in the files of the folders."""
    found = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _READERS and path.name not in _SAMPLES:
                text = path.read_text(encoding="utf-8")
                for line, piece, strictly in _READERS[path.suffix](text):
                    found += [Place(path, line, citation) for citation in cited(piece, strictly=strictly)]
                found += [Place(path, line, citation) for line, citation in _of_rule_arguments(path, text)]
    return found


def malformed(folders: Iterable[str] = CITING, root: Path = ROOT) -> list[str]:
    """Values of `rule=` and of `rule` marks that are no citations, as `path:line: value`."""
    known = entries()
    wrong = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            if path.name in _SAMPLES:
                continue
            text = path.read_text(encoding="utf-8")
            for match in _RULE_ARGUMENT.finditer(text):
                for value in re.findall(r'"([^"{]+)"', match[0]):
                    rest = re.sub(r"[,\s]|steps? [\d to]+", "", GROUP.sub("", value))
                    if value not in known and rest:
                        line = text.count("\n", 0, match.start()) + 1
                        wrong.append(f"{path.relative_to(root)}:{line}: {value}")
    return wrong


def _of_rule_arguments(path: Path, text: str) -> Iterator[tuple[int, Citation]]:
    """(line, citation) in values of `rule=` and in `rule` marks that the strict reading of strings leaves out."""
    if path.suffix != ".py":
        return
    for match in _RULE_ARGUMENT.finditer(text):
        for value in re.findall(r'"([^"{]+)"', match[0]):
            found = cited(value)
            if value.isidentifier() and not found:  # an instruction, or the mover
                found = [Citation(value, value)]
            read = cited(value, strictly=True)
            line = text.count("\n", 0, match.start()) + 1
            yield from ((line, citation) for citation in found if citation not in read)


_Pieces = Iterator[tuple[int, str, bool]]


def _python(text: str) -> _Pieces:
    """(line, text, strictly) of comments, docstrings and other strings."""
    begins_statement = True
    comment: list[str] = []
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if not comment:
                first = token.start[0]
            comment.append(token.string.lstrip("#"))
        elif token.type != tokenize.NL:
            if comment:
                yield first, " ".join(comment), False
                comment = []
            if token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
                yield token.start[0], token.string, not begins_statement
            begins_statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def _c(text: str) -> _Pieces:
    for match in re.finditer(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL):
        yield text.count("\n", 0, match.start()) + 1, match.group(), False


def _toml(text: str) -> _Pieces:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("block"):
            yield number, line, False


def _pair(text: str) -> _Pieces:
    """Comments of a pair of program and expectation."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            yield number, line, False


def _table(text: str) -> _Pieces:
    """Comments, and the columns that hold words."""
    for number, line in enumerate(text.splitlines(), 1):
        for cell in [line] if line.startswith("#") else line.split("\t"):
            if " " in cell:
                yield number, cell, False


_READERS: Final = {
    ".py": _python,
    ".tt": _pair,
    ".s": _pair,
    ".toml": _toml,
    ".tsv": _table,
    ".c": _c,
    ".h": _c,
    ".S": _c,
    ".ld": _c,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Where a rule is explained, and which lines cite it.")
    parser.add_argument("rule", nargs="*", help='for example F12, "tile T1", U5, I.11, 001.3.2e')
    name = " ".join(parser.parse_args().rule)
    known, places = entries(), citations()
    if not name:
        ids = {rule for place in places for rule in expand(place.citation, known)}
        print(f"{len(known)} ids are explained; {len(ids)} are cited, in {len(places)} places")
        return 0
    wanted = cited(name)
    rule = wanted[0].first if wanted else name
    if rule not in known:
        print(f"{name}: no such rule in docs/rules; docs/rules/index.md lists the families", file=sys.stderr)
        return 1
    entry = known[rule]
    print(f"docs/rules/{entry.page}#{entry.anchor}: {entry.title}")
    if entry.remark:
        print(f"  {entry.remark}")
    for place in places:
        if rule in expand(place.citation, known):
            print(f"  {place.path.relative_to(ROOT)}:{place.line}: {place.citation}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
