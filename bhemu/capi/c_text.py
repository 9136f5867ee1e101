"""Python values as C text."""

from __future__ import annotations

from collections.abc import Iterable


def c_string(text: str) -> str:
    """A string literal."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("?", "\\?")
    return '"' + "".join(c if c.isascii() else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in plain) + '"'


def c_numbers(values: Iterable[int]) -> str:
    """Numbers for an array, in lines."""
    texts = [str(value) for value in values]
    return ",\n    ".join(", ".join(texts[i : i + 24]) for i in range(0, len(texts), 24)) or "0"
