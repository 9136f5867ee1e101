"""The examples of the documentation as notebooks, executed.

    python tools/notebooks.py FOLDER           make and execute them, and write them with their outputs
    python tools/notebooks.py --check          execute them only

A notebook is made from a page: its text, its Python blocks as cells, and its files as cells that write them. Pages with
blocks that need a compiler or another machine are left out. A cell that fails ends the program with exit status 1.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("python.md", "formats.md", "numerics.md", "pictures.md")
_BLOCK = re.compile(
    r"(?:^<!-- not run: .* -->\n)?^```(\w+)(?: title=\"([^\"]*)\")?\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)\.md(#[^)]*)?\)")


def _cell(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def notebook(page: Path) -> dict[str, Any]:
    """A page as a notebook without outputs."""
    text, cells, at = page.read_text(encoding="utf-8"), [], 0

    def prose(part: str) -> None:
        part = _LINK.sub(r"](../\1/\2)", part).strip()
        if part:
            cells.append(_cell("markdown", part))

    for match in _BLOCK.finditer(text):
        language, title, body = match[1], match[2] or "", match[3]
        prose(text[at : match.start()])
        at = match.end()
        skipped = match[0].startswith("<!--")
        if skipped or (language == "text" and title == "Output"):
            if skipped:
                prose(f"```{language}\n{body}```")
            continue
        if title.endswith(".py"):
            if not (ROOT / title).is_file():
                cells.append(_cell("code", f"%%writefile {title}\n{body}"))
        elif language == "python":
            cells.append(_cell("code", body))
        elif language == "console":
            commands = [line[2:] for line in body.splitlines() if line.startswith("$ ") and "echo $?" not in line]
            cells.append(_cell("code", "\n".join(f"!{command}" for command in commands)))
        else:
            prose(f"```{language}\n{body}```")
    prose(text[at:])
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def execute(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Execute a notebook in a folder that has the examples; returns it with its outputs.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    import nbformat
    from nbclient import NotebookClient

    shutil.copytree(ROOT / "examples", folder / "examples", dirs_exist_ok=True)
    book = nbformat.reads(json.dumps(content), as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return json.loads(nbformat.writes(book))  # type: ignore[no-any-return]


def main() -> int:
    targets = [Path(word) for word in sys.argv[1:] if not word.startswith("-")]
    for name in PAGES:
        with tempfile.TemporaryDirectory() as folder:
            done = execute(notebook(ROOT / "docs" / name), Path(folder))
        print(f"{name}: {sum(cell['cell_type'] == 'code' for cell in done['cells'])} cells", flush=True)
        for target in targets:
            target.mkdir(parents=True, exist_ok=True)
            (target / name).with_suffix(".ipynb").write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
