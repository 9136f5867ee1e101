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
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import numpy as np

from bhemu.errors import ProgramError
from bhemu.report.figures import Report
from bhemu.report.noc import NODE_NAMES
from bhemu.report.text import report_as_json, summary_lines
from bhemu.report.timeline import KIND_NAMES

Array = np.ndarray[Any, Any]

_SCRIPTS: Final = ("timeline.js", "links.js", "work.js", "page.js")


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


def _timeline(report: Report) -> tuple[Mapping[str, Any], dict[str, str]]:
    """What the page has to know of the timeline, and the columns of its events, by the name of their element."""
    timeline = report.timeline
    begin, length, track, kind, text = timeline.columns()
    firsts = np.searchsorted(track, np.arange(len(timeline.tracks) + 1))
    told = {
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
    return told, arrays


def _pictures(report: Report) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """What the page has to know of the pictures, and the numbers, by the name of their element."""
    told: list[Mapping[str, Any]] = []
    arrays: dict[str, str] = {}
    for number, (title, what, values) in enumerate(report.pictures):
        name = f"picture{number}"
        told.append({"title": title, "what": what, "rows": len(values), "values": name})
        arrays[name] = _packed(values, "<f4")
    return told, arrays


def _inert(name: str, content: str, kind: str = "text/plain") -> str:
    """An element that the browser does nothing with; scripts read its content."""
    return f'<script type="{kind}" id="{name}">{content}</script>\n'


def page(report: Report, title: str) -> str:
    """The page.

    Args:
        report: to show.
        title: of the page, such as the name of the recording's directory.

    Raises:
        ProgramError: the package with the charts is not installed.
    """
    timeline, arrays = _timeline(report)
    pictures, values = _pictures(report)
    data = {
        "title": title,
        "summary": summary_lines(report),
        "report": report_as_json(report),
        "timeline": timeline,
        "pictures": pictures,
        "nodes": [[*place, name] for place, name in NODE_NAMES.items()],
    }
    files = resources.files("bhemu.report").joinpath("data")
    form = files.joinpath("page.html").read_text(encoding="utf-8")
    parts = {"TITLE": html.escape(title), "STYLE": files.joinpath("page.css").read_text(encoding="utf-8")}
    for name, content in parts.items():
        form = form.replace(f"<!--{name}-->", content, 1)
    head, _, tail = form.partition("<!--SCRIPTS-->")
    elements = [_inert("data", json.dumps(data).replace("</", "<\\/"), "application/json")]
    elements += [_inert(f"array-{name}", content) for name, content in (arrays | values).items()]
    elements.append(_inert("charts", charts_script().replace("</script", "<\\/script")))
    scripts = [files.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return "".join([head, *elements, *(f"<script>{script}</script>\n" for script in scripts), tail])
