"""The grammar in which source and tests cite rules (tools/rule_ids.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.rule_ids import citations, cited, entries, expand, identify, is_id, malformed

pytestmark = pytest.mark.plain

KNOWN = [
    *(f"tile B{n}" for n in range(1, 29)),
    *(f"math F{n}" for n in range(1, 33)),
    *("math Y10", "math Y11", "math Y11a", "math Y11b", "math Y11c", "math Y12"),
    *("U1", "U2", "U3", "001.4", "001.5", "001.6", "002.6.2b", "002.6.2c", "002.6.2d"),
]


def ids(text: str, *, strictly: bool = False) -> list[str]:
    return [rule for citation in cited(text, strictly=strictly) for rule in expand(citation, KNOWN)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rounds as the packer does (P10)", ["P10"]),
        ("math F11, O8", ["math F11", "math O8"]),
        ("F12 steps 2 and 3", ["math F12"]),
        ("(tile H1, N2)", ["tile H1", "tile N2"]),
        ("math F32, rules I.11", ["math F32", "I.11"]),
        ("rules I.2, I.3", ["I.2", "I.3"]),
        ("rules I.13 C10, 001.9.5", ["I.13", "001.9.5"]),
        ("002.5.2d, P8: the threshold", ["002.5.2d", "P8"]),
        ("001.11.1b2: RMWCIB", ["001.11.1b2"]),
        ("math V.7, Y12", ["math V.7", "math Y12"]),
        ("the vectors of math T, and math 0", ["math T", "math 0"]),
        ("State of the cores (tile T, T34).", ["tile T", "tile T34"]),
        ("a NoC request\n(tile N16\nto N18)", ["tile N16", "tile N18"]),
        ("tile T31 or K19", ["tile T31", "tile K19"]),
        ("Y11a, not Y11", ["math Y11a", "math Y11"]),
        ("as ethernet 2.1 says", ["ethernet 2.1"]),
        ("Y8's bug", ["math Y8"]),
        ("III.17", ["III.17"]),
        ("math V.5, P7, K14", ["math V.5", "P7", "tile K14"]),
    ],
)
def test_citations_are_read(text: str, found: list[str]) -> None:
    assert ids(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tile B2 to B11, B27", [*(f"tile B{n}" for n in range(2, 12)), "tile B27"]),
        ("math F8..F13", [f"math F{n}" for n in range(8, 14)]),
        ("rules U1-U3", ["U1", "U2", "U3"]),
        ("001.4 to 001.6", ["001.4", "001.5", "001.6"]),
        ("002.6.2b to 002.6.2d", ["002.6.2b", "002.6.2c", "002.6.2d"]),
        ("math Y10 to Y12", ["math Y10", "math Y11", "math Y11a", "math Y11b", "math Y11c", "math Y12"]),
    ],
)
def test_ranges_have_what_lies_between_their_ends(text: str, found: list[str]) -> None:
    assert sorted(ids(text)) == sorted(found)


@pytest.mark.parametrize(
    "text",
    [
        "cores B, T0, T1 and T2",
        "the bits B0..B8 of the block mask",
        "T1=math.elf",
        "tile 1-2 and tile 5",
        "a P150 and a P300",
        "FP16, E5M2, E4M3",
        "-O2",
        "0x10000.F12x",
        "version 1.10.0",
        "L1 and the FPU",
        "Ethernet 12 and 13",
    ],
)
def test_other_names_are_no_citations(text: str) -> None:
    assert cited(text) == []


def test_rules_that_share_their_name_with_a_core_or_a_bit_need_their_family() -> None:
    assert ids("T1, B4 and B9") == ["tile B9"]
    assert ids("tile T1, B4 and B9") == ["tile T1", "tile B4", "tile B9"]
    assert identify("T2") is None
    assert identify("T3") == "tile T3"


@pytest.mark.parametrize("text", ["math V12", "tile T1", "P6", "I.11", "003.2.1b", "math Y11a", "math V.5"])
def test_one_id_written_out(text: str) -> None:
    assert is_id(text)


@pytest.mark.parametrize("text", ["V12", "T1", "math V12, P6", "tile K999", "rules I.11", "P6 and more", ""])
def test_what_is_no_id_written_out(text: str) -> None:
    assert not is_id(text)


def test_messages_count_only_where_a_family_or_a_dot_says_that_it_is_a_rule() -> None:
    assert ids("the format U8 of rules I.1 [tile B12]", strictly=True) == ["I.1", "tile B12"]
    assert ids("see math F2, F3", strictly=True) == ["math F2", "math F3"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A repository with a citation of each kind."""
    (tmp_path / "bhemu").mkdir()
    (tmp_path / "bhemu" / "unit.py").write_text(
        '"""A unit (F4)."""\n'
        "# two lines of comment (math\n"
        "# T): P1\n"
        'FAULT = fault("U9 is no citation", rule="U5")\n'
        'OTHER = fault("text", rule="PACR_SETREG")\n'
        'VALUE = 1\n"""Its docstring (K4)."""\n'
        '@pytest.mark.rule("P6", "tile K42")\n'
        "def test_it():\n"
        '    raise Error(f"{1} [tile B12]")\n'
    )
    (tmp_path / "bhemu" / "part.h").write_text("int T34; /* waits (T32) */ // H8\n")
    (tmp_path / "bhemu" / "table.toml").write_text('block = ["B5"]\nsummary = "adds (I.8)"  # U2\n')
    (tmp_path / "bhemu" / "pair.tt").write_text("# rules: math V.5, P7\nSFPSHFT instr_mod1=1 U3\n")
    (tmp_path / "bhemu" / "table.tsv").write_text("# rule U4\nx\tR4\ta cell of words (F5)\n")
    return tmp_path


def test_comments_docstrings_rules_marks_and_descriptions_are_searched(source: Path) -> None:
    found = {(place.path.name, place.line, str(place.citation)) for place in citations(["bhemu"], source)}
    assert found == {
        ("unit.py", 1, "math F4"),
        ("unit.py", 2, "math T"),
        ("unit.py", 2, "P1"),
        ("unit.py", 4, "U5"),
        ("unit.py", 5, "PACR_SETREG"),
        ("unit.py", 7, "tile K4"),
        ("unit.py", 8, "P6"),
        ("unit.py", 8, "tile K42"),
        ("unit.py", 10, "tile B12"),
        ("part.h", 1, "tile T32"),
        ("part.h", 1, "tile H8"),
        ("pair.tt", 1, "math V.5"),
        ("pair.tt", 1, "P7"),
        ("table.toml", 2, "I.8"),
        ("table.toml", 2, "U2"),
        ("table.tsv", 1, "U4"),
        ("table.tsv", 2, "math F5"),
    }


def test_a_rule_that_is_no_citation_is_malformed(source: Path) -> None:
    (source / "bhemu" / "wrong.py").write_text(
        'fault("text", rule="F5 sometimes")\nfault("text", rule="F12 step 2, P1")\n'
    )
    assert malformed(["bhemu"], source) == ["bhemu/wrong.py:1: F5 sometimes"]


PAGE = """# Unit { #math-F }

## F.1 Part { #math-F.1 }

### F1 First { #math-F1 }

*Grade: verified, documented.*

### F2 Second { #math-F2 }

*Grade: reference. Not built.*

| Id | Grade | Question |
|---|---|---|
| <a id="III.1"></a>III.1 | open | why |
| <a id="002.14"></a><a id="002.14.2"></a><a id="002.14.3"></a>002.14.2 to 002.14.3 | reference | sizes |
| <a id="tile-E44"></a>E44 | reference. Background | no caches |
"""


def test_pages_tell_the_grade_of_each_rule_and_what_is_a_section(tmp_path: Path) -> None:
    (tmp_path / "unit.md").write_text(PAGE)
    known = entries(tmp_path)
    assert {rule: entry.remark for rule, entry in known.items()} == {
        "math F": "",
        "math F.1": "",
        "math F1": "Grade: verified, documented",
        "math F2": "Grade: reference. Not built",
        "III.1": "Grade: open",
        "002.14": "",
        "002.14.2": "Grade: reference",
        "002.14.3": "Grade: reference",
        "tile E44": "Grade: reference. Background",
    }
    needing = [rule for rule, entry in known.items() if not entry.needs_no_citation]
    assert needing == ["math F1", "002.14.2", "002.14.3"]


def test_an_anchor_that_stands_twice_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "unit.md").write_text("## F1 { #math-F1 }\n\n## F1 again { #math-F1 }\n")
    with pytest.raises(ValueError, match="math-F1"):
        entries(tmp_path)
