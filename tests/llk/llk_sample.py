"""A pytest plugin for the LLK suite: keep a fixed sample of each test's parametrisations (BHEMU_LLK_SAMPLE, default 5).

The sample is spread evenly over the list that pytest collects, and the same in every run.
"""

from __future__ import annotations

import os
from typing import Any


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    count = int(os.environ.get("BHEMU_LLK_SAMPLE", "5"))
    groups: dict[str, list[Any]] = {}
    for item in items:
        groups.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept: list[Any] = []
    for group in groups.values():
        take = min(count, len(group))
        kept += [group[(2 * i + 1) * len(group) // (2 * take)] for i in range(take)]
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = kept
