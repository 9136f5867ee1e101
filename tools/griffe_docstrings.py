"""For mkdocstrings: our docstrings say `Example:`, which Griffe reads as a paragraph of that name, not as code."""

from __future__ import annotations

import re
from typing import Any

import griffe


class Examples(griffe.Extension):  # type: ignore[misc]  # mypy does not look at griffe
    """Reads `Example:` sections as examples."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every object that Griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
