"""The C compiler that tests take: the one that makes the C library."""

from __future__ import annotations

import pytest

from bhemu.capi.compiler import c_compiler
from bhemu.errors import ProgramError


def compiler_or_skip(loss: str) -> list[str]:
    """Its command, options of the user's included; without one the test is skipped.

    Args:
        loss: what is then not tested, for the reason that is shown.
    """
    try:
        return c_compiler()
    except ProgramError as error:
        pytest.skip(f"{loss}: {error.message}")
