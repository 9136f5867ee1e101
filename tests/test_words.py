"""Words of the code and the documentation: nothing unused has a name, and what has a plain name has no other."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import bhemu

PACKAGE = Path(bhemu.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
TEXTS = [
    file
    for folder in (PACKAGE, PACKAGE.parent / "docs")
    for kind in ("*.py", "*.md", "*.c", "*.h", "*.toml")
    for file in sorted(folder.rglob(kind))
]
PLAIN = {
    "somebody": "the core, tile, user or thread that is meant",
    "live beside": "interact with",
    "before which a tile stands": "that the tile is blocked on",
    "goes round in a loop": "spins on unchanged memory",
    "others look on": "another core polls or is blocked",
    "no multiple of their number": "misaligned",
    "is no Blackhole": "is not a Blackhole",
    "without a word": "without an error message",
    "where it sees nothing": "unmapped for this core",
    "words_on_the_way": "words_in_flight",
    "moment": "round, clock or cycle",
    "(no|any)body": "the core, tile, user or thread that is meant; or the passive",
    "go(es)? round": "spins, loops, is repeated",
    "stands? still": "is blocked, polls or is halted",
    "shall": "must, or is to",
    "(?<!here )(is|are|was|were) no (?!longer|more)": "is not a",
}
"""What is not written here, as regular expressions, and what an engineer of the field says."""


def unused(text: str) -> list[str]:
    """Names that a module defines with a leading underscore, and does not use."""
    words = Counter(re.findall(r"\w+", text))
    names: list[str] = []
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.decorator_list:
            names.append(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [name for name in names if re.match(r"_[^_]", name) and words[name] == 1]


@pytest.mark.slow
def test_a_module_uses_all_of_its_private_names() -> None:
    found = {str(file.relative_to(PACKAGE)): unused(file.read_text()) for file in MODULES}
    assert not {file: names for file, names in found.items() if names}


def test_an_unused_private_name_is_found() -> None:
    assert unused("_A = 1\n_B: int = _A\ndef _f(): ...\ndef _g(): return _f()\n") == ["_B", "_g"]


@pytest.mark.parametrize("words", PLAIN)
def test_prose_says_it_as_the_field_does(words: str) -> None:
    pattern = re.compile(rf"\b{words}")
    found = [str(file) for file in TEXTS if pattern.search(" ".join(file.read_text().split()))]
    assert not found, f"say {PLAIN[words]}"
