"""The files of `data/`: tables of facts, read once by the module that gives their rows types."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any


def text(name: str) -> str:
    """A file of this package's `data/`."""
    return resources.files("bhemu.isa").joinpath("data", name).read_text("utf-8")


def rows(name: str) -> list[list[str]]:
    """Cells of a table with tabs; the first row names the columns, lines with # are comments."""
    return [line.split("\t") for line in text(name).splitlines() if line and not line.startswith("#")]


def content(name: str) -> dict[str, Any]:
    """A TOML file."""
    return tomllib.loads(text(name))
