"""A hook of MkDocs: on the pages about the machine, each rule id becomes a link to its rule."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tools import rule_ids

_KEPT = re.compile(r"(`[^`]*`|!?\[[^\]]*\]\([^)]*\)|</?[a-z][^>]*>[^|<]*|^#.*$)", re.MULTILINE)
"""Code, links, anchors with the id that follows them, headings."""
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def _target(entry: rule_ids.Entry, page: str) -> str:
    return posixpath.relpath(f"rules/{entry.page}", posixpath.dirname(page)) + f"#{entry.anchor}"


def linked(text: str, page: str, known: dict[str, rule_ids.Entry]) -> str:
    """The Markdown `text` with links on the ids in it.

    Args:
        text: of a page.
        page: its path in docs.
        known: `rule_ids.entries()`.
    """

    def link(match: re.Match[str]) -> str:
        family = match["family"] or ""
        if match[0] in known:  # ethernet 2.1
            return f"[{match[0]}]({_target(known[match[0]], page)})"

        def one(part: re.Match[str]) -> str:
            rule = rule_ids.identify(part[2], family)
            if rule not in known:
                return part[0]
            return f"{part[1] or ''}[{part[2]}]({_target(known[rule], page)})"

        return family + rule_ids.PART.sub(one, match[0].removeprefix(family))

    pieces = _FENCE.split(text)
    for i in range(0, len(pieces), 2):
        parts = _KEPT.split(pieces[i])
        parts[::2] = [rule_ids.GROUP.sub(link, part) for part in parts[::2]]
        pieces[i] = "".join(parts)
    return "".join(pieces)


_known: dict[str, rule_ids.Entry] = {}


def on_pre_build(config: Any) -> None:
    _known.clear()
    _known.update(rule_ids.entries())


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    where = page.file.src_uri
    return linked(markdown, where, _known) if where.startswith("rules/") or where == "machine.md" else markdown
