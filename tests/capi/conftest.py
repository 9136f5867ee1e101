"""The C library, built once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bhemu.capi import build


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("THE C LIBRARY IS NOT TESTED: there is no C compiler")
    return build(tmp_path_factory.mktemp("simulator"))
