"""Whether workers of a cluster can be started here: they need mpi4py and Open MPI, which `make test-hosts` installs."""

from __future__ import annotations

import pytest

from bhemu.errors import ConfigurationError
from bhemu.hosts import engine


def engine_is_missing() -> str:
    """Why no workers can be started here; empty: they can."""
    try:
        engine.mpiexec()
    except ConfigurationError as error:
        return str(error)
    return ""


WHY = engine_is_missing()
needs_engine = pytest.mark.skipif(bool(WHY), reason=f"{WHY} (make test-hosts installs both)")
