"""The report as one HTML file, which opens without a server and without a network.

Charts are Plotly's (MIT licence). Its script comes from the installed `plotly` package and becomes part of the page.
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
from bhemu.report.model import Report
from bhemu.report.text import report_as_json, summary_lines
from bhemu.report.timeline import KIND_NAMES

Array = np.ndarray[Any, Any]

_DATA: Final = "/*DATA*/null"


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


def _timeline(report: Report) -> Mapping[str, Any]:
    timeline = report.timeline
    begin, length, track, kind, text = timeline.columns()
    firsts = np.searchsorted(track, np.arange(len(timeline.tracks) + 1))
    return {
        "tracks": [[f"{x}-{y}", name] for (x, y), name in timeline.tracks],
        "firsts": firsts.tolist(),
        "texts": timeline.texts,
        "kinds": list(KIND_NAMES),
        "begin": _packed(begin, "<f8"),
        "length": _packed(length, "<f4"),
        "kind": _packed(kind, "u1"),
        "text": _packed(text, "<u4"),
    }


def _pictures(report: Report) -> list[Mapping[str, Any]]:
    return [
        {"title": title, "what": what, "rows": len(values), "values": _packed(values, "<f4")}
        for title, what, values in report.pictures
    ]


def page(report: Report, title: str) -> str:
    """The page.

    Args:
        report: to show.
        title: of the page, such as the name of the recording's directory.

    Raises:
        ProgramError: the package with the charts is not installed.
    """
    data = {
        "title": title,
        "summary": summary_lines(report),
        "report": report_as_json(report),
        "timeline": _timeline(report),
        "pictures": _pictures(report),
    }
    files = resources.files("bhemu.report").joinpath("data")
    text = json.dumps(data).replace("</", "<\\/")
    script = files.joinpath("page.js").read_text(encoding="utf-8").replace(_DATA, text, 1)
    form = files.joinpath("page.html").read_text(encoding="utf-8")
    parts = {"TITLE": html.escape(title), "STYLE": files.joinpath("page.css").read_text(encoding="utf-8")}
    for name, content in parts.items():
        form = form.replace(f"<!--{name}-->", content, 1)
    charts = charts_script().replace("</script", "<\\/script")
    head, _, tail = form.partition("<!--SCRIPTS-->")
    return f"{head}<script>{charts}</script>\n<script>{script}</script>{tail}"
