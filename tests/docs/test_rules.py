"""docs/rules and the source agree: what is cited is explained, and what is explained is cited or says why not."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

import pytest

from bhemu.isa.instructions import INSTRUCTIONS
from tools.rule_ids import ROOT, RULES, Entry, citations, entries, expand, malformed
from tools.rule_links import linked

pytestmark = pytest.mark.plain

GRADE = "(verified|reference|documented|open)"
REMARK = re.compile(rf"Grade: {GRADE}(, {GRADE})*(\. (Not built|Background))?|(Grade: )?Background")


@cache
def _known() -> dict[str, Entry]:
    return entries()


@cache
def _cited() -> dict[str, list[str]]:
    """Each id that is cited, with the places."""
    found = defaultdict(list)
    for place in citations():
        for rule in expand(place.citation, _known()):
            found[rule].append(f"{place.path.relative_to(ROOT)}:{place.line}")
    return dict(found)


def test_every_rule_that_is_cited_is_explained() -> None:
    assert {rule: places for rule, places in _cited().items() if rule not in _known()} == {}


def test_every_rule_of_a_refusal_or_a_mark_is_a_citation() -> None:
    assert malformed() == []


def test_every_rule_is_cited_or_says_that_it_is_open_not_built_or_background() -> None:
    silent = [rule for rule, entry in _known().items() if rule not in _cited() and not entry.needs_no_citation]
    assert silent == []


def test_the_source_cites_rules_at_all() -> None:
    """An empty search would pass the tests above."""
    assert len(_cited()) > 800
    assert sum(len(places) for places in _cited().values()) > 3500


def test_every_rule_has_a_grade() -> None:
    remarks = {rule: entry.remark for rule, entry in _known().items() if entry.remark}
    assert {rule: remark for rule, remark in remarks.items() if not REMARK.fullmatch(remark)} == {}


def test_every_heading_that_begins_with_an_id_has_that_id_as_its_anchor() -> None:
    wrong = []
    for path in RULES.glob("*.md"):
        for line in path.read_text(encoding="utf-8").splitlines():
            heading = re.match(r"#+ ((?:[A-Z]|I{1,3})\.?\d+[a-c]?) .*?(?: \{ #(?:\w+-)?(\S+) \})?$", line)
            if heading is not None and heading[1] != heading[2]:
                wrong.append(f"{path.name}: {line}")
    assert wrong == []


def test_the_index_leads_to_every_page() -> None:
    text = (RULES / "index.md").read_text(encoding="utf-8") + (RULES / "chapters.md").read_text(encoding="utf-8")
    assert {path.name for path in RULES.glob("*.md")} - set(re.findall(r"\]\(([\w-]+\.md)", text)) <= {"index.md"}


def test_links_between_rules_lead_to_anchors() -> None:
    anchors = {(entry.page, entry.anchor) for entry in _known().values()}
    broken = []
    for path in [*RULES.glob("*.md"), ROOT / "docs" / "machine.md"]:
        for page, anchor in re.findall(r"\]\((?:rules/)?([\w-]*\.md)?#([^)]+)\)", path.read_text(encoding="utf-8")):
            if page and not page.startswith("../") and (page, anchor) not in anchors:
                broken.append(f"{path.name}: {page}#{anchor}")
    assert broken == []


def test_ids_on_a_page_become_links() -> None:
    text = "See F12, `F12`, tile T1 and T1.\n\n# F12\n\n```text\nF12\n```\n| <a id='U5'></a>U5 | rules U6 |\n"
    assert linked(text, "rules/matrix.md", _known()) == (
        "See [F12](matrix.md#math-F12), `F12`, tile [T1](cores.md#tile-T1) and [T1](cores.md#tile-T1).\n\n# F12\n\n"
        "```text\nF12\n```\n| <a id='U5'></a>U5 | rules [U6](unpack.md#U6) |\n"
    )
    assert linked("(U5)", "machine.md", _known()) == "([U5](rules/unpack.md#U5))"


# --- pages that repeat what a table of the program has ----------------------------------------------------------------


def test_the_page_of_instructions_has_the_encodings_of_the_table() -> None:
    text = (RULES / "instructions.md").read_text(encoding="utf-8")
    rows = re.findall(r'^\| <a id="(\w+)"></a>\w+ \| [^|]+ \| (0x\w\w) \| (.*?) \| ([^|]+) \|', text, re.MULTILINE)
    assert {mnemonic: int(opcode, 16) for mnemonic, opcode, _, _ in rows} == {
        mnemonic: row.opcode for mnemonic, row in INSTRUCTIONS.items()
    }
    differing = {}
    for mnemonic, _, operands, _ in rows:
        shown = {
            (name, int(high), int(low or high))
            for name, high, low in re.findall(r"(\w+)\[(\d+)(?::(\d+))?\]", operands)
        }
        missing = {(field.name, field.msb, field.lsb) for field in INSTRUCTIONS[mnemonic].fields} - shown
        if missing:
            differing[mnemonic] = missing
    assert differing == {}
