"""Draw what a command prints as an SVG picture of a terminal, for README and docs.

    python tools/terminal_picture.py            run the commands again and write their pictures
    python tools/terminal_picture.py --check    exit with 1 when a picture shows something else than the command prints

The pictures are real output: nothing here knows what the commands print. Only the run's seconds, which no two runs
share, and cycles are left out of the comparison. Run it twice to draw a run that compiles nothing.
"""

from __future__ import annotations

import argparse
import html
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PICTURES = {"matmul": "bhemu run examples/matmul.py"}
"""Command by name of its picture."""

COLUMNS = 100
THEME = TerminalTheme(
    (250, 250, 250),
    (36, 41, 46),
    [
        *((36, 41, 46), (179, 29, 40), (34, 134, 58), (158, 106, 3)),
        *((3, 102, 214), (90, 50, 163), (27, 124, 131), (88, 96, 105)),
    ],
)
# Like Rich's own frame, without its font from the network.
FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
  <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
_VARYING = re.compile(r"[\d,]+ cycles of issue, [\d.e-]+ s\b.*")


def printed(command: str) -> str:
    """What the command prints on a terminal, with its colours as ANSI escapes.

    Raises:
        subprocess.CalledProcessError: the command failed.
    """
    program, *arguments = shlex.split(command)
    script = Path(sys.executable).with_name(program)
    environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
    environment |= {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    result = subprocess.run(
        [str(script), *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return result.stdout


def draw(name: str, command: str, output: str) -> str:
    """The picture: a prompt with the command, and below it the output."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    console.print(Text.from_ansi(output.rstrip("\n")))
    return console.export_svg(title="bhemu", theme=THEME, code_format=FRAME, unique_id=name)


def text_of(svg: str) -> list[str]:
    """Lines of text in a picture, without cycles and seconds of the run."""
    lines: dict[float, list[tuple[float, str]]] = {}
    for attributes, content in re.findall(r"<text ([^>]*)>([^<]*)</text>", svg.split("<g transform")[-1]):
        x, y = (float(re.findall(rf'\b{axis}="([\d.]+)"', attributes)[0]) for axis in "xy")
        lines.setdefault(y, []).append((x, html.unescape(content).replace("\xa0", " ")))
    rows = ("".join(part for _, part in sorted(lines[y])).rstrip() for y in sorted(lines))
    return [_VARYING.sub("...", row) for row in rows]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args().check
    stale = 0
    for name, command in PICTURES.items():
        svg, path = draw(name, command, printed(command)), IMAGES / f"{name}.svg"
        if not check:
            path.write_text(svg, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
        elif not path.is_file() or text_of(path.read_text(encoding="utf-8")) != text_of(svg):
            print(f"{path.relative_to(ROOT)} is out of date: python tools/terminal_picture.py", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
