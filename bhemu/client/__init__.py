"""A debugger inside of a running client's simulator, and the other end of its socket."""

from __future__ import annotations

from bhemu.client.attached import Attached, attach

__all__ = ["Attached", "attach"]
