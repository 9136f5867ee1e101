"""The rooms of the package: imports go one way, and no room and no file is too large (docs/architecture.md)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import bhemu

PACKAGE = Path(bhemu.__file__).parent
ARCHITECTURE = PACKAGE.parent / "docs" / "architecture.md"
LARGEST_ROOM = 5000
LARGEST_FILE = 550


def rooms_in_order() -> list[str]:
    """Rooms as docs/architecture.md lists them, from the ground up."""
    listing = ARCHITECTURE.read_text().partition("```text\nbhemu/\n")[2].partition("```")[0]
    return re.findall(r"^  (\w+)(?:/|\.py)  ", listing, re.MULTILINE)


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Modules of the package that a file imports, with their lines."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names if name.name.startswith("bhemu."))
        elif isinstance(node, ast.ImportFrom) and node.module == "bhemu":
            yield from ((f"bhemu.{name.name}", node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bhemu."):
            yield str(node.module), node.lineno


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))
INSIDE = [file for file in FILES if not room_of(file).startswith("__")]


def test_the_architecture_page_lists_every_room() -> None:
    assert sorted(rooms_in_order()) == sorted({room_of(file) for file in INSIDE})


@pytest.mark.parametrize("room", sorted({room_of(file) for file in INSIDE}))
def test_a_room_imports_only_rooms_above_it(room: str) -> None:
    order = rooms_in_order()
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line} imports {module}"
        for file in INSIDE
        if room_of(file) == room
        for module, line in imports(file)
        if order.index(module.split(".")[1]) > order.index(room)
    ]
    assert not wrong


def test_no_room_but_the_coprocessor_is_above_5000_lines() -> None:
    sizes: Counter[str] = Counter()
    for file in INSIDE:
        sizes[room_of(file)] += len(file.read_text().splitlines())
    assert not {room: lines for room, lines in sizes.items() if lines > LARGEST_ROOM and room != "tensix"}


def test_no_file_is_longer_than_one_sitting() -> None:
    lengths = {str(file.relative_to(PACKAGE)): len(file.read_text().splitlines()) for file in FILES}
    assert not {file: lines for file, lines in lengths.items() if lines > LARGEST_FILE}
