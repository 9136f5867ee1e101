"""Draw the pictures of docs/machine.md.

    python tools/machine_pictures.py            write them to docs/images
    python tools/machine_pictures.py --check    exit with 1 when a file is not what would be written

Where a picture shows what the program knows (the grid of the chip, the rows of Dst), it is drawn from the program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from html import escape
from pathlib import Path

from bhemu.chip.coordinates import HEIGHT, NODES, WIDTH, Kind

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
FONT = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
INK, GREY, PANEL = "#24292e", "#57606a", "#fafafa"
MEMORY, CORE, UNIT, FILE, NET = "#fff3c4", "#d9ecff", "#dff3e0", "#eadff7", "#ffe3d6"
"""Colours of memories, cores, units of the coprocessor, register files, and what belongs to the NoC."""


class Drawing:
    """An SVG picture that is put together from boxes, arrows and lines of text."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.size = width, height
        self.title = title
        self.parts: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: int = 13, at: str = "middle", bold: bool = False,
        colour: str = INK, mono: bool = False,
    ) -> None:  # fmt: skip
        """A line of text; y is its middle."""
        weight = ' font-weight="600"' if bold else ""
        family = f' font-family="{MONO}"' if mono else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y + size * 0.36:.1f}" font-size="{size}" text-anchor="{at}" fill="{colour}"'
            f"{weight}{family}>{escape(text)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, fill: str = "white", bold: bool = True,
        size: int = 13, mono: bool = False,
    ) -> None:  # fmt: skip
        """A box with its lines in the middle, the first one bold."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{GREY}"/>'
        )
        top = y + height / 2 - (len(lines) - 1) * size * 0.7
        for i, line in enumerate(lines):
            first = i == 0 and bold
            self.text(
                x + width / 2, top + i * size * 1.4, line, size=size if i == 0 else size - 1, bold=first, mono=mono
            )

    def arrow(self, *points: tuple[float, float], both: bool = False) -> None:
        """An arrow through the points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        start = ' marker-start="url(#head)"' if both else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.4" marker-end="url(#head)"{start}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{GREY}"/>')

    def svg(self) -> str:
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
            f'font-family="{FONT}">\n<title>{escape(self.title)}</title>\n'
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0,1 L10,5 L0,9 z" fill="{INK}"/></marker></defs>\n'
            f'<rect width="{width}" height="{height}" rx="8" fill="{PANEL}"/>\n' + "\n".join(self.parts) + "\n</svg>\n"
        )


def chip() -> Drawing:
    """The grid of NoC 0."""
    cell, left, top = 38, 40, 34
    colours = {
        Kind.TENSIX: UNIT, Kind.DRAM: MEMORY, Kind.ETHERNET: NET, Kind.PCIE: CORE, Kind.ARC: FILE,
        Kind.L2CPU: "#eef0f2", Kind.SECURITY: "#eef0f2", Kind.ROUTER: "white",
    }  # fmt: skip
    short = {
        Kind.DRAM: "D",
        Kind.ETHERNET: "E",
        Kind.PCIE: "PCIe",
        Kind.ARC: "ARC",
        Kind.L2CPU: "L2",
        Kind.SECURITY: "S",
    }
    drawing = Drawing(
        left + WIDTH * cell + 16, top + HEIGHT * cell + 52, "The grid of a Blackhole, physical coordinates of NoC 0"
    )
    for x in range(WIDTH):
        drawing.text(left + (x + 0.5) * cell, top - 14, str(x), size=11, colour=GREY)
    for y in range(HEIGHT):
        drawing.text(left - 16, top + (y + 0.5) * cell, str(y), size=11, colour=GREY)
    for (x, y), node in sorted(NODES.items()):
        label = short.get(node.kind, "")
        if node.kind in (Kind.DRAM, Kind.ETHERNET):
            label += str(node.index)
        drawing.box(
            left + x * cell + 2,
            top + y * cell + 2,
            cell - 4,
            cell - 4,
            label,
            fill=colours[node.kind],
            bold=False,
            size=11,
        )
    place = left + 2.0
    legend = (
        (UNIT, "Tensix tile"),
        (MEMORY, "port of DRAM channel n"),
        (NET, "Ethernet"),
        (CORE, "PCIe"),
        (FILE, "ARC"),
    )
    for colour, name in legend:
        drawing.box(place, top + HEIGHT * cell + 18, 18, 18, fill=colour)
        drawing.text(place + 25, top + HEIGHT * cell + 27, name, size=12, at="start")
        place += 48 + 6.6 * len(name)
    return drawing


def tile() -> Drawing:
    """A Tensix tile."""
    d = Drawing(760, 400, "A Tensix tile")
    names = (("B", "BRISC"), ("NC", "NCRISC"), ("T0", "unpack"), ("T1", "math"), ("T2", "pack"))
    for i, (name, role) in enumerate(names):
        x = 20 + i * 112 + (40 if i > 1 else 0)
        d.box(x, 22, 100, 44, name, role, fill=CORE)
        d.arrow((x + 26, 66), (x + 26, 318), both=True)
        if i > 1:
            d.arrow((x + 62, 66), (x + 62, 108))
    d.text(698, 44, "five RISC-V cores", size=12, colour=GREY)
    d.box(262, 108, 360, 176, fill="white")
    d.text(442, 126, "Tensix coprocessor: three threads", bold=True)
    for i, name in enumerate(("unpackers", "matrix unit", "packer")):
        d.box(276 + i * 114, 146, 104, 34, name, fill=UNIT)
    for i, name in enumerate(("SrcA, SrcB", "Dst", "vector unit")):
        d.box(276 + i * 114, 192, 104, 34, name, fill=UNIT if i == 2 else FILE)
    for i, name in enumerate(("scalar, GPRs", "config", "sync")):
        d.box(276 + i * 114, 238, 104, 34, name, fill=UNIT)
    d.arrow((592, 284), (592, 318), both=True)
    d.box(
        20,
        318,
        602,
        60,
        "L1: 1536 KiB",
        "programs, tiles, circular buffers, mailboxes; cores, coprocessor and NoC share it",
        fill=MEMORY,
    )
    for noc in (0, 1):
        d.box(652, 300 + noc * 44, 92, 36, f"NoC {noc} (NIU)", fill=NET, size=12)
        d.arrow((652, 330 + noc * 24), (622, 336 + noc * 18), both=True)
    d.text(580, 88, "instructions", size=12, colour=GREY, at="start")
    return d


def words() -> Drawing:
    """From a core to the units."""
    d = Drawing(760, 372, "A word's way from a core to a unit")
    stages = ("FIFO, 32 words", "MOP expander", "REPLAY expander", "wait gate")
    for thread, (core, name) in enumerate((("T0", "unpack"), ("T1", "math"), ("T2", "pack"))):
        y = 20 + thread * 58
        d.box(16, y, 92, 40, f"{core}: {name}", fill=CORE, size=12)
        x = 134.0
        for i, stage in enumerate(stages):
            d.arrow((x - 26, y + 20), (x, y + 20))
            d.box(x, y, 126, 40, stage, size=12, bold=i == 3, fill="white" if i < 3 else NET)
            x += 152
        d.arrow((x - 26, y + 20), (x - 4, y + 20), (x - 4, 216))
    d.text(720, 198, "by opcode", size=12, colour=GREY, at="end")
    d.line(40, 216, 738, 216)
    units = (
        ("unpackers", "UNPACR"), ("matrix", "MVMUL, ELWADD"), ("vector", "SFP..."), ("packer", "PACR"),
        ("scalar", "SETDMAREG"), ("config", "WRCFG, SETC16"), ("sync", "SEMPOST"),
    )  # fmt: skip
    for i, (name, example) in enumerate(units):
        x = 16 + i * 105
        d.arrow((x + 49, 216), (x + 49, 242))
        d.box(x, 242, 98, 48, name, example, fill=UNIT, size=12)
    d.text(380, 322, "Core B pushes to any thread, behind its MOP expander. A thread's words pass its gate in order;")
    d.text(380, 344, "units work at the same time, so words of one thread may finish in another order.")
    return d


def dst() -> Drawing:
    """Rows of Dst in both views."""
    d = Drawing(760, 372, "Rows of Dst in the 16-bit and the 32-bit view")
    d.text(150, 22, "16-bit view: 1024 rows", bold=True)
    d.text(380, 22, "cells, 16 columns x 16 bits", bold=True)
    d.text(620, 22, "32-bit view: 512 rows", bold=True)
    for block in range(2):
        for half in range(2):
            y = 40 + (block * 2 + half) * 74
            first = block * 16 + half * 8
            d.box(280, y, 200, 66, f"rows {first} to {first + 7}", fill=FILE, bold=False)
            d.box(60, y, 180, 66, f"{first} to {first + 7}", "BF16, FP16, INT16, INT8", fill="white", size=12)
            d.arrow((240, y + 33), (280, y + 33))
        y = 40 + block * 148
        d.box(520, y, 200, 140, f"{block * 8} to {block * 8 + 7}", "FP32, TF32, INT32", fill="white", size=12)
        for half, name in enumerate(("high halves", "low halves")):
            d.arrow((520, y + 33 + half * 74), (480, y + 33 + half * 74))
            d.text(528, y + 18 + half * 106, name, size=11, colour=GREY, at="start")
    d.text(
        380,
        352,
        "Row r of 32 bits: high half in cell row ((r & 0x1F8) << 1) | (r & 7), low half eight rows further.",
        size=12,
    )
    return d


def datum() -> Drawing:
    """0.125 + 0.5, with the bits at each station."""
    d = Drawing(760, 430, "A datum's way from L1 to L1")
    d.box(20, 20, 160, 56, "L1", "BF16 0x3E00 (0.125)", fill=MEMORY)
    d.box(20, 110, 160, 56, "L1", "BF16 0x3F00 (0.5)", fill=MEMORY)
    for y, number, file, cell in ((20, 0, "SrcA", "0x0007C"), (110, 1, "SrcB", "0x0007E")):
        d.arrow((180, y + 28), (226, y + 28))
        d.box(226, y, 150, 56, f"unpacker {number}", "UNPACR", fill=UNIT)
        d.arrow((376, y + 28), (422, y + 28))
        d.box(422, y, 160, 56, file, f"19-bit cell {cell}", fill=FILE)
        d.arrow((582, y + 28), (652, y + 28), (652, 196))
    d.box(572, 196, 160, 56, "matrix unit", "ELWADD", fill=UNIT)
    d.arrow((572, 224), (526, 224))
    d.box(366, 196, 160, 56, "Dst", "16-bit cell 0x207E", fill=FILE)
    d.box(120, 196, 160, 56, "vector unit", "SFPLOAD, SFPSTORE", fill=UNIT)
    d.arrow((366, 214), (280, 214))
    d.arrow((280, 234), (366, 234))
    d.arrow((446, 252), (446, 288))
    d.box(366, 288, 160, 56, "packer", "PACR", fill=UNIT)
    d.arrow((366, 316), (180, 316))
    d.box(20, 288, 160, 56, "L1", "BF16 0x3F20 (0.625)", fill=MEMORY)
    d.text(272, 302, "early conversion, ReLU,", size=11, colour=GREY)
    d.text(272, 334, "late conversion, BFP", size=11, colour=GREY)
    d.text(20, 376, "Cells hold sign, mantissa, exponent in that order:", size=12, at="start")
    d.text(
        20,
        400,
        "0.125 = 2^-3: exponent 124 = 0x7C, mantissa 0.    0.625 = 1.25 * 2^-1: exponent 126 = 0x7E, mantissa 0x20.",
        size=12,
        at="start",
    )
    return d


def request() -> Drawing:
    """A NoC read, step by step."""
    d = Drawing(760, 440, "A NoC read from store to acknowledgement")
    places = ((90, "core B"), (270, "NIU of its tile"), (500, "NIU of tile 5-6"), (670, "L1 of tile 5-6"))
    for x, name in places:
        d.box(x - 72, 16, 144, 34, name, fill=NET if "NIU" in name else CORE if "core" in name else MEMORY, size=12)
        d.line(x, 50, x, 420)
    steps = (
        (90, 90, 270, "TARG_ADDR: where from"), (120, 90, 270, "RET_ADDR: where to"),
        (150, 90, 270, "AT_LEN_BE, CTRL: read 64 B"), (186, 90, 270, "CMD_CTRL = 1: start"),
        (222, 270, 500, "request, over the routers between"), (252, 500, 670, "read 64 bytes"),
        (288, 500, 270, "response: the 64 bytes"),
    )  # fmt: skip
    for y, x1, x2, name in steps:
        d.arrow((x1, y), (x2, y))
        d.text((x1 + x2) / 2, y - 11, name, size=11)
    d.text(282, 318, "bytes to this tile's L1; then", size=11, at="start")
    d.text(282, 334, "RD_RESP_RECEIVED + 1", size=11, at="start")
    d.arrow((90, 366), (270, 366))
    d.text(180, 355, "load the counter", size=11)
    d.arrow((270, 396), (90, 396))
    d.text(180, 385, "it has moved: done", size=11)
    return d


def circular() -> Drawing:
    """A circular buffer between a core that moves data and one that computes."""
    d = Drawing(760, 250, "A circular buffer between dataflow and compute")
    d.box(20, 60, 150, 76, "NC", "reserve, NoC read,", "push", fill=CORE)
    for i, name in enumerate(("page", "page", "(free)", "(free)")):
        d.box(270 + i * 56, 70, 54, 56, name, fill=MEMORY if i < 2 else "white", bold=False, size=12)
    d.text(380, 52, "pages in L1", size=12, colour=GREY)
    d.box(590, 60, 150, 76, "T0", "wait, UNPACR,", "pop", fill=CORE)
    d.arrow((170, 98), (270, 98))
    d.arrow((494, 98), (590, 98))
    d.text(220, 86, "writes", size=11)
    d.text(542, 86, "reads", size=11)
    d.box(
        270,
        168,
        222,
        54,
        "stream register 10: received",
        "stream register 8: acknowledged",
        fill=NET,
        bold=False,
        size=12,
    )
    d.arrow((95, 136), (95, 184), (270, 184), both=True)
    d.arrow((665, 136), (665, 206), (492, 206), both=True)
    d.text(182, 172, "push: received + 1", size=11)
    d.text(578, 194, "pop: acknowledged + 1", size=11)
    d.text(182, 208, "waits while the buffer is full", size=11, colour=GREY)
    d.text(578, 222, "waits while both are equal", size=11, colour=GREY)
    return d


PICTURES: dict[str, Callable[[], Drawing]] = {
    "machine-chip": chip, "machine-tile": tile, "machine-words": words, "machine-dst": dst, "machine-datum": datum,
    "machine-request": request, "machine-circular": circular,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/machine.md.")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    check = parser.parse_args().check
    stale = []
    for name, draw in PICTURES.items():
        path, svg = IMAGES / f"{name}.svg", draw().svg()
        if not check:
            path.write_text(svg, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != svg:
            stale.append(path.name)
    if stale:
        print(f"run tools/machine_pictures.py: {', '.join(stale)} would be drawn otherwise", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
