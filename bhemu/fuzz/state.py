"""What a campaign has done so far, in one SQLite file: it goes on from there."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bhemu.fuzz.batch import Finding, Result, Task
from bhemu.fuzz.database import Database

APPLICATION: Final = 0x6268_6D75
VERSION: Final = 1
_TABLES: Final = """
create table batch (kind text, number integer, seed integer, done integer, seconds real, counts text,
    primary key (kind, number));
create table refusal (kind text, text text, count integer, primary key (kind, text));
create table feature (kind text, name text, primary key (kind, name));
create table finding (kind text, seed integer, title text, text text, file text);
create table setting (kind text primary key, value text);
"""


@dataclass(frozen=True)
class Summary:
    """All batches of a kind.

    Attributes:
        seed: of the campaign.
        size: of a batch.
        batches, done, seconds: sums.
        counts, refusals: sums by name.
        features: how many were reached.
        findings: all of them.
    """

    kind: str
    seed: int
    size: int
    batches: int
    done: int
    seconds: float
    counts: Counter[str]
    refusals: Counter[str]
    features: int
    findings: list[Finding]


class State:
    """The file.

    Args:
        path: made when it is not there.

    Raises:
        FormatError: the file is something else, is damaged, or cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = Database(path, _TABLES, APPLICATION, VERSION, use="as the state of a campaign", option="--state")

    def settle(self, kind: str, seed: int, size: int) -> tuple[int, int]:
        """Seed and size of a kind's batches: those that it began with, or else these."""
        self._file.rows("insert or ignore into setting values (?, ?)", kind, json.dumps([seed, size]))
        try:
            value = json.loads(self._file.rows("select value from setting where kind = ?", kind)[0][0])
            return int(value[0]), int(value[1])
        except (ValueError, TypeError, IndexError) as error:
            raise self._file.damaged(f"setting of {kind}: {error}") from None

    def finished(self, kind: str) -> set[int]:
        """Numbers of the batches that are done."""
        return {int(row[0]) for row in self._file.rows("select number from batch where kind = ?", kind)}

    def add(self, task: Task, number: int, result: Result, seconds: float) -> None:
        """Keep what a batch did, whole or not at all."""
        kind = task.kind
        self._file.add_all(
            [
                (
                    "insert into batch values (?, ?, ?, ?, ?, ?)",
                    [(kind, number, task.seed, result.done, seconds, json.dumps(result.counts))],
                ),
                (
                    "insert into refusal values (?, ?, ?) on conflict do update set count = count + excluded.count",
                    [(kind, text, count) for text, count in result.refusals.items()],
                ),
                ("insert or ignore into feature values (?, ?)", [(kind, name) for name in result.features]),
                (
                    "insert into finding values (?, ?, ?, ?, ?)",
                    [(kind, task.seed, f.title, f.text, f.file) for f in result.findings],
                ),
            ]
        )

    def summaries(self) -> list[Summary]:
        """What was done, by kind."""
        return [self.summary(row[0]) for row in self._file.rows("select kind from setting order by kind")]

    def summary(self, kind: str) -> Summary:
        """What was done of one kind."""
        seed, size = self.settle(kind, 0, 0)
        counts: Counter[str] = Counter()
        done, seconds, batches = 0, 0.0, 0
        for number, time, text in self._file.rows("select done, seconds, counts from batch where kind = ?", kind):
            done, seconds, batches = done + int(number), seconds + float(time), batches + 1
            try:
                counts.update(Counter({str(name): int(count) for name, count in json.loads(text).items()}))
            except (ValueError, TypeError, AttributeError) as error:
                raise self._file.damaged(f"counts of {kind}: {error}") from None
        refusals = Counter(dict(self._file.rows("select text, count from refusal where kind = ?", kind)))
        features = int(self._file.rows("select count(*) from feature where kind = ?", kind)[0][0])
        found = self._file.rows("select title, text, file from finding where kind = ?", kind)
        findings = [Finding(*row) for row in found]
        return Summary(kind, seed, size, batches, done, seconds, counts, refusals, features, findings)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
