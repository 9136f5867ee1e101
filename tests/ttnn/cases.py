"""All cases of the sweep."""

from __future__ import annotations

from tests.ttnn import binary, matmuls, movement, networks, norms, reductions, settled, training, unary
from tests.ttnn.case import Case, Group

GROUPS: tuple[Group, ...] = (
    unary.group,
    binary.group,
    reductions.group,
    matmuls.group,
    norms.group,
    movement.group,
    networks.group,
    training.backward,
    training.moreh,
    training.random,
    settled.group,
)
CASES: tuple[Case, ...] = tuple(case for group in GROUPS for case in group.cases)
