"""A chip for kernels with planted faults, which the stock compiler builds."""

from __future__ import annotations

import pytest

import bhemu
from bhemu.cc import MissingTool, find_toolchain


@pytest.fixture(scope="module")
def chip() -> bhemu.Chip:
    try:
        find_toolchain()
    except MissingTool as missing:
        pytest.skip(f"NO COMPILER: {missing.message}; {missing.remedy}")
    return bhemu.Chip()
