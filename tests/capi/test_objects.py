"""What a library is made of."""

from __future__ import annotations

import pytest

from bhemu.capi import objects
from bhemu.machine.codegen import JIT
from bhemu.tensix import coprocessor

_MOST_BYTES = 400_000
"""Of an entry's object file."""


@pytest.mark.plain
def test_each_function_of_the_table_of_handlers_is_a_part() -> None:
    assert {-place for place in coprocessor._provided} <= objects._PARTS.keys()


@pytest.mark.skipif(not JIT, reason="nothing is compiled")
def test_no_entry_is_so_large_that_optimizing_it_takes_minutes() -> None:
    sizes = {key: len(content) for key, (_, content) in objects.compile_all().objects.items()}
    large = {key: size for key, size in sizes.items() if size > _MOST_BYTES}
    assert sizes
    assert not large, "python tools/entry_sizes.py says what is in them how often"
