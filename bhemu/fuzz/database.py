"""A SQLite file of results, which later runs go on with."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bhemu.errors import FormatError


class Database:
    """The file.

    Args:
        path: made when it is not there.
        tables: statements that make its tables.
        application: number by which SQLite knows whose file it is.
        version: of the tables.
        use: what it is used for, for messages.
        option: of the command line that names it.

    Raises:
        FormatError: the file is something else, is damaged, or cannot be opened.
    """

    def __init__(self, path: Path, tables: str, application: int, version: int, *, use: str, option: str) -> None:
        self.path = path
        self._use, self._option = use, option
        try:
            is_new = not path.exists() or path.stat().st_size == 0
            self._base = sqlite3.connect(path, isolation_level=None)
            if is_new:
                self._base.executescript(
                    f"begin; {tables} pragma application_id = {application}; pragma user_version = {version}; commit;"
                )
            else:
                self._check(application, version)
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from None

    def _check(self, application: int, version: int) -> None:
        if self._base.execute("pragma application_id").fetchone()[0] != application:
            raise self.damaged("it is another program's")
        found = self._base.execute("pragma user_version").fetchone()[0]
        if found != version:
            raise self.damaged(f"version {found} of the file")
        said = self._base.execute("pragma quick_check(1)").fetchone()[0]
        if said != "ok":
            raise self.damaged(" ".join(said.split()))

    def damaged(self, why: str) -> FormatError:
        """The refusal of the file."""
        return FormatError(
            f"{self.path}: cannot be used {self._use} ({why})",
            remedy=f"name another file with {self._option}, or remove this one to begin again",
        )

    def rows(self, text: str, *values: Any) -> list[Any]:
        """Execute a statement; the rows that it gives."""
        try:
            return self._base.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from None

    def add_all(self, rows: Sequence[tuple[str, Sequence[tuple[Any, ...]]]]) -> None:
        """Execute statements with rows, all of them or none."""
        try:
            with self._base:
                self._base.execute("begin")
                for text, values in rows:
                    self._base.executemany(text, values)
        except sqlite3.Error as error:
            raise self.damaged(str(error)) from None

    def close(self) -> None:
        """Close the file."""
        self._base.close()
