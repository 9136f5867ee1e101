"""What README and docs show is what happens: their examples run and print what the text says they print."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bhemu.cc import MissingTool
from bhemu.cc.toolchain import find_toolchain
from bhemu.machine.compiler import JIT
from tests.c_programs import compiler_or_skip
from tests.docs.doc_examples import ROOT, Block, Page, Shown, blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RULES = sorted((ROOT / "docs" / "rules").glob("*.md"))
compiled_only = pytest.mark.skipif(not JIT, reason="whole programs take minutes as plain Python")


@compiled_only
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_example_runs_and_prints_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    if "$ bhemu cc " in path.read_text(encoding="utf-8"):
        try:
            find_toolchain()
        except MissingTool as missing:
            pytest.skip(f"{missing.message}: {missing.remedy}")
    if "$ bhemu library " in path.read_text(encoding="utf-8"):
        compiler_or_skip("THE PAGE'S EXAMPLES ARE NOT RUN")
    page = Page(path, tmp_path)
    page.run()
    assert not page.problems, "\n".join(page.problems)


@pytest.mark.parametrize(
    "name", ["README.md", "docs/machine.md", "docs/start.md", "docs/running.md", "docs/python.md", "docs/chip.md"]
)
def test_pages_that_teach_have_examples_that_run(name: str) -> None:
    assert [block for block in blocks(ROOT / name) if block.runs and block.language in ("python", "console")]


def _modules_with_doctests() -> list[str]:
    package = ROOT / "bhemu"
    files = [path for path in sorted(package.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", _modules_with_doctests())
def test_examples_in_docstrings_hold(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert not results.failed


def test_drawings_are_those_that_their_tool_draws() -> None:
    script = ROOT / "tools" / "machine_pictures.py"
    result = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@compiled_only
def test_pictures_show_what_the_commands_print() -> None:
    script = ROOT / "tools" / "terminal_picture.py"
    result = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for path in [*PAGES, *RULES]:
        text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{path.name}: {target}")
    assert broken == []


# --- the checker itself --------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """A page of the test's own, in a repository with one example."""
    from tests.docs import doc_examples

    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "known.py").write_text("a = 1\nb = 2\n")
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(doc_examples, "ROOT", tmp_path)
    return Page(tmp_path / "page.md", tmp_path / "work")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\nprint(1)\n```", "no Output block"),
        ('```python\nprint(1)\n```\n```text title="Output"\n2\n```', "the output is\n1"),
        ("```python\n1 / 0\n```", "ZeroDivisionError"),
        ("```python\na = 1\n```\n```python\nassert a == 2\n```", "AssertionError"),
        ('```python title="examples/known.py"\nb = 3\n```', "not an excerpt"),
        ("```console\n$ bhemu asm NOPE\n```", "exit status 1"),
        ("```console\n$ bhemu asm NOP\n0x00000000\n```", "0x02000000"),
        ("```console\n$ bhemu asm NOP\n0x02000000\n$ echo $?\n1\n```", "the output is\n0"),
        ("```console\n$ rm file\n```", "not a command"),
    ],
)
def test_a_page_that_is_wrong_is_caught(page: Page, text: str, problem: str) -> None:
    page.path.write_text(text + "\n")
    page.run()
    assert problem in "\n".join(page.problems)


@pytest.mark.parametrize(
    "text",
    [
        '```python\nprint(1)\n```\n\n```text title="Output"\n1\n```',
        '```python title="examples/known.py"\nb = 2\n```',
        '```python title="mine.py"\nx = 5\n```\n```python\nassert "x = 5" in open("mine.py").read()\n```',
        "```console\n$ bhemu asm NOP\n0x02000000\n$ make run\nanything\n```",
        "```console\n$ bhemu asm NOPE\n... no instruction ...\n$ echo $?\n1\n```",
        "<!-- not run: it never ends -->\n```python\nwhile True: pass\n```",
    ],
)
def test_a_page_that_is_right_passes(page: Page, text: str) -> None:
    page.path.write_text(text + "\n")
    page.run()
    assert page.problems == []


def test_times_and_cycles_are_not_compared_and_other_numbers_are() -> None:
    assert Shown(0, 1, ["4,902 cycles of issue"], ["906 cycles of issue"]).agrees
    assert Shown(0, 1, ["16 tiles, 0.24 s"], ["16 tiles, 3.1 s, of which the compilation of 9 functions"]).agrees
    assert not Shown(0, 1, ["16 tiles, 0.24 s"], ["17 tiles, 0.24 s"]).agrees


@pytest.mark.parametrize("text", ["```\nno language\n```\n", "```python\nno end\n"])
def test_blocks_that_are_not_understood_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "page.md"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"page\.md"):
        blocks(path)


def test_block_knows_its_language_title_and_place(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text('text\n\n```python title="a.py"\nx\ny\n```\n')
    assert blocks(path) == [Block("python", "a.py", 3, ["x", "y"], True)]
