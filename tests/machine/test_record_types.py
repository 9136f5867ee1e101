"""What mypy is told of compiled code: the fields of the records as they are, and few exceptions, each with a reason."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tools.record_types import TARGET, text

ROOT = Path(__file__).resolve().parents[2]
EXCEPTIONS = {
    # Its arguments are objects of Numba and llvmlite, which have no annotations.
    "bhemu/machine/_lanes_compiled.py": ['# mypy: disable-error-code="no-untyped-def, no-untyped-call"'],
    "bhemu/machine/_lanes_halves.py": ['# mypy: disable-error-code="no-untyped-def, no-untyped-call"'],
    "bhemu/machine/_lanes_type.py": ['# mypy: disable-error-code="no-untyped-def, no-untyped-call"'],
}
"""Modules in which mypy leaves out checks, and which."""
OVERRIDES = [
    {
        "module": [
            "numba.*",
            "llvmlite.*",
            "greenlet.*",
            "matplotlib.*",
            "plotly.*",
            "ttnn",
            "dask.*",
            "unicorn.*",
            "mpi4py.*",
        ],
        "ignore_missing_imports": True,
    },
    # Only the environment of the documentation has them: the same is found in each.
    {"module": ["griffe.*", "nbformat.*", "nbclient.*"], "follow_imports": "skip", "ignore_missing_imports": True},
]
"""Settings for single modules: packages that come without annotations, or with few."""


@pytest.mark.plain
def test_the_types_of_the_records_are_made_from_their_dtypes() -> None:
    assert TARGET.read_text() == text(), "run python tools/record_types.py"


@pytest.mark.plain
def test_mypy_is_strict_in_all_modules_of_the_package_and_in_scripts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings.pop("overrides") == OVERRIDES
    assert settings == {"strict": True, "python_version": "3.11", "packages": ["bhemu", "tools", "tests.llk"]}


@pytest.mark.plain
def test_only_modules_that_are_named_here_leave_out_checks_of_mypy() -> None:
    found = {}
    for module in (ROOT / "bhemu").rglob("*.py*"):
        if module.suffix in (".py", ".pyi"):
            headers = re.findall(r"^ *# *(?:mypy:|type: *ignore).*", module.read_text(), re.MULTILINE)
            if headers:
                found[module.relative_to(ROOT).as_posix()] = headers
    assert found == EXCEPTIONS
