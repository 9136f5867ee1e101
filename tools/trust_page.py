"""docs/trust.md, from results of `bhemu fuzz`.

python tools/trust_page.py                      write the page from docs/trust.json
python tools/trust_page.py --check              say whether the page is that one
python tools/trust_page.py --library NAME STATE...   take the results of state files into docs/trust.json first
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
RESULTS, PAGE = DOCS / "trust.json", DOCS / "trust.md"
SHOWN = 12

HEAD = """\
# Trust

What was compared, how often, and what was found. The page is made by `python tools/trust_page.py` from
`docs/trust.json`, which holds results of campaigns of [`bhemu fuzz`](fuzz.md). The same version of bhemu repeats a
campaign from its seed and the size of its batches. See also [conformance vectors](conformance.md),
[the support table](fidelity.md) and [the LLK suite](llk.md).

| Kind | Done | Batches | Seed | Features reached | Differences | Open findings |
|---|---:|---:|---:|---:|---:|---:|
"""

NOTES = {
    "tensix": "Compiled code in each of its ways, and plain Python: all state that conformance vectors hold.",
    "library": "bhemu and {library}: the GPRs, and the pages of L1 that bhemu changes; in every eighth case all of L1.",
    "riscv": "A core and Unicorn: registers and memory at the end of each program.",
    "tile": "Whole tiles, with their clocks cut in different ways: registers, memory and counters.",
    "parsers": "Damaged files: only errors with a category and a remedy, within 5 s of the processor.",
}
UNITS = {"parsers": "inputs"}


def counts(result: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in result["counts"].items())


def page(results: dict[str, Any]) -> str:
    """The text."""
    text = HEAD
    for one in results["kinds"]:
        unit = UNITS.get(one["kind"], "instructions")
        differences = one["counts"].get("differences", 0) + one["counts"].get("failures", 0)
        text += f"| `{one['kind']}` | {one['done']:,} {unit} | {one['batches']:,} | {one['seed']} (of {one['size']:,}) "
        text += f"| {one['features']:,} | {differences:,} | {len(one['findings'])} |\n"
    for one in results["kinds"]:
        text += f"\n## {one['kind'].capitalize()}\n\n{NOTES[one['kind']].format(library=results['library'])}\n"
        text += f"\nCounts: {counts(one)}; {one['seconds']:,.0f} s.\n"
        if "note" in one:
            text += f"\n{one['note']}\n"
        if one["refusals"]:
            total = sum(one["refusals"].values())
            text += (
                f"\nThe other side refused {total:,} times, with {len(one['refusals']):,} kinds of message; what it\n"
            )
            text += "refuses is left out of programs, and is not a difference. The most frequent:\n\n"
            text += "| Message | Times |\n|---|---:|\n"
            rows = sorted(one["refusals"].items(), key=lambda item: (-item[1], item[0]))[:SHOWN]
            text += "".join(f"| `{message.replace('|', '/')}` | {count:,} |\n" for message, count in rows)
        for finding in one["findings"]:
            body = "\n".join(f"    {line}" for line in finding["text"].splitlines())
            text += f"\n### {finding['title']}\n\n{body}\n"
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="*", type=Path)
    parser.add_argument("--library", help="what the other library is called")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.states:
        from bhemu.fuzz.report import as_data
        from bhemu.fuzz.state import State

        known: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"library": "", "kinds": []}
        new = {one["kind"]: one for state in options.states for one in as_data(State(state).summaries())}
        for one in new.values():
            for finding in one["findings"]:
                del finding["file"]
        kinds = {one["kind"]: one for one in known["kinds"]} | new
        known = {"library": options.library or known["library"], "kinds": [kinds[name] for name in sorted(kinds)]}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
    text = page(json.loads(RESULTS.read_text()))
    if options.check:
        return 0 if PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
