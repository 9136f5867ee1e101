"""The report as one HTML file, which opens without a server and without a network.

Charts are Plotly's (MIT licence). Its script comes from the installed `plotly` package and becomes part of the page, as
text: the page executes it when the first chart comes into view. Numbers of events and pictures are elements of their
own, which the page unpacks when it draws them.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final

import numpy as np

from bhemu.errors import ProgramError
from bhemu.report.chips import chips_on_page, shared_on_page
from bhemu.report.figures import Report
from bhemu.report.noc import NODE_NAMES
from bhemu.report.text import report_as_json
from bhemu.report.timeline import KIND_NAMES

Array = np.ndarray[Any, Any]

_SCRIPTS: Final = ("timeline.js", "links.js", "work.js", "chips.js", "page.js")
_OF_ALL: Final = ("links", "peaks", "time")
"""What reports of all chips have in common."""


def charts_script() -> str:
    """Plotly's script.

    Raises:
        ProgramError: the package is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ProgramError(
            "the page needs the package `plotly`, which is not installed",
            remedy="pip install 'bhemu[report]'; --json and --perfetto work without it",
        ) from None
    return str(get_plotlyjs())


def _packed(array: Array, kind: str) -> str:
    """Compressed little-endian numbers as text."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array, kind).tobytes(), 6)).decode()


def _timeline(report: Report, number: int) -> tuple[Mapping[str, Any], dict[str, str]]:
    """What the page has to know of the timeline, and the columns of its events, by the name of their element."""
    timeline = report.timeline
    begin, length, track, kind, text = timeline.columns()
    firsts = np.searchsorted(track, np.arange(len(timeline.tracks) + 1))
    told = {
        "span": [float(begin.min()), float((begin + length).max())] if len(begin) else [],
        "tracks": [[f"{x}-{y}", name] for (x, y), name in timeline.tracks],
        "firsts": firsts.tolist(),
        "texts": timeline.texts,
        "kinds": list(KIND_NAMES),
        "most": [timeline.levels[key].most if key in timeline.levels else 0 for key in timeline.tracks],
    }
    arrays = {
        "begin": _packed(begin, "<f8"),
        "length": _packed(length, "<f4"),
        "kind": _packed(kind, "u1"),
        "text": _packed(text, "<u4"),
    }
    return told, {f"{number}-{name}": content for name, content in arrays.items()}


def _pictures(report: Report, chip: int) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """What the page has to know of the pictures, and the numbers, each once, by the name of their element."""
    told: list[Mapping[str, Any]] = []
    names: dict[str, str] = {}
    for picture in report.pictures:
        x, y = picture.place
        name = names.setdefault(_packed(picture.values, "<f4"), f"{chip}-picture{len(names)}")
        about = {"tile": f"{x}-{y}", "what": picture.what, "detail": picture.detail, "clock": picture.clock}
        told.append({**about, "rows": len(picture.values), "values": name})
    return told, {name: content for content, name in names.items()}


def _inert(name: str, content: str, kind: str = "text/plain") -> str:
    """An element that the browser does nothing with; scripts read its content."""
    return f'<script type="{kind}" id="{name}">{content}</script>\n'


def _chip(report: Report, number: int) -> tuple[Mapping[str, Any], dict[str, str]]:
    """What the page has to know of a chip alone, and its numbers, by the name of their element."""
    timeline, arrays = _timeline(report, number)
    pictures, values = _pictures(report, number)
    told = {name: content for name, content in report_as_json(report).items() if name not in (*_OF_ALL, "chips")}
    return {"number": report.chip, "report": told, "timeline": timeline, "pictures": pictures}, arrays | values


def page(reports: Sequence[Report], title: str, *, chip: int | None = None) -> str:
    """The page.

    Args:
        reports: to show, of one chip or of several.
        title: of the page, such as the name of the recording's directory.
        chip: number of the one that is shown first, of several; None: the first of `reports`.

    Raises:
        ProgramError: the package with the charts is not installed.
    """
    chips = [_chip(report, number) for number, report in enumerate(reports)]
    data = {
        "title": title,
        "first": next((n for n, report in enumerate(reports) if report.chip == chip), 0),
        "chips": [told for told, _ in chips],
        "shared": {name: content for name, content in report_as_json(reports[0]).items() if name in _OF_ALL},
        "system": chips_on_page(reports[0].chips),
        "operations": shared_on_page(reports[0].chips),
        "nodes": [[*place, name] for place, name in NODE_NAMES.items()],
    }
    arrays = {name: content for _, own in chips for name, content in own.items()}
    files = resources.files("bhemu.report").joinpath("data")
    form = files.joinpath("page.html").read_text(encoding="utf-8")
    parts = {"TITLE": html.escape(title), "STYLE": files.joinpath("page.css").read_text(encoding="utf-8")}
    for name, content in parts.items():
        form = form.replace(f"<!--{name}-->", content, 1)
    head, _, tail = form.partition("<!--SCRIPTS-->")
    elements = [_inert("data", json.dumps(data).replace("</", "<\\/"), "application/json")]
    elements += [_inert(f"array-{name}", content) for name, content in arrays.items()]
    elements.append(_inert("charts", charts_script().replace("</script", "<\\/script")))
    scripts = [files.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "".join([head, *elements, *(f"<script>{script}</script>\n" for script in scripts), tail])
