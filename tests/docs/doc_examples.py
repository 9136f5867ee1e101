"""Running the examples of README and docs, and comparing what they print with what the text says they print.

    python tests/docs/doc_examples.py README.md docs/*.md      write the real output where a page shows another
    python tests/docs/doc_examples.py --all docs/running.md    write all of it, new times included

Tests run the commands in their own process, which is quick; what is written comes from a process for each command, as
a user starts it.

The rules, for whoever writes documentation:

- Blocks of one file run in order, in one namespace and one working folder, which holds the repository's `examples/`.
- A `python` block is executed. What it prints must be in a `text title="Output"` block right after it.
- A `python title="name.py"`, `c title="name.c"` or `toml title="name.toml"` block is a file. If the repository has that
  file, the block must be an excerpt of it, word for word; otherwise the file is written into the working folder.
- In a `console` block each line `$ bhemu ...` is executed and what follows is compared. `$ echo $?` shows the exit
  status of the command before; a command without it must succeed.
- `...` in an output matches any text. Measured times are not compared, nor cycles, of which a process counts a few
  less when it executes an instruction for the first time.
- `<!-- not run: reason -->` before a block leaves it out.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
OTHER_COMMANDS = ("make", "git", "cd", "python3", ".venv/bin/pip")
"""What a console block may show besides `bhemu` and `echo $?`; not executed."""

_FENCE = re.compile(r'^```(?P<language>\w+)(?: title="(?P<title>[^"]*)")?\s*$')
_NOT_RUN = re.compile(r"^<!-- not run: \S.* -->$")
_TIME = re.compile(r"\b\d[\d.e+-]* (?:s|ms|us|ns)\b.*")
_CYCLES = re.compile(r"\b[\d,]+ cycles\b")
_COMPILING = re.compile(r"compiling \(first run only\) \.\.\.|(bhemu: )?compiling function \d+.*")


@dataclass
class Block:
    """A fenced block: `lines` are lines `first` .. of its file (counted from 0)."""

    language: str
    title: str
    first: int
    lines: list[str]
    runs: bool


def blocks(path: Path) -> list[Block]:
    """Fenced blocks of a Markdown file.

    Raises:
        ValueError: a fence whose first line is not understood, or that never ends.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    opened: Block | None = None
    before = ""
    for number, line in enumerate(lines):
        if opened is None and line.startswith("```"):
            match = _FENCE.match(line)
            if match is None:
                raise ValueError(f'{path.name}:{number + 1}: write ```language or ```language title="..."')
            opened = Block(match["language"], match["title"] or "", number + 1, [], not _NOT_RUN.match(before))
        elif opened is not None and line == "```":
            found.append(opened)
            opened = None
        elif opened is not None:
            opened.lines.append(line)
        if line.strip():
            before = line
    if opened is not None:
        raise ValueError(f"{path.name}:{opened.first}: the block does not end")
    return found


def _comparable(lines: list[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines)
    return _CYCLES.sub("<number> cycles", _TIME.sub("<time>", text))


@dataclass
class Shown:
    """Real output and the lines of the file that show it (`first` .. `last`, counted from 0)."""

    first: int
    last: int
    expected: list[str]
    got: list[str]

    @property
    def agrees(self) -> bool:
        """What is shown is what was printed, apart from times and cycles."""
        want, got = (_comparable(part) for part in (self.expected, self.got))
        return doctest.OutputChecker().check_output(want + "\n", got + "\n", doctest.ELLIPSIS)


def invoke(arguments: list[str]) -> tuple[int, list[str]]:
    """Exit status and printed lines (both streams) of `bhemu` with these arguments."""
    from bhemu.cli.main import app

    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    lines = result.output.splitlines()
    return result.exit_code, [line for line in lines if not _COMPILING.fullmatch(line)]


@dataclass
class Page:
    """One file's run.

    Attributes:
        problems: what does not hold, with line numbers.
        shown: every output that was compared.
        executed: number of blocks and commands that ran.
    """

    path: Path
    folder: Path
    invoke: Callable[[list[str]], tuple[int, list[str]]] = invoke
    problems: list[str] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    executed: int = 0

    def run(self) -> None:
        """Execute every block of the file, in order."""
        shutil.copytree(ROOT / "examples", self.folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        namespace: dict[str, Any] = {"__name__": self.path.stem}
        every = blocks(self.path)
        with contextlib.chdir(self.folder):
            for block, following in zip(every, [*every[1:], None], strict=False):
                if not block.runs:
                    continue
                if (block.language, Path(block.title).suffix) in (("python", ".py"), ("c", ".c"), ("toml", ".toml")):
                    self._file(block)
                elif block.language == "python":
                    self._python(block, following, namespace)
                elif block.language == "console":
                    self._console(block)

    def _problem(self, line: int, text: str) -> None:
        self.problems.append(f"{self.path.relative_to(ROOT)}:{line + 1}: {text}")

    def _file(self, block: Block) -> None:
        text = "\n".join(block.lines) + "\n"
        original = ROOT / block.title
        if not original.is_file():
            (self.folder / block.title).write_text(text, encoding="utf-8")
        elif text not in original.read_text(encoding="utf-8"):
            self._problem(block.first, f"this is not an excerpt of {block.title}")

    def _python(self, block: Block, following: Block | None, namespace: dict[str, Any]) -> None:
        printed = io.StringIO()
        source = "\n" * block.first + "\n".join(block.lines)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, str(self.path), "exec"), namespace)
        except Exception as error:
            self._problem(block.first, f"{type(error).__name__}: {error}")
            return
        self.executed += 1
        got = printed.getvalue().splitlines()
        if following is not None and following.language == "text" and following.title == "Output":
            self._compare(following.first, following.lines, got)
        elif got:
            self._problem(block.first, f"prints {got[0]!r}, and no Output block follows")

    def _console(self, block: Block) -> None:
        status = 0
        commands = list(_commands(block))
        for number, (line, command, expected) in enumerate(commands):
            if command == "echo $?":
                self._compare(line + 1, expected, [str(status)])
                continue
            program, *arguments = shlex.split(command)
            if program != "bhemu":
                if program not in OTHER_COMMANDS:
                    self._problem(line, f"{program} is not a command that documentation is expected to show")
                continue
            status, got = self.invoke(arguments)
            self.executed += 1
            self._compare(line + 1, expected, got)
            asked = number + 1 < len(commands) and commands[number + 1][1] == "echo $?"
            if status and not asked:
                self._problem(line, f"exit status {status}")

    def _compare(self, first: int, expected: list[str], got: list[str]) -> None:
        shown = Shown(first, first + len(expected), expected, [line.rstrip() for line in got])
        self.shown.append(shown)
        if not shown.agrees:
            self._problem(first, "the output is\n" + "\n".join(got))

    def rewrite(self, *, all: bool = False) -> None:
        """Put the real output into the file where it shows another; `all`: wherever no `...` replaces a part."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        for shown in reversed(self.shown):
            if not shown.agrees or (all and "..." not in "\n".join(shown.expected)):
                lines[shown.first : shown.last] = shown.got
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _commands(block: Block) -> Iterator[tuple[int, str, list[str]]]:
    """(line, command, lines of output) of a console block."""
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    for start, end in zip(starts, [*starts[1:], len(block.lines)], strict=True):
        yield block.first + start, block.lines[start][2:].strip(), block.lines[start + 1 : end]


def invoke_as_a_user(arguments: list[str]) -> tuple[int, list[str]]:
    """The same from a process of its own."""
    command = [str(Path(sys.executable).with_name("bhemu")), *arguments]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return result.returncode, [line for line in result.stdout.splitlines() if not _COMPILING.fullmatch(line)]


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--all"]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            page = Page(Path(name).resolve(), Path(folder), invoke_as_a_user)
            page.run()
            page.rewrite(all=len(names) < len(sys.argv) - 1)
        errors = [problem for problem in page.problems if "the output is" not in problem]
        print("\n".join([f"{name}: {page.executed} examples", *errors]))


if __name__ == "__main__":
    main()
