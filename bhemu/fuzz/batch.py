"""What one batch of a campaign is given, and what it found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Task:
    """One batch: all that it does follows from this.

    Attributes:
        kind: of `campaign.KINDS`.
        seed: of the batch.
        size: how much to do, in the unit that the kind counts.
        library: the other library, for the kind that needs one.
        keep: directory for what differs.
    """

    kind: str
    seed: int
    size: int
    library: Path | None = None
    keep: Path = Path()


@dataclass(frozen=True)
class Finding:
    """A difference, a crash, or an error that is none of ours.

    Attributes:
        title: one line, the same for findings with one cause as far as can be told.
        text: everything that is known.
        file: what was kept, to be replayed.
    """

    title: str
    text: str
    file: str = ""


@dataclass
class Result:
    """What a batch did.

    Attributes:
        done: how much, in the unit that the kind counts.
        counts: further counts by name.
        refusals: of the other side, by kind of message.
        features: what was reached: instructions with their modes, values of decoded configuration, refusals of bhemu.
        findings: each one as it was found.
    """

    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    features: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
