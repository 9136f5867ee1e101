"""The C library, and a client of it that waits for a debugger."""

from __future__ import annotations

from tests.capi.conftest import library

__all__ = ["library"]
