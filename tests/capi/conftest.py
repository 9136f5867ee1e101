"""The C library, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capi.library_client import built


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("simulator"))
