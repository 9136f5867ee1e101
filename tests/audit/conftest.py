"""The benches of tests/tensix and the logs of tests/debug serve here too."""

from __future__ import annotations

import sys
from pathlib import Path

for _room in ("tensix", "debug"):
    sys.path.insert(0, str(Path(__file__).parents[1] / _room))
