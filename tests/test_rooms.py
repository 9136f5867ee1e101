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


def private_names(text: str, room: str) -> Iterator[str]:
    """Names of other rooms with a leading underscore that a module of `room` uses, with their lines."""
    tree = ast.parse(text)
    used: list[tuple[str, int]] = []
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {name.asname or name.name: name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
            used += [(name, node.lineno) for name in names.values()]
            modules |= {short: name for short, name in names.items() if is_module(name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in modules:
            used.append((f"{modules[ast.unparse(node.value)]}.{node.attr}", node.lineno))
    for name, line in used:
        parts = name.split(".")
        private = any(part.startswith("_") and not part.startswith("__") for part in parts)
        if private and parts[0] == "bhemu" and parts[1:2] != [room]:
            yield f"line {line}: {name}"


def is_module(name: str) -> bool:
    place = PACKAGE.parent / Path(*name.split("."))
    return place.is_dir() or place.with_suffix(".py").exists()


@pytest.mark.slow
def test_no_room_uses_a_private_name_of_another_room() -> None:
    wrong = {str(file.relative_to(PACKAGE)): list(private_names(file.read_text(), room_of(file))) for file in INSIDE}
    assert not {file: names for file, names in wrong.items() if names}


def test_private_names_are_found_in_imports_and_behind_modules() -> None:
    text = "from bhemu.chip.state import _TILE_BYTES\nfrom bhemu.machine import state\nstate._layout()\n"
    assert list(private_names(text, "timed")) == [
        "line 1: bhemu.chip.state._TILE_BYTES",
        "line 3: bhemu.machine.state._layout",
    ]
    assert not list(private_names(text.replace("machine", "chip"), "chip"))
