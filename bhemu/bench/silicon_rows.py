"""Rows of the files of measured figures: text by column, and a reason by line and column where it cannot be used."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path

from bhemu.bench.silicon_micro import NotReproduced
from bhemu.errors import ConfigurationError


class Row(dict[str, str]):
    """Text of a row by column.

    Args:
        cells: by column.
        place: the file's name and the line, for messages.
    """

    def __init__(self, cells: Mapping[str, str | None], place: str) -> None:
        super().__init__({column: text for column, text in cells.items() if column and text is not None})
        self.place = place

    def __missing__(self, column: str) -> str:
        raise NotReproduced(f"{self.place} has no {column}")

    def whole(self, column: str, least: int = 0, most: int = 1 << 32) -> int:
        """A whole number.

        Raises:
            NotReproduced: the row has none there, or one that is not between `least` and `most`.
        """
        text = self[column].strip()
        try:
            value = int(text)
        except ValueError:
            raise NotReproduced(f"{self.place}: {column} is {text!r}, not a whole number") from None
        if not least <= value <= most:
            raise NotReproduced(f"{self.place}: {column} is {value}, not {least} to {most}")
        return value

    def number(self, column: str) -> float:
        """A number.

        Raises:
            NotReproduced: the row has none there.
        """
        try:
            value = float(self[column])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise NotReproduced("the file has no measured value")
        return value

    def measured(self, column: str) -> float:
        """A measured value.

        Raises:
            NotReproduced: the row has none there, or one that is not more than 0.
        """
        value = self.number(column)
        if value <= 0:
            raise NotReproduced("the file has no measured value")
        return value

    def known(self, column: str, texts: Mapping[str, str] | Mapping[str, int]) -> str:
        """One of some texts.

        Raises:
            NotReproduced: the row has another one there.
        """
        text = self[column]
        if text not in texts:
            raise NotReproduced(f"{column} {text!r} is not known")
        return text


def read(folder: Path, name: str) -> list[Row]:
    """Rows of a file; none when the folder does not have it.

    Raises:
        ConfigurationError: it cannot be read, or is not text.
    """
    path = folder / name
    if not path.exists():
        return []
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            return [Row(cells, f"{name}, line {reader.line_num}") for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}", remedy="give a text file of comma-separated values"
        ) from None
