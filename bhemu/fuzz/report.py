"""Results of campaigns as text and as data."""

from __future__ import annotations

from typing import Any

from bhemu.fuzz.state import Summary


def plain_report(summaries: list[Summary]) -> str:
    """Findings, each with what is known of it."""
    lines = []
    for summary in summaries:
        for finding in summary.findings:
            lines += [f"{summary.kind}: {finding.title}"]
            lines += [f"  {line}" for line in finding.text.splitlines()]
            if finding.file:
                lines += [f"  kept as {finding.file}: `bhemu fuzz --replay {finding.file}`"]
    return "\n".join(lines)


def as_data(summaries: list[Summary]) -> list[dict[str, Any]]:
    """Everything, as plain data."""
    return [
        {
            "kind": s.kind,
            "seed": s.seed,
            "size": s.size,
            "batches": s.batches,
            "done": s.done,
            "seconds": round(s.seconds, 1),
            "features": s.features,
            "counts": dict(sorted(s.counts.items())),
            "refusals": dict(s.refusals.most_common()),
            "findings": [vars(finding) for finding in s.findings],
        }
        for s in summaries
    ]
